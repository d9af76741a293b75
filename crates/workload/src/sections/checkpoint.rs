//! Section `checkpoint`: when and how state is written and read.

use crate::keyword::keyword_enum;

/// When and how checkpoints are written and read.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Folder of the checkpoints, without trailing slashes.
    pub checkpoint_folder: String,
    /// First epoch that is followed by a checkpoint.
    pub checkpoint_after_epoch: u32,
    /// Epochs from one checkpoint to the next.
    pub epochs_between_checkpoints: u32,
    /// Steps from one checkpoint to the next. None: by epochs. Zero: never.
    pub steps_between_checkpoints: Option<u64>,
    /// Whether all ranks of the model take part or a first few of them.
    pub mode: CheckpointMode,
    /// Python class of a plugin mechanism.
    pub checkpoint_mechanism_classname: Option<String>,
    /// Whether a checkpoint is on stable storage before its time is taken.
    pub fsync: bool,
    /// Whether a rank reads back the state that another node wrote.
    pub recovery_rank_shift: bool,
    /// Whether ranks wait for each other inside the timed interval, when only checkpointing.
    pub rank_sync: bool,
    /// Seconds waited before each save and load when only checkpointing; none when not given or
    /// negative (DLIO then waits for the absolute value, 1 s by default).
    pub time_between_checkpoints: Option<f64>,
    /// Checkpoints written when only checkpointing.
    pub num_checkpoints_write: Option<u64>,
    /// Checkpoints read when only checkpointing.
    pub num_checkpoints_read: Option<u64>,
    /// Random tensors instead of ones.
    pub randomize_tensor: bool,
    /// Merging of equal memory pages while many ranks share a node; none leaves it off.
    pub ksm: Option<Ksm>,
    /// Format of the files.
    pub container: CheckpointContainer,
    /// Whether the content of what is read back is checked.
    pub verify: bool,
    /// Checkpoints that stay; older ones are removed. None: all of them.
    pub keep_last: Option<u64>,
    /// Whether training waits for a save.
    pub save_mode: SaveMode,
    /// Saves of a rank that may be under way together while it trains.
    pub saves_in_flight: u32,
    /// Share of the training time that saving may cost, from which the steps between checkpoints
    /// follow.
    pub overhead_budget: Option<f64>,
    /// Writers or readers of a rank at a time.
    pub streams: u32,
    /// Bytes of one write or read, a multiple of 4096.
    pub chunk_size: u64,
    /// Bytes that a rank may use for buffers. None: what the way of saving needs.
    pub pool_size: Option<u64>,
    /// Where the bytes of tensors come from.
    pub state: StateSource,
    /// Whether files are written and read past the page cache.
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
        /// Header and tensors, as Hugging Face keeps them.
        Safetensors = "safetensors",
        /// PyTorch's distributed checkpoints.
        Dcp = "dcp",
        /// The tensors' bytes and nothing else.
        Raw = "raw",
    }
}

keyword_enum! {
    /// Whether training waits for a save.
    pub enum SaveMode {
        /// It does.
        Sync = "sync",
        /// It waits until the state is copied, and goes on while that is written.
        Async = "async",
    }
}

keyword_enum! {
    /// Where the bytes of tensors come from.
    pub enum StateSource {
        /// They are made chunk by chunk as they are written.
        Generated = "generated",
        /// They are held in memory, as those of a real job are.
        Resident = "resident",
    }
}

keyword_enum! {
    /// Whether files are written and read past the page cache.
    pub enum DirectIo {
        /// Where the file system takes it.
        Auto = "auto",
        /// Always, or not at all.
        On = "true",
        /// Never.
        Off = "false",
    }
}

keyword_enum! {
    /// Which ranks of the model exist.
    #[derive(Default)]
    pub enum CheckpointMode {
        /// All of them.
        #[default]
        Default = "default",
        /// The first few of a larger world given by `model.parallelism.data`.
        Subset = "subset",
    }
}

/// Settings of kernel same-page merging.
#[derive(Debug, Clone, PartialEq)]
pub struct Ksm {
    /// Advice value given to the kernel.
    pub madv_mergeable_id: u32,
    /// Use of memory in percent that starts the wait.
    pub high_ram_trigger: f64,
    /// Use of memory in percent that ends the wait.
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
