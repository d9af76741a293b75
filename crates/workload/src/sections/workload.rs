//! The whole workload and its small sections.

use super::checkpoint::Checkpoint;
use super::dataset::Dataset;
use super::model::Model;
use super::reader::{DataLoader, IoEngine, ReadModel, Reader};
use super::storage::Storage;
use super::train::{Evaluation, Train};
use crate::keyword::keyword_enum;
use crate::schema::Kind::Bool;
use crate::schema::{Key, alias, choice, idle, used};
use crate::section::section;

const NO_PROFILER: &str = "Feedline starts no profiler";

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
    /// Every key, by section.
    pub(crate) fn rows() -> Vec<Key> {
        let help = "Framework to emulate when reading and checkpointing.";
        let mut rows = vec![used("framework", choice::<Framework>(), "tensorflow", help)];
        rows.extend(Workflow::rows());
        rows.extend(Model::rows());
        rows.extend(Storage::rows());
        rows.extend(Dataset::rows());
        rows.extend(Reader::rows());
        rows.extend(Train::rows());
        rows.extend(Evaluation::rows());
        rows.extend(Checkpoint::rows());
        rows.extend(Output::rows());
        rows.extend(Metric::rows());
        rows.extend(Profiling::rows());
        rows
    }

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

section! {
    /// Which phases of a run are on.
    #[derive(Eq)]
    pub struct Workflow in "workflow" {
        /// Generate the data set first.
        generate_data: bool = false, bool() "false";
        /// Run the training loop.
        train: bool = true, bool() "true";
        /// Evaluate between epochs of training.
        evaluation: bool = false, bool() "false";
        /// Checkpoint during training, or on its own if training is off.
        checkpoint: bool = false, bool() "false";
        /// Run the profiler named in `profiling`.
        profiling: bool = false, bool() "false", idle NO_PROFILER;
        /// Key that `dlio_benchmark_query` prints.
        query: Option<String> = None,
            optional_text() "null",
            idle "use `feedline run --dry-run` or `feedline workloads NAME` instead", then [
            idle(
                "workflow.debug", Bool, "false", "Left over from early versions of DLIO.",
                "DLIO does not read it",
            ),
            alias("workflow.evaluate", "workflow.evaluation", "Spelling in some older files."),
        ];
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

section! {
    /// Where results go.
    #[derive(Eq)]
    pub struct Output in "output" {
        /// Folder for all results. Default: the run directory.
        folder: Option<String> = None, optional_text() "null";
        /// Name of the log file.
        log_file: String = "dlio.log".to_owned(), text() "dlio.log";
        /// Which steps of a block are left out of the metrics.
        metric: OutputMetric = OutputMetric::default(), section;
    }
}

section! {
    /// Which steps of a block are left out of the metrics.
    #[derive(Eq)]
    pub struct OutputMetric in "output.metric" {
        /// Steps to leave out of the metrics at the start of a block.
        exclude_start_steps: u64 = 1, count() "1";
        /// Steps to leave out of the metrics at the end of a block.
        exclude_end_steps: u64 = 0, count() "0";
    }
}

section! {
    /// The target that a run should reach.
    pub struct Metric in "metric" {
        /// Target for accelerator utilization, as a fraction.
        au: f64 = 0.90, bounded(0.0..=1.0, "a fraction from 0 to 1") "0.90";
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

section! {
    /// Profilers that DLIO would run; Feedline runs none.
    #[derive(Eq)]
    pub struct Profiling in "profiling" {
        /// Profiler to run alongside the benchmark.
        profiler: Profiler = Default::default(), keyword() "iostat", idle NO_PROFILER;
        /// Devices for iostat to watch; empty means all.
        iostat_devices: Vec<String> = Default::default(), text_list() "[]", idle NO_PROFILER;
    }
}
