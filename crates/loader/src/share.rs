//! The part of an epoch that one rank reads.

use crate::EpochOrder;

/// The part of an epoch that one rank reads.
#[derive(Clone, Copy, Debug)]
pub struct EpochShare<'a> {
    /// The epoch's order, the same on every rank.
    pub order: &'a EpochOrder,
    /// This rank's first place in it.
    pub first_place: u64,
    /// Batches from there.
    pub batches: u64,
    /// Which rank this is, of how many: loaders that stream files share those out, not places.
    pub rank: (u64, u64),
    /// The epoch's number, for the trace.
    pub epoch: u32,
    /// Seed of a loader's own shuffling, the same on every rank.
    pub seed: u64,
}
