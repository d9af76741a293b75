//! The command line of `analyze`, `merge`, `diff` and `sql`.

use std::path::PathBuf;

use clap::ValueEnum;

const ANALYZE_EXAMPLES: &str = "\
Examples:
  feedline analyze trace-dir
  feedline analyze 'logs/*.pfw.gz' --html report.html
  feedline analyze trace-dir --export parquet --export-dir tables
  feedline analyze trace-dir --shard 3/16 -o part-3.json    then: feedline merge part-*.json

Reads Feedline trace folders and raw recordings, DFTracer .pfw and .pfw.gz of all versions, Chrome JSON, \
folders and glob patterns of these, and tar files. Traces of other tools are cached as columns, so a \
second analysis takes a fraction of the time. `feedline explain NAME` explains a number.

Exit codes: 0 analyzed, 1 more time stalled than --max-stall allows, 2 error, or too few steps to judge.";

/// What an analysis writes, and how it judges.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report; it opens in any browser, offline
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write all tables in this format, one file per table
    #[arg(long, value_name = "FORMAT", requires = "export_dir")]
    pub(crate) export: Option<ExportFormat>,
    /// Folder for the tables of --export; created if missing
    #[arg(long, value_name = "DIR", requires = "export")]
    pub(crate) export_dir: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print nothing to stdout
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Override the threshold of a finding, e.g. cause-share=0.02; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) threshold: Vec<String>,
    /// Steps to leave out of utilization at the start and the end of each block, as with DLIO's
    /// metric.exclude_start_steps and metric.exclude_end_steps
    #[arg(long, value_name = "START,END", default_value = "1,0")]
    pub(crate) exclude_steps: String,
    /// Exit with 1 if more than this percentage of step time is stalled, and with 2 if there are too
    /// few steps to judge
    #[arg(long, value_name = "PERCENT")]
    pub(crate) max_stall: Option<f64>,
}

/// Resources for reading a trace.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReadArgs {
    /// Threads for reading [default: number of cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Memory for events and steps, in MiB; events that do not fit are sorted on disk
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(16..))]
    pub(crate) memory: u64,
    /// Folder for cached columns of other tools' traces [default: feedline/traces in the user's cache
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Neither read nor write the cache
    #[arg(long, conflicts_with = "cache")]
    pub(crate) no_cache: bool,
}

/// A file format for exported tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Parquet, which `feedline sql --analysis DIR` can query
    Parquet,
    /// Comma-separated values
    Csv,
    /// A JSON array of objects
    Json,
}

/// Arguments of `feedline analyze`.
#[derive(Debug, clap::Args)]
#[command(after_help = ANALYZE_EXAMPLES)]
pub(crate) struct AnalyzeArgs {
    /// Trace to analyze: folders, files, quoted glob patterns or tar files
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Write a Perfetto trace that shows the stalls of every rank and their causes next to the events
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Analyze only this part of the ranks, e.g. 3/16, for `feedline merge`
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = [
        "json", "html", "export", "export_dir", "quiet", "threshold", "exclude_steps", "max_stall",
        "perfetto",
    ])]
    pub(crate) shard: Option<String>,
    /// Output file of --shard
    #[arg(short, long, value_name = "FILE", requires = "shard")]
    pub(crate) out: Option<PathBuf>,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  for i in $(seq 4); do feedline analyze trace-dir --shard $i/4 -o part-$i.json & done; wait
  feedline merge part-*.json --html report.html

Needs all parts of one trace. The result is identical to that of `feedline analyze`.";

/// Arguments of `feedline merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = MERGE_EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Files written by `feedline analyze --shard`
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  feedline diff before/ after/
  feedline diff before.json after.json --allow 2      files written by `feedline analyze --json`

Exit codes: 0 not slower than allowed, 1 significantly slower, 2 error.";

/// Arguments of `feedline diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    /// Baseline: a trace, or the JSON of an analysis
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// Run to compare with the baseline
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    /// Percentage by which steps of B may be slower than those of A
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) allow: f64,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

const SQL_NOTES: &str = "\
Examples:
  feedline sql trace-dir 'select name, count(*) from events group by name'
  feedline sql trace-dir                       lists the tables

Runs feedline-sql, which must be next to this program or in PATH (`make sql` builds it).
`feedline sql --help` prints its help.";

/// Arguments of `feedline sql`.
#[derive(Debug, clap::Args)]
#[command(after_help = SQL_NOTES, disable_help_flag = true)]
pub(crate) struct SqlArgs {
    /// Arguments for feedline-sql
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}
