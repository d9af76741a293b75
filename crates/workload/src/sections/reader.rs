//! Section `reader`: how samples are read.

use super::time::TimeSpec;
use super::workload::Framework;
use crate::keyword::keyword_enum;
use feedline_formats::{Element, Mapping, Python, SampleFormat};

/// How samples are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// The emulated loader; by default that of the framework.
    pub data_loader: DataLoader,
    /// Python class of a plugin loader.
    pub data_loader_classname: Option<String>,
    /// Python class of a plugin reader.
    pub reader_classname: Option<String>,
    /// How samples are distributed to ranks; see [`Reader::sampler`].
    pub data_loader_sampler: Option<Sampler>,
    /// Samples per training batch and rank.
    pub batch_size: u64,
    /// Samples per evaluation batch and rank.
    pub batch_size_eval: u64,
    /// Reader workers per rank; 0 reads in the training thread.
    pub read_threads: u32,
    /// Batches of streamed formats that are preprocessed in parallel.
    pub computation_threads: u32,
    /// Batches to read ahead.
    pub prefetch_size: u32,
    /// How the order of files is shuffled.
    pub file_shuffle: ShuffleMode,
    /// How the order of samples is shuffled.
    pub sample_shuffle: ShuffleMode,
    /// Samples in the shuffle buffer of tf.data and DALI.
    pub shuffle_size: u64,
    /// Whether files are opened for every sample or kept.
    pub read_type: ReadType,
    /// Bytes per read call of the native and deep models, and of TensorFlow's record reader; none means
    /// their default.
    pub transfer_size: Option<u64>,
    /// Emulated preprocessing time per sample.
    pub preprocess_time: TimeSpec,
    /// Whether PyTorch would copy batches into pinned memory; not emulated.
    pub pin_memory: bool,
    /// How PyTorch would start its workers.
    pub multiprocessing_context: MultiprocessingContext,
    /// Whether PyTorch's workers live for the whole run; none means the default of PyTorch or DLIO.
    pub persistent_workers: Option<bool>,
    /// Whether to bypass the page cache.
    pub odirect: bool,
    /// Whether to keep native DALI from memory-mapping its files.
    pub dont_use_mmap: bool,
    /// Shape of the tensor passed to the trainer; empty means as read or resized.
    pub transformed_record_dims: Vec<u64>,
    /// Element type of that tensor.
    pub transformed_record_element_type: Element,
    /// The order in which samples are read.
    pub sample_order: SampleOrder,
    /// How that order is distributed to ranks.
    pub sharding: Sharding,
    /// Whether the loader drops samples that do not fill a batch; none means like the framework.
    pub drop_last: Option<bool>,
    /// Whether the sampler drops samples that cannot be distributed evenly to all ranks; none means like
    /// the framework.
    pub sampler_drop_last: Option<bool>,
    /// How a reader reads a sample, as set; see [`Workload::read_model`].
    ///
    /// [`Workload::read_model`]: crate::Workload::read_model
    pub read_model: ReadModel,
    /// The Python version whose buffered files the framework's readers use.
    pub python: Python,
    /// Whether readers burn the CPU time that the framework itself costs.
    pub interpreter: Interpreter,
    /// Reads in flight per reader in the deep model.
    pub queue_depth: u32,
    /// The system calls for reading.
    pub io_engine: IoEngine,
    /// Files that each reader keeps open with `read_type: memory`.
    pub kept_files: u32,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            data_loader: DataLoader::Tensorflow,
            data_loader_classname: None,
            reader_classname: None,
            data_loader_sampler: None,
            batch_size: 1,
            batch_size_eval: 1,
            read_threads: 1,
            computation_threads: 1,
            prefetch_size: 2,
            file_shuffle: ShuffleMode::Off,
            sample_shuffle: ShuffleMode::Off,
            shuffle_size: 1024,
            read_type: ReadType::OnDemand,
            transfer_size: None,
            preprocess_time: TimeSpec::default(),
            pin_memory: true,
            multiprocessing_context: MultiprocessingContext::Fork,
            persistent_workers: None,
            odirect: false,
            dont_use_mmap: false,
            transformed_record_dims: Vec::new(),
            transformed_record_element_type: Element::UInt8,
            sample_order: SampleOrder::Auto,
            read_model: ReadModel::Auto,
            python: Python::Before314,
            interpreter: Interpreter::Auto,
            sharding: Sharding::Auto,
            drop_last: None,
            sampler_drop_last: None,
            queue_depth: 32,
            io_engine: IoEngine::Auto,
            kept_files: 1024,
        }
    }
}

impl Reader {
    /// The sampler in effect: the one set, or that of the loader.
    pub fn sampler(&self) -> Sampler {
        self.data_loader_sampler.unwrap_or_else(|| self.data_loader.default_sampler())
    }

    /// Whether files of `format` are read through a memory map.
    pub fn maps(&self, format: &SampleFormat) -> bool {
        match self.io_engine {
            IoEngine::Mmap => true,
            IoEngine::Sync | IoEngine::IoUring => false,
            IoEngine::Auto => {
                let dali = self.data_loader == DataLoader::NativeDali && !self.dont_use_mmap;
                // The library maps its files, unless the settings require other reads.
                let library = matches!(self.read_model, ReadModel::Auto | ReadModel::Framework);
                dali || match format.mapping {
                    Mapping::Never => false,
                    Mapping::ByLibrary => library && !self.odirect,
                    Mapping::Always => true,
                }
            }
        }
    }
}

keyword_enum! {
    /// The emulated data loader.
    pub enum DataLoader {
        /// tf.data.
        Tensorflow = "tensorflow",
        /// PyTorch's `DataLoader`.
        Pytorch = "pytorch",
        /// DALI with an external source.
        Dali = "dali",
        /// DALI with its own readers.
        NativeDali = "native_dali",
        /// Delivers batches without reading anything.
        Synthetic = "synthetic",
        /// A Python plugin class.
        Custom = "custom",
        /// DLIO's word for no loader.
        None = "none",
    }
}

impl DataLoader {
    /// The default loader of a framework.
    pub const fn of_framework(framework: Framework) -> Self {
        match framework {
            Framework::Tensorflow => Self::Tensorflow,
            Framework::Pytorch => Self::Pytorch,
        }
    }

    /// The default sampler of the loader.
    pub const fn default_sampler(self) -> Sampler {
        match self {
            Self::Tensorflow => Sampler::Iterative,
            _ => Sampler::Index,
        }
    }
}

keyword_enum! {
    /// How samples are distributed to ranks.
    pub enum Sampler {
        /// Each worker iterates over its own files.
        Iterative = "iterative",
        /// Each rank takes its share of sample indices.
        Index = "index",
        /// DLIO's word for no sampler.
        None = "none",
    }
}

keyword_enum! {
    /// Whether and how an order is shuffled.
    #[derive(Default)]
    pub enum ShuffleMode {
        /// Not shuffled.
        #[default]
        Off = "off",
        /// Shuffled by the seed, the same in every run.
        Seed = "seed",
        /// Shuffled differently in every run.
        Random = "random",
    }
}

keyword_enum! {
    /// Whether readers keep what they read.
    #[derive(Default)]
    pub enum ReadType {
        /// The file is opened each time a sample is needed.
        #[default]
        OnDemand = "on_demand",
        /// Files stay open, or decoded in memory.
        Memory = "memory",
    }
}

keyword_enum! {
    /// How a reader reads a sample. Specific to Feedline.
    #[derive(Default)]
    pub enum ReadModel {
        /// Like the framework, unless other settings require reads that its readers cannot make.
        #[default]
        Auto = "auto",
        /// Makes the calls of the framework's reader, one sample at a time, with decoding.
        Framework = "framework",
        /// Makes few large reads, one sample at a time, with decoding.
        Native = "native",
        /// Keeps many reads in flight, without decoding.
        Deep = "deep",
    }
}

keyword_enum! {
    /// Whether readers burn the CPU time that the framework itself costs (interpreter, passing batches,
    /// starting workers). Specific to Feedline.
    #[derive(Default)]
    pub enum Interpreter {
        /// If this machine has a calibration that covers the format.
        #[default]
        Auto = "auto",
        /// Always; without a calibration the run is refused.
        Calibrated = "calibrated",
        /// Never.
        None = "none",
    }
}

keyword_enum! {
    /// The system calls for reading. Specific to Feedline.
    #[derive(Default)]
    pub enum IoEngine {
        /// A memory map where the framework's reader uses one, otherwise `pread`.
        #[default]
        Auto = "auto",
        /// `pread`.
        Sync = "sync",
        /// A memory map whose pages are all touched.
        Mmap = "mmap",
        /// `io_uring`.
        IoUring = "io_uring",
    }
}

keyword_enum! {
    /// How PyTorch would start its workers.
    #[derive(Default)]
    pub enum MultiprocessingContext {
        /// With `fork`: cheap, and inherits memory.
        #[default]
        Fork = "fork",
        /// With a new interpreter per worker.
        Spawn = "spawn",
        /// With a server process that forks; costs as much as `spawn`.
        Forkserver = "forkserver",
    }
}

keyword_enum! {
    /// The order in which samples are read. Specific to Feedline.
    #[derive(Default)]
    pub enum SampleOrder {
        /// As set by the shuffle keys.
        #[default]
        Auto = "auto",
        /// A random permutation of all samples in every epoch.
        Permuted = "permuted",
        /// In index order, regardless of the shuffle keys.
        Sequential = "sequential",
        /// What DLIO does with the shuffle keys in practice: sequential order.
        Dlio = "dlio",
    }
}

keyword_enum! {
    /// How the samples of an epoch are distributed to ranks. Specific to Feedline.
    #[derive(Default)]
    pub enum Sharding {
        /// Like the emulated loader.
        #[default]
        Auto = "auto",
        /// In turn, like PyTorch's `DistributedSampler`.
        Strided = "strided",
        /// One contiguous block per rank.
        Blocked = "blocked",
        /// Files in turn, like tf.data's `Dataset.shard` and WebDataset's `split_by_node`.
        Files = "files",
        /// Each of R ranks reads all files and takes every R-th record.
        Records = "records",
        /// Blocks of whole steps, like DLIO's main branch.
        Dlio = "dlio",
        /// Like DLIO 2.0.0, which shuffles inside the block of each rank.
        Dlio200 = "dlio_2.0.0",
    }
}
