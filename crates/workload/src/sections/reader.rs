//! Section `reader`: how samples are read.

use super::time::TimeSpec;
use super::workload::Framework;
use crate::keyword::keyword_enum;
use crate::schema::Kind::{Number, Text};
use crate::schema::{DLIO_IGNORES, alias, idle, used};
use crate::section::section;
use feedline_formats::{Element, Mapping, Python, SampleFormat};

const NO_TENSOR: &str = "samples are checked and dropped, not turned into tensors";

/// Most reader threads per rank: more than any machine has cores.
const MOST_THREADS: i64 = 4096;
/// Most batches that one rank reads ahead.
const MOST_PREFETCH: i64 = 1 << 20;
/// Most reads in flight per reader; each has a buffer.
const MOST_IN_FLIGHT: i64 = 1024;
/// Most open files per reader.
const MOST_KEPT_FILES: i64 = 1 << 20;

section! {
    /// How samples are read.
    pub struct Reader in "reader" {
        /// Data loader to emulate; by default that of the framework.
        data_loader: DataLoader = DataLoader::Tensorflow, keyword() "";
        /// Python class of a plugin loader.
        data_loader_classname: Option<String> = None, optional_text() "null";
        /// Python class of a plugin reader.
        reader_classname: Option<String> = None, optional_text() "null";
        /// How samples are distributed to ranks; by default that of the data loader.
        data_loader_sampler: Option<Sampler> = None, keyword() "null";
        /// Samples per training batch and rank.
        batch_size: u64 = 1, positive() "1";
        /// Samples per evaluation batch and rank.
        batch_size_eval: u64 = 1, positive() "1";
        /// Reader workers per rank; 0 reads in the training thread.
        read_threads: u32 = 1, whole(0..=MOST_THREADS) "1";
        /// Batches of streamed formats that are preprocessed in parallel.
        computation_threads: u32 = 1, whole(0..=MOST_THREADS) "1";
        /// Batches to read ahead.
        prefetch_size: u32 = 2, whole(0..=MOST_PREFETCH) "2";
        /// Order of the files.
        file_shuffle: ShuffleMode = ShuffleMode::Off, keyword() "'off'";
        /// Order of the samples.
        sample_shuffle: ShuffleMode = ShuffleMode::Off, keyword() "'off'";
        /// Samples in the shuffle buffer of tf.data and DALI.
        shuffle_size: u64 = 1024, count() "1024";
        /// `on_demand` opens the file for every sample; `memory` keeps up to `kept_files` files
        /// open, or decoded in memory if they are read whole.
        read_type: ReadType = ReadType::OnDemand, keyword() "on_demand";
        /// Bytes per read call: of the read models `native` and `deep` (default 1 MiB; a multiple
        /// of 4096 with `odirect`), and of TensorFlow's record reader (default 256 KiB).
        transfer_size: Option<u64> = None, optional(1) "null";
        /// Emulated preprocessing time per sample.
        preprocess_time: TimeSpec = TimeSpec::default(), time() "{}", then [
            used(
                "reader.preprocess_time_stdev", Number, "",
                "Standard deviation of `preprocess_time`.",
            ),
        ];
        /// Copy batches into pinned memory, as PyTorch would.
        pin_memory: bool = true, bool() "true", idle NO_TENSOR;
        /// How PyTorch starts its workers, which determines the cost of starting them
        /// (`interpreter`). Feedline's readers are always threads. `forkserver` costs as much as
        /// `spawn`.
        multiprocessing_context: MultiprocessingContext = MultiprocessingContext::Fork,
            keyword() "fork";
        /// Whether PyTorch's workers live for the whole run instead of one epoch, which determines
        /// how often starting them costs time (`interpreter`). Default: false, as in PyTorch; true
        /// with `--as-dlio`. Specific to Feedline.
        persistent_workers: Option<bool> = None, optional_bool() "";
        /// Bypass the page cache when reading and generating.
        odirect: bool = false, bool() "false";
        /// Keep native DALI from memory-mapping its files; other loaders do not map files.
        dont_use_mmap: bool = false, bool() "false";
        /// Shape of the tensor passed to the trainer.
        transformed_record_dims: Vec<u64> = Vec::new(), whole_list(1) "[]", idle NO_TENSOR;
        /// Element type of the tensor passed to the trainer.
        transformed_record_element_type: Element = Element::UInt8,
            element_type() "uint8", idle NO_TENSOR;
        /// Order in which samples are read, regardless of the shuffle keys; `dlio` means
        /// `sequential` with `sharding: dlio`. Specific to Feedline.
        sample_order: SampleOrder = SampleOrder::Auto, keyword() "auto";
        /// How the samples of an epoch are distributed to ranks. `strided`: in turn, like
        /// PyTorch's `DistributedSampler`. `blocked`: one block per rank. `files`: whole files in
        /// turn, like tf.data's `Dataset.shard` and WebDataset's `split_by_node`. `records`: each
        /// of R ranks reads all files and takes every R-th record. `dlio`: blocks of whole steps,
        /// like DLIO's main branch (commit e1919d7). `dlio_2.0.0`: blocks that are shuffled
        /// inside, like DLIO 2.0.0. `auto`: like the emulated loader, i.e. `strided` for pytorch,
        /// `files` for streamed formats (`records` with tensorflow if there are fewer files than
        /// ranks), otherwise `blocked`. Specific to Feedline.
        sharding: Sharding = Sharding::Auto, keyword() "auto";
        /// Drop samples that do not fill a batch, like PyTorch's `DataLoader(drop_last)` and
        /// tf.data's `batch(drop_remainder)`. Default: true for DALI and `sharding: dlio`,
        /// otherwise false. Specific to Feedline.
        drop_last: Option<bool> = None, optional_bool() "null";
        /// Drop samples that cannot be distributed evenly to all ranks, like PyTorch's
        /// `DistributedSampler(drop_last)`; false repeats the first samples instead. Default:
        /// false for pytorch, otherwise true. Specific to Feedline.
        sampler_drop_last: Option<bool> = None, optional_bool() "null";
        /// How a reader reads a sample. `framework`: makes the calls of the framework's own
        /// reader, with their sizes, offsets and order (see [Fidelity](fidelity.md)). `native`:
        /// few large reads, with decoding. `deep`: reads the bytes of a batch with many reads in
        /// flight, without decoding. `auto`: `native` if `odirect`, `io_engine: io_uring` or
        /// `mmap`, or the loader native_dali requires reads that Python's readers cannot make,
        /// otherwise `framework`. Specific to Feedline.
        read_model: ReadModel = ReadModel::Auto, keyword() "auto";
        /// Python version whose buffered files the framework's readers use: `3.13` means 3.9 to
        /// 3.13, whose buffer has the file system's preferred size; `3.14` means 3.14 and later,
        /// whose buffer is at least 128 KiB. Specific to Feedline.
        python: Python = Python::Before314, keyword() "'3.13'";
        /// Whether readers also burn the CPU time that the framework spends outside of its read
        /// calls (interpreter, passing batches, starting workers). Applies to `read_model:
        /// framework` with the loaders pytorch and tensorflow. `auto`: if this machine has a
        /// calibration for the format (see [Calibration](calibration.md)); `calibrated`: always,
        /// and without a calibration the run is refused; `none`: never. Specific to Feedline.
        interpreter: Interpreter = Interpreter::Auto, keyword() "auto";
        /// Reads in flight per reader with `read_model: deep`. Specific to Feedline.
        queue_depth: u32 = 32, whole(1..=MOST_IN_FLIGHT) "32";
        /// System calls for reading: `sync` (pread), `mmap` (touches every page) or `io_uring`;
        /// `auto` uses `mmap` where the framework's reader does, otherwise `sync`. Specific to
        /// Feedline.
        io_engine: IoEngine = IoEngine::Auto, keyword() "auto";
        /// Files that each reader keeps open with `read_type: memory`; the least recently used
        /// file is closed first. Specific to Feedline.
        kept_files: u32 = 1024, whole(1..=MOST_KEPT_FILES) "1024", then [
            idle(
                "reader.file_access", Text, "multi", "How files are shared between ranks.",
                DLIO_IGNORES,
            ),
            alias(
                "data_reader", "reader",
                "Old name of the section; its keys take precedence over those of `reader`.",
            ),
        ];
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
