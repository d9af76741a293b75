//! The whole workload and its small sections.

use super::checkpoint::Checkpoint;
use super::dataset::Dataset;
use super::model::Model;
use super::reader::{DataLoader, IoEngine, ReadModel, Reader};
use super::storage::Storage;
use super::train::{Evaluation, Train};
use crate::keyword::keyword_enum;

/// Every key of a workload file, typed, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// The framework to emulate when reading and checkpointing.
    pub framework: Framework,
    /// Which phases run.
    pub workflow: Workflow,
    /// The model whose state is checkpointed.
    pub model: Model,
    /// Where data is stored.
    pub storage: Storage,
    /// The files and their samples.
    pub dataset: Dataset,
    /// How the samples are read.
    pub reader: Reader,
    /// Epochs, steps and the emulated computation.
    pub train: Train,
    /// When and how long evaluation runs.
    pub evaluation: Evaluation,
    /// When and how checkpoints are written and read.
    pub checkpoint: Checkpoint,
    /// Where results go and which steps count.
    pub output: Output,
    /// The utilization that a run should reach.
    pub metric: Metric,
    /// Profilers that DLIO would run; Feedline runs none.
    pub profiling: Profiling,
}

impl Workload {
    /// Whether samples are shuffled in a buffer after being read in order.
    pub fn has_shuffle_buffer(&self) -> bool {
        self.dataset.format.is_streamed || self.reader.data_loader == DataLoader::NativeDali
    }

    /// How a reader reads a sample; never [`ReadModel::Auto`].
    pub fn read_model(&self) -> ReadModel {
        match self.reader.read_model {
            ReadModel::Auto if self.beyond_framework().is_some() => ReadModel::Native,
            ReadModel::Auto => ReadModel::Framework,
            model => model,
        }
    }

    /// A setting that requires reads which the framework's own readers cannot make, if there is one.
    pub(crate) fn beyond_framework(&self) -> Option<String> {
        let reader = &self.reader;
        let engine = reader.io_engine;
        if reader.odirect {
            return Some("reader.odirect: true".to_owned());
        }
        if matches!(engine, IoEngine::IoUring | IoEngine::Mmap) {
            return Some(format!("reader.io_engine: {engine}"));
        }
        let native_dali = reader.data_loader == DataLoader::NativeDali;
        native_dali.then(|| format!("reader.data_loader: {}", reader.data_loader))
    }

    /// Whether the run only generates the data set.
    pub fn generate_only(&self) -> bool {
        self.workflow.generate_only()
    }

    /// Whether the run checkpoints without training.
    pub fn checkpoint_only(&self) -> bool {
        self.workflow.checkpoint_only()
    }
}

keyword_enum! {
    /// The emulated deep-learning framework.
    #[derive(Default)]
    pub enum Framework {
        /// TensorFlow: tf.data reading and TensorFlow checkpoints.
        #[default]
        Tensorflow = "tensorflow",
        /// PyTorch: DataLoader workers and `torch.save` checkpoints.
        Pytorch = "pytorch",
    }
}

/// Which phases of a run are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// Generate the data set first.
    pub generate_data: bool,
    /// Run the training loop.
    pub train: bool,
    /// Evaluate between epochs of training.
    pub evaluation: bool,
    /// Checkpoint during training, or on its own if `train` is off.
    pub checkpoint: bool,
    /// Run the profiler named in `profiling`; not emulated.
    pub profiling: bool,
    /// The key that `dlio_benchmark_query` prints; not emulated.
    pub query: Option<String>,
}

impl Default for Workflow {
    fn default() -> Self {
        Self {
            generate_data: false,
            train: true,
            evaluation: false,
            checkpoint: false,
            profiling: false,
            query: None,
        }
    }
}

impl Workflow {
    /// Whether the run only generates the data set.
    pub fn generate_only(&self) -> bool {
        self.generate_data && !self.train && !self.checkpoint
    }

    /// Whether the run checkpoints without training.
    pub fn checkpoint_only(&self) -> bool {
        self.checkpoint && !self.train
    }
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Folder for all results; none means the run directory.
    pub folder: Option<String>,
    /// Name of the log file in that folder.
    pub log_file: String,
    /// Which steps of a block are left out of the metrics.
    pub metric: OutputMetric,
}

impl Default for Output {
    fn default() -> Self {
        Self { folder: None, log_file: "dlio.log".to_owned(), metric: OutputMetric::default() }
    }
}

/// Which steps of a block are left out of the metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputMetric {
    /// Steps left out at the start.
    pub exclude_start_steps: u64,
    /// Steps left out at the end.
    pub exclude_end_steps: u64,
}

impl Default for OutputMetric {
    fn default() -> Self {
        Self { exclude_start_steps: 1, exclude_end_steps: 0 }
    }
}

/// The target that a run should reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Target for accelerator utilization, as a fraction.
    pub au: f64,
}

impl Default for Metric {
    fn default() -> Self {
        Self { au: 0.90 }
    }
}

keyword_enum! {
    /// A profiler that DLIO can start.
    #[derive(Default)]
    pub enum Profiler {
        /// No profiler.
        None = "none",
        /// `iostat` on the first rank.
        #[default]
        Iostat = "iostat",
        /// Darshan, when its library is preloaded.
        Darshan = "darshan",
        /// The TensorFlow profiler.
        Tensorboard = "tensorboard",
    }
}

/// Profilers that DLIO would run; Feedline runs none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiling {
    /// The profiler to start.
    pub profiler: Profiler,
    /// Devices for `iostat` to watch; empty means all.
    pub iostat_devices: Vec<String>,
}
