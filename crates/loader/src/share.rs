//! The part of an epoch that one rank reads.

use std::sync::Arc;

use feedline_dataset::{EpochOrder, SampleId};

use crate::Dealing;

/// The part of an epoch that one rank reads.
#[derive(Clone, Debug)]
pub struct EpochShare {
    /// The epoch's order, the same on every rank.
    pub order: Arc<EpochOrder>,
    /// How the order's places are dealt to ranks and batches.
    pub dealing: Dealing,
    /// Which rank this is.
    pub rank: u64,
    /// Batches that are made, not more than the rank has.
    pub batches: u64,
    /// The epoch's number, for the trace.
    pub epoch: u32,
    /// Seed of a loader's own shuffling, the same on every rank.
    pub seed: u64,
}

impl EpochShare {
    /// Samples in all batches.
    pub(crate) fn samples(&self) -> u64 {
        self.dealing.read(self.rank, self.batches)
    }

    /// The rank's n-th sample, where places are dealt.
    pub(crate) fn sample(&self, n: u64) -> SampleId {
        self.order.sample(self.dealing.place(self.rank, n))
    }

    /// The n-th record of the rank's files, or of those of one of its workers.
    pub(crate) fn record(&self, worker: u64, n: u64) -> SampleId {
        let SampleId { file, index } = self.dealing.record(self.rank, worker, n);
        self.order.sample(file * self.dealing.space.per_file + index)
    }
}
