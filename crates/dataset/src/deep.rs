//! Many reads of one reader under way together: through the store's own queue, or where it has none
//! on as many threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use feedline_clock::{Clock, Monitor};
use feedline_formats::ByteRange;
use feedline_store::{
    AlignedBuf, BatchTimer, Destination, Meter, Metered, Object, ObjectRange, ReadQueue, Store,
    StoreError,
};

/// The deep side of one reader.
pub(crate) struct Deep {
    queue: Queue,
    /// What the current batch consists of.
    ranges: Vec<ObjectRange>,
    file_ranges: Vec<ByteRange>,
    /// What threads have counted.
    meter: Mutex<Meter>,
}

/// Where reads go.
enum Queue {
    /// The store could not make one; the first read says so.
    Refused(Option<StoreError>),
    Own(Box<dyn ReadQueue>),
    /// One buffer a thread.
    Threads(Vec<AlignedBuf>),
}

impl Deep {
    /// All buffers are made and touched here, so that no batch pays for them.
    pub(crate) fn new(depth: usize, store: &Metered<Arc<dyn Store>>) -> Self {
        let queue = match store.queue(depth) {
            Ok(Some(queue)) => Queue::Own(queue),
            Ok(None) => {
                let buffer = |_| AlignedBuf::new(store.read_bytes());
                Queue::Threads((0..depth).map(buffer).collect())
            }
            Err(error) => Queue::Refused(Some(error)),
        };
        let (ranges, file_ranges) = (Vec::new(), Vec::new());
        Self { queue, ranges, file_ranges, meter: Mutex::default() }
    }

    /// Forgets the last batch.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Where the ranges of the next file go.
    pub(crate) fn file_ranges(&mut self) -> &mut Vec<ByteRange> {
        self.file_ranges.clear();
        &mut self.file_ranges
    }

    /// Adds the ranges as parts of the object `key`. What the sample before had too (the row group
    /// of two rows, the chunk of two samples) is not read twice.
    pub(crate) fn add(&mut self, key: &str) {
        for part in &self.file_ranges {
            let range = ObjectRange { key: key.to_owned(), offset: part.offset, len: part.len };
            if self.ranges.last() != Some(&range) {
                self.ranges.push(range);
            }
        }
    }

    /// What threads have counted since the last call.
    pub(crate) fn take_meter(&mut self) -> Meter {
        std::mem::take(self.meter.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the batch; gives its bytes. Threads count for themselves, so they get the plain store.
    pub(crate) fn read(
        &mut self,
        clock: &Clock,
        plain: &Arc<dyn Store>,
        progress: &BatchTimer,
    ) -> Result<u64, StoreError> {
        match &mut self.queue {
            Queue::Refused(error) => Err(error.take().expect("the first error ends the reader")),
            Queue::Own(queue) => queue.read(&self.ranges, Destination::Discard, &mut |_| ()),
            Queue::Threads(buffers) => {
                progress.enter_storage(clock.now());
                let bytes = on_threads(clock, plain, &self.ranges, buffers, &self.meter);
                progress.leave_storage(clock.now());
                bytes
            }
        }
    }
}

/// Pieces that a thread reads before it looks what else there is.
const PIECES_AT_A_TIME: u64 = 8;

/// What is left of a batch. Threads take parts of it until it is empty and no thread can add to it.
struct Work {
    left: VecDeque<ObjectRange>,
    /// Threads that are reading, and may yet find that their range is long.
    reading: usize,
    bytes: u64,
    error: Option<StoreError>,
}

impl Work {
    /// The next part, the end of the work, or neither yet.
    fn take(&mut self) -> Option<Option<ObjectRange>> {
        if self.error.is_some() {
            return Some(None);
        }
        match self.left.pop_front() {
            Some(range) => {
                self.reading += 1;
                Some(Some(range))
            }
            None => (self.reading == 0).then_some(None),
        }
    }

    fn done(&mut self, result: Result<u64, StoreError>) {
        self.reading -= 1;
        match result {
            Ok(bytes) => self.bytes += bytes,
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }
}

/// Reads all ranges on as many threads as there are buffers; the first error ends all.
fn on_threads(
    clock: &Clock,
    store: &Arc<dyn Store>,
    ranges: &[ObjectRange],
    buffers: &mut [AlignedBuf],
    meter: &Mutex<Meter>,
) -> Result<u64, StoreError> {
    let left = ranges.iter().cloned().collect();
    let work = Monitor::new(clock, Work { left, reading: 0, bytes: 0, error: None });
    clock.scope(|scope| {
        let work = &work;
        // Fewer threads than asked for are slower, not wrong; the caller's own reads in any case.
        let (own, others) = buffers.split_first_mut().expect("the depth is at least 1");
        let useful = most_reads(ranges, own.len()).saturating_sub(1).min(others.len());
        for (number, buffer) in others[..useful].iter_mut().enumerate() {
            let name = format!("lane {number}");
            let lane = move || lane(clock, store, work, buffer, meter);
            if scope.spawn(name, lane).is_err() {
                break;
            }
        }
        lane(clock, store, work, own, meter);
    });
    work.update(|work| match work.error.take() {
        Some(error) => Err(error),
        None => Ok(work.bytes),
    })
}

fn lane(
    clock: &Clock,
    store: &Arc<dyn Store>,
    work: &Monitor<Work>,
    buffer: &mut AlignedBuf,
    meter: &Mutex<Meter>,
) {
    let store = Metered::new(Arc::clone(store), clock.clone());
    let mut last = None;
    while let Some(range) = work.wait_for(Work::take) {
        let result = read_part(&store, range, buffer, &mut last, |rest| {
            work.update(|work| work.left.push_front(rest));
        });
        work.update(|work| work.done(result));
    }
    meter.lock().unwrap_or_else(PoisonError::into_inner).merge(&store.take());
}

/// How many reads there can be at a time at most.
fn most_reads(ranges: &[ObjectRange], piece_bytes: usize) -> usize {
    let unit = piece_bytes as u64 * PIECES_AT_A_TIME;
    let parts = |range: &ObjectRange| range.len.map_or(u64::MAX, |len| len.div_ceil(unit).max(1));
    let sum = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(parts(range)));
    usize::try_from(sum).unwrap_or(usize::MAX)
}

/// Reads the beginning of an range and hands back the rest first, if it is long. The object that was
/// read last stays open for its next part.
fn read_part(
    store: &Metered<Arc<dyn Store>>,
    range: ObjectRange,
    buffer: &mut AlignedBuf,
    last: &mut Option<(String, Box<dyn Object>)>,
    hand_back: impl FnOnce(ObjectRange),
) -> Result<u64, StoreError> {
    if last.as_ref().is_none_or(|(key, _)| *key != range.key) {
        *last = Some((range.key.clone(), store.open(&range.key)?));
    }
    let object = &mut last.as_mut().expect("opened above").1;
    let mut len = match range.len {
        Some(len) => len,
        None => object.len()?.saturating_sub(range.offset),
    };
    let piece = buffer.len() as u64;
    let stop = (range.offset / piece + PIECES_AT_A_TIME) * piece;
    if range.offset + len > stop {
        let rest = range.offset + len - stop;
        len -= rest;
        hand_back(ObjectRange { offset: stop, len: Some(rest), key: range.key });
    }
    let mut done = 0;
    while done < len {
        // Up to a multiple of the piece, so that all but the first read are aligned.
        let at = range.offset + done;
        let part = (piece - at % piece).min(len - done);
        object.read_exact_at(at, &mut buffer[..part as usize])?;
        done += part;
    }
    Ok(len)
}
