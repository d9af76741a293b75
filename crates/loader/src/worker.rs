//! One reader: takes a batch's samples one after the other, as a framework's worker does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_formats::{Companion, DecodeError, Format, Scratch, Source, StreamError};
use feedline_store::{DIRECT_READ_BYTES, Meter, Metered, Object, Progress, Store, StoreError};

use crate::{EpochShare, SampleId};

/// Room for one piece of a sample, or for what a format must see at once to find it.
const SCRATCH_BYTES: usize = DIRECT_READ_BYTES;

/// Gives the nanoseconds that preprocessing the next sample takes.
pub type Preprocess = Box<dyn FnMut() -> u64 + Send>;

/// The names of a data set's files, by their number in the sorted list.
pub trait FileNames: Send + Sync {
    /// Writes the key of file `number` into `key`, which is empty.
    fn write_key(&self, number: u64, key: &mut String);
}

/// Where the samples are and how they are laid out.
#[derive(Clone)]
pub struct DataSet {
    /// The store that holds the files.
    pub store: Arc<dyn Store>,
    /// Their names.
    pub names: Arc<dyn FileNames>,
    /// Their format.
    pub format: Arc<dyn Format>,
    /// Ends reading between two samples.
    pub stop: Arc<AtomicBool>,
}

/// Why a batch could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be opened or read, or is not what its format says.
    #[error("{file}: sample {index} cannot be read")]
    Sample {
        /// The file, as the user knows it.
        file: String,
        /// The sample's number in the file.
        index: u64,
        /// What is wrong, and at which byte.
        #[source]
        source: DecodeError,
    },
    /// The reader ended in a fault of Feedline's own; its words are on stderr.
    #[error("the reader of batch {batch} panicked")]
    Panicked {
        /// The batch's number in the epoch.
        batch: u64,
    },
    /// The system starts no further thread.
    #[error("reader {reader} cannot be started")]
    NoThread {
        /// The reader's number.
        reader: usize,
        /// The system's words.
        source: std::io::Error,
    },
    /// Reading was asked to stop.
    #[error("reading was stopped")]
    Stopped,
}

/// A batch that was read, and what that took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) samples: u64,
    pub(crate) sample_bytes: u64,
    /// Time in storage calls.
    pub(crate) storage_ns: u64,
    /// All the time from its begin to its end.
    pub(crate) busy_ns: u64,
    /// When it was complete.
    pub(crate) ready_ns: u64,
}

pub(crate) struct Worker {
    clock: Clock,
    data: DataSet,
    preprocess: Preprocess,
    store: Metered<Arc<dyn Store>>,
    progress: Arc<Progress>,
    meter: Meter,
    scratch: Scratch,
    key: String,
}

impl Worker {
    pub(crate) fn new(clock: &Clock, data: DataSet, preprocess: Preprocess) -> Self {
        let store = Metered::new(Arc::clone(&data.store), clock.clone());
        Self {
            clock: clock.clone(),
            data,
            preprocess,
            progress: store.progress(),
            store,
            meter: Meter::default(),
            scratch: Scratch::new(SCRATCH_BYTES),
            key: String::new(),
        }
    }

    /// What this worker asked of the store so far.
    pub(crate) fn meter(&mut self) -> &Meter {
        self.meter.merge(&self.store.take());
        &self.meter
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Reads batch `k` of `share`, `size` samples one after the other.
    pub(crate) fn read_batch(
        &mut self,
        share: EpochShare<'_>,
        k: u64,
        size: u64,
    ) -> Result<Batch, LoadError> {
        self.progress.begin_batch(self.clock.now());
        let mut batch = Batch { samples: size, ..Batch::default() };
        let first = share.first_place + k * size;
        for place in first..first + size {
            if self.data.stop.load(Ordering::Relaxed) {
                return Err(LoadError::Stopped);
            }
            batch.sample_bytes += self.read_sample(share.order.sample(place))?;
            let pause_ns = (self.preprocess)();
            if pause_ns > 0 {
                self.clock.sleep_unless(pause_ns, &self.data.stop);
            }
        }
        batch.ready_ns = self.clock.now();
        self.progress.end_batch(batch.ready_ns);
        let spent = self.progress.snapshot(batch.ready_ns);
        batch.storage_ns = spent.storage_ns;
        batch.busy_ns = spent.busy_ns;
        Ok(batch)
    }

    fn read_sample(&mut self, sample: SampleId) -> Result<u64, LoadError> {
        self.key.clear();
        self.data.names.write_key(sample.file, &mut self.key);
        let mut file = LazyFile { store: &self.store, key: &self.key, object: None };
        let opened = self.data.format.open(&mut file, &mut self.scratch);
        let read = opened.and_then(|mut it| it.read(&mut file, sample.index, &mut self.scratch));
        match read {
            Ok(read) => Ok(read.bytes),
            Err(source) => Err(LoadError::Sample {
                file: self.data.store.locate(&self.key),
                index: sample.index,
                source,
            }),
        }
    }
}

/// A file as the byte source that formats read from. It is opened by the first call, so a format
/// that needs no bytes does no I/O.
struct LazyFile<'a> {
    store: &'a Metered<Arc<dyn Store>>,
    key: &'a str,
    object: Option<Box<dyn Object>>,
}

impl LazyFile<'_> {
    fn object(&mut self) -> Result<&mut dyn Object, StoreError> {
        if self.object.is_none() {
            self.object = Some(self.store.open(self.key)?);
        }
        Ok(self.object.as_deref_mut().expect("opened above"))
    }
}

impl Source for LazyFile<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.object()?.len()?)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        Ok(self.object()?.read_exact_at(offset, buf)?)
    }

    fn piece_bytes(&self) -> usize {
        self.store.read_bytes()
    }

    fn companion(&mut self, which: &Companion) -> Result<Box<dyn Source + '_>, StreamError> {
        let object = self.store.open(&which.key(self.key))?;
        Ok(Box::new(CompanionFile { store: self.store, object }))
    }
}

/// A companion of a data file.
struct CompanionFile<'a> {
    store: &'a Metered<Arc<dyn Store>>,
    object: Box<dyn Object>,
}

impl Source for CompanionFile<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.object.len()?)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        Ok(self.object.read_exact_at(offset, buf)?)
    }

    fn piece_bytes(&self) -> usize {
        self.store.read_bytes()
    }
}
