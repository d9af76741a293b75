//! Numbers of an analysis, by subject. The page shows these texts as tooltips.

use super::Metric;

pub(super) const METRICS: &[Metric] = &[
    // The answer.
    number("stall_share", "Stall share", "share of all step time in which ranks were stalled")
        .formula("stalled time / step time, both over all steps of all ranks")
        .caveats("a training is not input-bound below 5 %, moderately from 5 to 20 %, and input-bound above"),
    number(
        "stall",
        "Stall",
        "part of a fetch in which the same rank did not compute, and of a collective in which it \
         waited for a rank that was stalled",
    ),
    number("interval", "95 % interval", "where the stall share is expected to be")
        .formula("moving blocks of steps are resampled 1000 times; 95 % of the resamples are in it"),
    number(
        "stalled_steps",
        "Stalled steps",
        "share of the steps that stalled for more than a tenth of their time",
    ),
    number("stall_p95", "Stall p95", "95 % of the steps stalled no longer than this"),
    number("confidence", "Confidence", "how certain the split by cause is")
        .formula("high: the trace names batches; medium: inferred from order or time; low: estimated from averages"),
    number("au", "AU", "accelerator utilization as the benchmark computes it")
        .formula("computation / time of a block of steps, without the excluded steps; mean over ranks"),
    number("samples_per_s", "Samples/s", "samples per second during training, all ranks"),
    number("read_rate", "Read rate", "bytes read per second during training, all ranks"),
    number(
        "step",
        "Step",
        "from the start of a fetch to the start of the next fetch or checkpoint, or to the end of \
         the epoch",
    ),
    number("run_time", "Run time", "from the start of the first event to the end of the last"),
    // What a stalled rank waits for.
    number("open", "Open", "opening, closing, listing and querying files"),
    number("read", "Read", "reading files"),
    number("write", "Write", "writing files, and waiting until they are on the device"),
    number("object-store", "Object store", "requests to object stores"),
    number("decode", "Decode", "bytes have arrived and are being checked or decoded"),
    number("transform", "Transform", "decoded samples are being preprocessed or augmented"),
    number(
        "python",
        "Worker code",
        "the worker's own code: it works on the batch and is in none of the other causes",
    ),
    number("collate", "Collate", "samples are being assembled into a batch"),
    number(
        "hand-off",
        "Hand-off",
        "the batch is ready and on its way to the rank: queues, pickling, pinned memory",
    ),
    number(
        "workers",
        "Too few workers",
        "no worker had started on the batch: all were busy with others",
    ),
    number(
        "prefetch",
        "Prefetch",
        "no worker had started on the batch although one was free: it had not been told to, or could \
         not start in time",
    ),
    number("start-up", "Start-up", "workers were not running yet"),
    number("peer", "Peer", "another rank was late, and this one waited for it"),
    number("unknown", "Unknown", "the trace does not say what the rank waited for"),
    // Parts of a step.
    number("fetch", "Fetch", "the consumer waits for its next batch"),
    number("compute", "Compute", "time in which the rank computed; overlaps count once"),
    number("communication", "Communication", "time in collectives; overlaps count once"),
    number(
        "service",
        "Service",
        "a worker's work on the batch of a step, from its start to its end",
    ),
    number("worker", "Worker", "worker of the rank that produced the batch, counted from 0"),
    number("block", "Block", "steps between two checkpoints; counted from 1 in each epoch"),
    number(
        "first_batch",
        "First batch",
        "from the start of an epoch to its first batch, mean over ranks",
    ),
    number(
        "excluded_steps",
        "Excluded steps",
        "steps at the start and end of a block that the benchmark does not count in AU",
    ),
    // Layers.
    number("layer_mean", "Time", "time that a rank and its workers spent in this layer")
        .formula("exact union of intervals, so nothing counts twice; mean over ranks"),
    number("layer_least", "Least", "time in this layer of the rank with the least"),
    number("layer_most", "Most", "time in this layer of the rank with the most"),
    number("self_time", "Self time", "time without nested events of the same thread, all threads"),
    number("summed_time", "Summed", "sum of all durations, all threads")
        .caveats("nested and concurrent ones count again"),
    number("exposed", "Exposed", "part of the time in which the same rank did not compute"),
    number("overlapped", "Overlapped", "part of the time in which the same rank computed"),
    number(
        "compute_alone",
        "Compute alone",
        "part of the computation in which nothing of this kind was in progress",
    ),
    number("io", "I/O", "time that a rank and its workers spent in calls on files and objects")
        .formula("overlaps count once; mean over ranks"),
    number("app-io", "Application I/O", "time spent getting samples, whatever that took"),
    number("loader", "Loader", "batches, samples, decoding, and everything below"),
    number("checkpoint", "Checkpoint", "saving and loading checkpoints"),
    // Calls, bytes, files.
    number("events", "Events", "events of the trace, without names and other metadata"),
    number("calls", "Calls", "calls on files and requests to object stores"),
    number("errors", "Errors", "calls that ended in an error"),
    number("total_time", "Total", "sum of all durations"),
    number("bandwidth", "Bandwidth", "bytes per second")
        .formula("bytes / time of the calls that moved them; in the timeline, bytes / width of a bucket"),
    number("latency", "Latency", "duration of a call")
        .formula("percentiles from a histogram whose buckets are at most 1/128 of their value wide; min, mean and max are exact"),
    number("size", "Size", "bytes per call, of calls that moved any"),
    number("bytes_read", "Bytes read", "bytes that reads returned, without mapped files"),
    number("bytes_written", "Bytes written", "bytes that writes accepted"),
    number("extent", "Extent", "highest end of a read of a file: the most that one pass had to read"),
    number("reread", "Re-read", "how often the same data was read").formula("bytes read / extent"),
    number("opens_per_file", "Opens per file", "opens / files that were read"),
    number("metadata_time", "Metadata", "part of the time in opens, stats and closes"),
    number(
        "access",
        "Access pattern",
        "where a call started, relative to the end of the previous one by the same thread on the \
         same file",
    ),
    // Timeline.
    number("iops", "Calls/s", "calls on files and objects per second")
        .formula("calls that started in a bucket / its width"),
    number("in_flight", "In flight", "average number of calls in progress")
        .formula("time in calls of all threads / width of the bucket"),
    number("stall_now", "Stalled ranks", "average number of stalled ranks")
        .formula("stalled time of all ranks / width of the bucket"),
    number("compute_now", "Computing ranks", "average number of computing ranks")
        .formula("computation of all ranks / width of the bucket"),
    number("ready", "Ready batches", "depth of the queue: batches finished and not fetched yet")
        .formula("mean over time, all ranks"),
    number(
        "strip",
        "What threads did",
        "the layer that a thread was in for most of a bucket, by self time",
    )
    .formula("the higher the mark, the more of the bucket the thread was busy"),
    number(
        "unseen",
        "Unseen",
        "time between a rank's first and last event that none of its events covers",
    ),
    number(
        "busy_workers",
        "Workers busy",
        "share of its workers' lifetime in which they worked on batches",
    ),
    // Findings, predictions, ranks, checkpoints.
    number("explains", "Explains", "stalled or lost time of all ranks that a finding explains")
        .caveats("several findings may explain the same time"),
    number("severity", "Severity", "time that a finding explains / step time of all ranks"),
    number("threshold", "Rule", "the rule that produces the finding, with its threshold"),
    number("what_if", "What if", "step time after a change, as a model of the loader's queue predicts it")
        .formula("measured times of batches and computation, replayed through the model")
        .caveats("only given if the model reproduces the observed step time within 10 %"),
    number("predicted", "Step time", "mean step time that the model predicts"),
    number(
        "predicted_interval",
        "90 % interval",
        "where the prediction is when batches are resampled",
    ),
    number("lost", "Lost time", "what waiting for the slowest rank cost")
        .formula("sum over steps of the slowest rank's time - the median rank's"),
    number("slowest", "Slowest in", "steps in which the rank was the slowest of all"),
    number(
        "because",
        "Because of",
        "what the rank spent longer on than the median rank in the steps in which it was the slowest",
    ),
    number(
        "checkpoint_stall",
        "Stall",
        "time in which ranks did nothing but save or load, all ranks",
    ),
    number("sync", "Sync", "part of the stalled time in fsync and similar calls"),
    number(
        "coverage",
        "Coverage",
        "how much of the program the trace covers; it limits what can be concluded",
    ),
];

const fn number(name: &'static str, label: &'static str, meaning: &'static str) -> Metric {
    Metric { name, label, unit: "", meaning, formula: "", caveats: "" }
}

impl Metric {
    const fn formula(self, formula: &'static str) -> Self {
        Self { formula, ..self }
    }

    const fn caveats(self, caveats: &'static str) -> Self {
        Self { caveats, ..self }
    }
}
