//! Reads the samples of a data set one after the other, or moves the bytes of many at a time.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_formats::{AlignedBuffer, DecodeError, SampleRead, SampleSink, Scratch};
use feedline_store::{
    AlignedBuf, BLOCK_BYTES, BatchTimer, DIRECT_READ_BYTES, Meter, Metered, Store, StoreError,
};

use crate::data_set::{DataSet, KeptFor, ReadMethod};
use crate::deep::Deep;
use crate::error::{DatasetError, Result};
use crate::handles::Handles;
use crate::order::SampleId;

/// Room for one piece of a sample, or for what a format must see at once to find it.
const SCRATCH_BYTES: usize = DIRECT_READ_BYTES;

/// Room beside a piece for what is left of its first and last blocks, twice.
const SPARE_BYTES: usize = 4 * BLOCK_BYTES;

/// One reader of a data set, with the files that it keeps open and buffers of its own.
pub struct SampleReader {
    clock: Clock,
    data: DataSet,
    store: Metered<Arc<dyn Store>>,
    meter: Meter,
    handles: Handles,
    deep: Option<Deep>,
    scratch: Scratch,
    key: String,
}

impl SampleReader {
    /// A reader of `data`. All buffers are made here, so that no sample pays for them.
    pub fn new(clock: &Clock, data: DataSet) -> Self {
        let store = Metered::new(Arc::clone(&data.store), clock.clone());
        let piece = data.store.read_bytes();
        let deep = match data.reading.model {
            ReadMethod::Framework | ReadMethod::Native => None,
            ReadMethod::Deep { depth } => Some(Deep::new(depth, &store)),
        };
        Self {
            clock: clock.clone(),
            store,
            meter: Meter::default(),
            handles: Handles::new(&data),
            deep,
            scratch: Scratch::with_memory(SCRATCH_BYTES.max(piece) + SPARE_BYTES, |len| {
                AlignedBuffer::of(AlignedBuf::new(len))
            }),
            key: String::new(),
            data,
        }
    }

    /// What this reader has asked of the store so far.
    pub fn meter(&mut self) -> &Meter {
        self.meter.merge(&self.store.take());
        if let Some(deep) = &mut self.deep {
            self.meter.merge(&deep.take_meter());
        }
        &self.meter
    }

    /// The account of what the reader is doing, for those who wait for it.
    pub fn progress(&self) -> Arc<BatchTimer> {
        self.store.progress()
    }

    /// Closes what is kept for an epoch only. Before the next one: maps that still exist would hold
    /// pages in memory that are to be dropped.
    pub fn end_epoch(&mut self) {
        if self.data.reading.kept_for == KeptFor::Epoch {
            self.handles.clear();
        }
    }

    /// Reads a sample, decoding included, and drops its bytes.
    pub fn read(&mut self, sample: SampleId) -> Result<SampleRead> {
        self.name(sample);
        let file = (sample.file, self.key.as_str());
        let read = self.handles.read(&self.store, file, sample.index, &mut self.scratch);
        read.map_err(|source| self.refused(sample, source))
    }

    /// Reads a sample into `sink`, with the same calls and checks.
    pub fn read_into(&mut self, sample: SampleId, sink: &mut dyn SampleSink) -> Result<SampleRead> {
        self.name(sample);
        let file = (sample.file, self.key.as_str());
        let (index, scratch) = (sample.index, &mut self.scratch);
        let read = self.handles.read_into(&self.store, file, index, scratch, sink);
        read.map_err(|source| self.refused(sample, source))
    }

    /// How many samples file `number` has. Formats of one sample per file take any index.
    pub fn samples_of(&mut self, number: u64) -> Result<u64> {
        match self.read(SampleId { file: number, index: u64::MAX }) {
            Ok(read) => Ok(read.samples.max(1)),
            Err(DatasetError::Sample {
                source: DecodeError::SampleIndex { samples, .. }, ..
            }) => Ok(samples),
            Err(error) => Err(error),
        }
    }

    /// The key of the file that was read last.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether the reader moves the bytes of many samples together and decodes nothing.
    pub fn is_deep(&self) -> bool {
        self.deep.is_some()
    }

    /// Finds out where a sample is and notes it for [`SampleReader::read_located`]. Only what leads to
    /// the sample is read.
    ///
    /// # Panics
    /// When the reader is not deep.
    pub fn locate(&mut self, sample: SampleId) -> Result<()> {
        self.name(sample);
        let deep = self.deep.as_mut().expect("only a deep reader locates samples");
        let (file, index) = ((sample.file, self.key.as_str()), sample.index);
        let ranges = deep.file_ranges();
        match self.handles.locate(&self.store, file, index, &mut self.scratch, ranges) {
            Ok(()) => {
                deep.add(&self.key);
                Ok(())
            }
            Err(source) => {
                deep.clear();
                Err(self.refused(sample, source))
            }
        }
    }

    /// Moves the bytes of all samples that were located, and forgets them; the number of bytes.
    ///
    /// # Panics
    /// When the reader is not deep.
    pub fn read_located(&mut self) -> Result<u64, StoreError> {
        let deep = self.deep.as_mut().expect("only a deep reader locates samples");
        let bytes = deep.read(&self.clock, &self.data.store, &self.store.progress());
        deep.clear();
        bytes
    }

    fn name(&mut self, sample: SampleId) {
        self.key.clear();
        self.data.names.write_key(sample.file, &mut self.key);
    }

    fn refused(&self, sample: SampleId, source: DecodeError) -> DatasetError {
        let file = self.data.store.locate(&self.key);
        DatasetError::Sample { file, index: sample.index, source }
    }
}
