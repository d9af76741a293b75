//! What the numbers of an analysis mean: the one place where it is said.
//!
//! The page shows these sentences when a name is pointed at or gets the focus.

use crate::{Style, wrap};

/// A number of an analysis, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its stable name.
    pub key: &'static str,
    /// What it is called on the page.
    pub label: &'static str,
    /// How it is computed, in a sentence or two.
    pub text: &'static str,
}

/// The definition of that name.
pub fn definition(key: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.key == key)
}

/// A definition as a page.
pub fn page(key: &str, style: Style) -> Option<String> {
    let Definition { key, label, text } = definition(key)?;
    let lines = wrap::hanging("", "", text, style.columns());
    Some(format!("{key}: {label}\n\n{}\n", lines.join("\n")))
}

const fn define(key: &'static str, label: &'static str, text: &'static str) -> Definition {
    Definition { key, label, text }
}

/// All of them, by subject.
pub const DEFINITIONS: &[Definition] = &[
    // The answer.
    define(
        "stall_share",
        "Stall share",
        "Stalled time of all steps of all ranks by the time of all steps of all ranks. Below 5 % a \
         training is not input-bound, from 5 to 20 % moderately, above 20 % it is.",
    ),
    define(
        "stall",
        "Stall",
        "Part of a fetch in which the same rank did not compute, and of a collective in which it \
         waited for a rank that was stalled.",
    ),
    define(
        "interval",
        "95 % interval",
        "Where the stall share lies when moving blocks of steps are drawn again 1000 times: 95 of \
         100 draws are in it.",
    ),
    define(
        "stalled_steps",
        "Stalled steps",
        "Share of the steps that stalled for more than a tenth of their time.",
    ),
    define("stall_p95", "Stall p95", "Of 100 steps, 95 stalled no longer than this."),
    define(
        "confidence",
        "Confidence",
        "How sure the split by cause is. High: the trace names batches. Medium: inferred from order \
         or time. Low: guessed from averages.",
    ),
    define(
        "au",
        "AU",
        "Accelerator utilization as the benchmark computes it: computation by the time of a block \
         of steps, without the steps that the benchmark leaves out. Mean over ranks.",
    ),
    define("samples_per_s", "Samples/s", "Samples per second over training, all ranks together."),
    define("read_rate", "Read rate", "Bytes read per second over training, all ranks together."),
    define(
        "step",
        "Step",
        "From the beginning of a fetch to the beginning of the next one, or of a checkpoint, or to \
         the end of the epoch.",
    ),
    define("run_time", "Run time", "From the first event's beginning to the last one's end."),
    // What a stalled rank waits for.
    define("open", "Open", "Opening, closing and listing files, and asking about them."),
    define("read", "Read", "Reading files."),
    define("write", "Write", "Writing files, and waiting until they are on the device."),
    define("object-store", "Object store", "Requests to object stores."),
    define("decode", "Decode", "Bytes are there, and are checked or decoded."),
    define("transform", "Transform", "Decoded samples are preprocessed or augmented."),
    define(
        "python",
        "Worker code",
        "The worker's own code: it works on the batch and is in none of the other causes.",
    ),
    define("collate", "Collate", "Samples are put together into a batch."),
    define(
        "hand-off",
        "Hand-off",
        "The batch is ready and on its way to the rank: queues, pickling, pinned memory.",
    ),
    define(
        "workers",
        "Too few workers",
        "No worker had begun with the batch: all were busy with others.",
    ),
    define(
        "prefetch",
        "Prefetch",
        "No worker had begun with the batch although one was free: it had not been told to, or \
         could not in time.",
    ),
    define("start-up", "Start-up", "Workers were not alive yet."),
    define("peer", "Peer", "Another rank was late, and this one waited for it."),
    define("unknown", "Unknown", "The trace does not say what the rank waited for."),
    // Parts of a step.
    define("fetch", "Fetch", "The consumer waits for its next batch."),
    define("compute", "Compute", "Time in which the rank computed; overlaps count once."),
    define("communication", "Communication", "Time of collectives; overlaps count once."),
    define(
        "service",
        "Service",
        "A worker's work on the batch of a step, from its beginning to its end.",
    ),
    define("worker", "Worker", "Which worker of the rank brought the batch, counted from 0."),
    define(
        "block",
        "Block",
        "Steps between two checkpoints are a block; blocks of an epoch are counted from 1.",
    ),
    define(
        "first_batch",
        "First batch",
        "From an epoch's beginning to its first batch, mean over ranks.",
    ),
    define(
        "excluded_steps",
        "Excluded steps",
        "Steps of a block that the benchmark leaves out of AU, at its beginning and at its end.",
    ),
    // Layers.
    define(
        "layer_mean",
        "Time",
        "Time in which a rank, its workers included, was in this layer: an exact union of \
         intervals, so nothing counts twice. Mean over ranks.",
    ),
    define("layer_least", "Least", "That time of the rank with least."),
    define("layer_most", "Most", "That time of the rank with most."),
    define(
        "self_time",
        "Self time",
        "Without what happened inside of it on the same thread; all threads together.",
    ),
    define(
        "summed_time",
        "Summed",
        "All durations added up, of all threads together; nested and concurrent ones count again.",
    ),
    define("exposed", "Exposed", "Part of the time in which the same rank did not compute."),
    define("overlapped", "Overlapped", "Part of the time in which the same rank computed."),
    define(
        "compute_alone",
        "Compute alone",
        "Part of the computation in which nothing of this kind went on.",
    ),
    define(
        "io",
        "I/O",
        "Time in calls on files and objects, of a rank and its workers; overlaps count once. Mean \
         over ranks.",
    ),
    define("app-io", "Application I/O", "Time in which samples were brought, whatever that took."),
    define("loader", "Loader", "Batches, samples, decoding, and all below."),
    define("checkpoint", "Checkpoint", "Saving and loading of checkpoints."),
    // Calls, bytes, files.
    define("events", "Events", "Events of the trace; names and other metadata are not among them."),
    define("calls", "Calls", "Calls on files and requests to object stores."),
    define("errors", "Errors", "Calls that ended in an error."),
    define("total_time", "Total", "All durations added up."),
    define(
        "bandwidth",
        "Bandwidth",
        "Bytes by the time of the calls that moved them; in the timeline, by the width of a bucket.",
    ),
    define(
        "latency",
        "Latency",
        "Duration of a call. Percentiles are of a histogram whose buckets are at most 1/128 of \
         their value wide; least, mean and largest are exact.",
    ),
    define("size", "Size", "Bytes per call, of calls that moved any."),
    define("bytes_read", "Bytes read", "What reads returned, mapped files not counted."),
    define("bytes_written", "Bytes written", "What writes took."),
    define(
        "extent",
        "Extent",
        "The highest end of a read of a file: what had to be read once, at most.",
    ),
    define("reread", "Re-read", "Bytes read by extent: how often the same data was read."),
    define("opens_per_file", "Opens per file", "Opens by files that were read."),
    define("metadata_time", "Metadata", "Part of the time in opens, stats and closes."),
    define(
        "access",
        "Access pattern",
        "Where a call began, compared with the end of the one before by the same thread on the \
         same file.",
    ),
    // Timeline.
    define("iops", "Calls/s", "Calls on files and objects that began in a bucket, by its width."),
    define(
        "in_flight",
        "In flight",
        "Time in calls of all threads by the width of the bucket: how many were under way on average.",
    ),
    define(
        "stall_now",
        "Stalled ranks",
        "Stalled time of all ranks by the width of the bucket: how many ranks stood still on average.",
    ),
    define(
        "compute_now",
        "Computing ranks",
        "Computation of all ranks by the width of the bucket: how many ranks computed on average.",
    ),
    define(
        "ready",
        "Ready batches",
        "Batches that were finished and not fetched yet, mean over time, all ranks: the depth of \
         the queue.",
    ),
    define(
        "strip",
        "What threads did",
        "The layer that a thread was in for most of a bucket, by self time. The higher the mark, the \
         more of the bucket the thread was busy.",
    ),
    define(
        "unseen",
        "Unseen",
        "Time between a rank's first and last event without any event of it.",
    ),
    define(
        "busy_workers",
        "Workers busy",
        "Share of its workers' lives in which they worked on batches.",
    ),
    // Findings, predictions, ranks, checkpoints.
    define(
        "explains",
        "Explains",
        "Stalled or lost time of all ranks that a finding explains. Findings may explain the same time.",
    ),
    define("severity", "Severity", "What a finding explains by the step time of all ranks."),
    define("threshold", "Rule", "When the finding is made: the rule and its number."),
    define(
        "what_if",
        "What if",
        "Measured times of batches and computation, replayed through a model of the loader's \
         queue. Only given if the model reproduces the observed step time within 10 %.",
    ),
    define("predicted", "Step time", "Mean step time that the model predicts."),
    define(
        "predicted_interval",
        "90 % interval",
        "Where the prediction lies when batches are drawn again.",
    ),
    define(
        "lost",
        "Lost time",
        "Sum over steps of the slowest rank's time minus the median rank's: what waiting for the \
         slowest one cost.",
    ),
    define("slowest", "Slowest in", "Steps in which the rank was the slowest of all."),
    define(
        "because",
        "Because of",
        "What the rank did longer than the median rank in the steps in which it was the slowest.",
    ),
    define(
        "checkpoint_stall",
        "Stall",
        "Time in which ranks did nothing but save or load, all ranks.",
    ),
    define("sync", "Sync", "Part of the stalled time in fsync and its like."),
    define(
        "coverage",
        "Coverage",
        "How much of the program the trace has seen; it limits what is said.",
    ),
];

#[cfg(test)]
mod tests {
    use feedline_analyze::StallCause;

    use super::*;

    #[test]
    fn names_are_unique_and_texts_are_sentences() {
        for (place, found) in DEFINITIONS.iter().enumerate() {
            let first = DEFINITIONS.iter().position(|other| other.key == found.key);
            assert_eq!(first, Some(place), "{}", found.key);
            assert!(found.text.ends_with('.'), "{}", found.key);
            assert!(found.text.starts_with(char::is_uppercase), "{}", found.key);
        }
    }

    #[test]
    fn every_cause_is_defined() {
        for cause in StallCause::ALL {
            assert!(definition(cause.name()).is_some(), "{}", cause.name());
        }
    }
}
