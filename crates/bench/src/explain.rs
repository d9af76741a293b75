//! What every reported number means. The table behind `feedline explain` and `docs/metrics.md`.

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its key in `summary.json`: below `metric` (DLIO's names) or below `feedline`, with dots.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// What it leaves out or gets wrong.
    pub limits: &'static str,
}

/// The explanation of the metric called `name`. One operation's numbers (`storage.read.calls`) are
/// explained for all (`storage.OP.calls`), those of an epoch or a rank by those of the run, those of
/// saves and loads by `checkpoints.WAY`.
pub fn explain(name: &str) -> Option<&'static Explanation> {
    let part = name.strip_prefix("per_epoch.").or_else(|| name.strip_prefix("per_rank."));
    let name = part.unwrap_or(name);
    let way = ["checkpoints.save.", "checkpoints.load."].iter().find_map(|p| name.strip_prefix(p));
    let general = match name.strip_prefix("storage.").and_then(|rest| rest.split_once('.')) {
        Some((_, rest)) => format!("storage.OP.{rest}"),
        None => way.map_or(name.to_owned(), |rest| match rest.split_once('.') {
            Some((of, _)) => format!("checkpoints.WAY.{of}.STAT"),
            None => format!("checkpoints.WAY.{rest}"),
        }),
    };
    METRICS.iter().find(|metric| metric.name == general)
}

/// Names that contain what was typed, or a word of it: what was probably meant.
pub fn similar(typed: &str) -> Vec<&'static str> {
    let typed = typed.to_ascii_lowercase();
    let words: Vec<_> = typed.split(['_', '.', ' ']).filter(|word| word.len() > 1).collect();
    let names = || METRICS.iter().map(|metric| metric.name);
    let hits = |name: &str| words.iter().filter(|word| name.contains(**word)).count();
    let best = names().map(hits).max().unwrap_or(0);
    names().filter(|name| best > 0 && hits(name) == best).take(3).collect()
}

const AU_FORMULA: &str = "per block: 100 * sum of measured compute times of the counted steps / \
    (block time - load and compute time of the steps left out); blocks weighted by their steps; \
    mean over the ranks";
const AU_LIMITS: &str = "oversleeping counts as computing; waiting for other ranks and the loader's \
    own time are in the denominator only; the steps left out (output.metric.exclude_start_steps, \
    exclude_end_steps) are left out of every block anew; a mean over ranks hides a straggler";
const RATE_LIMITS: &str = "two steps are taken off whatever is excluded, so short blocks come out \
    low; blocks of one or two steps have no value (null)";
const CHECKPOINT_LIMITS: &str =
    "without checkpoint.fsync the bytes may still be in memory; GB means GiB, as in DLIO";
const MIB_LIMITS: &str = "samples/s times the nominal record length, not bytes read; MB means MiB, \
    as in DLIO";
const EVAL_LIMITS: &str = "every step counts, start-up included";
const LATENCY_LIMITS: &str = "two significant digits; failed calls included; time in the call, \
    which is CPU time where the page cache answers";

const fn metric(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    formula: &'static str,
    limits: &'static str,
) -> Explanation {
    Explanation { name, unit, meaning, formula, limits }
}

/// Every metric, DLIO's first.
pub const METRICS: &[Explanation] = &[
    metric(
        "train_au_percentage",
        "%",
        "accelerator utilisation of each epoch",
        AU_FORMULA,
        AU_LIMITS,
    ),
    metric(
        "train_au_mean_percentage",
        "%",
        "accelerator utilisation (AU) of the run: the number that is held against the workload's target",
        "mean of train_au_percentage over the epochs",
        AU_LIMITS,
    ),
    metric(
        "train_au_stdev_percentage",
        "%",
        "how much the utilisation varied between epochs",
        "population standard deviation of train_au_percentage",
        "says nothing about variation within an epoch",
    ),
    metric(
        "train_au_meet_expectation",
        "success or fail",
        "whether the utilisation reached the target",
        "success if train_au_mean_percentage >= 100 * metric.au",
        AU_LIMITS,
    ),
    metric(
        "train_throughput_samples_per_second",
        "samples/s",
        "samples a second of each epoch, all ranks",
        "per block: (steps - 2) * batch / (block time - load and compute time of the steps left out); blocks weighted by their steps; sum over the ranks",
        RATE_LIMITS,
    ),
    metric(
        "train_throughput_mean_samples_per_second",
        "samples/s",
        "samples a second of the run, all ranks",
        "mean of train_throughput_samples_per_second over the epochs",
        RATE_LIMITS,
    ),
    metric(
        "train_throughput_stdev_samples_per_second",
        "samples/s",
        "how much the throughput varied between epochs",
        "population standard deviation of train_throughput_samples_per_second",
        RATE_LIMITS,
    ),
    metric(
        "train_io_mean_MB_per_second",
        "MiB/s",
        "data rate of the run by DLIO's rule",
        "train_throughput_mean_samples_per_second * record length / 1048576",
        MIB_LIMITS,
    ),
    metric(
        "train_io_stdev_MB_per_second",
        "MiB/s",
        "how much that rate varied between epochs",
        "train_throughput_stdev_samples_per_second * record length / 1048576",
        MIB_LIMITS,
    ),
    metric(
        "eval_au_percentage",
        "%",
        "accelerator utilisation of each evaluation",
        "100 * sum of measured compute times of the counted steps / (evaluation time - load and compute time of the steps left out); mean over the ranks",
        AU_LIMITS,
    ),
    metric(
        "eval_au_mean_percentage",
        "%",
        "accelerator utilisation of all evaluations",
        "mean of eval_au_percentage",
        AU_LIMITS,
    ),
    metric(
        "eval_au_stdev_percentage",
        "%",
        "how much it varied between evaluations",
        "population standard deviation of eval_au_percentage",
        AU_LIMITS,
    ),
    metric(
        "eval_au_meet_expectation",
        "success or fail",
        "whether it reached the target",
        "success if eval_au_mean_percentage >= 100 * metric.au",
        AU_LIMITS,
    ),
    metric(
        "eval_throughput_samples_per_second",
        "samples/s",
        "samples a second of each evaluation, all ranks",
        "steps * batch / evaluation time; sum over the ranks",
        EVAL_LIMITS,
    ),
    metric(
        "eval_throughput_mean_samples_per_second",
        "samples/s",
        "samples a second of all evaluations",
        "mean of eval_throughput_samples_per_second",
        EVAL_LIMITS,
    ),
    metric(
        "eval_throughput_stdev_samples_per_second",
        "samples/s",
        "how much it varied between evaluations",
        "population standard deviation of eval_throughput_samples_per_second",
        EVAL_LIMITS,
    ),
    metric(
        "eval_io_mean_MB_per_second",
        "MiB/s",
        "data rate of the evaluations by DLIO's rule",
        "eval_throughput_mean_samples_per_second * record length / 1048576",
        MIB_LIMITS,
    ),
    metric(
        "eval_io_stdev_MB_per_second",
        "MiB/s",
        "how much that rate varied",
        "eval_throughput_stdev_samples_per_second * record length / 1048576",
        MIB_LIMITS,
    ),
    metric(
        "save_checkpoint_io_mean_GB_per_second",
        "GiB/s",
        "rate at which checkpoints were written",
        "mean over the saves of the size of all tensors / the time of that save",
        CHECKPOINT_LIMITS,
    ),
    metric(
        "save_checkpoint_io_stdev_GB_per_second",
        "GiB/s",
        "how much that rate varied",
        "population standard deviation over the saves",
        "as the mean",
    ),
    metric(
        "save_checkpoint_duration_mean_seconds",
        "s",
        "time that a checkpoint save took",
        "mean over the saves of the slowest rank's time, and the time for giving the checkpoint its name",
        "with --as-dlio rank 0's time, as DLIO reports it; see checkpoints.save.rank0_seconds",
    ),
    metric(
        "save_checkpoint_duration_stdev_seconds",
        "s",
        "how much that time varied",
        "population standard deviation over the saves",
        "as the mean",
    ),
    metric(
        "load_checkpoint_io_mean_GB_per_second",
        "GiB/s",
        "rate at which checkpoints were read",
        "mean over the loads of the size of all tensors / the time of that load",
        "page cache is emptied of the files before, unless --cache keep; one fast load lifts the mean: see checkpoints.load.MB_per_second; GB means GiB, as in DLIO",
    ),
    metric(
        "load_checkpoint_io_stdev_GB_per_second",
        "GiB/s",
        "how much that rate varied",
        "population standard deviation over the loads",
        "as the mean",
    ),
    metric(
        "load_checkpoint_duration_mean_seconds",
        "s",
        "time that a checkpoint load took",
        "mean over the loads of the slowest rank's time",
        "with --as-dlio rank 0's time, as DLIO reports it; see checkpoints.load.rank0_seconds",
    ),
    metric(
        "load_checkpoint_duration_stdev_seconds",
        "s",
        "how much that time varied",
        "population standard deviation over the loads",
        "as the mean",
    ),
    metric(
        "checkpoint_size_GB",
        "GiB",
        "size of a checkpoint",
        "bytes of the tensors that all ranks hold / 2^30",
        "GB means GiB, as in DLIO",
    ),
    metric(
        "au_strict_percentage",
        "%",
        "share of all step time that the accelerators were asked to compute",
        "100 * sum of asked compute times / sum of step times, over all steps of all ranks and epochs; a step lasts from the request for its batch until all ranks are done",
        "no step is left out, so the wait for the first batch of each epoch weighs in short epochs; checkpoints and evaluations are not in it",
    ),
    metric(
        "au_strict_worst_rank_percentage",
        "%",
        "the same of the rank that has least of it",
        "minimum over the ranks of that rank's own share",
        "with a barrier every step the ranks differ only by what they computed",
    ),
    metric(
        "throughput_strict_samples_per_second",
        "samples/s",
        "samples a second, all ranks",
        "samples of all steps / the longest sum of step times of any rank",
        "no step is left out; checkpoints and evaluations are not in it",
    ),
    metric(
        "sample_MB_per_second",
        "MB/s",
        "bytes of samples a second, all ranks",
        "throughput_strict_samples_per_second * mean bytes of the samples that were read / 10^6",
        "headers and containers are not in it, except in the deep model, which moves bytes and does not \
         know samples; see storage.read.bytes for all bytes",
    ),
    metric("steps", "steps", "steps of one rank in all epochs", "count", "-"),
    metric(
        "counted_steps",
        "steps",
        "steps of one rank that DLIO's metrics count",
        "steps - those left out at the start and end of each epoch",
        "-",
    ),
    metric(
        "time_split_seconds.storage",
        "s",
        "step time in which an accelerator waited for a batch whose reader was inside a storage call",
        "sum over all steps of all ranks: overlap of the wait with the open, stat and read calls for that batch",
        "a reader that lost its core inside a call counts here",
    ),
    metric(
        "time_split_seconds.decode",
        "s",
        "step time in which an accelerator waited for a batch whose reader had the bytes and was checking, decoding or preprocessing them",
        "sum over all steps of all ranks: overlap of the wait with the reader's other work on that batch",
        "a reader that lost its core there counts here",
    ),
    metric(
        "time_split_seconds.workers",
        "s",
        "step time in which an accelerator waited and its reader did neither",
        "wait - storage - decode, plus the time between batch and computation",
        "thread starts, wake-ups, hand-over",
    ),
    metric(
        "time_split_seconds.peers",
        "s",
        "step time in which an accelerator had finished and waited for other ranks",
        "sum over all steps of all ranks of the time at the step's barrier",
        "with several processes the barrier's own cost is in it",
    ),
    metric(
        "time_split_seconds.compute",
        "s",
        "step time in which an accelerator computed",
        "sum over all steps of all ranks of the measured compute time",
        "oversleeping counts as computing",
    ),
    metric(
        "time_split_percentage.storage",
        "%",
        "time_split_seconds.storage as a share of all step time",
        "100 * part / sum of the five parts",
        "as the seconds",
    ),
    metric(
        "time_split_percentage.decode",
        "%",
        "time_split_seconds.decode as a share of all step time",
        "100 * part / sum of the five parts",
        "as the seconds",
    ),
    metric(
        "time_split_percentage.workers",
        "%",
        "time_split_seconds.workers as a share of all step time",
        "100 * part / sum of the five parts",
        "as the seconds",
    ),
    metric(
        "time_split_percentage.peers",
        "%",
        "time_split_seconds.peers as a share of all step time",
        "100 * part / sum of the five parts",
        "as the seconds",
    ),
    metric(
        "time_split_percentage.compute",
        "%",
        "time_split_seconds.compute as a share of all step time",
        "100 * part / sum of the five parts",
        "as the seconds",
    ),
    metric(
        "in_order_delay_seconds",
        "s",
        "part of the waits during which a later batch lay ready: what in-order delivery cost",
        "sum over all steps of all ranks of wait overlapped by the readiness of a later batch",
        "not a sixth part of the split: it lies inside the three waits for a batch",
    ),
    metric(
        "first_rank_done_seconds",
        "s",
        "time until the first rank had done its own work",
        "from the first epoch's begin to the end of the last step's computation, minimum over the ranks",
        "with a barrier every step only the last step can differ",
    ),
    metric(
        "last_rank_done_seconds",
        "s",
        "time until the last rank had done its own work",
        "the same, maximum over the ranks",
        "-",
    ),
    metric(
        "cached_share_percentage",
        "%",
        "share of the training files that lay in the page cache before each epoch",
        "resident pages of up to 16 evenly chosen files / all their pages (mincore); of files above 8 MiB, 32 evenly spaced stretches of 256 KiB",
        "a sample; other machines' caches and the storage's own are not seen; null where the system does not tell",
    ),
    metric(
        "verdict.au_percentage",
        "%",
        "the utilisation that the verdict rests on",
        "train_au_mean_percentage; au_strict_percentage if an epoch counts no more steps than batches are read ahead",
        AU_LIMITS,
    ),
    metric(
        "verdict.target_percentage",
        "%",
        "the utilisation that the workload asks for",
        "100 * metric.au",
        "-",
    ),
    metric(
        "verdict.share_percentage",
        "%",
        "share of all step time of the cause that starved the accelerators",
        "largest of the four waits in time_split_percentage",
        "-",
    ),
    metric(
        "storage.OP.calls",
        "calls",
        "calls of that operation by the training readers of all ranks",
        "count at the store",
        "generation, listing and checkpoints are not in it",
    ),
    metric("storage.OP.errors", "calls", "calls that failed", "count at the store", "-"),
    metric(
        "storage.OP.calls_per_second",
        "calls/s",
        "calls of that operation a second, all ranks",
        "calls / time of all training steps on rank 0, waits included",
        "evaluations, checkpoints and what lies between epochs are not in the time",
    ),
    metric(
        "storage.OP.requests",
        "requests",
        "requests that those calls sent over a network, repeated ones included",
        "count below the object store's protocol; 0 for file systems",
        "requests for credentials are not in it",
    ),
    metric(
        "storage.OP.requests_per_second",
        "requests/s",
        "requests a second, all ranks",
        "requests / time of all training steps on rank 0, waits included",
        "-",
    ),
    metric(
        "storage.OP.retries",
        "requests",
        "requests that repeated one which had gone wrong in a way that passes",
        "count below the object store's protocol: after 5xx, 429, 408, a broken or silent connection",
        "a request that failed for the last time is not followed by another, and is an error",
    ),
    metric(
        "generation.requests",
        "requests",
        "requests of the generation over a network",
        "as storage.OP.requests",
        "listing and manifest are not in it",
    ),
    metric(
        "generation.retries",
        "requests",
        "requests that repeated one which had gone wrong",
        "as storage.OP.retries",
        "-",
    ),
    metric("checkpoints.saves", "saves", "checkpoints saved", "count", "-"),
    metric("checkpoints.loads", "loads", "checkpoints loaded", "count", "-"),
    metric(
        "checkpoints.bytes",
        "bytes",
        "bytes of the tensors of all checkpoints, all ranks",
        "sum",
        "-",
    ),
    metric(
        "checkpoints.requests",
        "requests",
        "requests of all saves and loads over a network",
        "as storage.OP.requests",
        "-",
    ),
    metric(
        "checkpoints.retries",
        "requests",
        "requests that repeated one which had gone wrong",
        "as storage.OP.retries",
        "-",
    ),
    metric(
        "checkpoints.step_slowdown_while_saving",
        "ratio",
        "how much longer steps took while a checkpoint was saved behind their back",
        "mean time of steps during a save / mean time of the others, all ranks",
        "the first step of an epoch is left out; null without asynchronous saves",
    ),
    metric(
        "checkpoints.steps_while_saving",
        "steps",
        "steps during which a save was going on",
        "count, the rank with the most",
        "the first step of an epoch is left out",
    ),
    metric(
        "checkpoints.drain_seconds",
        "s",
        "time that the end of the run waited for saves going on",
        "the rank with the most",
        "-",
    ),
    metric(
        "checkpoints.unsaved_steps_max",
        "steps",
        "work that a kill at the worst moment would have cost",
        "largest number of steps done since those in the last published checkpoint",
        "steps that no later checkpoint holds at the end of the run count too",
    ),
    metric(
        "checkpoints.unsaved_seconds_max",
        "s",
        "the same in time",
        "longest time since the state of the last published checkpoint",
        "-",
    ),
    metric(
        "checkpoints.pool_bytes_per_rank",
        "bytes",
        "memory for the buffers of saves and loads",
        "buffers x checkpoint.chunk_size",
        "tensors that checkpoint.state: resident keeps are not in it",
    ),
    metric(
        "checkpoints.WAY.duration_seconds.STAT",
        "s",
        "time of a save or a load",
        "slowest rank's own part + time for giving the checkpoint its name",
        "mean, stdev, min and max over the checkpoints",
    ),
    metric(
        "checkpoints.WAY.rank0_seconds.STAT",
        "s",
        "the same, as DLIO reports it",
        "rank 0's own part",
        "does not see slower ranks",
    ),
    metric(
        "checkpoints.WAY.pause_seconds.STAT",
        "s",
        "time for which training stood still",
        "the rank that waited longest: to the end, or until the state was copied (checkpoint.save_mode: async), with the wait for an earlier save before and the commit between two steps after it",
        "-",
    ),
    metric(
        "checkpoints.WAY.background_seconds.STAT",
        "s",
        "time from there until a rank's files were safe",
        "the rank with the most",
        "0 for everything that is not saved asynchronously",
    ),
    metric(
        "checkpoints.WAY.commit_seconds.STAT",
        "s",
        "time for giving a checkpoint its name when all ranks had written",
        "description, rename, folder to the device",
        "0 for loads",
    ),
    metric(
        "checkpoints.WAY.MB_per_second",
        "MB/s",
        "sustained rate",
        "bytes of tensors of all saves or loads / time in which any of them went on",
        "time between checkpoints is not in it",
    ),
    metric(
        "checkpoints.WAY.moved_bytes",
        "bytes",
        "bytes that calls have written or read",
        "count at the store",
        "blocks that are filled up and a container's own bytes included",
    ),
    metric(
        "checkpoints.WAY.amplification",
        "ratio",
        "bytes moved for each byte of a tensor",
        "moved_bytes / bytes of tensors",
        "what the device moved may differ",
    ),
    metric(
        "checkpoints.WAY.publish_percentage",
        "%",
        "share of the files' time that went into making them safe",
        "time in calls that flush and rename files / time from creating to having published, all files",
        "0 for loads; without checkpoint.fsync nothing is flushed",
    ),
    metric(
        "checkpoints.WAY.file_MB_per_second.STAT",
        "MB/s",
        "rates of single files",
        "bytes of a file / its time; min, p10, p50, p90 and max over all files of all checkpoints",
        "files that are moved at the same time share the storage",
    ),
    metric(
        "checkpoints.WAY.files",
        "files",
        "files that were written or read",
        "count",
        "files that took no time are left out",
    ),
    metric(
        "storage.OP.bytes",
        "bytes",
        "bytes that the calls moved",
        "count at the store",
        "bytes asked of the system; what the device moved may differ",
    ),
    metric(
        "storage.OP.busy_seconds",
        "s",
        "time in those calls, all readers",
        "sum of latencies",
        "readers work at the same time, so this exceeds the run's time",
    ),
    metric(
        "storage.OP.latency_us.mean",
        "us",
        "mean time of a call",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric(
        "storage.OP.latency_us.p50",
        "us",
        "time that half of the calls did not exceed",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric(
        "storage.OP.latency_us.p90",
        "us",
        "time that 90 % of the calls did not exceed",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric(
        "storage.OP.latency_us.p99",
        "us",
        "time that 99 % of the calls did not exceed",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric(
        "storage.OP.latency_us.p99_9",
        "us",
        "time that 99.9 % of the calls did not exceed",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric(
        "storage.OP.latency_us.max",
        "us",
        "time of the slowest call",
        "HDR histogram of the time in each call",
        LATENCY_LIMITS,
    ),
    metric("generation.files", "files", "data files that the run made", "count", "-"),
    metric(
        "generation.bytes",
        "bytes",
        "bytes of those files and of their indexes",
        "sum of their sizes",
        "-",
    ),
    metric(
        "generation.kept_files",
        "files",
        "data files that an earlier run had made and that stayed as they were",
        "count",
        "their content is not read; `feedline verify` does that",
    ),
    metric("generation.kept_bytes", "bytes", "bytes of the kept files", "sum of their sizes", "-"),
    metric(
        "generation.seconds",
        "s",
        "time that making them took",
        "monotonic clock",
        "without fsync: bytes may still be in memory",
    ),
    metric(
        "generation.MB_per_second",
        "MB/s",
        "rate at which they were made",
        "bytes / 10^6 / seconds",
        "without fsync: bytes may still be in memory",
    ),
    metric("epoch", "-", "which epoch an entry of per_epoch tells of", "from 1", "-"),
    metric("rank", "-", "which rank an entry of per_rank tells of", "from 0", "-"),
    metric(
        "schema_version",
        "-",
        "version of Feedline's own object",
        "raised when a key changes its meaning or goes away",
        "-",
    ),
    metric("accelerators", "ranks", "emulated accelerators", "as asked for", "-"),
    metric("processes", "processes", "processes of the job", "as the launcher started them", "-"),
    metric(
        "hosts.processes",
        "processes",
        "processes of the job on that host",
        "those that can share memory are on one host",
        "-",
    ),
    metric("hosts.ranks", "ranks", "the ranks of those processes", "their numbers", "-"),
    metric("hosts.cpus", "processors", "logical processors of the host", "/proc/cpuinfo", "-"),
    metric("hosts.memory_bytes", "bytes", "memory of the host", "MemTotal of /proc/meminfo", "-"),
    metric(
        "queue_depth",
        "reads",
        "reads of one reader under way together, in the deep read model",
        "as asked for (`reader.queue_depth`)",
        "-",
    ),
    metric(
        "transfer_size",
        "bytes",
        "bytes of one read call, if the workload says",
        "as asked for (`reader.transfer_size`)",
        "the last read of a sample or file is shorter",
    ),
    metric(
        "seed",
        "-",
        "seed that the sample order was drawn from",
        "train.seed, or a new one for shuffles that are `random`",
        "-",
    ),
];

/// All explanations as a reference page.
pub fn metrics_markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\nEvery number in `summary.json`, as `feedline explain NAME` prints it. Names \
         without a dot from `train_` to `checkpoint_` stand under `metric` and are DLIO's; the others \
         stand under `feedline`. `OP` is an operation of the store: open, stat, read; `WAY` is save or load, `STAT` mean, stdev, min or max.\n",
    );
    for Explanation { name, unit, meaning, formula, limits } in METRICS {
        page.push_str(&format!(
            "\n## {name}\n\n{meaning}.\n\n- unit: {unit}\n- formula: {formula}\n- leaves out: {limits}\n"
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probably_meant_is_found_by_its_words() {
        assert_eq!(
            similar("au_strict"),
            ["au_strict_percentage", "au_strict_worst_rank_percentage"]
        );
        assert_eq!(similar("cached")[..], ["cached_share_percentage"]);
        assert_eq!(similar("qqq"), [""; 0]);
    }

    #[test]
    fn parts_are_explained_by_the_whole() {
        let name = |of| explain(of).map(|metric| metric.name);
        assert_eq!(name("storage.read.latency_us.p99"), Some("storage.OP.latency_us.p99"));
        assert_eq!(name("per_rank.au_strict_percentage"), Some("au_strict_percentage"));
        assert_eq!(name("speed"), None);
    }
}
