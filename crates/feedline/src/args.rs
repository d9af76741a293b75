//! The command line.

mod analysis;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use feedline_trace::{FORMATS, TraceFormat, readable};

pub(crate) use analysis::{
    AnalyzeArgs, DiffArgs, ExportFormat, MergeArgs, OutputArgs, ReadArgs, SqlArgs,
};

/// Is my training fed, and if not, what is starving it?
#[derive(Debug, Parser)]
#[command(name = "feedline", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, in the order in which help lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a DLIO workload on emulated accelerators and report how busy they were
    Run(RunArgs),
    /// Run a program and record the file operations of all its processes
    Trace(TraceArgs),
    /// Show from a trace what starved a training job, in seconds, with evidence
    Analyze(AnalyzeArgs),
    /// Merge the parts of an analysis written by `analyze --shard`
    Merge(MergeArgs),
    /// Compare the traces of two runs: what changed, by how much, and why
    Diff(DiffArgs),
    /// Query a trace in SQL
    Sql(SqlArgs),
    /// Check every file of a data set against its manifest: presence, size and content
    Verify(VerifyArgs),
    /// Measure how many accelerators this client could feed from infinitely fast storage
    Ceiling(CeilingArgs),
    /// Measure the CPU cost of Python's readers and PyTorch's DataLoader on this machine
    Calibrate(CalibrateArgs),
    /// Show what each rank of a model would save, without writing anything
    PlanCheckpoint(PlanCheckpointArgs),
    /// Convert a trace to DFTracer, Chrome JSON or Perfetto format
    Convert(ConvertArgs),
    /// List the built-in workloads, or print one
    Workloads {
        /// Print the YAML of this workload
        name: Option<String>,
    },
    /// Explain what a metric means, how it is computed and what it leaves out
    Explain {
        /// Name of a metric in summary.json; without it, list all metrics
        metric: Option<String>,
    },
    /// Print a reference page in Markdown
    #[command(hide = true)]
    Reference {
        /// The page to print
        page: Page,
    },
}

const TRACE_NOTES: &str = "\
Examples:
  feedline trace -- python train.py
  feedline trace -o /scratch/trace --data /data/imagenet -- python train.py
  mpirun -n 8 feedline trace -o /shared/trace -- python train.py
  feedline trace --calls=read,write,open -- ./loader

Records calls of the C library with start, duration, thread, file, offset, sizes and error. Does not \
see page faults of mapped files, system calls that bypass the C library, or statically linked programs \
(the report names those). No event is lost if a process is killed. To trace without this command:
  LD_PRELOAD=libfeedline_preload.so FEEDLINE_TRACE=/scratch/trace python train.py

Exits with the program's exit code (128 + N if signal N ended it), or 2 if it could not be started.";

/// Arguments of `feedline trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = TRACE_NOTES)]
pub(crate) struct TraceArgs {
    /// Trace folder; all launchers of one job may share it [default:
    /// feedline_traces/PROGRAM-DATE-PID]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing trace
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Record only files in this folder; can be repeated
    #[arg(short, long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Record only files whose path matches; `*` and `?` do not match `/`, `**` does; can be repeated
    #[arg(short, long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Do not record files whose path matches; can be repeated
    #[arg(short = 'x', long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Record only these calls: a comma-separated list of layers (posix, stdio, io_uring, app) and
    /// kinds (read, write, open, close, stat, seek, sync, ...); a leading minus excludes
    #[arg(short, long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) calls: Option<String>,
    /// Record one in N calls that move data or query metadata, and count the rest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) sample: Option<u32>,
    /// Record one summary per thread, file and kind of call for every interval of this many milliseconds
    #[arg(long, value_name = "MS", conflicts_with = "sample",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) summary: Option<u32>,
    /// Memory per process for events not yet written, in MiB; events beyond it go to disk
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory: u64,
    /// Library to preload [default: libfeedline_preload.so next to this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Do not print the report; the trace folder still gets its report.json
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Program to run, and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

const CEILING_EXAMPLES: &str = "\
Examples:
  feedline ceiling unet3d_h100
  feedline ceiling resnet50_h100 --set reader.read_threads=4

Serves files from memory, so only the work of this client is measured: with Feedline's reader, and with \
the framework's according to this machine's calibration (`feedline calibrate`) or, without one, an \
estimate. If a run feeds fewer accelerators than its reader could, storage is what holds it back. Takes \
up to two minutes and the memory of a few files.";

/// Arguments of `feedline ceiling`.
#[derive(Debug, clap::Args)]
#[command(after_help = CEILING_EXAMPLES)]
pub(crate) struct CeilingArgs {
    /// Name of a built-in workload or path of a YAML file, then overrides in Hydra's grammar
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Set a key of the workload, e.g. reader.read_threads=8; can be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Folder with workload/NAME.yaml files, searched after the built-in workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Calibration file written by `feedline calibrate` [default: as for `feedline run`]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const CALIBRATE_NOTES: &str = "\
Examples:
  feedline calibrate
  feedline calibrate --python ~/venv/bin/python --formats npz,hdf5
  feedline calibrate --out node17.json

Generates small files and reads them with the Python readers, alone and in PyTorch's DataLoader, and \
with Feedline's. Runs with `reader.read_model: framework` then burn the difference in CPU time. Formats \
whose Python packages are missing are skipped and named. Takes five to eight minutes on an idle machine.";

/// Arguments of `feedline calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = CALIBRATE_NOTES)]
pub(crate) struct CalibrateArgs {
    /// Python to measure; needs numpy, and torch for the DataLoader [default: python3 in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Formats to measure, comma-separated [default: all whose packages are installed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) formats: Vec<String>,
    /// Sample sizes in bytes, comma-separated; a batch is four samples
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16384,110000,2800000,40000000",
          value_parser = clap::value_parser!(u64).range(1024..=1 << 30))]
    pub(crate) sizes: Vec<u64>,
    /// Numbers of DataLoader workers, comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) workers: Vec<u32>,
    /// Seconds per round; each measurement has five rounds
    #[arg(long, value_name = "S", default_value_t = 0.2)]
    pub(crate) seconds: f64,
    /// Calibration file to write [default: $FEEDLINE_CALIBRATION, or feedline/calibration.json in
    /// $XDG_DATA_HOME or ~/.local/share]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

const PLAN_CHECKPOINT_EXAMPLES: &str = "\
Examples:
  feedline plan-checkpoint llama_405b
  feedline plan-checkpoint llama_70b -n 128 --set model.parallelism.zero_stage=2
  feedline plan-checkpoint llama_8b_zero3 -n 2 --set checkpoint.mode=subset \\
      --set model.parallelism.data=1024

Allocates no tensors: a model of a trillion parameters takes as long as a small one.";

/// Arguments of `feedline plan-checkpoint`.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_CHECKPOINT_EXAMPLES)]
pub(crate) struct PlanCheckpointArgs {
    /// Name of a built-in workload or path of a YAML file, then overrides in Hydra's grammar
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Number of ranks [default: the usual number for a built-in workload if it fits, otherwise one
    /// copy of the model: tensor x pipeline]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: Option<u32>,
    /// Set a key of the workload, e.g. model.parallelism.tensor=8; can be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Folder with workload/NAME.yaml files, searched after the built-in workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a run does to the page cache before it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    /// Leave it alone: earlier reads may be cached, as in real training
    Keep,
    /// Drop the pages of the data set before every epoch (does not need root)
    Drop,
    /// Read the data set once before the first epoch
    Warm,
}

/// A page of docs/ that is generated from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// Every command and option
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

Exit codes: 0 completed, 1 a --require was not met, 2 error, 130 stopped by Ctrl-C (results are written).";

/// Arguments of `feedline run`.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Name of a built-in workload or path of a YAML file, then overrides in Hydra's grammar
    /// (a.b=v, +a.b=v, ++a.b=v, ~a.b, workload=NAME, hydra.run.dir=DIR)
    #[arg(value_name = "WORKLOAD | OVERRIDE", required = true)]
    pub(crate) words: Vec<String>,
    /// Emulated accelerators (ranks) in the whole job, spread over its processes [default: one per
    /// process]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) accelerators: Option<u32>,
    /// Folder or URL of the data set (s3://bucket/prefix, gs://, az://, https://) [default:
    /// dataset.data_folder of the workload]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// Folder for the results [default: feedline_results/WORKLOAD/DATE]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace existing results in the output folder
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Number of epochs to train
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) epochs: Option<u32>,
    /// Set a key of the workload, e.g. reader.read_threads=8; can be repeated
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Generate the data set first, keeping files that an earlier run of this workload generated
    #[arg(short, long)]
    pub(crate) generate: bool,
    /// Generate the data set, then stop
    #[arg(long)]
    pub(crate) generate_only: bool,
    /// Run in about a minute or less: shrink the data set to about 2 GiB, generate it if missing, and
    /// train a few steps with the same samples at the same rate. Not comparable with full runs
    #[arg(short, long)]
    pub(crate) quick: bool,
    /// What to do with the page cache before epochs [default: keep; drop with --quick]
    #[arg(long, value_name = "POLICY")]
    pub(crate) cache: Option<Cache>,
    /// Emulate slower storage: a comma-separated list of a bandwidth (2GB/s, 500MiB/s), a rate of
    /// operations (10kiops) and a latency added to each operation (0.2ms, 0.1ms-0.4ms,
    /// 0.2ms@p50+5ms@p99). Applies to data and checkpoints; all processes of a job share the rates.
    /// Not comparable with other runs
    #[arg(long, value_name = "LIMIT", allow_hyphen_values = true)]
    pub(crate) store_limit: Option<String>,
    /// Emulate failing storage: fail the Nth operation of each process on data and checkpoints, or
    /// every Nth: read:100:EIO, write:3:ENOSPC, read:every1000:EIO; can be repeated
    #[arg(long, value_name = "OP:N:ERRNO", allow_hyphen_values = true)]
    pub(crate) store_fault: Vec<String>,
    /// Behave like DLIO's main branch (commit e1919d7), bugs included: read order, trimming and metrics.
    /// For the read order of the released 2.0.0, add `--set reader.sharding=dlio_2.0.0`
    #[arg(long)]
    pub(crate) as_dlio: bool,
    /// Record a trace of the run in this folder: epochs, steps, batches, samples, computation,
    /// checkpoints and storage calls of every rank and reader
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Treat warnings about the workload (unknown keys, keys without effect) as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Calibration file written by `feedline calibrate` [default: $FEEDLINE_CALIBRATION, or
    /// feedline/calibration.json in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Exit with 1 unless this is met: `au` (the workload's own target), METRIC>=NUMBER or
    /// METRIC<=NUMBER, with a name from `feedline explain`; can be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    pub(crate) require: Vec<String>,
    /// Folder with workload/NAME.yaml files, searched after the built-in workloads
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the plan without running it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const VERIFY_NOTES: &str = "\
Names every bad file. Other files in train/ and valid/ are listed and are not an error.

Exit codes: 0 all files are good, 1 some are bad, 2 error (manifest missing, incomplete or damaged), \
130 stopped by Ctrl-C.";

/// Arguments of `feedline verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY_NOTES)]
pub(crate) struct VerifyArgs {
    /// Folder or URL (s3://bucket/prefix) of a generated data set, with its feedline.manifest.json
    #[arg(value_name = "DIR")]
    pub(crate) folder: String,
    /// Files to read in parallel [default: number of cores, at most 8]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

static CONVERT_NOTES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "\
Examples:
  feedline convert trace-dir job.pftrace                 for https://ui.perfetto.dev
  feedline convert trace-dir first.pftrace --window ..30 --ranks 0-3
  feedline convert logs/ job.json.gz                     a folder of DFTracer .pfw.gz files
  feedline convert job.json out/job.pfw.gz --time-unit ns

Detects the format of IN from its content. Reads {}.
DFTracer traces have one file per process: NAME-HASH-app.pfw.gz for OUT = NAME.pfw.gz.

Lines that cannot be parsed are counted and skipped; the first few are listed.

Exit codes: 0 converted, 2 error.",
        readable(FORMATS)
    )
});

/// Parses the name of a format that can be written.
fn writable_format() -> impl TypedValueParser<Value = &'static TraceFormat> {
    let writable = || FORMATS.iter().filter(|format| format.create.is_some());
    let values = writable().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(values).map(move |name| {
        writable().find(|format| format.name == name).expect("one of the values above")
    })
}

/// The unit of timestamps in DFTracer files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceUnit {
    /// Microseconds, as DFTracer's tools expect
    #[default]
    Us,
    /// Nanoseconds, without rounding
    Ns,
}

/// Arguments of `feedline convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = CONVERT_NOTES.as_str())]
pub(crate) struct ConvertArgs {
    /// Trace file or folder
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// Output path; its suffix selects the format
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Output format [default: from the suffix of OUT]
    #[arg(long, value_name = "FORMAT", value_parser = writable_format())]
    pub(crate) to: Option<&'static TraceFormat>,
    /// Replace an existing OUT
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// DFTracer: unit of timestamps [default: us]
    #[arg(long, value_name = "UNIT")]
    pub(crate) time_unit: Option<TraceUnit>,
    /// Perfetto: maximum number of slices; beyond that, runs of the shortest calls are merged
    /// [default: 2000000]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) max_events: Option<u64>,
    /// Perfetto: export only this part, in seconds from the start of the trace: 2.5..10, ..30, 60..
    #[arg(long, value_name = "START..END", allow_hyphen_values = true)]
    pub(crate) window: Option<feedline_trace::perfetto::Window>,
    /// Perfetto: omit slices shorter than this, e.g. 100us; counters still include them
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) min_duration: Option<String>,
    /// Perfetto: export only these ranks: 0,2,8-15
    #[arg(long, value_name = "RANKS", allow_hyphen_values = true)]
    pub(crate) ranks: Option<feedline_trace::perfetto::Ranks>,
}
