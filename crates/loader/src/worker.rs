//! One reader: takes a batch's samples one after the other, as a framework's worker does, or moves
//! their bytes many at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedline_clock::Clock;
use feedline_formats::{Piece, Scratch};
use feedline_store::{
    AlignedBuf, BLOCK_BYTES, DIRECT_READ_BYTES, Meter, Metered, Progress, Spent, Store,
};

use crate::SampleId;
use crate::batch::{Delivered, Wait};
use crate::cost::{Gauge, Held};
use crate::data_set::{DataSet, KeptFor, LoadError, Preprocess, ReadModel};
use crate::deep::Deep;
use crate::handles::Handles;
use crate::interpreter::{Interpreter, Role};
use crate::spans::{PREPROCESS, Turn};

/// Room for one piece of a sample, or for what a format must see at once to find it.
const SCRATCH_BYTES: usize = DIRECT_READ_BYTES;

/// Room beside a piece for what is left of its first and last blocks, twice.
const SPARE_BYTES: usize = 4 * BLOCK_BYTES;

/// A batch that was read, and what that took.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) samples: u64,
    pub(crate) sample_bytes: u64,
    /// What it took its worker.
    pub(crate) spent: Spent,
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
    data: DataSet,
    preprocess: Preprocess,
    store: Metered<Arc<dyn Store>>,
    progress: Arc<Progress>,
    meter: Meter,
    interpreter: Interpreter,
    handles: Handles,
    deep: Option<Deep>,
    scratch: Scratch,
    key: String,
    /// Bytes of each sample of the last batch; a deep reader knows only their sum.
    sizes: Vec<u64>,
}

/// What all of them asked of the store so far.
pub(crate) fn meter_of(workers: &mut [Worker]) -> Meter {
    let mut total = Meter::default();
    workers.iter_mut().for_each(|worker| total.merge(worker.meter()));
    total
}

impl Worker {
    pub(crate) fn new(clock: &Clock, data: DataSet, role: Role, preprocess: Preprocess) -> Self {
        let store = Metered::new(Arc::clone(&data.store), clock.clone());
        let piece = data.store.read_bytes();
        let deep = match data.reading.model {
            ReadModel::Framework | ReadModel::Native => None,
            ReadModel::Deep { depth } => Some(Deep::new(depth, &store)),
        };
        Self {
            clock: clock.clone(),
            preprocess,
            progress: store.progress(),
            interpreter: Interpreter::new(clock, &data, role, store.progress()),
            store,
            meter: Meter::default(),
            handles: Handles::new(&data),
            deep,
            scratch: Scratch::with_memory(SCRATCH_BYTES.max(piece) + SPARE_BYTES, |len| {
                Piece::of(AlignedBuf::new(len))
            }),
            key: String::new(),
            sizes: Vec::new(),
            data,
        }
    }

    /// What this worker asked of the store so far.
    fn meter(&mut self) -> &Meter {
        self.meter.merge(&self.store.take());
        if let Some(deep) = &mut self.deep {
            self.meter.merge(&deep.take_meter());
        }
        &self.meter
    }

    /// Counts the memory of its batches in `gauge`.
    pub(crate) fn gauge_with(&mut self, gauge: &Arc<Gauge>) {
        self.interpreter.gauge_with(gauge);
    }

    /// Its process is new, as far as the framework has processes.
    pub(crate) fn set_batch(&mut self, samples: u64) {
        self.interpreter.set_batch(samples);
    }

    pub(crate) fn restart(&mut self) {
        self.interpreter.restart();
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Closes what is kept for an epoch only. Before the next one: maps that are still there would
    /// hold pages in memory that are to be dropped.
    pub(crate) fn end_epoch(&mut self) {
        if self.data.reading.kept_for == KeptFor::Epoch {
            self.handles.clear();
        }
    }

    /// Reads a batch of `count` samples.
    pub(crate) fn read_batch(
        &mut self,
        turn: Turn,
        count: u64,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<Batch, LoadError> {
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
    pub(crate) fn read_one(&mut self, turn: Turn, sample: SampleId) -> Result<Batch, LoadError> {
        self.read_all(turn, 1, std::iter::once(sample))
    }

    fn read_all(
        &mut self,
        turn: Turn,
        count: u64,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<Batch, LoadError> {
        self.progress.begin_batch(self.clock.now());
        self.interpreter.begin(turn);
        let read = match self.deep.is_some() {
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

    fn read_samples(
        &mut self,
        turn: Turn,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<u64, LoadError> {
        let mut bytes = 0;
        self.sizes.clear();
        for sample in samples {
            self.check_stop()?;
            let mut item = turn.item(sample);
            self.name(sample);
            let file = (sample.file, self.key.as_str());
            let read = self.handles.read(&self.store, file, sample.index, &mut self.scratch);
            let size = match read {
                Ok(read) => read.bytes,
                Err(source) => {
                    let file = self.data.store.locate(&self.key);
                    return Err(LoadError::Sample { file, index: sample.index, source });
                }
            };
            self.interpreter.sample(turn, size);
            self.pause(turn);
            item.tags.size = Some(size);
            self.sizes.push(size);
            bytes += size;
        }
        Ok(bytes)
    }

    /// Moves the bytes of all samples together. Only what leads to them is read one by one.
    fn move_bytes(
        &mut self,
        turn: Turn,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<u64, LoadError> {
        let mut deep = self.deep.take().expect("only a deep reader moves bytes");
        let located = self.locate(&mut deep, turn, samples);
        let moved = located.and_then(|count| {
            let bytes = deep.read(&self.clock, &self.data.store, &self.progress);
            Ok((count, bytes.map_err(|source| LoadError::Bytes { batch: turn.batch, source })?))
        });
        self.deep = Some(deep);
        let (count, bytes) = moved?;
        for _ in 0..count {
            self.check_stop()?;
            self.pause(turn);
        }
        Ok(bytes)
    }

    fn locate(
        &mut self,
        deep: &mut Deep,
        turn: Turn,
        samples: impl Iterator<Item = SampleId>,
    ) -> Result<u64, LoadError> {
        let mut count = 0;
        deep.clear();
        for sample in samples {
            self.check_stop()?;
            let _item = turn.item(sample);
            self.name(sample);
            let file = (sample.file, self.key.as_str());
            let stretches = deep.stretches();
            let found =
                self.handles.locate(&self.store, file, sample.index, &mut self.scratch, stretches);
            if let Err(source) = found {
                let file = self.data.store.locate(&self.key);
                return Err(LoadError::Sample { file, index: sample.index, source });
            }
            deep.add(&self.key);
            count += 1;
        }
        Ok(count)
    }

    fn name(&mut self, sample: SampleId) {
        self.key.clear();
        self.data.names.write_key(sample.file, &mut self.key);
    }

    fn check_stop(&self) -> Result<(), LoadError> {
        match self.data.stop.load(Ordering::Relaxed) {
            true => Err(LoadError::Stopped),
            false => Ok(()),
        }
    }

    fn pause(&mut self, turn: Turn) {
        let pause_ns = (self.preprocess)();
        if pause_ns > 0 {
            let mut span = PREPROCESS.begin();
            span.tag(turn.tags());
            self.clock.sleep_unless(pause_ns, &self.data.stop);
        }
    }
}
