//! Checkpoint settings: how layers map to ranks, which settings exclude each other, and which have no
//! effect without another.

use feedline_location::Capabilities;

use crate::check::MOST_SECONDS;
use crate::error::{Result, WorkloadError};
use crate::sections::checkpoint::{Checkpoint, CheckpointMode, DirectIo, SaveMode};
use crate::sections::workload::Workload;
use crate::warning::WarningKind;

/// Most memory for the chunks in flight of one rank.
const MOST_IN_FLIGHT_BYTES: u64 = 4 << 30;

/// Checks the checkpoint settings alone, for a run that saves or loads.
///
/// # Errors
/// The first rule that is violated.
pub fn check(workload: &Workload, ranks: u32) -> Result<()> {
    let checkpoint = &workload.checkpoint;
    check_counts(workload)?;
    check_buffers(checkpoint)?;
    if checkpoint.ksm.is_some() && checkpoint.randomize_tensor {
        return Err(WorkloadError::KsmNeedsOnes);
    }
    if let Some(seconds) = checkpoint.time_between_checkpoints.filter(|&time| time > MOST_SECONDS) {
        let key = "checkpoint.time_between_checkpoints";
        return Err(WorkloadError::TimeTooLong { key, seconds, most: MOST_SECONDS });
    }
    let root = workload.checkpoint_root();
    if checkpoint.odirect == DirectIo::On && !root.capabilities().direct {
        return Err(WorkloadError::Combination {
            first: "checkpoint.odirect: true".to_owned(),
            second: format!("checkpoints at {root}"),
            reason: without_files(root.capabilities()),
            hint: "use `checkpoint.odirect=auto`",
        });
    }
    match workload.model.num_layers {
        Some(layers) => check_geometry(workload, layers, ranks),
        None => Ok(()),
    }
}

/// Why a store does not offer what the file system does.
pub(crate) fn without_files(can: Capabilities) -> &'static str {
    match can.network {
        Some(_) => "an object store is accessed over the network, not through the file system",
        None => "it has no files",
    }
}

/// Checks how often to save, and whether enough checkpoints are left to read.
fn check_counts(workload: &Workload) -> Result<()> {
    let checkpoint = &workload.checkpoint;
    if let (Some(budget), Some(steps)) =
        (checkpoint.overhead_budget, checkpoint.steps_between_checkpoints)
    {
        return Err(WorkloadError::Combination {
            first: format!("checkpoint.overhead_budget: {budget}"),
            second: format!("checkpoint.steps_between_checkpoints: {steps}"),
            reason: "the budget determines the steps",
            hint: "remove one of them, e.g. with `checkpoint.steps_between_checkpoints=-1`",
        });
    }
    let writes = checkpoint.num_checkpoints_write.filter(|&write| write > 0);
    let (Some(read), Some(write)) = (checkpoint.num_checkpoints_read, writes) else {
        return Ok(());
    };
    if read > write {
        return Err(WorkloadError::ReadsExceedWrites { read, write });
    }
    match checkpoint.keep_last {
        Some(kept) if workload.checkpoint_only() && read > kept => {
            Err(WorkloadError::ReadsExceedKept { read, kept })
        }
        _ => Ok(()),
    }
}

/// Checks the buffers of one rank.
fn check_buffers(checkpoint: &Checkpoint) -> Result<()> {
    let Checkpoint { streams, chunk_size, pool_size, .. } = *checkpoint;
    let needed = chunk_size.saturating_mul(u64::from(streams));
    if needed > MOST_IN_FLIGHT_BYTES {
        return Err(WorkloadError::ChunkBytes { streams, chunk: chunk_size });
    }
    match pool_size {
        Some(found) if found < needed => {
            Err(WorkloadError::PoolTooSmall { found, needed, streams, chunk: chunk_size })
        }
        _ => Ok(()),
    }
}

/// Checks how the layers map to the ranks.
fn check_geometry(workload: &Workload, layers: u64, ranks: u32) -> Result<()> {
    let parallelism = &workload.model.parallelism;
    let pipeline = parallelism.pipeline;
    if layers < u64::from(pipeline) {
        return Err(WorkloadError::LayersFewerThanStages { layers, pipeline });
    }
    if pipeline > 1 && parallelism.zero_stage == 3 {
        return Err(WorkloadError::ZeroWithPipeline { pipeline });
    }
    let model_ranks = u64::from(pipeline) * u64::from(parallelism.tensor);
    match (workload.checkpoint.mode, parallelism.data) {
        (CheckpointMode::Default, Some(data)) => Err(WorkloadError::DataParallelismGiven { data }),
        (CheckpointMode::Default, None) if u64::from(ranks) % model_ranks.max(1) != 0 => {
            Err(WorkloadError::RanksNotMultiple { ranks, model_ranks })
        }
        (CheckpointMode::Subset, None) => Err(WorkloadError::SubsetWithoutData),
        (CheckpointMode::Subset, Some(data)) => {
            let world = model_ranks.saturating_mul(u64::from(data));
            match world < u64::from(ranks) {
                true => Err(WorkloadError::SubsetTooSmall { ranks, world }),
                false => Ok(()),
            }
        }
        (CheckpointMode::Default, None) => Ok(()),
    }
}

/// Warns about settings that have no effect in this workflow or without another setting.
pub(crate) fn warnings(workload: &Workload) -> Vec<WarningKind> {
    let (workflow, checkpoint) = (&workload.workflow, &workload.checkpoint);
    let mut kinds = Vec::new();
    if !workflow.checkpoint {
        return kinds;
    }
    let some = |count: Option<u64>| count.is_some_and(|count| count > 0);
    let training = [
        (checkpoint.steps_between_checkpoints.is_some(), "checkpoint.steps_between_checkpoints"),
        (checkpoint.overhead_budget.is_some(), "checkpoint.overhead_budget"),
    ];
    let alone = [
        (some(checkpoint.num_checkpoints_write), "checkpoint.num_checkpoints_write"),
        (some(checkpoint.num_checkpoints_read), "checkpoint.num_checkpoints_read"),
    ];
    let given = |(given, key): (bool, &'static str)| given.then_some(key);
    if workflow.train {
        let keys = alone.into_iter().filter_map(given);
        kinds.extend(keys.map(|key| WarningKind::NeedsCheckpointOnly { key }));
    } else {
        let keys = training.into_iter().filter_map(given);
        kinds.extend(keys.map(|key| WarningKind::NeedsTraining { key }));
    }
    let reads = !workflow.train && some(checkpoint.num_checkpoints_read);
    let loads = "checkpoints that are read (`checkpoint.num_checkpoints_read`)";
    let alone = checkpoint.save_mode == SaveMode::Sync && checkpoint.saves_in_flight > 1;
    let idle = [
        (!reads && checkpoint.verify, "checkpoint.verify", loads),
        (!reads && checkpoint.recovery_rank_shift, "checkpoint.recovery_rank_shift", loads),
        (alone, "checkpoint.saves_in_flight", "`checkpoint.save_mode: async`"),
    ];
    let idle = idle.into_iter().filter(|(idle, ..)| *idle);
    kinds.extend(idle.map(|(_, key, needs)| WarningKind::Needs { key, needs }));
    kinds
}
