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
    /// Run a program and record every file call of every process of it
    Trace(TraceArgs),
    /// Say who starved a training, in seconds, with proof: from a trace of it
    Analyze(AnalyzeArgs),
    /// Join the parts of an analysis that `analyze --shard` wrote
    Merge(MergeArgs),
    /// Compare two runs: what changed, by how much, and what it is due to
    Diff(DiffArgs),
    /// Ask a trace anything, in SQL
    Sql(SqlArgs),
    /// Check every file of a data set against its manifest: that it is there, its size, its content
    Verify(VerifyArgs),
    /// Say how many accelerators this client could feed if its storage were infinitely fast
    Ceiling(CeilingArgs),
    /// Measure what Python's readers and torch's DataLoader cost on this machine
    Calibrate(CalibrateArgs),
    /// Say which rank of a model would save what: files, bytes, memory. Nothing is written
    PlanCheckpoint(PlanCheckpointArgs),
    /// Convert a trace to another format: DFTracer, Chrome JSON, Perfetto
    Convert(ConvertArgs),
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

const TRACE_NOTES: &str = "\
Examples:
  feedline trace -- python train.py
  feedline trace -o /scratch/trace --data /data/imagenet -- python train.py
  mpirun -n 8 feedline trace -o /shared/trace -- python train.py
  feedline trace --calls=read,write,open -- ./loader

Recorded are calls of the C library, with start, duration, thread, file, offset, sizes and error; not
page faults of mapped files, system calls made past the C library, or statically linked programs (the
report names those). Killing any of the processes loses nothing. Without this command:
  LD_PRELOAD=libfeedline_preload.so FEEDLINE_TRACE=/scratch/trace python train.py

The exit code is the program's (128 + N if signal N ended it); 2 if it could not be started.";

/// Arguments of `feedline trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = TRACE_NOTES)]
pub(crate) struct TraceArgs {
    /// Folder of the trace; several launchers of one job may share it [default:
    /// feedline_traces/PROGRAM-DATE-PID]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a trace that is there already, instead of refusing
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Record only files in this folder; may be repeated
    #[arg(short, long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Record only files whose path matches: * and ? stop at a slash, ** does not; may be repeated
    #[arg(short, long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Do not record files whose path matches; may be repeated
    #[arg(short = 'x', long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Which calls: a comma list of layers (posix, stdio, io_uring, app) and kinds (read, write, open,
    /// close, stat, seek, sync, ...); with a minus, all but those
    #[arg(short, long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) calls: Option<String>,
    /// Record one of N calls that move bytes or look at files, and count the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) sample: Option<u32>,
    /// Record one summary for all calls of one kind on one file by one thread in so many milliseconds
    #[arg(long, value_name = "MS", conflicts_with = "sample",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) summary: Option<u32>,
    /// Memory that each process may take for events that are not written yet; more goes to disk
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory: u64,
    /// The library to preload [default: libfeedline_preload.so beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Print no report at the end; it is in report.json of the trace folder anyway
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

const CEILING_EXAMPLES: &str = "\
Examples:
  feedline ceiling unet3d_h100
  feedline ceiling resnet50_h100 --set reader.read_threads=4

Files come out of memory: what is measured is this client's own work, with Feedline's reader and, by
the machine's calibration (`feedline calibrate`) or else by an estimate, with the framework's. A run
that feeds fewer accelerators than its reader can is held back by its storage. Takes up to two minutes
and as much memory as a few files.";

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
    /// What the framework costs here, as `feedline calibrate` wrote it [default: as for `run`]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
}

const CALIBRATE_NOTES: &str = "\
Examples:
  feedline calibrate
  feedline calibrate --python ~/venv/bin/python --formats npz,hdf5
  feedline calibrate --out node17.json

Makes small files, reads them with the real readers, alone and in torch's DataLoader, and with Feedline's,
and keeps the CPU times, so that runs with `reader.read_model: framework` burn the difference. Formats whose packages are missing
are left out and named. Takes five to eight minutes on a machine that does nothing else.";

/// Arguments of `feedline calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = CALIBRATE_NOTES)]
pub(crate) struct CalibrateArgs {
    /// The Python to measure; it must have numpy, and torch for the DataLoader [default: python3 of
    /// the PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// Formats, a comma list [default: all whose packages are there]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) formats: Vec<String>,
    /// Bytes of samples, a comma list; batches are four times as large
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16384,110000,2800000,40000000",
          value_parser = clap::value_parser!(u64).range(1024..=1 << 30))]
    pub(crate) sizes: Vec<u64>,
    /// Numbers of DataLoader workers, a comma list
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) workers: Vec<u32>,
    /// Seconds of each of the five rounds of a measurement
    #[arg(long, value_name = "S", default_value_t = 0.2)]
    pub(crate) seconds: f64,
    /// Where the figures go [default: $FEEDLINE_CALIBRATION, or feedline/calibration.json in
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
    /// rate (2GB/s, 500MiB/s), operations per second (10kiops), and a latency added to each: 0.2ms,
    /// 0.1ms-0.4ms, or 0.2ms@p50+5ms@p99; a comma list. The processes of a job share the rates.
    /// Not comparable with other runs
    #[arg(long, value_name = "LIMIT", allow_hyphen_values = true)]
    pub(crate) store_limit: Option<String>,
    /// What if the storage broke? Lets the N-th operation on data and checkpoints fail, or every
    /// N-th, of every process: read:100:EIO, write:3:ENOSPC, read:every1000:EIO; may be repeated
    #[arg(long, value_name = "OP:N:ERRNO", allow_hyphen_values = true)]
    pub(crate) store_fault: Vec<String>,
    /// Do as DLIO's main branch (commit e1919d7) does, faults included: its read order, its trimming,
    /// its metric quirks; `--set reader.sharding=dlio_2.0.0` for the order of the released 2.0.0
    #[arg(long)]
    pub(crate) as_dlio: bool,
    /// Record a trace of the run in this folder: epochs, steps, batches, samples, computation,
    /// checkpoints and storage calls, of every rank and every reader
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Treat warnings about the workload (unknown keys, keys without effect) as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// What the framework costs here, as `feedline calibrate` wrote it [default:
    /// $FEEDLINE_CALIBRATION, or feedline/calibration.json in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
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

/// The formats that can be written, by name.
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
