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
    /// Bytes of one read call; none means the best size for the way of reading.
    pub transfer_size: Option<u64>,
    /// Emulated work on one sample.
    pub preprocess_time: TimeSpec,
    /// Whether torch would copy a batch into pinned memory.
    pub pin_memory: bool,
    /// How torch would start its workers.
    pub multiprocessing_context: MultiprocessingContext,
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
    /// What a reader does for a sample.
    pub read_model: ReadModel,
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
            odirect: false,
            dont_use_mmap: false,
            transformed_record_dims: Vec::new(),
            transformed_record_element_type: "uint8".to_owned(),
            sample_order: SampleOrder::Auto,
            read_model: ReadModel::Framework,
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
                format == Format::MmapIndexedBinary || dali
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
        /// The calls of the framework's reader, one sample after the other, decoding included.
        #[default]
        Framework = "framework",
        /// Many reads under way together, nothing decoded.
        Deep = "deep",
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
