//! From what the workload says about reading to the loader that does it.

use feedline_clock::Clock;
use feedline_loader::{
    DataSet, Deal, KeptFor, Loader, Preprocess, ReadModel, Reading, Rows, StreamConfig,
    StreamLoader, TorchConfig, TorchLoader,
};
use feedline_workload::{
    DataLoader, IoEngine, ReadModel as Model, ReadType, Reader, SampleOrder, Shuffle, Workload,
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
    /// Bytes of one read call, if the workload says.
    pub transfer_bytes: Option<u64>,
    /// The training loader.
    pub(crate) train: LoaderPlan,
    /// The evaluation loader.
    pub(crate) eval: LoaderPlan,
}

/// A loader to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoaderPlan {
    Torch(TorchConfig),
    Stream(StreamConfig),
    Nothing { batch: u64 },
}

impl ReadPlan {
    pub(crate) fn new(workload: &Workload) -> Self {
        let (reader, format) = (&workload.reader, workload.dataset.format);
        let engine = match reader.io_engine {
            IoEngine::Auto if reader.maps(format) && !workload.data_root().is_url() => {
                IoEngine::Mmap
            }
            IoEngine::Auto => IoEngine::Sync,
            engine => engine,
        };
        let eval = Reader { sample_shuffle: Shuffle::Off, ..reader.clone() };
        Self {
            loader: reader.data_loader,
            reading: reading(workload),
            engine,
            direct: reader.odirect,
            transfer_bytes: reader.transfer_size,
            train: LoaderPlan::new(workload, reader, reader.batch_size),
            eval: LoaderPlan::new(workload, &eval, reader.batch_size_eval),
        }
    }

    /// Batches of a rank that can be ready or under way before it asks for them.
    pub(crate) fn ahead(&self) -> u64 {
        match self.train {
            LoaderPlan::Torch(config) => config.outstanding(),
            // What waits, what is being put together, and what is held back to be shuffled.
            LoaderPlan::Stream(config) => {
                config.prefetch + 1 + config.shuffle.unwrap_or(0).div_ceil(config.batch)
            }
            LoaderPlan::Nothing { .. } => 0,
        }
    }

    /// Reads of one reader under way together, in the deep model.
    pub fn queue_depth(&self) -> Option<usize> {
        match self.reading.model {
            ReadModel::Framework => None,
            ReadModel::Deep { depth } => Some(depth),
        }
    }

    /// Samples in the training loader's shuffle buffer, if it has one.
    pub fn shuffle_buffer(&self) -> Option<u64> {
        match self.train {
            LoaderPlan::Stream(config) => config.shuffle,
            LoaderPlan::Torch(_) | LoaderPlan::Nothing { .. } => None,
        }
    }
}

fn reading(workload: &Workload) -> Reading {
    let reader = &workload.reader;
    let model = match reader.read_model {
        Model::Framework => ReadModel::Framework,
        Model::Deep => ReadModel::Deep { depth: reader.queue_depth as usize },
    };
    let (kept_files, kept_for) = match reader.read_type {
        ReadType::Memory => (reader.kept_files as usize, KeptFor::Run),
        // tf.data's generators close a file when they have gone through it.
        ReadType::OnDemand => {
            (usize::from(reader.data_loader == DataLoader::Tensorflow), KeptFor::Epoch)
        }
    };
    Reading { model, kept_files, kept_for }
}

impl LoaderPlan {
    fn new(workload: &Workload, reader: &Reader, batch: u64) -> Self {
        let streamed = workload.dataset.format.is_streamed();
        let prefetch = u64::from(reader.prefetch_size);
        let readers = reader.read_threads.max(1);
        let queue = if prefetch == 0 { DALI_QUEUE_DEPTH } else { prefetch };
        let torch =
            TorchConfig { workers: reader.read_threads, prefetch, batch, deal: Deal::InTurn };
        let stream = StreamConfig {
            readers,
            parsers: reader.computation_threads.max(1),
            prefetch,
            batch,
            shuffle: buffer(workload, reader),
            rows: if streamed { Rows::Files } else { Rows::Places },
        };
        match (reader.data_loader, streamed) {
            (DataLoader::Synthetic, _) => Self::Nothing { batch },
            (DataLoader::Pytorch, true) => {
                let prefetch = torch.outstanding();
                Self::Stream(StreamConfig { prefetch, parsers: readers, ..stream })
            }
            (DataLoader::Tensorflow, true) => Self::Stream(stream),
            (DataLoader::Tensorflow, false) => {
                Self::Torch(TorchConfig { workers: readers, deal: Deal::InBlocks, ..torch })
            }
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
            Self::Nothing { batch } => Loader::Nothing { batch },
        }
    }
}

/// Samples in the shuffle buffer, if the loader has one and is asked to shuffle.
fn buffer(workload: &Workload, reader: &Reader) -> Option<u64> {
    let asked = reader.sample_shuffle != Shuffle::Off;
    let allowed = matches!(reader.sample_order, SampleOrder::Auto | SampleOrder::Dlio);
    (workload.has_shuffle_buffer() && asked && allowed).then_some(reader.shuffle_size)
}
