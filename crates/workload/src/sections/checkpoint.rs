//! Section `checkpoint`: when and how state is written and read.

use crate::keyword::keyword_enum;

/// When and how checkpoints are written and read.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Folder of the checkpoints, without trailing slashes.
    pub checkpoint_folder: String,
    /// First epoch after which to checkpoint.
    pub checkpoint_after_epoch: u32,
    /// Epochs between checkpoints.
    pub epochs_between_checkpoints: u32,
    /// Steps between checkpoints; none means by epochs, zero means never.
    pub steps_between_checkpoints: Option<u64>,
    /// Whether all ranks of the model take part, or only the first ones.
    pub mode: CheckpointMode,
    /// Python class of a checkpoint plugin.
    pub checkpoint_mechanism_classname: Option<String>,
    /// Whether the measured time includes flushing to stable storage.
    pub fsync: bool,
    /// Whether a rank reads back the state that another node wrote.
    pub recovery_rank_shift: bool,
    /// Whether the measured time includes waiting for other ranks, when only checkpointing.
    pub rank_sync: bool,
    /// Seconds to wait before each save and load when only checkpointing; none if not set or negative
    /// (DLIO then waits for the absolute value, 1 s by default).
    pub time_between_checkpoints: Option<f64>,
    /// Checkpoints to write when only checkpointing.
    pub num_checkpoints_write: Option<u64>,
    /// Checkpoints to read when only checkpointing.
    pub num_checkpoints_read: Option<u64>,
    /// Whether tensors hold random values instead of ones.
    pub randomize_tensor: bool,
    /// Settings for merging equal memory pages (KSM); not emulated.
    pub ksm: Option<Ksm>,
    /// Format of the files.
    pub container: CheckpointContainer,
    /// Whether to check the content of tensors that are read back.
    pub verify: bool,
    /// Number of checkpoints to keep; none means all.
    pub keep_last: Option<u64>,
    /// Whether training waits for a save to complete.
    pub save_mode: SaveMode,
    /// Most saves in flight per rank with [`SaveMode::Async`].
    pub saves_in_flight: u32,
    /// Fraction of the training time that saving may cost; determines the steps between checkpoints.
    pub overhead_budget: Option<f64>,
    /// Concurrent writers or readers per rank.
    pub streams: u32,
    /// Bytes per write or read, a multiple of 4096.
    pub chunk_size: u64,
    /// Bytes that a rank may use for buffers; none means what the save mode needs.
    pub pool_size: Option<u64>,
    /// Where the bytes of tensors come from.
    pub state: StateSource,
    /// Whether to bypass the page cache.
    pub odirect: DirectIo,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            checkpoint_folder: "./checkpoints".to_owned(),
            checkpoint_after_epoch: 1,
            epochs_between_checkpoints: 1,
            steps_between_checkpoints: None,
            mode: CheckpointMode::Default,
            checkpoint_mechanism_classname: None,
            fsync: false,
            recovery_rank_shift: false,
            rank_sync: false,
            time_between_checkpoints: None,
            num_checkpoints_write: None,
            num_checkpoints_read: None,
            randomize_tensor: true,
            ksm: None,
            container: CheckpointContainer::Torch,
            verify: false,
            keep_last: None,
            save_mode: SaveMode::Sync,
            saves_in_flight: 1,
            overhead_budget: None,
            streams: 4,
            chunk_size: 8 << 20,
            pool_size: None,
            state: StateSource::Generated,
            odirect: DirectIo::Auto,
        }
    }
}

keyword_enum! {
    /// Format of a checkpoint's files.
    pub enum CheckpointContainer {
        /// What `torch.save` writes.
        Torch = "torch",
        /// Hugging Face's safetensors: a header and the tensors.
        Safetensors = "safetensors",
        /// PyTorch's distributed checkpoints.
        Dcp = "dcp",
        /// Only the bytes of the tensors.
        Raw = "raw",
    }
}

keyword_enum! {
    /// Whether training waits for a save to complete.
    pub enum SaveMode {
        /// Training waits until the checkpoint is written.
        Sync = "sync",
        /// Training continues as soon as the state is copied, while the copy is written.
        Async = "async",
    }
}

keyword_enum! {
    /// Where the bytes of tensors come from.
    pub enum StateSource {
        /// Generated chunk by chunk while writing.
        Generated = "generated",
        /// Held in memory, as in a real job.
        Resident = "resident",
    }
}

keyword_enum! {
    /// Whether to bypass the page cache.
    pub enum DirectIo {
        /// If the file system supports it.
        Auto = "auto",
        /// Always; a file system that does not support it is an error.
        On = "true",
        /// Never, even if the file system supports it.
        Off = "false",
    }
}

keyword_enum! {
    /// Which ranks of the model take part.
    #[derive(Default)]
    pub enum CheckpointMode {
        /// All ranks of the model.
        #[default]
        Default = "default",
        /// The first ranks of a larger job, whose size `model.parallelism.data` sets.
        Subset = "subset",
    }
}

/// Settings of kernel same-page merging (KSM).
#[derive(Debug, Clone, PartialEq)]
pub struct Ksm {
    /// Advice value passed to `madvise`.
    pub madv_mergeable_id: u32,
    /// Memory usage in percent that starts the wait.
    pub high_ram_trigger: f64,
    /// Memory usage in percent that ends the wait.
    pub low_ram_exit: f64,
    /// Longest wait in seconds.
    pub await_time: f64,
}

impl Default for Ksm {
    fn default() -> Self {
        Self {
            madv_mergeable_id: 12,
            high_ram_trigger: 30.0,
            low_ram_exit: 15.0,
            await_time: 200.0,
        }
    }
}
