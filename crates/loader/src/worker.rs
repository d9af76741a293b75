//! One reader: takes a batch's samples one after the other, as a framework's worker does, or moves
//! their bytes many at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_dataset::{DataSet, SampleId, SampleReader};
use feedline_store::{BatchTimer, BatchTimes, Meter};

use crate::batch::{Delivered, Wait};
use crate::cost::{FrameworkCost, Gauge, Held};
use crate::error::{LoadError, Result};
use crate::interpreter::{Interpreter, Role};
use crate::spans::{PREPROCESS, Turn};

/// Gives the nanoseconds that preprocessing the next sample takes.
pub type Preprocess = Box<dyn FnMut() -> u64 + Send>;

/// A batch that was read, and what that took.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) samples: u64,
    pub(crate) sample_bytes: u64,
    /// What it took its worker.
    pub(crate) spent: BatchTimes,
    /// When it was complete.
    pub(crate) ready_ns: u64,
    /// The memory that it takes until the consumer drops it, where that is emulated.
    pub(crate) held: Option<Held>,
}

impl Batch {
    pub(crate) fn deliver(&self, wait: Wait) -> Delivered {
        Delivered { wait, samples: self.samples, sample_bytes: self.sample_bytes }
    }
}

pub(crate) struct Worker {
    clock: Clock,
    reader: SampleReader,
    stop: Arc<AtomicBool>,
    preprocess: Preprocess,
    progress: Arc<BatchTimer>,
    interpreter: Interpreter,
    /// Bytes of each sample of the last batch; a deep reader knows only their sum.
    sizes: Vec<u64>,
}

impl Worker {
    pub(crate) fn new(clock: &Clock, data: DataSet, role: Role, preprocess: Preprocess) -> Self {
        let stop = Arc::clone(&data.stop);
        let reader = SampleReader::new(clock, data);
        let progress = reader.progress();
        Self {
            clock: clock.clone(),
            preprocess,
            interpreter: Interpreter::new(clock, &stop, role, Arc::clone(&progress)),
            progress,
            reader,
            stop,
            sizes: Vec::new(),
        }
    }

    /// Burns what the framework costs, too.
    pub(crate) fn set_cost(&mut self, cost: &Arc<FrameworkCost>) {
        self.interpreter.set_cost(cost);
    }

    /// Counts the memory of its batches in `gauge`.
    pub(crate) fn gauge_with(&mut self, gauge: &Arc<Gauge>) {
        self.interpreter.gauge_with(gauge);
    }

    /// Says how many samples make a batch from now on, where samples are read one by one.
    pub(crate) fn set_batch(&mut self, samples: u64) {
        self.interpreter.set_batch(samples);
    }

    /// Its process is new, as far as the framework has processes.
    pub(crate) fn restart(&mut self) {
        self.interpreter.restart();
    }

    pub(crate) fn progress(&self) -> Arc<BatchTimer> {
        Arc::clone(&self.progress)
    }

    /// What it has asked of the store so far.
    pub(crate) fn meter(&mut self) -> &Meter {
        self.reader.meter()
    }

    /// Closes what is kept for an epoch only.
    pub(crate) fn end_epoch(&mut self) {
        self.reader.end_epoch();
    }

    /// Reads a batch of `count` samples.
    pub(crate) fn read_batch(
        &mut self,
        turn: Turn,
        count: u64,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<Batch> {
        let mut span = turn.batch();
        let read = self.read_all(turn, count, samples);
        match &read {
            Ok(batch) => span.tags.size = Some(batch.sample_bytes),
            Err(_) => span.cancel(),
        }
        read
    }

    /// Bytes of each sample of the last batch, in order.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Reads one sample of a batch as a batch of its own.
    pub(crate) fn read_one(&mut self, turn: Turn, sample: SampleId) -> Result<Batch> {
        self.read_all(turn, 1, std::iter::once(sample))
    }

    fn read_all(
        &mut self,
        turn: Turn,
        count: u64,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<Batch> {
        self.progress.begin_batch(self.clock.now());
        self.interpreter.begin(turn);
        let read = match self.reader.is_deep() {
            true => self.move_bytes(turn, samples),
            false => self.read_samples(turn, samples),
        };
        match read {
            Ok(sample_bytes) => Ok(self.finish(turn, count, sample_bytes)),
            // A store that is asked to stop gives up what it is doing.
            Err(error) => Err(self.check_stop().err().unwrap_or(error)),
        }
    }

    fn finish(&mut self, turn: Turn, samples: u64, sample_bytes: u64) -> Batch {
        let held = self.interpreter.end(turn, samples, sample_bytes);
        let ready_ns = self.clock.now();
        self.progress.end_batch(ready_ns);
        let spent = self.progress.snapshot(ready_ns);
        Batch { samples, sample_bytes, spent, ready_ns, held }
    }

    fn read_samples(&mut self, turn: Turn, samples: impl Iterator<Item = SampleId>) -> Result<u64> {
        let mut bytes = 0;
        self.sizes.clear();
        for sample in samples {
            self.check_stop()?;
            let mut item = turn.item(sample);
            let size = self.reader.read(sample)?.bytes;
            self.interpreter.sample(turn, size);
            self.pause(turn);
            item.tags.size = Some(size);
            self.sizes.push(size);
            bytes += size;
        }
        Ok(bytes)
    }

    /// Moves the bytes of all samples together. Only what leads to them is read one by one.
    fn move_bytes(&mut self, turn: Turn, samples: impl Iterator<Item = SampleId>) -> Result<u64> {
        let mut count = 0;
        for sample in samples {
            self.check_stop()?;
            let _item = turn.item(sample);
            self.reader.locate(sample)?;
            count += 1;
        }
        let moved = self.reader.read_located();
        let bytes = moved.map_err(|source| LoadError::Bytes { batch: turn.batch, source })?;
        for _ in 0..count {
            self.check_stop()?;
            self.pause(turn);
        }
        Ok(bytes)
    }

    fn check_stop(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LoadError::Stopped),
            false => Ok(()),
        }
    }

    fn pause(&mut self, turn: Turn) {
        let pause_ns = (self.preprocess)();
        if pause_ns > 0 {
            let mut span = PREPROCESS.begin();
            span.tag(turn.tags());
            self.clock.sleep_unless(pause_ns, &self.stop);
        }
    }
}
