//! The samples of a data set, with their bytes, for callers that want them.
//!
//! Reader threads read ahead of the caller; samples come in the order asked for. Memory is bounded by
//! the samples that are ready or under way, [`ReadOptions::read_ahead`] of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use feedline_clock::{Clock, Monitor, Thread};
use feedline_formats::{Collect, CollectedPart};

use crate::data_set::DataSet;
use crate::error::{DatasetError, Result};
use crate::order::{EpochOrder, SampleId};
use crate::reader::SampleReader;

/// How samples are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Reader threads, 1 or more.
    pub readers: usize,
    /// Samples that may be ready or under way at any time, at least one per reader.
    pub read_ahead: usize,
    /// The most bytes of one sample; a larger one is an error.
    pub sample_bytes_max: u64,
    /// Which of `ranks` equal shares is read: every `ranks`-th sample, from this one on.
    pub rank: u64,
    /// Shares that the epoch is divided into, 1 or more.
    pub ranks: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { readers: 1, read_ahead: 2, sample_bytes_max: 1 << 30, rank: 0, ranks: 1 }
    }
}

/// One sample, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which file, and which sample of it.
    pub id: SampleId,
    /// The file's key in the store.
    pub key: String,
    /// Its arrays: name, element type, shape and bytes.
    pub parts: Vec<CollectedPart>,
}

/// Samples in order; an error is that of one sample and the next ones still come. Dropped, it stops its
/// readers and waits for them.
pub struct Samples {
    queue: Arc<Monitor<Queue>>,
    readers: Vec<Thread<()>>,
}

impl Samples {
    pub(crate) fn start(
        clock: &Clock,
        data: &DataSet,
        order: EpochOrder,
        options: ReadOptions,
    ) -> Result<Self> {
        let (readers, ranks) = (options.readers.max(1), options.ranks.max(1));
        let ready = (0..options.read_ahead.max(readers)).map(|_| None).collect();
        let total = order.index().len().saturating_sub(options.rank).div_ceil(ranks);
        let queue = Queue { begun: 0, taken: 0, total, ready };
        let mut samples = Self { queue: Arc::new(Monitor::new(clock, queue)), readers: Vec::new() };
        let order = Arc::new(order);
        for number in 0..readers {
            let mut reader = Reader {
                reader: SampleReader::new(clock, data.clone()),
                data: data.clone(),
                order: Arc::clone(&order),
                options,
                queue: Arc::clone(&samples.queue),
            };
            let name = format!("sample reader {number}");
            match clock.spawn(name.clone(), move || reader.run()) {
                Ok(thread) => samples.readers.push(thread),
                // Fewer readers are slower, not wrong.
                Err(_) if number > 0 => break,
                Err(source) => return Err(DatasetError::NoThread { name, source }),
            }
        }
        Ok(samples)
    }
}

impl Iterator for Samples {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.queue.wait_for(Queue::take);
        // A reader may wait for the room that this has made.
        self.queue.update(|_| ());
        next
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // No further sample is begun.
        self.queue.update(|queue| queue.total = queue.begun);
        for reader in self.readers.drain(..) {
            // Its panic has been said on stderr, and was delivered as an error.
            let _ = reader.join();
        }
    }
}

/// What the readers have begun and the caller has not taken.
struct Queue {
    begun: u64,
    taken: u64,
    total: u64,
    /// The samples from `taken` on; `None` is not ready yet.
    ready: VecDeque<Option<Result<Sample>>>,
}

impl Queue {
    /// The number of the next sample to be read, the end, or neither yet.
    fn begin(&mut self) -> Option<Option<u64>> {
        if self.begun >= self.total {
            return Some(None);
        }
        if self.begun >= self.taken + self.ready.len() as u64 {
            return None;
        }
        self.begun += 1;
        Some(Some(self.begun - 1))
    }

    fn put(&mut self, number: u64, sample: Result<Sample>) {
        self.ready[(number - self.taken) as usize] = Some(sample);
    }

    /// The next sample, the end, or neither yet.
    fn take(&mut self) -> Option<Option<Result<Sample>>> {
        if self.taken >= self.total {
            return Some(None);
        }
        let sample = self.ready.front_mut()?.take()?;
        self.ready.rotate_left(1);
        self.taken += 1;
        Some(Some(sample))
    }
}

/// One reader thread.
struct Reader {
    reader: SampleReader,
    data: DataSet,
    order: Arc<EpochOrder>,
    options: ReadOptions,
    queue: Arc<Monitor<Queue>>,
}

impl Reader {
    fn run(&mut self) {
        while let Some(number) = self.queue.wait_for(Queue::begin) {
            let id = self.order.sample(number * self.options.ranks.max(1) + self.options.rank);
            // A panic must reach the caller, which would wait forever otherwise.
            let read = catch_unwind(AssertUnwindSafe(|| self.read(id)));
            let sample = read.unwrap_or_else(|_| {
                let file = self.data.store.locate(self.reader.key());
                Err(DatasetError::ReaderPanicked { file, index: id.index })
            });
            self.queue.update(|queue| queue.put(number, sample));
        }
    }

    fn read(&mut self, id: SampleId) -> Result<Sample> {
        let mut sink = Collect::new(self.options.sample_bytes_max);
        self.reader.read_into(id, &mut sink)?;
        Ok(Sample { id, key: self.reader.key().to_owned(), parts: sink.take() })
    }
}
