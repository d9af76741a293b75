//! Section `checkpoint`: when and how state is written and read.

use crate::keyword::keyword_enum;
use crate::schema::Kind::Text;
use crate::schema::{alias, idle};
use crate::section::section;

const NO_TENSORS_HELD: &str = "Feedline does not merge pages, and only holds tensors in memory if \
                               `checkpoint.state` is `resident`";

/// Most concurrent checkpoint writers or readers per rank.
const MOST_STREAMS: i64 = 1024;
/// Most saves that a rank may have in flight while it trains.
const MOST_SAVES_IN_FLIGHT: i64 = 1024;

section! {
    /// When and how checkpoints are written and read.
    pub struct Checkpoint in "checkpoint" {
        /// Folder of the checkpoints.
        checkpoint_folder: String = "./checkpoints".to_owned(), folder() "./checkpoints/";
        /// First epoch after which to checkpoint.
        checkpoint_after_epoch: u32 = 1, count() "1";
        /// Epochs between checkpoints.
        epochs_between_checkpoints: u32 = 1, positive() "1";
        /// Steps between checkpoints; negative values count epochs instead, 0 means never.
        steps_between_checkpoints: Option<u64> = None, optional(0) "-1";
        /// `default`: all ranks of the model take part; `subset`: the first ranks of a larger job.
        mode: CheckpointMode = CheckpointMode::Default, keyword() "default";
        /// Python class of a checkpoint plugin.
        checkpoint_mechanism_classname: Option<String> = None, optional_text() "null";
        /// Wait until a checkpoint is on stable storage. DLIO ignores this key.
        fsync: bool = false, bool() "false";
        /// Read back what another node wrote. DLIO ignores this key.
        recovery_rank_shift: bool = false, bool() "false";
        /// Include waiting for the other ranks in the measured time.
        rank_sync: bool = false, bool() "false";
        // DLIO waits for the absolute value of a negative number, 1 s by default; here it means none.
        /// Seconds to wait before each save and load in a run that only checkpoints.
        time_between_checkpoints: Option<f64> = None, wait_seconds() "-1";
        /// Checkpoints to write in a run that only checkpoints.
        num_checkpoints_write: Option<u64> = None, optional(0) "-1";
        /// Checkpoints to read in a run that only checkpoints.
        num_checkpoints_read: Option<u64> = None, optional(0) "-1";
        /// Fill tensors with random values instead of ones.
        randomize_tensor: bool = true, bool() "true";
        /// Merge equal memory pages (KSM); on if the key is present, even if empty.
        ksm: Option<Ksm> = None, ksm() "null", idle NO_TENSORS_HELD, then Ksm::rows();
        /// Format of the files: `torch` (what `torch.save` writes), `safetensors`, `dcp`
        /// (PyTorch's distributed checkpoints) or `raw` (only the bytes of tensors). Specific to
        /// Feedline.
        container: CheckpointContainer = CheckpointContainer::Torch, keyword() "torch";
        /// Check the content of every tensor that is read back. Specific to Feedline.
        verify: bool = false, bool() "false";
        /// Number of checkpoints to keep; older ones are deleted. Default: all. Specific to
        /// Feedline.
        keep_last: Option<u64> = None, optional_positive() "null";
        /// `sync`: training waits for a save; `async`: training continues as soon as the state is
        /// copied, while the copy is written. Specific to Feedline.
        save_mode: SaveMode = SaveMode::Sync, keyword() "sync";
        /// Maximum number of saves in flight with `save_mode: async`; further saves wait. Specific
        /// to Feedline.
        saves_in_flight: u32 = 1, whole(1..=MOST_SAVES_IN_FLIGHT) "1";
        /// Fraction of the training time that saving may cost, e.g. 0.05; determines the steps
        /// between checkpoints instead of `steps_between_checkpoints`. Specific to Feedline.
        overhead_budget: Option<f64> = None, budget() "null";
        /// Concurrent writers or readers per rank. Specific to Feedline.
        streams: u32 = 4, whole(1..=MOST_STREAMS) "4";
        /// Bytes per write or read, a multiple of 4096. Specific to Feedline.
        chunk_size: u64 = 8 << 20, chunk_size() "8388608";
        /// Bytes that a rank may use for buffers. Default: one chunk per stream, or with
        /// `save_mode: async` the state of the rank for each save in flight. Specific to Feedline.
        pool_size: Option<u64> = None, optional_positive() "null";
        /// Where tensors come from: `generated` chunk by chunk while writing, or `resident` in
        /// memory, as in a real job. Specific to Feedline.
        state: StateSource = StateSource::Generated, keyword() "generated";
        /// Bypass the page cache; `auto` does so if the file system supports it. Specific to
        /// Feedline.
        odirect: DirectIo = DirectIo::Auto, keyword() "auto", then [
            idle(
                "checkpoint.type", Text, "rank_zero", "Ranks that write.",
                "`model.parallelism` determines the writers",
            ),
            idle(
                "checkpoint.model_datatype", Text, "", "Element type of the model's tensors.",
                "use `model.model_datatype`",
            ),
            alias(
                "checkpoint.model_size", "model.model_size_bytes", "Misplaced in some older files.",
            ),
        ];
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

section! {
    /// Settings of kernel same-page merging (KSM).
    pub struct Ksm in "checkpoint.ksm" {
        /// Advice value passed to `madvise`.
        madv_mergeable_id: u32 = 12, count() "12", idle NO_TENSORS_HELD;
        /// Memory usage in percent that starts the wait.
        high_ram_trigger: f64 = 30.0, percent() "30.0", idle NO_TENSORS_HELD;
        /// Memory usage in percent that ends the wait.
        low_ram_exit: f64 = 15.0, percent() "15", idle NO_TENSORS_HELD;
        /// Longest wait in seconds.
        await_time: f64 = 200.0, number() "200", idle NO_TENSORS_HELD;
    }
}
