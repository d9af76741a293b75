//! The queue of files read through a ring.
//!
//! One thread opens files, hands reads to the kernel and takes results, so that up to the queue's
//! depth of reads are under way across files. A read is handed over as soon as it is known: what the
//! page cache has is there at once, and its lane, still warm in the processor's cache, is the next
//! to be used.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use feedline_clock::Clock;

use crate::piece::{Piece, Pieces};
use crate::queue::{NO_BYTES, show};
use crate::ring::{Lanes, Wait};
use crate::source::{failed, file_len, short};
use crate::{BLOCK_BYTES, Call, Ended, Extent, Op, Posix, ReadQueue, Store, StoreError};

/// A queue over the files of a store.
pub(crate) struct RingQueue {
    store: Posix,
    clock: Clock,
    lanes: Lanes,
    /// The reads of the lanes.
    reads: Vec<Read>,
    /// Lanes without a read, the one used last on top.
    idle: Vec<usize>,
    /// What files are read in multiples of.
    block: u64,
    /// Longest read.
    longest: usize,
}

/// A file that is open. Closed when the last read of it has ended and no more will come, so that
/// there are never more of them than lanes, and the one that is being handed out.
struct Opened {
    file: File,
    path: PathBuf,
    /// Number of the extent that it was opened for.
    extent: usize,
}

/// What a lane does.
#[derive(Default)]
struct Read {
    opened: Option<Arc<Opened>>,
    piece: Piece,
    /// Bytes of the piece that have come.
    done: usize,
    began_ns: u64,
}

/// Where one call of [`ReadQueue::read`] is.
struct Course<'a> {
    extents: std::iter::Enumerate<std::slice::Iter<'a, Extent>>,
    /// The extent that is being handed out, its file, and what of it is left.
    current: Option<(&'a Extent, Arc<Opened>, Pieces)>,
    seen: &'a mut dyn FnMut(Call),
    bytes: u64,
}

impl RingQueue {
    /// A queue that keeps up to `depth` reads under way.
    pub(crate) fn new(store: Posix, depth: usize) -> Result<RingQueue, StoreError> {
        let depth = depth.max(1);
        let block = if store.is_direct() { BLOCK_BYTES as u64 } else { 1 };
        let lane_bytes = store.read_bytes().next_multiple_of(BLOCK_BYTES);
        let longest = store.read_bytes().next_multiple_of(block as usize);
        let lanes = Lanes::new(depth, lane_bytes)?;
        let reads = (0..depth).map(|_| Read::default()).collect();
        let idle = (0..depth).rev().collect();
        Ok(RingQueue { store, clock: Clock::real(), lanes, reads, idle, block, longest })
    }

    /// Runs a course to its end or to the first error, which may leave reads under way.
    fn run(&mut self, course: &mut Course<'_>) -> Result<(), StoreError> {
        loop {
            let mut wait = Wait::ForOne;
            if let Some(&lane) = self.idle.last()
                && let Some((opened, piece)) = self.next_piece(course)?
            {
                self.idle.pop();
                self.begin(lane, opened, piece)?;
                if !self.idle.is_empty() {
                    wait = Wait::No;
                }
            }
            if self.lanes.in_flight() == 0 {
                return Ok(());
            }
            let entered = self.lanes.enter(wait);
            entered.map_err(|source| StoreError::RingRefused { source })?;
            while let Some((lane, result)) = self.lanes.finished() {
                self.settle(lane, result, course)?;
            }
        }
    }

    /// The next read of the course; opens files as they come.
    fn next_piece(
        &self,
        course: &mut Course<'_>,
    ) -> Result<Option<(Arc<Opened>, Piece)>, StoreError> {
        loop {
            if let Some((_, opened, pieces)) = &mut course.current
                && let Some(piece) = pieces.next()
            {
                return Ok(Some((Arc::clone(opened), piece)));
            }
            let Some((number, extent)) = course.extents.next() else {
                course.current = None;
                return Ok(None);
            };
            let opened = match course.current.take() {
                Some((last, opened, _)) if last.key == extent.key => opened,
                _ => {
                    let open = || self.open(&extent.key, number);
                    Arc::new(show(course.seen, &self.clock, (Op::Open, number, NO_BYTES), open)?)
                }
            };
            let pieces = self.pieces(extent, &opened, course.seen)?;
            course.current = Some((extent, opened, pieces));
        }
    }

    fn open(&self, key: &str, extent: usize) -> Result<Opened, StoreError> {
        let (file, path) = self.store.open_to_read(key)?;
        Ok(Opened { file, path, extent })
    }

    fn pieces(
        &self,
        extent: &Extent,
        opened: &Opened,
        seen: &mut dyn FnMut(Call),
    ) -> Result<Pieces, StoreError> {
        let &Extent { offset, len, .. } = extent;
        let end = match len {
            Some(len) => {
                // No file is longer; an end behind that cannot be rounded up to a block.
                let end = offset.checked_add(len).filter(|&end| i64::try_from(end).is_ok());
                end.ok_or_else(|| short(&opened.path, offset, len, 0))?
            }
            None => {
                let ask = || file_len(&opened.file, &opened.path);
                show(seen, &self.clock, (Op::Stat, opened.extent, NO_BYTES), ask)?
            }
        };
        Ok(Pieces { next: offset, end, block: self.block, longest: self.longest })
    }

    fn begin(&mut self, lane: usize, opened: Arc<Opened>, piece: Piece) -> Result<(), StoreError> {
        let began_ns = self.clock.now();
        self.reads[lane] = Read { opened: Some(opened), piece, done: 0, began_ns };
        self.push(lane)
    }

    /// Prepares what is missing of a lane's piece.
    fn push(&mut self, lane: usize) -> Result<(), StoreError> {
        let Read { opened, piece, done, .. } = &self.reads[lane];
        let opened = opened.as_ref().expect("a lane with a piece has a file");
        let offset = piece.start + *done as u64;
        let pushed = self.lanes.push(lane, &opened.file, offset, *done..piece.len);
        pushed.map_err(|source| failed(Op::Read, &opened.path, source))
    }

    /// Takes a result: the end of the read, or the reason to ask again for the rest.
    fn settle(
        &mut self,
        lane: usize,
        result: io::Result<usize>,
        course: &mut Course<'_>,
    ) -> Result<(), StoreError> {
        let read = &mut self.reads[lane];
        let progress = match result {
            Ok(count) => {
                read.done += count;
                // Going on from inside a block would not be aligned: that is the end of the file.
                Ok(count > 0 && (read.done as u64).is_multiple_of(self.block))
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                Ok(true)
            }
            Err(error) => Err(error),
        };
        let found = read.piece.found(read.done);
        let is_full = found == read.piece.asked;
        if matches!(progress, Ok(true)) && !is_full {
            return self.push(lane);
        }
        let duration_ns = self.clock.now().saturating_sub(read.began_ns);
        let Read { opened, piece, .. } = std::mem::take(read);
        self.idle.push(lane);
        let ended = if is_full { Ended::Well { bytes: found } } else { Ended::Badly };
        let Opened { path, extent, .. } = &*opened.expect("a lane with a result has a file");
        let (offset, asked) = (piece.asked_from, piece.asked);
        (course.seen)(Call { op: Op::Read, extent: *extent, offset, asked, duration_ns, ended });
        course.bytes += found;
        match progress {
            Err(source) => Err(failed(Op::Read, path, source)),
            Ok(_) if is_full => Ok(()),
            Ok(_) => Err(short(path, piece.asked_from, piece.asked, found)),
        }
    }

    /// Waits for the reads under way and forgets them.
    fn drain(&mut self) {
        self.lanes.drain();
        self.reads.fill_with(Read::default);
        self.idle.clear();
        self.idle.extend((0..self.reads.len()).rev());
    }
}

impl ReadQueue for RingQueue {
    fn read(&mut self, extents: &[Extent], seen: &mut dyn FnMut(Call)) -> Result<u64, StoreError> {
        if self.lanes.in_flight() > 0 {
            // The last call was left by a panic of its `seen`.
            self.drain();
        }
        let mut course =
            Course { extents: extents.iter().enumerate(), current: None, seen, bytes: 0 };
        let run = self.run(&mut course);
        if run.is_err() {
            self.drain();
        }
        run.map(|()| course.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
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

    fn whole() -> Extent {
        Extent { key: "it".to_owned(), offset: 0, len: None }
    }

    #[test]
    fn the_bytes_are_those_of_the_file() {
        let bytes = pattern(30_000);
        for mode in [Mode::Buffered, Mode::Direct] {
            let (_folder, mut queue) = queue(mode, 1, &bytes);
            for (offset, len) in [(0, 8192), (5, 4000), (8192, 8192), (24_576, 5424)] {
                let extent = Extent { key: "it".to_owned(), offset, len: Some(len) };
                assert_eq!(queue.read(&[extent], &mut |_| ()).unwrap(), len);
                let skip = if mode == Mode::Direct { offset % 4096 } else { 0 };
                let found = &queue.lanes.lane(0)[skip as usize..(skip + len) as usize];
                assert!(*found == bytes[offset as usize..(offset + len) as usize], "{offset}");
            }
        }
    }

    #[test]
    fn a_read_that_stopped_early_goes_on() {
        let bytes = pattern(10_000);
        for (mode, stopped_at) in [(Mode::Buffered, 1), (Mode::Direct, 4096)] {
            let (_folder, mut queue) = queue(mode, 2, &bytes);
            let mut calls = Vec::new();
            let mut seen = |call: Call| calls.push((call.op, call.ended));
            let extents = [whole()];
            let mut course = Course {
                extents: extents.iter().enumerate(),
                current: None,
                seen: &mut seen,
                bytes: 0,
            };
            let (opened, piece) = queue.next_piece(&mut course).unwrap().unwrap();
            let lane = queue.idle.pop().unwrap();
            queue.begin(lane, opened, piece).unwrap();
            let (lane, result) = loop {
                queue.lanes.enter(Wait::ForOne).unwrap();
                if let Some(finished) = queue.lanes.finished() {
                    break finished;
                }
            };
            assert_eq!(result.unwrap(), 8192);
            // As if the kernel had read less, or had been interrupted before the rest.
            queue.settle(lane, Ok(stopped_at), &mut course).unwrap();
            assert_eq!((queue.lanes.in_flight(), queue.reads[lane].done), (1, stopped_at));
            queue.run(&mut course).unwrap();
            assert_eq!(course.bytes, 10_000);
            let well = |op, bytes| (op, Ended::Well { bytes });
            calls.sort();
            let expected =
                [well(Op::Open, 0), well(Op::Stat, 0), well(Op::Read, 1808), well(Op::Read, 8192)];
            assert_eq!(calls, expected);
        }
    }

    #[test]
    fn a_queue_left_or_dropped_with_reads_under_way_is_sound() {
        let bytes = pattern(1 << 20);
        for mode in [Mode::Buffered, Mode::Direct] {
            let (_folder, mut queue) = queue(mode, 8, &bytes);
            let mut reads = 0;
            let left = catch_unwind(AssertUnwindSafe(|| {
                queue.read(&[whole()], &mut |call| {
                    reads += usize::from(call.op == Op::Read);
                    assert!(reads < 3, "enough");
                })
            }));
            assert!(left.is_err());
            assert_eq!(queue.read(&[whole()], &mut |_| ()).unwrap(), 1 << 20);

            let extents = [whole()];
            let mut seen = |_| ();
            let mut course = Course {
                extents: extents.iter().enumerate(),
                current: None,
                seen: &mut seen,
                bytes: 0,
            };
            for lane in 0..8 {
                let (opened, piece) = queue.next_piece(&mut course).unwrap().unwrap();
                queue.begin(lane, opened, piece).unwrap();
            }
            queue.lanes.enter(Wait::No).unwrap();
            drop(queue);
        }
    }

    #[test]
    fn files_are_closed_as_it_goes() {
        let (folder, mut queue) = queue(Mode::Buffered, 2, b"12345");
        let mut extents = Vec::new();
        for i in 0..50 {
            std::fs::write(folder.path().join(format!("{i}")), b"678").unwrap();
            extents.push(Extent { key: format!("{i}"), offset: 0, len: None });
        }
        let open_here = || {
            let links = std::fs::read_dir("/proc/self/fd").unwrap();
            let links = links.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
            links.filter(|path| path.starts_with(folder.path())).count()
        };
        let mut most = 0;
        let read = queue.read(&extents, &mut |_| most = most.max(open_here()));
        assert_eq!(read.unwrap(), 150);
        assert!((1..=3).contains(&most), "{most} files open at depth 2");
        assert_eq!(open_here(), 0);
    }
}
