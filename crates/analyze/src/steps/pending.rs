//! Batches that are under way: who works on them, since when, on what, and how much of that in the fetch
//! that is going on.

use std::collections::VecDeque;

use crate::layer::{CAUSES, StallCause};
use crate::row::NONE;

/// Time by cause, in the order of [`StallCause::ALL`].
pub(crate) type NsByCause = [u64; CAUSES];

/// The most unfetched batches that are kept; the oldest are dropped.
const UNDER_WAY_MAX: usize = 1024;
/// The most stages after a batch that are kept, likewise.
const STAGES_MAX: usize = 256;

/// Work on a batch: a span that says so, or samples of a lane that make one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingBatch {
    pub(crate) epoch: u32,
    pub(crate) step: u32,
    /// The lane of the unit.
    pub(crate) slot: u32,
    /// The how manieth of its lane in the phase.
    pub(crate) round: u32,
    /// Whether it is its lane's first one of all.
    pub(crate) is_first: bool,
    pub(crate) start_ns: i64,
    /// As far as it is known: of samples, the end of the last one.
    pub(crate) end_ns: i64,
    /// When its last sample, or all of it, was over; the least number before.
    pub(crate) ended_ns: i64,
    /// Whether all of it is there when `end_ns` is over.
    pub(crate) is_whole: bool,
    pub(crate) samples: u32,
    /// Lanes that worked when it began, its own included.
    pub(crate) concurrency: u32,
    pub(crate) parts: NsByCause,
    /// Its part of the window of this number.
    pub(crate) window: NsByCause,
    pub(crate) window_number: u64,
    /// What the lane did in that window before it.
    pub(crate) other_ns: u64,
    is_taken: bool,
}

impl PendingBatch {
    pub(crate) fn new(slot: u32, epoch: u32, step: u32, start_ns: i64, end_ns: i64) -> Self {
        Self {
            epoch,
            step,
            slot,
            start_ns,
            end_ns,
            ended_ns: i64::MIN,
            is_whole: true,
            ..Self::default()
        }
    }
}

/// Work on a batch after all its samples are there, by others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) epoch: u32,
    pub(crate) step: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) cause: StallCause,
}

/// Batches under way, in the order of their starts. Their numbers count up and are never used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingBatches {
    list: VecDeque<PendingBatch>,
    /// The number of the first one in the list.
    base: u64,
    stages: VecDeque<Stage>,
}

impl PendingBatches {
    /// Adds one and gives its number.
    pub(crate) fn push(&mut self, item: PendingBatch) -> u64 {
        if self.list.len() == UNDER_WAY_MAX {
            self.list.pop_front();
            self.base += 1;
        }
        self.list.push_back(item);
        self.base + self.list.len() as u64 - 1
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut PendingBatch> {
        self.list.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Those that have not been fetched, and their numbers.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, &PendingBatch)> {
        (self.base..).zip(&self.list).filter(|(_, item)| !item.is_taken)
    }

    /// It was fetched: gives it, and forgets it.
    pub(crate) fn take(&mut self, number: u64) -> Option<PendingBatch> {
        let item = self.get_mut(number)?;
        item.is_taken = true;
        let item = item.clone();
        self.forget();
        Some(item)
    }

    /// Drops what began before a moment: it will not be fetched any more.
    pub(crate) fn drop_before(&mut self, moment_ns: i64) {
        self.list.iter_mut().filter(|item| item.start_ns < moment_ns).for_each(|item| {
            item.is_taken = true;
        });
        self.stages.retain(|stage| stage.start_ns >= moment_ns);
        self.forget();
    }

    fn forget(&mut self) {
        while self.list.front().is_some_and(|item| item.is_taken) {
            self.list.pop_front();
            self.base += 1;
        }
    }

    pub(crate) fn push_stage(&mut self, stage: Stage) {
        if self.stages.len() == STAGES_MAX {
            self.stages.pop_front();
        }
        self.stages.push_back(stage);
    }

    /// The work of others on a batch; forgets it.
    pub(crate) fn take_stage(&mut self, epoch: u32, step: u32) -> Option<Stage> {
        let is_it = |stage: &Stage| stage.epoch == epoch && stage.step == step;
        let place = self.stages.iter().position(is_it).filter(|_| step != NONE)?;
        self.stages.remove(place)
    }
}
