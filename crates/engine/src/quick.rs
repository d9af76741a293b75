//! `--quick`: a workload cut down to about 2 GiB and well under a minute.
//!
//! Samples keep their size and every accelerator keeps its demand: where a batch must shrink so
//! that a few steps fit, the computation shrinks with it. Everything else that takes long is cut.
//! The result is a list of overrides, so the run's own record shows what was done.

use feedline_bench::CheckpointPlan;
use feedline_workload::{CheckpointMode, TimeSpec, Workload};

const DATA_BYTES: f64 = (2u64 << 30) as f64;
/// Epochs that are kept whatever they take, so that a second pass is seen.
const EPOCHS: u32 = 2;
/// Steps per epoch that the data should allow: more than are read ahead, so that some are waited for.
const STEPS: u64 = 8;
/// Emulated computation of the whole run.
const COMPUTE_SECONDS: f64 = 15.0;

/// Optimizer state of a rank that a quick look at checkpoints saves.
const RANK_BYTES: u64 = 512 << 20;
/// Checkpoints that it saves and loads.
const CHECKPOINTS: u64 = 2;

/// The overrides that make `workload` quick on `ranks` ranks.
pub(crate) fn overrides(workload: &Workload, ranks: u32) -> Vec<String> {
    if workload.checkpoint_only() {
        return checkpoint_overrides(workload, ranks);
    }
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    let ranks = u64::from(ranks);
    let sample_bytes = match dataset.record_dims.as_slice() {
        [] => {
            dataset.record_length_bytes.max(1.0) * dataset.record_element_type.size_bytes() as f64
        }
        dims => (dims.iter().product::<u64>() * dataset.record_element_type.size_bytes()) as f64,
    };
    let room = ((DATA_BYTES / sample_bytes) as u64).max(1);
    let per_file = dataset.num_samples_per_file.min(room);
    let files = dataset.num_files_train.min((room / per_file).max(1)).max(ranks.div_ceil(per_file));
    let files = match dataset.format.is_streamed {
        // Files are dealt to ranks, so that those beyond a multiple would be left out.
        true => (files / ranks).max(1) * ranks,
        false => files,
    };
    let samples = files * per_file;
    let batch = reader.batch_size.min((samples / (ranks * STEPS)).max(1));
    let scale = batch as f64 / reader.batch_size as f64;
    let compute = workload.train.computation_time.mean_seconds().abs() * scale;
    let total = ((COMPUTE_SECONDS / compute.max(1e-6)) as u64).max(STEPS);
    let available = samples / (batch * ranks);
    let asked = workload.train.total_training_steps.unwrap_or(u64::MAX);
    let few = u64::from(workload.train.epochs.min(EPOCHS));
    let steps = available.min((total / few).max(STEPS)).min(asked);
    let epochs = u64::from(workload.train.epochs).min((total / steps.max(1)).max(few));

    let mut list = vec![
        format!("dataset.num_files_train={files}"),
        format!("dataset.num_samples_per_file={per_file}"),
        "workflow.checkpoint=False".to_owned(),
    ];
    if workload.workflow.train {
        list.push(format!("train.epochs={epochs}"));
        list.push(format!("train.total_training_steps={steps}"));
    }
    if batch < reader.batch_size {
        list.push(format!("reader.batch_size={batch}"));
        list.extend(scaled_time(&workload.train.computation_time, scale));
    }
    if dataset.num_files_eval > 0 {
        let needed = (reader.batch_size_eval * ranks * STEPS).div_ceil(per_file);
        list.push(format!("dataset.num_files_eval={}", dataset.num_files_eval.min(needed)));
    }
    list
}

/// The first ranks of a world with enough copies of the model that each rank holds a small part of
/// the optimizer. What every rank of the model holds of its layers stays as it is.
fn checkpoint_overrides(workload: &Workload, ranks: u32) -> Vec<String> {
    let mut list = vec!["checkpoint.time_between_checkpoints=0".to_owned()];
    let asked = |number: Option<u64>| number.unwrap_or(0).min(CHECKPOINTS);
    let (writes, reads) = (
        asked(workload.checkpoint.num_checkpoints_write),
        asked(workload.checkpoint.num_checkpoints_read),
    );
    list.push(format!("checkpoint.num_checkpoints_write={writes}"));
    list.push(format!("checkpoint.num_checkpoints_read={reads}"));
    let parallelism = &workload.model.parallelism;
    if workload.checkpoint.mode == CheckpointMode::Subset || parallelism.zero_stage == 0 {
        return list;
    }
    let of_copies = |copies: u32| {
        let mut subset = workload.clone();
        subset.checkpoint.mode = CheckpointMode::Subset;
        subset.model.parallelism.data = Some(copies);
        CheckpointPlan::new(&subset, ranks).ok()
    };
    let small = |plan: &CheckpointPlan| plan.layout().amount(0).bytes.optimizer <= RANK_BYTES;
    let copies = (0..20).map(|power| 1 << power);
    let fitting = copies.into_iter().find(|&copies| of_copies(copies).as_ref().is_some_and(small));
    if let Some(copies) = fitting {
        list.push("checkpoint.mode=subset".to_owned());
        list.push(format!("model.parallelism.data={copies}"));
    }
    list
}

/// Overrides that multiply a computation time by `scale`.
fn scaled_time(time: &TimeSpec, scale: f64) -> Vec<String> {
    let key = "train.computation_time";
    let set = |pairs: &[(&str, f64)]| {
        pairs.iter().map(|(name, value)| format!("{key}.{name}={}", value * scale)).collect()
    };
    match *time {
        TimeSpec::Constant { mean } => vec![format!("{key}={}", mean * scale)],
        TimeSpec::Normal { mean, stdev } => set(&[("mean", mean), ("stdev", stdev)]),
        TimeSpec::Uniform { min, max } => set(&[("min", min), ("max", max)]),
        TimeSpec::Gamma { scale: unit, .. } | TimeSpec::Exponential { scale: unit } => {
            set(&[("scale", unit)])
        }
        TimeSpec::Poisson { .. } => Vec::new(), // Whole seconds do not scale.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unet3d(batch: u64) -> Workload {
        let mut workload = Workload::default();
        workload.dataset.num_files_train = 168;
        workload.dataset.record_length_bytes = 146_600_628.0;
        workload.reader.batch_size = batch;
        workload.train.epochs = 5;
        workload.train.computation_time = TimeSpec::Constant { mean: 0.35 };
        workload
    }

    #[test]
    fn checkpoints_are_those_of_a_few_ranks_of_a_larger_world() {
        let mut workload = Workload::default();
        workload.workflow.train = false;
        workload.workflow.checkpoint = true;
        workload.model.r#type = Some("transformer".into());
        workload.model.num_layers = Some(32);
        workload.model.transformer.hidden_size = 4096;
        workload.model.parallelism.zero_stage = 3;
        workload.checkpoint.num_checkpoints_write = Some(10);
        workload.checkpoint.num_checkpoints_read = Some(1);
        // 5.1 G parameters of 12 bytes: 61 GB, in 128 parts of 477 MB.
        assert_eq!(
            overrides(&workload, 2),
            [
                "checkpoint.time_between_checkpoints=0",
                "checkpoint.num_checkpoints_write=2",
                "checkpoint.num_checkpoints_read=1",
                "checkpoint.mode=subset",
                "model.parallelism.data=128",
            ]
        );
        workload.model.parallelism.zero_stage = 0;
        assert_eq!(overrides(&workload, 2).len(), 3, "nothing is cut by copies");
    }

    #[test]
    fn files_and_batch_shrink_and_the_demand_stays() {
        // 2 GiB / 146.6 MB = 14 files; 14 steps of 1; 0.35 s / 7 = 0.05 s.
        let list = overrides(&unet3d(7), 1);
        assert_eq!(
            list,
            [
                "dataset.num_files_train=14",
                "dataset.num_samples_per_file=1",
                "workflow.checkpoint=False",
                "train.epochs=5",
                "train.total_training_steps=14",
                "reader.batch_size=1",
                &format!("train.computation_time={}", 0.35 * (1.0 / 7.0)),
            ]
        );
    }

    #[test]
    fn every_rank_gets_a_sample() {
        let list = overrides(&unet3d(7), 20);
        assert!(list.contains(&"dataset.num_files_train=20".to_owned()), "{list:?}");
        assert!(list.contains(&"reader.batch_size=1".to_owned()), "{list:?}");
    }

    #[test]
    fn a_file_larger_than_the_limit_loses_samples() {
        let mut workload = unet3d(1);
        workload.dataset.num_files_train = 1;
        workload.dataset.num_samples_per_file = 1024;
        workload.dataset.record_length_bytes = 671_088_640.0;
        let list = overrides(&workload, 1);
        assert_eq!(list[..2], ["dataset.num_files_train=1", "dataset.num_samples_per_file=3"]);
    }

    #[test]
    fn small_workloads_keep_their_batch() {
        let mut workload = unet3d(4);
        workload.dataset.record_length_bytes = 4096.0;
        workload.train.computation_time = TimeSpec::Constant { mean: 1.0 };
        let list = overrides(&workload, 1);
        assert!(list.contains(&"dataset.num_files_train=168".to_owned()));
        assert!(list.contains(&"train.total_training_steps=8".to_owned()), "{list:?}");
        assert!(!list.iter().any(|item| item.starts_with("reader.batch_size")));
    }
}
