//! The command line of `analyze`, `merge`, `diff` and `sql`.

use std::path::PathBuf;

use clap::ValueEnum;

const ANALYZE_EXAMPLES: &str = "\
Examples:
  feedline analyze trace-dir
  feedline analyze 'logs/*.pfw.gz' --html report.html
  feedline analyze trace-dir --export parquet --export-dir tables
  feedline analyze trace-dir --shard 3/16 -o part-3.json    then: feedline merge part-*.json

Reads Feedline's trace folders and raw recordings, DFTracer's .pfw and .pfw.gz of all versions, Chrome's
JSON, folders and patterns of them, and tar files. Columns of other tools' files are kept in the cache, so
that a second look takes a fraction of the time. `feedline explain NAME` says what a figure means.

Exit codes: 0 analyzed, 1 more was stalled than --max-stall allows, 2 error, or nothing to judge by.";

/// Where an analysis goes.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page that opens in any browser, without a network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write all tables, each as a file of this format
    #[arg(long, value_name = "FORMAT", requires = "export_dir")]
    pub(crate) export: Option<ExportFormat>,
    /// Folder for the tables of --export; made if it is not there
    #[arg(long, value_name = "DIR", requires = "export")]
    pub(crate) export_dir: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print nothing on stdout
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// From when on a rule speaks, e.g. cause-share=0.02; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) threshold: Vec<String>,
    /// Steps of a block that utilization leaves out, at its beginning and its end, as
    /// metric.exclude_start_steps and exclude_end_steps of DLIO
    #[arg(long, value_name = "START,END", default_value = "1,0")]
    pub(crate) exclude_steps: String,
    /// Exit with 1 if more than this percentage of step time is stalled, with 2 if there are too few steps
    /// to say
    #[arg(long, value_name = "PERCENT")]
    pub(crate) max_stall: Option<f64>,
}

/// How a trace is read.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReadArgs {
    /// Threads that read [default: the number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Memory for events and steps, in MiB; events that do not fit are sorted on disk
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(16..))]
    pub(crate) memory: u64,
    /// Folder for columns of other tools' traces [default: feedline/traces in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Keep no columns, and use none
    #[arg(long, conflicts_with = "cache")]
    pub(crate) no_cache: bool,
}

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Parquet, which `feedline sql --analysis DIR` reads too
    Parquet,
    /// Values with commas between them
    Csv,
    /// A list of objects
    Json,
}

/// Arguments of `feedline analyze`.
#[derive(Debug, clap::Args)]
#[command(after_help = ANALYZE_EXAMPLES)]
pub(crate) struct AnalyzeArgs {
    /// The trace: folders, files, quoted patterns, tar files
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Write a Perfetto trace with the stalls of every rank and their causes beside the events
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Only this part of the ranks, e.g. 3/16; writes what `feedline merge` joins
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = [
        "json", "html", "export", "export_dir", "quiet", "threshold", "exclude_steps", "max_stall",
        "perfetto",
    ])]
    pub(crate) shard: Option<String>,
    /// The file of --shard
    #[arg(short, long, value_name = "FILE", requires = "shard")]
    pub(crate) out: Option<PathBuf>,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  for i in $(seq 4); do feedline analyze trace-dir --shard $i/4 -o part-$i.json & done; wait
  feedline merge part-*.json --html report.html

All parts of one trace must be there. The result is what `feedline analyze` gives, to the last digit.";

/// Arguments of `feedline merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Files that `feedline analyze --shard` wrote
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  feedline diff before/ after/
  feedline diff before.json after.json --allow 2      files that `feedline analyze --json` wrote

Exit codes: 0 not slower than allowed, 1 slower, and not by chance, 2 error.";

/// Arguments of `feedline diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    /// The run to compare with: a trace, or the JSON of an analysis
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// The run that is compared
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    /// By how many percent a step of B may take longer
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) allow: f64,
    /// Print one JSON object instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

const SQL_NOTES: &str = "\
Examples:
  feedline sql trace-dir 'select name, count(*) from events group by name'
  feedline sql trace-dir                       lists the tables

Runs feedline-sql, which `make sql` builds and which stands beside this program or in PATH.
`feedline sql --help` is its help.";

/// Arguments of `feedline sql`.
#[derive(Debug, clap::Args)]
#[command(after_help = SQL_NOTES, disable_help_flag = true)]
pub(crate) struct SqlArgs {
    /// What feedline-sql takes
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}
