//! The part of an epoch that one rank reads.

use std::sync::Arc;

use feedline_dataset::{EpochOrder, SampleId};

use crate::Dealing;
use crate::dealing::FileRow;

/// The part of an epoch that one rank reads.
#[derive(Clone, Debug)]
pub struct EpochShare {
    /// The epoch's order, the same on every rank.
    pub order: Arc<EpochOrder>,
    /// How the order's places are dealt to ranks and batches; see [`Dealing::in_order`].
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
    /// The same share with the dealing of its order: plans deal files before their order is known.
    pub(crate) fn in_order(self) -> Self {
        Self { dealing: self.dealing.in_order(&self.order), ..self }
    }

    /// Samples in all batches.
    pub(crate) fn samples(&self) -> u64 {
        self.dealing.read(self.rank, self.batches)
    }

    /// The rank's n-th sample, where places are dealt.
    pub(crate) fn sample(&self, n: u64) -> SampleId {
        self.order.sample(self.dealing.place(self.rank, n))
    }

    /// A sample of the files in `row`, whose number there is `file`.
    pub(crate) fn record(&self, row: FileRow, SampleId { file, index }: SampleId) -> SampleId {
        let places = self.order.places();
        self.order.sample(places.number(SampleId { file: row.place(file), index }))
    }
}
