//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Is my training fed, and if not, who is starving it?
#[derive(Debug, Parser)]
#[command(name = "feedline", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a DLIO workload: make the data, train on emulated accelerators, say how busy they were
    Run(RunArgs),
    /// Check every file of a data set against its manifest: that it is there, its size, its content
    Verify(VerifyArgs),
    /// Say how many accelerators this client could feed if its storage were infinitely fast
    Ceiling(CeilingArgs),
    /// Say which rank of a model would save what: files, bytes, memory. Nothing is written
    PlanCheckpoint(PlanCheckpointArgs),
    /// List the shipped workloads, or print one
    Workloads {
        /// Print this workload's YAML
        name: Option<String>,
    },
    /// Say what a metric means, how it is computed and what it leaves out
    Explain {
        /// A name from summary.json; without it, all names
        metric: Option<String>,
    },
    /// Print a reference page in Markdown
    #[command(hide = true)]
    Reference {
        /// Which page
        page: Page,
    },
}

const CEILING_EXAMPLES: &str = "\
Examples:
  feedline ceiling unet3d_h100
  feedline ceiling resnet50_h100 --set reader.read_threads=4

Files come out of memory: what is measured is this client's own work. A run that feeds fewer
accelerators is held back by its storage, one that feeds as many by this client. Takes up to a
minute and as much memory as a few files.";

/// Arguments of `feedline ceiling`.
#[derive(Debug, clap::Args)]
#[command(after_help = CEILING_EXAMPLES)]
pub(crate) struct CeilingArgs {
    /// A shipped workload or a YAML file, then overrides in Hydra's grammar
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Set a key of the workload, e.g. reader.read_threads=8; may be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A folder with workload/NAME.yaml files, searched after the shipped workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
}

const PLAN_CHECKPOINT_EXAMPLES: &str = "\
Examples:
  feedline plan-checkpoint llama_405b
  feedline plan-checkpoint llama_70b -n 128 --set model.parallelism.zero_stage=2
  feedline plan-checkpoint llama_8b_zero3 -n 2 --set checkpoint.mode=subset \\
      --set model.parallelism.data=1024

No tensor is made: a model of a trillion parameters takes as long as a small one.";

/// Arguments of `feedline plan-checkpoint`.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_CHECKPOINT_EXAMPLES)]
pub(crate) struct PlanCheckpointArgs {
    /// A shipped workload or a YAML file, then overrides in Hydra's grammar
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Ranks of the job [default: those that a shipped workload is known for, if they fit; else those
    /// of one copy of the model, tensor x pipeline]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: Option<u32>,
    /// Set a key of the workload, e.g. model.parallelism.tensor=8; may be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A folder with workload/NAME.yaml files, searched after the shipped workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
}

/// What happens to the page cache before each epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    /// Nothing: what earlier reads left is used, as in real training
    Keep,
    /// The data set's own pages are dropped before every epoch (needs no root)
    Drop,
    /// The data set is read once before the first epoch
    Warm,
}

/// A generated page of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// The command line
    Cli,
    /// Every key of a workload file
    WorkloadKeys,
    /// Every metric
    Metrics,
}

const RUN_EXAMPLES: &str = "\
Examples:
  feedline run unet3d_h100 --quick
  feedline run unet3d_h100 --accelerators 4 --data /mnt/data --generate
  feedline run my_workload.yaml --set reader.read_threads=8 --epochs 2 --require au
  feedline run workload=unet3d_h100 ++workload.dataset.data_folder=/mnt/data
  mpirun -n 2 feedline run unet3d_h100 --accelerators 16 --data /mnt/data   (built with MPI)

Exit codes: 0 it ran, 1 a --require was missed, 2 error, 130 stopped by Ctrl-C (results written).";

/// Arguments of `feedline run`.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// A shipped workload or a YAML file, then overrides in Hydra's grammar (a.b=v, +a.b=v,
    /// ++a.b=v, ~a.b, workload=NAME, hydra.run.dir=DIR)
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Emulated accelerators (ranks) of the whole job, as threads of its processes [default: one a
    /// process]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) accelerators: Option<u32>,
    /// Folder of the data set, or its place in an object store (s3://bucket/prefix, gs://, az://,
    /// https://) [default: dataset.data_folder of the workload]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// Folder for the results [default: feedline_results/WORKLOAD/DATE]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace results that an earlier run left in the output folder
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Epochs to train
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) epochs: Option<u32>,
    /// Set a key of the workload, e.g. reader.read_threads=8; may be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Make the data set first; files that an earlier run of the same workload made are kept
    #[arg(short, long)]
    pub(crate) generate: bool,
    /// Make the data set and stop
    #[arg(long)]
    pub(crate) generate_only: bool,
    /// A look in well under a minute: about 2 GiB of data, made if missing, few steps; samples and
    /// the rate they are needed at are kept. Not comparable with full runs
    #[arg(short, long)]
    pub(crate) quick: bool,
    /// What to do about the page cache before each epoch [default: keep; drop with --quick]
    #[arg(long, value_name = "POLICY")]
    pub(crate) cache: Option<Cache>,
    /// What if the storage were slower? Holds all reads and writes of data and checkpoints to a
    /// rate (2GB/s, 500MiB/s), operations a second (10kiops), and a latency added to each: 0.2ms,
    /// 0.1ms-0.4ms, or 0.2ms@p50+5ms@p99; a comma list. The processes of a job share the rates.
    /// Not comparable with other runs
    #[arg(long, value_name = "LIMIT", allow_hyphen_values = true)]
    pub(crate) store_limit: Option<String>,
    /// What if the storage broke? Lets the N-th operation on data and checkpoints fail, or every
    /// N-th, of every process: read:100:EIO, write:3:ENOSPC, read:every1000:EIO; may be repeated
    #[arg(long, value_name = "OP:N:ERRNO", allow_hyphen_values = true)]
    pub(crate) store_fault: Vec<String>,
    /// Do as DLIO does, faults included: its read order, its trimming, its metric quirks
    #[arg(long)]
    pub(crate) as_dlio: bool,
    /// Treat warnings about the workload (unknown keys, keys without effect) as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Exit with 1 unless this holds: `au` (the workload's own target), or METRIC>=NUMBER,
    /// METRIC<=NUMBER with a name from `feedline explain`; may be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    pub(crate) require: Vec<String>,
    /// A folder with workload/NAME.yaml files, searched after the shipped workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const VERIFY_NOTES: &str = "\
Names every bad file. What stands in train/ and valid/ beside the data set is noted and not an error.

Exit codes: 0 all files are good, 1 some are bad, 2 error (no manifest, or an incomplete or broken
one), 130 stopped by Ctrl-C.";

/// Arguments of `feedline verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY_NOTES)]
pub(crate) struct VerifyArgs {
    /// Folder or URL (s3://bucket/prefix) of the data set, with the feedline.manifest.json that its
    /// generation wrote
    #[arg(value_name = "DIR")]
    pub(crate) folder: String,
    /// Files to read at a time [default: the number of cores, at most 8]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Print one JSON object instead of lines
    #[arg(long)]
    pub(crate) json: bool,
}
