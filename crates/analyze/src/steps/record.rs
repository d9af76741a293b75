//! What is known of a rank when all of its rows have come. Moments are nanoseconds since 1970.

use serde::{Deserialize, Serialize};

use crate::analysis::{Confidence, Phase, Step};
use crate::layer::StallCause;
use crate::steps::pending::NsByCause;

/// A step of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    pub(crate) phase: Phase,
    /// The epoch, counted as the program does, or from 1.
    pub(crate) epoch: u32,
    /// The block, counted from 1 in an epoch.
    pub(crate) block: u32,
    /// The step, counted as the program does, or from 1 in an epoch.
    pub(crate) step: u32,
    /// When its fetch began.
    pub(crate) start_ns: i64,
    /// When the next fetch, or a checkpoint, began, or what it is part of ended.
    pub(crate) end_ns: i64,
    /// When its fetch ended.
    pub(crate) fetch_end_ns: i64,
    /// Part of the fetch in which the rank did not compute; later also the wait for other ranks' stalls.
    pub(crate) stall_ns: u64,
    /// By cause, in the order of [`StallCause::ALL`]; sums to `stall_ns`.
    pub(crate) parts_ns: NsByCause,
    pub(crate) compute_ns: u64,
    /// From its beginning to the end of its computation.
    pub(crate) process_ns: u64,
    pub(crate) communication_ns: u64,
    /// Checkpoints of any of the rank's threads, union.
    pub(crate) checkpoint_ns: u64,
    /// When its first collective began and ended.
    pub(crate) meets_ns: Option<(i64, i64)>,
    /// Which worker brought the batch: its number among those of its phase, from 0.
    pub(crate) worker: Option<u32>,
    /// When that began to work on the batch.
    pub(crate) service_start_ns: i64,
    pub(crate) service_ns: u64,
    /// By cause, in the order of [`StallCause::ALL`].
    pub(crate) service_parts_ns: NsByCause,
    /// Workers of the rank that were at work when it began, that one included.
    pub(crate) concurrency: u32,
    /// Samples of the batch, if the trace has them.
    pub(crate) samples: u32,
    /// Batches that were finished and not fetched when the fetch began.
    pub(crate) ready: u32,
    /// How sure the split is.
    pub(crate) confidence: Confidence,
}

impl StepRecord {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(0).cast_unsigned()
    }

    pub(crate) fn fetch_ns(&self) -> u64 {
        self.fetch_end_ns.saturating_sub(self.start_ns).max(0).cast_unsigned()
    }

    /// The largest cause of its stall, if it has one.
    pub(crate) fn main_cause(&self) -> Option<StallCause> {
        let best =
            StallCause::ALL.into_iter().rev().max_by_key(|cause| self.parts_ns[*cause as usize])?;
        (self.parts_ns[best as usize] > 0).then_some(best)
    }

    /// As it is shown: moments since `origin_ns`, the trace's first event.
    pub(crate) fn shown(&self, rank: u32, origin_ns: i64) -> Step {
        let since = |moment_ns: i64| moment_ns.saturating_sub(origin_ns).max(0).cast_unsigned();
        Step {
            rank,
            phase: self.phase,
            epoch: self.epoch,
            block: self.block,
            step: self.step,
            start_ns: since(self.start_ns),
            duration_ns: self.duration_ns(),
            fetch_ns: self.fetch_ns(),
            stall_ns: self.stall_ns,
            parts_ns: self.parts_ns.to_vec(),
            compute_ns: self.compute_ns,
            communication_ns: self.communication_ns,
            meets_at_ns: self.meets_ns.map(|(start_ns, _)| since(start_ns)),
            worker: self.worker,
            service_ns: self.service_ns,
            service_parts_ns: self.service_parts_ns.to_vec(),
            service_start_ns: match self.service_ns {
                0 => 0,
                _ => self.service_start_ns.saturating_sub(self.start_ns),
            },
            samples: self.samples,
            confidence: self.confidence,
        }
    }
}

/// Steps between two checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockRecord {
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
    /// Counted from 1 in an epoch.
    pub(crate) block: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Its steps: rows of [`RankSteps::steps`].
    pub(crate) steps: std::ops::Range<usize>,
}

/// The training or the evaluation of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PhaseRecord {
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Its steps: rows of [`RankSteps::steps`].
    pub(crate) steps: std::ops::Range<usize>,
    /// From its beginning to its first batch.
    pub(crate) first_batch_ns: Option<u64>,
    /// Fetches that brought nothing.
    pub(crate) surplus_ns: u64,
    /// Workers that brought batches.
    pub(crate) workers: u32,
    /// Batches that were begun and not fetched, at most.
    pub(crate) outstanding: u32,
    /// Bytes that were read while it went on.
    pub(crate) bytes_read: u64,
}

/// Which way a checkpoint goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Direction {
    Save,
    Load,
}

impl Direction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Load => "load",
        }
    }
}

/// A checkpoint, or a part of one, of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckpointRecord {
    pub(crate) direction: Direction,
    /// The epoch, or [`NONE`](crate::NONE).
    pub(crate) epoch: u32,
    /// The step, or [`NONE`](crate::NONE).
    pub(crate) step: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Time of it in which the consumer waited and did not compute; nothing if other threads did it.
    pub(crate) stall_ns: u64,
    /// Part of that in which a thread of the rank was in `fsync` or its like.
    pub(crate) sync_ns: u64,
    /// As the program says, or as was written or read inside.
    pub(crate) bytes: u64,
}

/// A lane that brings batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerRecord {
    pub(crate) lane: u32,
    /// When its first event began.
    pub(crate) first_ns: i64,
    /// When its last one ended.
    pub(crate) last_ns: i64,
    /// Time in batches and samples.
    pub(crate) busy_ns: u64,
    pub(crate) batches: u64,
}

/// A rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankSteps {
    pub(crate) rank: u32,
    pub(crate) host: String,
    /// Steps, in the order of time.
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) blocks: Vec<BlockRecord>,
    pub(crate) phases: Vec<PhaseRecord>,
    /// When it was stalled in fetches.
    pub(crate) stalls_ns: Vec<(i64, i64)>,
    /// When it waited for ranks that were stalled; filled when all ranks are known.
    pub(crate) peer_stalls_ns: Vec<(i64, i64)>,
    /// A batch lay finished and was not fetched yet: overlaps if there were several.
    pub(crate) ready_ns: Vec<(i64, i64)>,
    pub(crate) checkpoints: Vec<CheckpointRecord>,
    pub(crate) workers: Vec<WorkerRecord>,
}

impl RankSteps {
    pub(crate) fn training(&self) -> impl Iterator<Item = &StepRecord> {
        self.steps.iter().filter(|step| step.phase == Phase::Train)
    }

    /// Moves all moments.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        let shift = |moment: &mut i64| *moment = moment.saturating_add(by_ns);
        for step in &mut self.steps {
            shift(&mut step.start_ns);
            shift(&mut step.end_ns);
            shift(&mut step.fetch_end_ns);
            shift(&mut step.service_start_ns);
            if let Some((start, end)) = &mut step.meets_ns {
                shift(start);
                shift(end);
            }
        }
        let blocks = self.blocks.iter_mut().map(|it| (&mut it.start_ns, &mut it.end_ns));
        let phases = self.phases.iter_mut().map(|it| (&mut it.start_ns, &mut it.end_ns));
        let checkpoints = self.checkpoints.iter_mut().map(|it| (&mut it.start_ns, &mut it.end_ns));
        let workers = self.workers.iter_mut().map(|it| (&mut it.first_ns, &mut it.last_ns));
        let times = self.stalls_ns.iter_mut().chain(&mut self.ready_ns);
        let times = times.map(|(start, end)| (start, end));
        for (start, end) in blocks.chain(phases).chain(checkpoints).chain(workers).chain(times) {
            shift(start);
            shift(end);
        }
    }
}
