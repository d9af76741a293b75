//! Checkpoints of models that are one opaque blob.
//!
//! A rank writes `model_states-<rank>.pt` of `model.model_size_bytes` bytes into DLIO's folder for
//! that epoch and step; it appears only when complete. Models with layers and optimizer state are
//! refused before the run.

use feedline_formats::{Content, Element};
use feedline_store::{AlignedBuf, Durability, Store, Writer};
use feedline_workload::Workload;

use crate::error::BenchError;

const BUFFER_BYTES: usize = 1 << 20;

/// One rank's checkpoints.
pub(crate) struct Checkpointer<'a> {
    store: &'a dyn Store,
    rank: u32,
    bytes: u64,
    durability: Durability,
    content: Content,
    buffer: AlignedBuf,
}

impl<'a> Checkpointer<'a> {
    pub(crate) fn new(workload: &Workload, store: &'a dyn Store, rank: u32) -> Self {
        let fsync = workload.checkpoint.fsync;
        Self {
            store,
            rank,
            bytes: if writes(workload, rank) { workload.model.model_size_bytes } else { 0 },
            durability: if fsync { Durability::Fsync } else { Durability::None },
            content: Content::new(u64::from(workload.train.seed), u64::from(rank)),
            buffer: AlignedBuf::new(BUFFER_BYTES),
        }
    }

    /// Saves; gives the bytes that were written.
    pub(crate) fn save(&mut self, epoch: u32, step: u64) -> Result<u64, BenchError> {
        if self.bytes == 0 {
            return Ok(0);
        }
        let folder = format!("global_epoch{epoch}_step{step}");
        self.store.make_folder(&folder)?;
        let key = format!("{folder}/model_states-{}.pt", self.rank);
        let mut writer = Writer::create(self.store, &key, &mut self.buffer)?;
        let mut written = 0;
        while written < self.bytes {
            let left = usize::try_from(self.bytes - written).unwrap_or(usize::MAX);
            let space = writer.space(left)?;
            self.content.fill(Element::UInt8, written, space);
            written += space.len() as u64;
        }
        writer.publish(self.durability)?;
        Ok(written)
    }
}

/// A rank writes if it holds a part of the model that no other rank holds, as in DLIO.
fn writes(workload: &Workload, rank: u32) -> bool {
    let parallelism = &workload.model.parallelism;
    parallelism.zero_stage > 0 || rank < parallelism.tensor.saturating_mul(parallelism.pipeline)
}

/// Bytes of one checkpoint, all ranks together.
pub(crate) fn total_bytes(workload: &Workload, ranks: u32) -> u64 {
    let writers = (0..ranks).filter(|&rank| writes(workload, rank)).count() as u64;
    writers * workload.model.model_size_bytes
}

/// When checkpoints are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    Never,
    EverySteps(u64),
    Epochs { first: u32, every: u32 },
}

impl Schedule {
    pub(crate) fn new(workload: &Workload) -> Self {
        let checkpoint = &workload.checkpoint;
        match checkpoint.steps_between_checkpoints {
            _ if !workload.workflow.checkpoint => Self::Never,
            Some(0) => Self::Never,
            Some(steps) => Self::EverySteps(steps),
            None => Self::Epochs {
                first: checkpoint.checkpoint_after_epoch,
                every: checkpoint.epochs_between_checkpoints.max(1),
            },
        }
    }

    pub(crate) fn due_after_step(&self, step: u64) -> bool {
        matches!(self, Self::EverySteps(every) if step.is_multiple_of(*every))
    }

    pub(crate) fn due_after_epoch(&self, epoch: u32) -> bool {
        match *self {
            Self::Epochs { first, every } => {
                epoch >= first && (epoch - first).is_multiple_of(every)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: Schedule, epochs: &[u32], steps: &[u64]) {
        let due: Vec<u32> = (1..=8).filter(|&epoch| schedule.due_after_epoch(epoch)).collect();
        assert_eq!(due, epochs, "{schedule:?}");
        let due: Vec<u64> = (1..=8).filter(|&step| schedule.due_after_step(step)).collect();
        assert_eq!(due, steps, "{schedule:?}");
    }

    #[test]
    fn checkpoints_are_due_by_epoch_or_by_step_and_never_by_both() {
        check(Schedule::Never, &[], &[]);
        check(Schedule::Epochs { first: 1, every: 2 }, &[1, 3, 5, 7], &[]);
        check(Schedule::Epochs { first: 5, every: 2 }, &[5, 7], &[]);
        check(Schedule::EverySteps(3), &[], &[3, 6]);
    }
}
