//! What an analysis says: one value for the terminal, the JSON file, the HTML page, the tables and `diff`.
//!
//! Times are nanoseconds, sizes bytes. Moments are nanoseconds since the trace's first event
//! ([`TraceFacts::start_ns`] says when that was). Shares are fractions of one.

use serde::{Deserialize, Serialize};

use crate::layer::{StackLayer, StallCause};
use crate::named::named_enum;

/// The version of the JSON object; counts up when a reader of the version before would misread it.
pub const VERSION: u32 = 1;
/// What the JSON object says it is.
pub const FORMAT: &str = "feedline-analysis";

/// Everything that is known about a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// Source, extent and number of events of the trace.
    pub trace: TraceFacts,
    /// What is wrong with it, and what may be said in spite of it.
    pub health: Health,
    /// Machines, ranks, processes and threads of the job.
    pub allocation: Allocation,
    /// Whether training is input-bound, with the numbers that this rests on.
    pub verdict: StallVerdict,
    /// All stalled time of all ranks, by cause, largest first; only causes that have any. Sums to
    /// [`StallVerdict::stall_ns`].
    pub stall: Vec<CauseTime>,
    /// What to do about it, the most expensive first.
    pub findings: Vec<Finding>,
    /// Predicted effects of changes to the loader and the storage.
    pub what_if: WhatIf,
    /// Time by layer of the software stack, from the program down to storage calls.
    pub layers: Vec<LayerTime>,
    /// How input and output, and the loader, overlap with computation.
    pub overlaps: Vec<Overlap>,
    /// The ranks, in their order.
    pub ranks: Vec<Rank>,
    /// Calls and spans by name, the longest first.
    pub functions: Vec<Function>,
    /// Totals of bytes, files and calls.
    pub data: DataVolume,
    /// Where in files calls read and wrote.
    pub access: AccessPatterns,
    /// The files that took most time.
    pub files: Vec<FileUse>,
    /// The folders that took most time.
    pub folders: Vec<FileUse>,
    /// Activity over time, in equal buckets.
    pub timeline: Timeline,
    /// Epochs, in their order.
    pub epochs: Vec<Epoch>,
    /// Steps of all ranks, in their order; in reports only the first ones and the worst.
    pub steps: Vec<Step>,
    /// Ranks that others waited for.
    pub stragglers: Stragglers,
    /// Saving and loading of checkpoints.
    pub checkpoints: Checkpoints,
}

/// Source, extent and number of events of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFacts {
    /// What the user named.
    pub inputs: Vec<String>,
    /// `feedline`, `dftracer` or `chrome`.
    pub source: String,
    /// Events, metadata not among them.
    pub events: u64,
    /// When the first event began, in nanoseconds since 1970.
    pub start_ns: i64,
    /// From the first event's beginning to the last one's end.
    pub run_ns: u64,
}

/// How much of a program the trace has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// Steps, the loader's workers, and calls on files or objects.
    Full,
    /// Steps, but no workers that bring batches: stalls cannot be split.
    NoWorkers,
    /// Steps and workers, but no call on a file: storage cannot be told from decoding.
    NoStorage,
    /// Calls only: no step, no epoch, no computation.
    #[default]
    CallsOnly,
}

impl Coverage {
    /// What it means for the reader.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Full => "the trace has steps, loader workers and storage calls",
            Self::NoWorkers => {
                "the trace has steps but no loader workers: stalls are measured but not explained"
            }
            Self::NoStorage => {
                "the trace has no storage calls: storage cannot be separated from decoding"
            }
            Self::CallsOnly => "the trace has no steps: stalls cannot be measured",
        }
    }
}

/// What is wrong with a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// How much of the program it has seen.
    pub coverage: Coverage,
    /// What was found wrong, the worst first. Empty if nothing was.
    pub problems: Vec<Problem>,
}

/// Something that is wrong with a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its stable name, such as `bad-lines`.
    pub code: String,
    /// Number of occurrences.
    pub count: u64,
    /// One sentence for people, without the count.
    pub text: String,
    /// The first places: files, lines, processes.
    pub places: Vec<String>,
    /// Whether times or sums of the report may be wrong because of it.
    pub limits_claims: bool,
}

/// Machines, ranks, processes and threads of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Names of the machines.
    pub hosts: Vec<String>,
    /// Ranks: consumers of batches.
    pub ranks: u64,
    /// Processes by their role.
    pub processes: Vec<RoleCount>,
    /// Threads by their role.
    pub threads: Vec<RoleCount>,
    /// Threads with at least one event of the compute layer.
    pub compute_threads: u64,
    /// Threads that made calls on files or objects.
    pub io_threads: u64,
}

/// How many of a role there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleCount {
    /// `rank`, `worker`, `pin-memory`, `checkpoint`, `launcher` or `other`.
    pub role: String,
    /// Processes or threads of this role.
    pub count: u64,
}

/// Whether the accelerators were fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Stalls are less than 5 % of step time.
    NotInputBound,
    /// From 5 to 20 %.
    ModeratelyInputBound,
    /// More than 20 %.
    InputBound,
    /// Fewer than 20 steps.
    TooFewSteps,
    /// There are no steps in the trace.
    #[default]
    NoSteps,
}

/// The answer, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallVerdict {
    /// Whether training is input-bound.
    pub answer: Answer,
    /// One sentence for people.
    pub text: String,
    /// Training steps of all ranks.
    pub steps: u64,
    /// Time of all steps of all ranks.
    pub step_ns: u64,
    /// Stalled time of all steps of all ranks: fetching with no computation of the same rank, and waiting
    /// for ranks that were stalled.
    pub stall_ns: u64,
    /// `stall_ns / step_ns`, from 0 to 1.
    pub stall_share: f64,
    /// The 95 % interval of the share: moving blocks of steps, drawn again 1000 times.
    pub stall_share_interval: Option<[f64; 2]>,
    /// Share of steps that stalled for more than a tenth of their time.
    pub stalled_steps_share: f64,
    /// Of 100 steps, 95 stalled no longer than this.
    pub stall_p95_ns: u64,
    /// How sure the split by cause is: `high` (batches are named), `medium` (by order or time), `low`.
    pub confidence: Confidence,
    /// Accelerator utilization in percent as the benchmark computes it; per epoch in `epochs`.
    pub au_percent: Option<f64>,
    /// Samples per second over training, all ranks, where the trace has samples.
    pub samples_per_second: Option<f64>,
    /// Bytes read per second over training, all ranks.
    pub read_bytes_per_second: Option<f64>,
}

named_enum! {
    /// How well the trace supports a claim.
    #[derive(Default)]
    pub enum Confidence {
        /// Estimated from averages.
        #[default]
        Low = "low",
        /// Inferred from order or time.
        Medium = "medium",
        /// The trace says so.
        High = "high",
    }
}

/// Time of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseTime {
    /// What the ranks waited for.
    pub cause: StallCause,
    /// Stalled time for this cause, in nanoseconds.
    pub ns: u64,
    /// Its share of all stalled time.
    pub share: f64,
}

/// Something that costs time, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its stable name, such as `slow-read`.
    pub code: String,
    /// One sentence: what is the matter.
    pub title: String,
    /// Stalled (or lost) time that it explains, all ranks together.
    pub explains_ns: u64,
    /// That time by the step time of all ranks: what it costs.
    pub severity: f64,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was seen, as rows of a name and a value.
    pub evidence: Vec<[String; 2]>,
    /// Files, folders, ranks or hosts that it is about, the worst first.
    pub objects: Vec<String>,
    /// A query for `feedline sql` that shows it.
    pub sql: String,
    /// One or two things to do.
    pub actions: Vec<String>,
    /// When it is said: the rule and its number.
    pub threshold: String,
}

/// What would be if something were different.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// Why there are no predictions, if there are none.
    pub refused: Option<String>,
    /// Workers a rank, as observed.
    pub workers: u32,
    /// Batches that may be under way per rank, as observed.
    pub outstanding: u32,
    /// Mean step time that was observed.
    pub observed_step_ns: u64,
    /// What the model makes of the observed run.
    pub modelled_step_ns: u64,
    /// Stalled time of all ranks that four times the workers would save.
    pub saved_by_workers_ns: u64,
    /// Stalled time of all ranks that eight times the batches under way would save.
    pub saved_by_prefetch_ns: u64,
    /// Predictions, each for one change.
    pub cases: Vec<Prediction>,
}

/// The predicted effect of one change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// What is different: `workers 8`, `storage 2x`.
    pub change: String,
    /// Predicted mean step time.
    pub step_ns: u64,
    /// Interval of it: replays of resampled batches, 90 %.
    pub step_interval_ns: [u64; 2],
    /// Share of step time that would be stalled.
    pub stall_share: f64,
}

/// Time of a layer: exact unions of intervals, so nothing is counted twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerTime {
    /// The layer.
    pub layer: StackLayer,
    /// Number of events in this layer.
    pub events: u64,
    /// Bytes, of calls that move bytes and spans that name a size.
    pub bytes: u64,
    /// Time in which a rank, workers included, did this: mean over ranks.
    pub mean_ns: u64,
    /// The rank with least.
    pub least_ns: u64,
    /// The rank with most.
    pub most_ns: u64,
    /// Time inside of it, and of nothing else below it, of all threads together: self time.
    pub self_ns: u64,
    /// All durations added up, of all threads together; nested ones count again.
    pub summed_ns: u64,
    /// Part of `mean_ns` in which the same rank did not compute.
    pub exposed_mean_ns: u64,
}

/// How something overlaps with computation of the same rank; means over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// `io`, `app-io` (samples), `loader` (batches, samples, decoding and all below) or `checkpoint`.
    pub what: String,
    /// Time in which the rank did it, overlapped or not.
    pub total_ns: u64,
    /// Part of it in which the rank computed.
    pub overlapped_ns: u64,
    /// Part of it in which it did not.
    pub exposed_ns: u64,
    /// Time in which the rank computed.
    pub compute_ns: u64,
    /// Part of computation without it.
    pub compute_alone_ns: u64,
}

/// A rank: a consumer of batches, and all that works for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// Number of the rank within the job.
    pub rank: u32,
    /// What it is called: host, process, thread.
    pub title: String,
    /// Name of its machine.
    pub host: String,
    /// Worker threads or processes.
    pub workers: u32,
    /// Number of its training steps.
    pub steps: u64,
    /// Time of its steps.
    pub step_ns: u64,
    /// Stalled time of its steps.
    pub stall_ns: u64,
    /// By cause, in the order of [`StallCause::ALL`].
    pub parts_ns: Vec<u64>,
    /// Computation in its steps.
    pub compute_ns: u64,
    /// Collectives in its steps.
    pub communication_ns: u64,
    /// Time in calls on files and objects, unions.
    pub io_ns: u64,
    /// Bytes that it read.
    pub bytes_read: u64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
    /// Calls on files and objects.
    pub calls: u64,
    /// Samples that were read; 0 if the trace does not show them.
    pub samples: u64,
    /// Share of its workers' lives in which they worked on batches.
    pub workers_busy_share: f64,
    /// From the rank's first event to its last one's end, without any event of it but those of the whole
    /// program and its phases: what was not seen.
    pub unseen_ns: u64,
}

/// A distribution: least, percentiles and largest. Percentiles are of a histogram whose buckets are at most
/// 1/128 of their value wide; least, mean and largest are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The least value.
    pub min: u64,
    /// 5 % of values are at most this.
    pub p5: u64,
    /// 25 % of values are at most this.
    pub p25: u64,
    /// The median.
    pub p50: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// 75 % of values are at most this.
    pub p75: u64,
    /// 95 % of values are at most this.
    pub p95: u64,
    /// 99 % of values are at most this.
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

/// Calls or spans of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The layer.
    pub layer: StackLayer,
    /// Category of the events, such as `POSIX`.
    pub category: String,
    /// Name of the function or span.
    pub name: String,
    /// Number of calls or spans.
    pub count: u64,
    /// How many ended in an error.
    pub errors: u64,
    /// All durations added up.
    pub total_ns: u64,
    /// Without what happened inside of them on the same thread.
    pub self_ns: u64,
    /// Bytes moved by all calls, or named as sizes by spans.
    pub bytes: u64,
    /// Bytes by `total_ns`, if it moved any.
    pub bytes_per_second: Option<f64>,
    /// Durations in nanoseconds.
    pub latency: Distribution,
    /// Bytes per call, of those that moved any.
    pub size: Option<Distribution>,
}

/// Totals of bytes, files and calls of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataVolume {
    /// Files that were touched.
    pub files: u64,
    /// Files that were read.
    pub files_read: u64,
    /// Files that were written.
    pub files_written: u64,
    /// Calls on files and objects.
    pub calls: u64,
    /// Calls that ended in an error.
    pub errors: u64,
    /// Calls that open files.
    pub opens: u64,
    /// Calls that open, close, list, name or ask about files.
    pub metadata_calls: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Sum over files of the highest end of a read: what had to be read once, at most.
    pub extent_read: u64,
    /// `bytes_read / extent_read`: how often data was read.
    pub reread_factor: Option<f64>,
    /// Opens by files read.
    pub opens_per_file: Option<f64>,
    /// Errors by number, most frequent first.
    pub errors_by_number: Vec<ErrorCount>,
    /// Bytes per read.
    pub read_sizes: Histogram,
    /// Bytes per write.
    pub write_sizes: Histogram,
    /// Nanoseconds per read.
    pub read_latencies: Histogram,
    /// Rows are sizes, columns durations, both by powers of two, of reads: `[size exponent, nanosecond
    /// exponent, calls]`.
    pub read_size_by_latency: Vec<[u64; 3]>,
}

/// How often an error was returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The `errno` value.
    pub errno: u16,
    /// Its name, such as `ENOENT`.
    pub name: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Counts by powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// `counts[i]` values from 2^i up to, not including, 2^(i+1); 0 counts as 1.
    pub counts: Vec<u64>,
}

/// Where in files calls read and wrote. A call is compared with the one before by the same thread on the
/// same file since that was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPatterns {
    /// Reads that began where the last one ended.
    pub reads_consecutive: u64,
    /// Reads that began further on.
    pub reads_forward: u64,
    /// Reads that began before where the last one ended.
    pub reads_backward: u64,
    /// First reads of a file by a thread.
    pub reads_first: u64,
    /// Reads whose place is not known.
    pub reads_unplaced: u64,
    /// Writes that began where the last one ended.
    pub writes_consecutive: u64,
    /// Writes that began further on.
    pub writes_forward: u64,
    /// Writes that began before where the last one ended.
    pub writes_backward: u64,
    /// First writes of a file by a thread.
    pub writes_first: u64,
    /// Writes whose place is not known.
    pub writes_unplaced: u64,
    /// Mapped files: calls of `mmap` on files.
    pub maps: u64,
    /// Bytes that were mapped.
    pub bytes_mapped: u64,
}

/// What was done with a file, or the files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileUse {
    /// Path of the file or folder, as the trace has it.
    pub path: String,
    /// Number of files in a folder that were touched.
    pub files: u64,
    /// Calls that open files.
    pub opens: u64,
    /// Calls that read.
    pub reads: u64,
    /// Calls that write.
    pub writes: u64,
    /// Calls that neither open, read nor write.
    pub others: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// The highest end of a read.
    pub extent_read: u64,
    /// `bytes_read / extent_read`.
    pub reread_factor: Option<f64>,
    /// Time of all calls, added up.
    pub ns: u64,
    /// Part of it in opens, stats and closes.
    pub metadata_ns: u64,
    /// Ranks that touched it.
    pub ranks: u64,
    /// Calls that ended in an error.
    pub errors: u64,
}

/// What happened when: equal buckets from the first event to the last. Events are cut at the edges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a bucket in nanoseconds.
    pub bucket_ns: u64,
    /// Bytes read.
    pub bytes_read: Vec<u64>,
    /// Bytes written.
    pub bytes_written: Vec<u64>,
    /// Calls on files and objects that began.
    pub calls: Vec<u64>,
    /// Time in calls on files and objects, of all threads: by `bucket_ns` it is the mean number in flight.
    pub io_ns: Vec<u64>,
    /// Half of the reads that began took no longer; of buckets of an eighth of a power of two.
    pub read_p50_ns: Vec<u64>,
    /// Of 100 reads that began, 99 took no longer.
    pub read_p99_ns: Vec<u64>,
    /// Computation, sum over ranks of unions.
    pub compute_ns: Vec<u64>,
    /// Stalled time, sum over ranks.
    pub stall_ns: Vec<u64>,
    /// Batches that were finished and not fetched, mean over time, all ranks.
    pub ready_batches: Vec<f64>,
    /// Bytes read, one row per rank.
    pub rank_bytes_read: Vec<Vec<u64>>,
    /// Stalled time, one row per rank.
    pub rank_stall_ns: Vec<Vec<u64>>,
    /// Time in calls on files and objects, one row per rank.
    pub rank_io_ns: Vec<Vec<u64>>,
    /// Counters of the trace: CPU, memory, queues.
    pub counters: Vec<CounterSeries>,
    /// What threads did: the consumers and workers of the first ranks.
    pub strips: Vec<Strip>,
}

/// What a thread did, bucket by bucket of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    /// What it is called.
    pub title: String,
    /// The rank that the thread works for.
    pub rank: u32,
    /// Its role, as in [`RoleCount::role`].
    pub role: String,
    /// The number of the [`StackLayer`] that it was in for most of a bucket, by self time.
    pub layers: Vec<u8>,
    /// Percent of a bucket in which it was in any layer.
    pub busy_percent: Vec<u8>,
}

/// A counter over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterSeries {
    /// Category and name.
    pub name: String,
    /// Mean of the values of a bucket, if there were any.
    pub values: Vec<Option<f64>>,
}

/// An epoch of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// `train` or `evaluate`.
    pub phase: Phase,
    /// Number of the epoch, counted as the program does.
    pub epoch: u32,
    /// When it began, in nanoseconds since the first event.
    pub start_ns: u64,
    /// From the first rank's beginning to the last one's end.
    pub duration_ns: u64,
    /// Steps of all ranks.
    pub steps: u64,
    /// Time of all steps.
    pub step_ns: u64,
    /// Stalled time of all steps.
    pub stall_ns: u64,
    /// By cause, in the order of [`StallCause::ALL`].
    pub parts_ns: Vec<u64>,
    /// Time in steps during which ranks computed.
    pub compute_ns: u64,
    /// The first batch: from the beginning to it, the mean over ranks.
    pub first_batch_ns: u64,
    /// Accelerator utilization in percent as the benchmark computes it: mean over ranks.
    pub au_percent: Option<f64>,
    /// Steps of a block that the benchmark leaves out, at its beginning and at its end.
    pub excluded_steps: [u32; 2],
    /// Samples per second as the benchmark computes it: sum over ranks.
    pub samples_per_second: Option<f64>,
    /// Bytes read while it went on, all ranks.
    pub bytes_read: u64,
    /// Samples that were read; 0 if the trace does not show them.
    pub samples: u64,
}

named_enum! {
    /// What a step is part of.
    #[derive(Default)]
    pub enum Phase {
        /// Training.
        #[default]
        Train = "train",
        /// Evaluation.
        Evaluate = "evaluate",
    }
}

/// A step of a rank: from the beginning of a fetch to the beginning of the next one, or of a checkpoint, or
/// to the end of what it is part of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// Training or evaluation.
    pub phase: Phase,
    /// The epoch, counted as the program does.
    pub epoch: u32,
    /// Steps between two checkpoints are a block; counted from 1 in an epoch.
    pub block: u32,
    /// The step, counted as the program does, or from 1 in an epoch.
    pub step: u32,
    /// When it began, in nanoseconds since the first event.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The fetch.
    pub fetch_ns: u64,
    /// Part of the fetch in which the rank did not compute, and of the collective in which it waited for a
    /// rank that was stalled.
    pub stall_ns: u64,
    /// By cause, in the order of [`StallCause::ALL`]; sums to `stall_ns`.
    pub parts_ns: Vec<u64>,
    /// Computation, union.
    pub compute_ns: u64,
    /// Collectives, union.
    pub communication_ns: u64,
    /// When its collective began, if it has one.
    pub meets_at_ns: Option<u64>,
    /// Which worker brought the batch: its number in the rank, from 0.
    pub worker: Option<u32>,
    /// Its work on the batch, from beginning to end.
    pub service_ns: u64,
    /// That work by cause, in the order of [`StallCause::ALL`].
    pub service_parts_ns: Vec<u64>,
    /// When the worker began, relative to the step's beginning.
    pub service_start_ns: i64,
    /// Samples of the batch, if the trace has them.
    pub samples: u32,
    /// How sure the split is.
    pub confidence: Confidence,
}

/// Ranks that others waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stragglers {
    /// Sum over steps of the slowest rank's time minus the median: what waiting for the slowest cost.
    pub lost_ns: u64,
    /// Sum over steps of the median rank's time.
    pub median_ns: u64,
    /// Ranks by what they cost, the worst first.
    pub ranks: Vec<Straggler>,
}

/// A rank that others waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Straggler {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Steps in which it was the slowest.
    pub slowest_steps: u64,
    /// Share of steps in which it was the slowest.
    pub slowest_share: f64,
    /// Lost time of those steps.
    pub lost_ns: u64,
    /// What it did longer than the median rank in those steps: a cause, `compute`, or `other`.
    pub because: String,
    /// What other ranks waited for its stalls.
    pub charged_ns: u64,
    /// The cause of most of those stalls; empty if there are none.
    pub charged_for: String,
}

/// Saving and loading of checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Saves and loads, in their order.
    pub transfers: Vec<CheckpointTransfer>,
    /// Time that ranks paused for them, summed over all ranks.
    pub stall_ns: u64,
    /// Share of the ranks' run time.
    pub stall_share: f64,
    /// Mean time from the beginning of a save to the beginning of the next one.
    pub interval_ns: Option<u64>,
}

/// A checkpoint that was saved or loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckpointTransfer {
    /// `save` or `load`.
    pub direction: String,
    /// When the first rank began.
    pub start_ns: u64,
    /// Until the last rank was done.
    pub duration_ns: u64,
    /// Time in which ranks did nothing else, all ranks.
    pub stall_ns: u64,
    /// Bytes, as the program says or as were written or read inside.
    pub bytes: u64,
    /// Part of the stalled time in `fsync` and its like.
    pub sync_ns: u64,
    /// The rank that took longest.
    pub slowest_rank: u32,
    /// How long that took.
    pub slowest_ns: u64,
    /// Ranks that took part.
    pub ranks: u64,
}
