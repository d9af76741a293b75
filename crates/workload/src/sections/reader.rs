//! Section `reader`: how samples are read.

use super::dataset::Format;
use super::time::TimeSpec;
use super::workload::Framework;
use crate::keyword::keyword_enum;

/// How samples are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// The emulated loader; that of the framework when the file names none.
    pub data_loader: DataLoader,
    /// Python class of a plugin loader.
    pub data_loader_classname: Option<String>,
    /// Python class of a plugin reader.
    pub reader_classname: Option<String>,
    /// How samples are handed to ranks; see [`Reader::sampler`].
    pub data_loader_sampler: Option<Sampler>,
    /// Samples of one training batch of one rank.
    pub batch_size: u64,
    /// Samples of one evaluation batch of one rank.
    pub batch_size_eval: u64,
    /// Reader workers of one rank; 0 reads in the training thread.
    pub read_threads: u32,
    /// Threads that parse TFRecords.
    pub computation_threads: u32,
    /// Batches read ahead.
    pub prefetch_size: u32,
    /// Order of the files.
    pub file_shuffle: Shuffle,
    /// Order of the samples.
    pub sample_shuffle: Shuffle,
    /// Samples in the shuffle buffer of tf.data and DALI.
    pub shuffle_size: u64,
    /// Whether a sample is read when needed or all at the start.
    pub read_type: ReadType,
    /// Bytes of one read call of the native and deep models, and of TensorFlow's record reader; none
    /// means the usual size.
    pub transfer_size: Option<u64>,
    /// Emulated work on one sample.
    pub preprocess_time: TimeSpec,
    /// Whether torch would copy a batch into pinned memory.
    pub pin_memory: bool,
    /// How torch would start its workers.
    pub multiprocessing_context: MultiprocessingContext,
    /// Whether torch's workers live as long as the run; torch's default, or DLIO's, if not said.
    pub persistent_workers: Option<bool>,
    /// Read past the page cache.
    pub odirect: bool,
    /// Keep native DALI from mapping its files.
    pub dont_use_mmap: bool,
    /// Shape of the tensor handed to the trainer; empty means as read or resized.
    pub transformed_record_dims: Vec<u64>,
    /// Element type of that tensor by its full NumPy name.
    pub transformed_record_element_type: String,
    /// The order that samples are really read in.
    pub sample_order: SampleOrder,
    /// How that order is dealt to ranks.
    pub sharding: Sharding,
    /// Whether the loader leaves out samples that do not fill a batch; none means as the framework.
    pub drop_last: Option<bool>,
    /// Whether the sampler leaves out samples that cannot be dealt to all ranks; none means as the
    /// framework.
    pub sampler_drop_last: Option<bool>,
    /// What a reader does for a sample, as asked for; see [`Workload::read_model`].
    ///
    /// [`Workload::read_model`]: crate::Workload::read_model
    pub read_model: ReadModel,
    /// The Python whose buffered files the framework's readers sit on.
    pub python: PythonVersion,
    /// Whether what the framework itself costs is burnt.
    pub interpreter: Interpreter,
    /// Reads of one reader under way together in the deep model.
    pub queue_depth: u32,
    /// The system calls that bytes are read with.
    pub io_engine: IoEngine,
    /// Files that a reader keeps open with `read_type: memory`.
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
            file_shuffle: Shuffle::Off,
            sample_shuffle: Shuffle::Off,
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
            transformed_record_element_type: "uint8".to_owned(),
            sample_order: SampleOrder::Auto,
            read_model: ReadModel::Auto,
            python: PythonVersion::V3_13,
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
    /// The sampler in force: the one given, else that of the loader.
    pub fn sampler(&self) -> Sampler {
        self.data_loader_sampler.unwrap_or_else(|| self.data_loader.default_sampler())
    }

    /// Whether files of `format` are read through a memory map.
    pub fn maps(&self, format: Format) -> bool {
        match self.io_engine {
            IoEngine::Mmap => true,
            IoEngine::Sync | IoEngine::IoUring => false,
            IoEngine::Auto => {
                let dali = self.data_loader == DataLoader::NativeDali && !self.dont_use_mmap;
                // The library maps its files, unless other reads than its own are asked for.
                let library = matches!(self.read_model, ReadModel::Auto | ReadModel::Framework);
                let safetensors = format == Format::Safetensors && library && !self.odirect;
                format == Format::MmapIndexedBinary || safetensors || dali
            }
        }
    }
}

keyword_enum! {
    /// The emulated data loader.
    pub enum DataLoader {
        /// tf.data.
        Tensorflow = "tensorflow",
        /// torch's DataLoader.
        Pytorch = "pytorch",
        /// DALI with an external source.
        Dali = "dali",
        /// DALI with its own readers.
        NativeDali = "native_dali",
        /// No reading: batches out of nothing.
        Synthetic = "synthetic",
        /// A plugin class.
        Custom = "custom",
        /// No loader.
        None = "none",
    }
}

impl DataLoader {
    /// The loader of a framework, for a file that names none.
    pub const fn of_framework(framework: Framework) -> Self {
        match framework {
            Framework::Tensorflow => Self::Tensorflow,
            Framework::Pytorch => Self::Pytorch,
        }
    }

    /// The sampler that goes with the loader.
    pub const fn default_sampler(self) -> Sampler {
        match self {
            Self::Tensorflow => Sampler::Iterative,
            _ => Sampler::Index,
        }
    }
}

keyword_enum! {
    /// How samples are handed to ranks.
    pub enum Sampler {
        /// Each worker walks through its own files.
        Iterative = "iterative",
        /// Each rank takes its share of sample indices.
        Index = "index",
        /// No sampler.
        None = "none",
    }
}

keyword_enum! {
    /// Whether and how an order is shuffled.
    #[derive(Default)]
    pub enum Shuffle {
        /// As it stands.
        #[default]
        Off = "off",
        /// By the seed, the same in every run.
        Seed = "seed",
        /// Anew in every run.
        Random = "random",
    }
}

keyword_enum! {
    /// When a sample is read.
    #[derive(Default)]
    pub enum ReadType {
        /// Each time it is needed.
        #[default]
        OnDemand = "on_demand",
        /// Once, and then kept.
        Memory = "memory",
    }
}

keyword_enum! {
    /// What a reader does for a sample. A key of Feedline's own.
    #[derive(Default)]
    pub enum ReadModel {
        /// As the framework, unless reads are asked for that its readers cannot make.
        #[default]
        Auto = "auto",
        /// The calls of the framework's reader, one sample after the other, decoding included.
        Framework = "framework",
        /// Few large reads, one sample after the other, decoding included.
        Native = "native",
        /// Many reads under way together, nothing decoded.
        Deep = "deep",
    }
}

keyword_enum! {
    /// A Python, by how large it makes the buffer of a file. A key of Feedline's own.
    #[derive(Default)]
    pub enum PythonVersion {
        /// CPython 3.9 to 3.13: the file system's preferred size (`st_blksize`).
        #[default]
        V3_13 = "3.13",
        /// CPython 3.14 and later: 128 KiB at least, 8 MiB at most.
        V3_14 = "3.14",
    }
}

keyword_enum! {
    /// Whether what the framework itself costs (interpreter, hand-over, workers' start) is burnt. A
    /// key of Feedline's own.
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
    /// The system calls that bytes are read with. A key of Feedline's own.
    #[derive(Default)]
    pub enum IoEngine {
        /// A memory map where the framework's reader has one, `pread` elsewhere.
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
    /// How torch would start its workers.
    #[derive(Default)]
    pub enum MultiprocessingContext {
        /// By fork.
        #[default]
        Fork = "fork",
        /// As a new process.
        Spawn = "spawn",
        /// From a server process.
        Forkserver = "forkserver",
    }
}

keyword_enum! {
    /// The order that samples are really read in. A key of Feedline's own.
    #[derive(Default)]
    pub enum SampleOrder {
        /// As the shuffle keys say.
        #[default]
        Auto = "auto",
        /// A true permutation in every epoch.
        Permuted = "permuted",
        /// Sorted, whatever the shuffle keys say.
        Sequential = "sequential",
        /// What DLIO really does with the shuffle keys.
        Dlio = "dlio",
    }
}

keyword_enum! {
    /// How the samples of an epoch are dealt to ranks. A key of Feedline's own.
    #[derive(Default)]
    pub enum Sharding {
        /// As the emulated loader deals.
        #[default]
        Auto = "auto",
        /// In turn, as PyTorch's `DistributedSampler` does.
        Strided = "strided",
        /// A block of the order for each rank.
        Blocked = "blocked",
        /// Files in turn, as tf.data's `Dataset.shard` and WebDataset's `split_by_node` do.
        Files = "files",
        /// Every rank reads all files and takes every R-th record.
        Records = "records",
        /// Blocks of whole steps, as DLIO's main branch deals.
        Dlio = "dlio",
        /// As DLIO 2.0.0 deals, which shuffles inside the blocks of ranks.
        Dlio200 = "dlio_2.0.0",
    }
}
