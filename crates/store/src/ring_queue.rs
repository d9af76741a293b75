//! The queue of files read through a ring.
//!
//! One thread opens files, hands reads to the kernel and takes results, so that up to the queue's
//! depth of reads are under way across files. A read is handed over as soon as it is known: what the
//! page cache has is there at once, and its lane, still warm in the processor's cache, is the next
//! to be used. Bytes for the caller's memory go there directly; only the edges of a direct read, which
//! are not whole blocks, pass through a lane.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use feedline_clock::Clock;

use crate::buffer::is_aligned;
use crate::open_file::{failed, file_len, short};
use crate::pieces::{Piece, Pieces, Portions};
use crate::queue::{Delivery, Destination};
use crate::ring::{Finished, LaneScope, Lanes, Wait};
use crate::{
    BLOCK_BYTES, Call, CallOutcome, ObjectRange, Op, Posix, ReadQueue, Result, Store, StoreError,
};

/// A queue over the files of a store.
pub(crate) struct RingQueue {
    files: Files,
    lanes: Lanes,
    depth: usize,
}

/// How files are opened and cut into reads.
struct Files {
    store: Posix,
    clock: Clock,
    /// What files are read in multiples of.
    block: u64,
    /// The longest single read, in bytes.
    longest: usize,
}

/// A file that is open. Closed when the last read of it has ended and no more will come, so that
/// there are never more of them than lanes, and the one that is being handed out.
struct Opened {
    file: File,
    path: PathBuf,
    /// Index of the range that it was opened for.
    range: usize,
}

/// What a lane does.
struct Read<'b> {
    opened: Arc<Opened>,
    range: usize,
    piece: Piece,
    /// Where the bytes that were asked for are copied to from the lane.
    copy_to: Option<&'b mut [u8]>,
    /// Bytes of the piece that have come.
    done: usize,
    began_ns: u64,
}

/// The range that is being handed out, its file, and what of it is left.
struct Current<'b> {
    range: usize,
    opened: Arc<Opened>,
    portions: Portions<'b>,
}

/// Where one call of [`ReadQueue::read`] is.
struct Course<'a, 'd, 'b> {
    files: &'a Files,
    ranges: &'a [ObjectRange],
    /// Index of the range after the current one.
    next: usize,
    current: Option<Current<'b>>,
    /// The reads of the lanes.
    reads: Vec<Option<Read<'b>>>,
    /// Lanes without a read, the one used last on top.
    idle: Vec<usize>,
    delivery: Delivery<'d, 'b>,
    seen: &'a mut dyn FnMut(Call),
}

impl RingQueue {
    /// A queue that keeps up to `depth` reads under way.
    pub(crate) fn new(store: Posix, depth: usize) -> Result<RingQueue> {
        let depth = depth.max(1);
        let block = if store.is_direct() { BLOCK_BYTES as u64 } else { 1 };
        let lane_bytes = store.read_bytes().next_multiple_of(BLOCK_BYTES);
        let longest = store.read_bytes().next_multiple_of(block as usize);
        let lanes = Lanes::new(depth, lane_bytes)?;
        Ok(RingQueue { files: Files { store, clock: Clock::real(), block, longest }, lanes, depth })
    }
}

impl ReadQueue for RingQueue {
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64> {
        let mut course = Course::new(&self.files, self.depth, ranges, to, seen);
        self.lanes.scope(|lanes| course.run(lanes))?;
        Ok(course.delivery.bytes())
    }
}

impl<'a, 'd, 'b> Course<'a, 'd, 'b> {
    fn new(
        files: &'a Files,
        depth: usize,
        ranges: &'a [ObjectRange],
        to: Destination<'d, 'b>,
        seen: &'a mut dyn FnMut(Call),
    ) -> Course<'a, 'd, 'b> {
        let reads = (0..depth).map(|_| None).collect();
        let idle = (0..depth).rev().collect();
        let delivery = Delivery::new(ranges, to);
        Course { files, ranges, next: 0, current: None, reads, idle, delivery, seen }
    }

    /// Runs to the end, or to an error that ends everything and may leave reads under way.
    fn run(&mut self, lanes: &mut LaneScope<'_, 'b>) -> Result<()> {
        loop {
            let mut wait = Wait::ForOne;
            if !self.idle.is_empty() && self.begin_next(lanes)? && !self.idle.is_empty() {
                wait = Wait::No;
            }
            if lanes.in_flight() == 0 {
                return Ok(());
            }
            lanes.enter(wait).map_err(|source| StoreError::RingRefused { source })?;
            while let Some(finished) = lanes.finished() {
                self.settle(lanes, finished)?;
            }
        }
    }

    /// Puts the next read under way, if there is one. Opens files as they come.
    fn begin_next(&mut self, lanes: &mut LaneScope<'_, 'b>) -> Result<bool> {
        loop {
            if let Some(Current { range, opened, portions }) = &mut self.current
                && !self.delivery.has_failed(*range)
                && let Some((piece, memory)) = portions.next()
            {
                let (range, opened) = (*range, Arc::clone(opened));
                match self.begin(lanes, range, opened, piece, memory) {
                    Ok(()) => return Ok(true),
                    Err(error) => self.delivery.settle(range, Err(error))?,
                }
                continue;
            }
            let range = self.next;
            let last = self.current.take();
            if range == self.ranges.len() {
                return Ok(false);
            }
            self.next += 1;
            match self.hand_out(range, last) {
                Ok(current) => self.current = Some(current),
                Err(error) => self.delivery.settle(range, Err(error))?,
            }
        }
    }

    /// Opens the file of a range, unless the last one had the same, and cuts it.
    fn hand_out(&mut self, range: usize, last: Option<Current<'b>>) -> Result<Current<'b>> {
        let Files { store, clock, block, longest } = self.files;
        let asked = &self.ranges[range];
        let opened = match last {
            Some(last) if self.ranges[last.range].key == asked.key => last.opened,
            _ => {
                let open = || store.open_to_read(&asked.key);
                let (file, path) = Call::new(Op::Open, range).make(self.seen, clock, open)?;
                Arc::new(Opened { file, path, range })
            }
        };
        let memory = self.delivery.memory(range);
        let end = match asked.len {
            Some(len) => {
                // No file is longer, and a later end could not be rounded up to a block.
                let end = asked.offset.checked_add(len).filter(|&end| i64::try_from(end).is_ok());
                end.ok_or_else(|| short(&opened.path, asked.offset, len, 0))?
            }
            None => {
                let ask = || file_len(&opened.file, &opened.path);
                Call::new(Op::Stat, opened.range).make(self.seen, clock, ask)?
            }
        };
        let pieces = Pieces { next: asked.offset, end, block: *block, longest: *longest };
        let portions = Portions::new(pieces, memory, || opened.path.display().to_string())?;
        Ok(Current { range, opened, portions })
    }

    fn begin(
        &mut self,
        lanes: &mut LaneScope<'_, 'b>,
        range: usize,
        opened: Arc<Opened>,
        piece: Piece,
        memory: Option<&'b mut [u8]>,
    ) -> Result<()> {
        let lane = *self.idle.last().expect("reads begin while a lane is idle");
        let began_ns = self.files.clock.now();
        let is_whole = piece.len as u64 == piece.asked;
        let fits = |memory: &[u8]| is_whole && (self.files.block == 1 || is_aligned(memory));
        let (copy_to, direct) = match memory {
            Some(memory) if fits(memory) => (None, Some(memory)),
            memory => (memory, None),
        };
        let read = Read { opened, range, piece, copy_to, done: 0, began_ns };
        push(lanes, lane, &read, direct)?;
        self.idle.pop();
        self.reads[lane] = Some(read);
        Ok(())
    }

    /// Takes a result: the end of the read, or the reason to ask again for the rest.
    fn settle(&mut self, lanes: &mut LaneScope<'_, 'b>, finished: Finished<'b>) -> Result<()> {
        let Finished { lane, result, mut memory } = finished;
        let mut read = self.reads[lane].take().expect("a lane with a result has a read");
        let mut progress = match result {
            Ok(count) => {
                read.done += count;
                memory = memory.map(|memory| &mut memory[count..]);
                // Going on from inside a block would not be aligned: that is the end of the file.
                Ok(count > 0 && (read.done as u64).is_multiple_of(self.files.block))
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                Ok(true)
            }
            Err(error) => Err(failed(Op::Read, &read.opened.path, error)),
        };
        let (piece, found) = (read.piece, read.piece.found(read.done));
        let is_full = found == piece.asked;
        if matches!(progress, Ok(true)) && !is_full {
            match push(lanes, lane, &read, memory) {
                Ok(()) => {
                    self.reads[lane] = Some(read);
                    return Ok(());
                }
                Err(error) => progress = Err(error),
            }
        }
        let duration_ns = self.files.clock.now().saturating_sub(read.began_ns);
        self.idle.push(lane);
        let outcome =
            if is_full { CallOutcome::Done { bytes: found } } else { CallOutcome::Failed };
        let (offset, asked) = (piece.asked_from, piece.asked);
        let call = Call::new(Op::Read, read.opened.range);
        (self.seen)(Call { offset, asked, duration_ns, outcome, ..call });
        let result = match progress {
            Err(error) => Err(error),
            Ok(_) if is_full => {
                if let Some(memory) = read.copy_to {
                    let skip = (piece.asked_from - piece.start) as usize;
                    memory.copy_from_slice(&lanes.lane(lane)[skip..skip + memory.len()]);
                }
                Ok(found)
            }
            Ok(_) => Err(short(&read.opened.path, offset, asked, found)),
        };
        self.delivery.settle(read.range, result)
    }
}

/// Prepares what is missing of a read: into the memory that it is to go to, or into its lane.
fn push<'b>(
    lanes: &mut LaneScope<'_, 'b>,
    lane: usize,
    read: &Read<'b>,
    memory: Option<&'b mut [u8]>,
) -> Result<()> {
    let Read { opened, piece, done, .. } = read;
    let offset = piece.start + *done as u64;
    let pushed = match memory {
        Some(memory) => lanes.push_into(lane, &opened.file, offset, memory),
        None => lanes.push(lane, &opened.file, offset, *done..piece.len),
    };
    pushed.map_err(|source| failed(Op::Read, &opened.path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuf, Mode, ReadBuffer};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn pattern(len: usize) -> Vec<u8> {
        (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// A queue of reads of 8 KiB over a folder with one file.
    fn queue(mode: Mode, depth: usize, bytes: &[u8]) -> (tempfile::TempDir, RingQueue) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("it"), bytes).unwrap();
        let store = Posix::new(folder.path(), mode).with_read_bytes(8192).with_ring().unwrap();
        (folder, RingQueue::new(store, depth).unwrap())
    }

    fn whole() -> ObjectRange {
        ObjectRange { key: "it".to_owned(), offset: 0, len: None }
    }

    fn finish<'b>(lanes: &mut LaneScope<'_, 'b>) -> Finished<'b> {
        loop {
            lanes.enter(Wait::ForOne).unwrap();
            if let Some(finished) = lanes.finished() {
                return finished;
            }
        }
    }

    #[test]
    fn bytes_reach_memory_with_and_without_a_lane_between() {
        let bytes = pattern(30_000);
        for mode in [Mode::Buffered, Mode::Direct] {
            let (_folder, mut queue) = queue(mode, 3, &bytes);
            // Whole blocks to aligned memory go directly; other offsets, lengths and memory do not.
            for (skip, offset, len) in
                [(0, 0, 16_384), (1, 0, 8192), (0, 5, 20_000), (0, 0, 30_000)]
            {
                let mut memory = AlignedBuf::new(skip + len);
                let mut buffers = [ReadBuffer::new(&mut memory[skip..])];
                let range = ObjectRange { offset: offset as u64, len: Some(len as u64), ..whole() };
                let read = queue.read(&[range], Destination::Buffers(&mut buffers), &mut |_| ());
                assert_eq!(read.unwrap(), len as u64);
                assert!(
                    memory[skip..] == bytes[offset..offset + len],
                    "{mode:?} {len} at {offset}"
                );
            }
        }
    }

    #[test]
    fn a_read_that_stopped_early_goes_on() {
        let bytes = pattern(10_000);
        for (mode, stopped_at) in [(Mode::Buffered, 1), (Mode::Direct, 4096)] {
            for is_discarded in [true, false] {
                let (_folder, mut queue) = queue(mode, 2, &bytes);
                let mut calls = Vec::new();
                let mut seen = |call: Call| calls.push((call.op, call.outcome));
                let ranges = [whole()];
                let mut memory = AlignedBuf::new(10_000);
                let mut buffers = [ReadBuffer::new(&mut memory)];
                let to = match is_discarded {
                    true => Destination::Discard,
                    false => Destination::Buffers(&mut buffers),
                };
                let mut course = Course::new(&queue.files, 2, &ranges, to, &mut seen);
                queue.lanes.scope(|lanes| {
                    assert!(course.begin_next(lanes).unwrap());
                    let finished = finish(lanes);
                    let lane = finished.lane;
                    assert_eq!(*finished.result.as_ref().unwrap(), 8192);
                    // As if the kernel had read less, or had been interrupted before the rest.
                    course.settle(lanes, Finished { result: Ok(stopped_at), ..finished }).unwrap();
                    let done = course.reads[lane].as_ref().unwrap().done;
                    assert_eq!((lanes.in_flight(), done), (1, stopped_at));
                    course.run(lanes).unwrap();
                });
                assert_eq!(course.delivery.bytes(), 10_000);
                let well = |op, bytes| (op, CallOutcome::Done { bytes });
                calls.sort();
                let reads = [well(Op::Read, 1808), well(Op::Read, 8192)];
                assert_eq!(calls, [[well(Op::Open, 0), well(Op::Stat, 0)], reads].concat());
                assert!(is_discarded || *memory == bytes, "{mode:?}");
            }
        }
    }

    #[test]
    fn a_queue_left_with_reads_under_way_is_sound() {
        let bytes = pattern(1 << 20);
        for mode in [Mode::Buffered, Mode::Direct] {
            let (_folder, mut queue) = queue(mode, 8, &bytes);
            let mut reads = 0;
            let mut memory = AlignedBuf::new(1 << 20);
            let left = catch_unwind(AssertUnwindSafe(|| {
                let mut buffers = [ReadBuffer::new(&mut memory)];
                queue.read(&[whole()], Destination::Buffers(&mut buffers), &mut |call| {
                    reads += usize::from(call.op == Op::Read);
                    assert!(reads < 3, "enough");
                })
            }));
            assert!(left.is_err());
            // Nothing is written to the memory any more.
            memory.fill(7);
            let read = queue.read(&[whole()], Destination::Discard, &mut |_| ());
            assert_eq!(read.unwrap(), 1 << 20);
            assert!(memory.iter().all(|&byte| byte == 7));

            let (ranges, mut seen) = ([whole()], |_| ());
            let mut buffers = [ReadBuffer::new(&mut memory)];
            let to = Destination::Buffers(&mut buffers);
            let mut course = Course::new(&queue.files, 8, &ranges, to, &mut seen);
            queue.lanes.scope(|lanes| {
                (0..8).for_each(|_| assert!(course.begin_next(lanes).unwrap()));
                lanes.enter(Wait::No).unwrap();
            });
            drop(queue);
            memory.fill(7);
        }
    }

    #[test]
    fn files_are_closed_as_it_goes() {
        let (folder, mut queue) = queue(Mode::Buffered, 2, b"12345");
        let mut ranges = Vec::new();
        for i in 0..50 {
            std::fs::write(folder.path().join(format!("{i}")), b"678").unwrap();
            ranges.push(ObjectRange { key: format!("{i}"), offset: 0, len: None });
        }
        let open_here = || {
            let links = std::fs::read_dir("/proc/self/fd").unwrap();
            let links = links.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
            links.filter(|path| path.starts_with(folder.path())).count()
        };
        let mut most = 0;
        let mut note = |_| most = most.max(open_here());
        assert_eq!(queue.read(&ranges, Destination::Discard, &mut note).unwrap(), 150);
        assert!((1..=3).contains(&most), "{most} files open at depth 2");
        assert_eq!(open_here(), 0);
    }
}
