//! From what the workload says about reading to the loader that does it.

use feedline_clock::Clock;
use feedline_dataset::{DataSet, KeptFor, ReadMethod, Reading};
use feedline_formats::{Libraries, Python, RECORD_BUFFER_BYTES};
use feedline_loader::{
    BatchAssignment, Loader, Preprocess, ReaderSharding, StreamConfig, StreamLoader, TorchConfig,
    TorchLoader,
};
use feedline_workload::{
    DataLoader, IoEngine, ReadModel, ReadType, Reader, SampleOrder, Sharding, ShuffleMode, Workload,
};

/// Batches that DALI has under way when the workload does not say.
const DALI_QUEUE_DEPTH: u64 = 2;

/// How a run reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Whose loader is emulated.
    pub loader: DataLoader,
    /// What a reader does for a sample.
    pub reading: Reading,
    /// The system calls that bytes are read with; never [`IoEngine::Auto`].
    pub engine: IoEngine,
    /// Whether they go past the page cache.
    pub direct: bool,
    /// Bytes of one read call, if the workload says and the model has a say in it.
    pub transfer_bytes: Option<u64>,
    /// Whose calls are made, in the framework model; `None` where no library of a framework reads
    /// files: in an object store, without files, and in the other models.
    pub calls: Option<Calls>,
    /// The training loader.
    pub(crate) train: LoaderPlan,
    /// The evaluation loader.
    pub(crate) eval: LoaderPlan,
    /// Samples in a batch of training.
    batch: u64,
}

/// Whose calls are made in the framework model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The library that reads the format.
    pub library: &'static str,
    /// The versions that are played.
    pub(crate) libraries: Libraries,
    /// Whether the library's files are Python's.
    on_python: bool,
}

impl Calls {
    fn of(workload: &Workload) -> Option<Self> {
        if workload.read_model() != ReadModel::Framework || is_remote(workload) {
            return None;
        }
        let reader = workload.dataset.format.framework?;
        let record_buffer_bytes = workload.reader.transfer_size.map(|bytes| bytes as usize);
        let libraries = Libraries {
            python: workload.reader.python,
            record_buffer_bytes: record_buffer_bytes.unwrap_or(RECORD_BUFFER_BYTES),
        };
        Some(Self { library: reader.library().0, libraries, on_python: reader.is_on_python() })
    }

    /// The interpreter, where its files are used.
    pub fn python(&self) -> Option<&'static str> {
        self.on_python.then_some(match self.libraries.python {
            Python::Before314 => "CPython 3.9 to 3.13",
            Python::From314 => "CPython 3.14",
        })
    }
}

/// Whether the data set is across a network, where no library's file calls are made.
fn is_remote(workload: &Workload) -> bool {
    workload.data_root().capabilities().network.is_some()
}

/// Whether the size of a read call is the workload's to choose.
fn takes_transfer_size(workload: &Workload) -> bool {
    workload.read_model() != ReadModel::Framework
        || is_remote(workload)
        || workload.dataset.format.name == "tfrecord"
}

/// A loader to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoaderPlan {
    Torch(TorchConfig),
    Stream(StreamConfig),
    Nothing,
}

impl ReadPlan {
    pub(crate) fn new(workload: &Workload) -> Self {
        let (reader, format) = (&workload.reader, workload.dataset.format);
        let engine = match reader.io_engine {
            IoEngine::Auto if reader.maps(format) && workload.data_root().capabilities().mapped => {
                IoEngine::Mmap
            }
            IoEngine::Auto => IoEngine::Sync,
            engine => engine,
        };
        let eval = Reader { sample_shuffle: ShuffleMode::Off, ..reader.clone() };
        Self {
            loader: reader.data_loader,
            reading: reading(workload),
            engine,
            direct: reader.odirect,
            transfer_bytes: reader.transfer_size.filter(|_| takes_transfer_size(workload)),
            calls: Calls::of(workload),
            train: LoaderPlan::new(workload, reader),
            eval: LoaderPlan::new(workload, &eval),
            batch: reader.batch_size,
        }
    }

    /// Batches of a rank that can be ready or under way before it asks for them.
    pub(crate) fn ahead(&self) -> u64 {
        match self.train {
            LoaderPlan::Torch(config) => {
                config.outstanding() + config.shuffle.unwrap_or(0).div_ceil(self.batch)
            }
            // What waits, what is being put together, and what is held back to be shuffled.
            LoaderPlan::Stream(config) => {
                config.prefetch + 1 + config.shuffle.unwrap_or(0).div_ceil(self.batch)
            }
            LoaderPlan::Nothing => 0,
        }
    }

    /// The word for what a reader does for a sample.
    pub fn model(&self) -> &'static str {
        self.reading.model.as_str()
    }

    /// Reads of one reader under way together, in the deep model.
    pub fn queue_depth(&self) -> Option<usize> {
        match self.reading.model {
            ReadMethod::Framework | ReadMethod::Native => None,
            ReadMethod::Deep { depth } => Some(depth),
        }
    }

    /// Samples in the training loader's shuffle buffer, if it has one.
    pub fn shuffle_buffer(&self) -> Option<u64> {
        match self.train {
            LoaderPlan::Stream(config) => config.shuffle,
            LoaderPlan::Torch(config) => config.shuffle,
            LoaderPlan::Nothing => None,
        }
    }
}

fn reading(workload: &Workload) -> Reading {
    let reader = &workload.reader;
    let model = match workload.read_model() {
        ReadModel::Auto | ReadModel::Framework => ReadMethod::Framework,
        ReadModel::Native => ReadMethod::Native,
        ReadModel::Deep => ReadMethod::Deep { depth: reader.queue_depth as usize },
    };
    let (kept_files, kept_for) = match reader.read_type {
        ReadType::Memory => (reader.kept_files as usize, KeptFor::Run),
        // Who goes through a file keeps it open until then, as tf.data's generators do.
        ReadType::OnDemand => {
            let streamed = workload.dataset.format.is_streamed;
            let kept = streamed || reader.data_loader == DataLoader::Tensorflow;
            (usize::from(kept), KeptFor::Epoch)
        }
    };
    Reading { model, kept_files, kept_for }
}

impl LoaderPlan {
    fn new(workload: &Workload, reader: &Reader) -> Self {
        let streamed = workload.dataset.format.is_streamed;
        let prefetch = u64::from(reader.prefetch_size);
        let readers = reader.read_threads.max(1);
        let queue = if prefetch == 0 { DALI_QUEUE_DEPTH } else { prefetch };
        let shuffle = buffer(workload, reader);
        let workers = reader.read_threads;
        let torch = TorchConfig { workers, prefetch, deal: BatchAssignment::InTurn, shuffle: None };
        let stream = StreamConfig {
            readers,
            parsers: reader.computation_threads.max(1),
            prefetch,
            shuffle,
            rows: if streamed { ReaderSharding::ByFile } else { ReaderSharding::BySample },
        };
        match (reader.data_loader, streamed) {
            (DataLoader::Synthetic, _) => Self::Nothing,
            // Shards are the workers' own, unless every rank reads all of them.
            (DataLoader::Pytorch, true) if reader.sharding != Sharding::Records => {
                Self::Torch(TorchConfig { shuffle, ..torch })
            }
            (DataLoader::Pytorch, true) => {
                let prefetch = torch.outstanding();
                Self::Stream(StreamConfig { prefetch, parsers: readers, ..stream })
            }
            (DataLoader::Tensorflow, true) => Self::Stream(stream),
            (DataLoader::Tensorflow, false) => Self::Torch(TorchConfig {
                workers: readers,
                deal: BatchAssignment::InBlocks,
                ..torch
            }),
            (DataLoader::Dali | DataLoader::NativeDali, _) => {
                Self::Stream(StreamConfig { prefetch: queue, parsers: readers, ..stream })
            }
            // The last two are refused before a loader is made.
            (DataLoader::Pytorch | DataLoader::Custom | DataLoader::None, _) => Self::Torch(torch),
        }
    }

    /// Makes the loader. `preprocess` gives the work on samples of one of its threads, if there is
    /// any.
    pub(crate) fn build(
        self,
        clock: &Clock,
        data: &DataSet,
        mut preprocess: impl FnMut(u32) -> Option<Preprocess>,
    ) -> Loader {
        match self {
            Self::Torch(config) => {
                let work = |worker| preprocess(worker).unwrap_or_else(|| Box::new(|| 0));
                Loader::Torch(TorchLoader::new(clock, data, config, work))
            }
            Self::Stream(config) => {
                Loader::Stream(StreamLoader::new(clock, data, config, preprocess))
            }
            Self::Nothing => Loader::Nothing,
        }
    }
}

/// Samples in the shuffle buffer, if the loader has one and is asked to shuffle.
fn buffer(workload: &Workload, reader: &Reader) -> Option<u64> {
    let asked = reader.sample_shuffle != ShuffleMode::Off;
    let allowed = matches!(reader.sample_order, SampleOrder::Auto | SampleOrder::Dlio);
    (workload.has_shuffle_buffer() && asked && allowed).then_some(reader.shuffle_size)
}
