//! Results under DLIO's names.

use super::{Metric, result};

const AU_FORMULA: &str = "per block: 100 * sum of measured compute times of the counted steps / \
    (block time - load and compute time of the excluded steps); blocks weighted by their steps; \
    mean over the ranks";
pub(super) const AU_CAVEATS: &str = "oversleeping counts as computing; waiting for other ranks and \
    the loader's own time are in the denominator only; output.metric.exclude_start_steps and \
    exclude_end_steps apply to every block; a mean over ranks hides a straggler";
const RATE_CAVEATS: &str = "two steps are subtracted whatever is excluded, so short blocks come out \
    low; blocks of one or two steps have no value (null)";
const SAVE_CAVEATS: &str =
    "without checkpoint.fsync the bytes may still be in memory; GB means GiB, as in DLIO";
const LOAD_CAVEATS: &str = "the files are dropped from the page cache first, unless --cache keep; \
    one fast load raises the mean: see checkpoints.load.MB_per_second; GB means GiB, as in DLIO";
const MIB_CAVEATS: &str =
    "samples/s times the nominal record length, not bytes read; MB means MiB, as in DLIO";
const EVAL_CAVEATS: &str = "every step counts, including start-up";

pub(super) const METRICS: &[Metric] = &[
    result(
        "train_au_percentage",
        "%",
        "accelerator utilization of each epoch",
        AU_FORMULA,
        AU_CAVEATS,
    ),
    result(
        "train_au_mean_percentage",
        "%",
        "accelerator utilization (AU) of the run: the number compared with the workload's target",
        "mean of train_au_percentage over the epochs",
        AU_CAVEATS,
    ),
    result(
        "train_au_stdev_percentage",
        "%",
        "how much the utilization varied between epochs",
        "population standard deviation of train_au_percentage",
        "says nothing about variation within an epoch",
    ),
    result(
        "train_au_meet_expectation",
        "success or fail",
        "whether the utilization reached the target",
        "success if train_au_mean_percentage >= 100 * metric.au",
        AU_CAVEATS,
    ),
    result(
        "train_throughput_samples_per_second",
        "samples/s",
        "samples per second of each epoch, all ranks",
        "per block: (steps - 2) * batch / (block time - load and compute time of the excluded steps); \
         blocks weighted by their steps; sum over the ranks",
        RATE_CAVEATS,
    ),
    result(
        "train_throughput_mean_samples_per_second",
        "samples/s",
        "samples per second of the run, all ranks",
        "mean of train_throughput_samples_per_second over the epochs",
        RATE_CAVEATS,
    ),
    result(
        "train_throughput_stdev_samples_per_second",
        "samples/s",
        "how much the throughput varied between epochs",
        "population standard deviation of train_throughput_samples_per_second",
        RATE_CAVEATS,
    ),
    result(
        "train_io_mean_MB_per_second",
        "MiB/s",
        "data rate of the run by DLIO's rule",
        "train_throughput_mean_samples_per_second * record length / 1048576",
        MIB_CAVEATS,
    ),
    result(
        "train_io_stdev_MB_per_second",
        "MiB/s",
        "how much that rate varied between epochs",
        "train_throughput_stdev_samples_per_second * record length / 1048576",
        MIB_CAVEATS,
    ),
    result(
        "eval_au_percentage",
        "%",
        "accelerator utilization of each evaluation",
        "100 * sum of measured compute times of the counted steps / (evaluation time - load and \
         compute time of the excluded steps); mean over the ranks",
        AU_CAVEATS,
    ),
    result(
        "eval_au_mean_percentage",
        "%",
        "accelerator utilization of all evaluations",
        "mean of eval_au_percentage",
        AU_CAVEATS,
    ),
    result(
        "eval_au_stdev_percentage",
        "%",
        "how much the utilization varied between evaluations",
        "population standard deviation of eval_au_percentage",
        AU_CAVEATS,
    ),
    result(
        "eval_au_meet_expectation",
        "success or fail",
        "whether the utilization of the evaluations reached the target",
        "success if eval_au_mean_percentage >= 100 * metric.au",
        AU_CAVEATS,
    ),
    result(
        "eval_throughput_samples_per_second",
        "samples/s",
        "samples per second of each evaluation, all ranks",
        "steps * batch / evaluation time; sum over the ranks",
        EVAL_CAVEATS,
    ),
    result(
        "eval_throughput_mean_samples_per_second",
        "samples/s",
        "samples per second of all evaluations",
        "mean of eval_throughput_samples_per_second",
        EVAL_CAVEATS,
    ),
    result(
        "eval_throughput_stdev_samples_per_second",
        "samples/s",
        "how much the throughput varied between evaluations",
        "population standard deviation of eval_throughput_samples_per_second",
        EVAL_CAVEATS,
    ),
    result(
        "eval_io_mean_MB_per_second",
        "MiB/s",
        "data rate of the evaluations by DLIO's rule",
        "eval_throughput_mean_samples_per_second * record length / 1048576",
        MIB_CAVEATS,
    ),
    result(
        "eval_io_stdev_MB_per_second",
        "MiB/s",
        "how much that rate varied between evaluations",
        "eval_throughput_stdev_samples_per_second * record length / 1048576",
        MIB_CAVEATS,
    ),
    result(
        "save_checkpoint_io_mean_GB_per_second",
        "GiB/s",
        "rate at which checkpoints were written",
        "mean over the saves of the size of all tensors / the time of that save",
        SAVE_CAVEATS,
    ),
    result(
        "save_checkpoint_io_stdev_GB_per_second",
        "GiB/s",
        "how much that rate varied",
        "population standard deviation over the saves",
        SAVE_CAVEATS,
    ),
    result(
        "save_checkpoint_duration_mean_seconds",
        "s",
        "time per checkpoint save",
        "mean over the saves of the slowest rank's time plus the time of the commit",
        "with --as-dlio rank 0's time, as DLIO reports it; see checkpoints.save.rank0_seconds",
    ),
    result(
        "save_checkpoint_duration_stdev_seconds",
        "s",
        "how much that time varied",
        "population standard deviation over the saves",
        "same as for the mean",
    ),
    result(
        "load_checkpoint_io_mean_GB_per_second",
        "GiB/s",
        "rate at which checkpoints were read",
        "mean over the loads of the size of all tensors / the time of that load",
        LOAD_CAVEATS,
    ),
    result(
        "load_checkpoint_io_stdev_GB_per_second",
        "GiB/s",
        "how much that rate varied",
        "population standard deviation over the loads",
        LOAD_CAVEATS,
    ),
    result(
        "load_checkpoint_duration_mean_seconds",
        "s",
        "time per checkpoint load",
        "mean over the loads of the slowest rank's time",
        "with --as-dlio rank 0's time, as DLIO reports it; see checkpoints.load.rank0_seconds",
    ),
    result(
        "load_checkpoint_duration_stdev_seconds",
        "s",
        "how much that time varied",
        "population standard deviation over the loads",
        "same as for the mean",
    ),
    result(
        "checkpoint_size_GB",
        "GiB",
        "size of a checkpoint",
        "bytes of the tensors that all ranks hold / 2^30",
        "GB means GiB, as in DLIO",
    ),
];
