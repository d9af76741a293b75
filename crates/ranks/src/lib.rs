//! Who else is running: the other emulated accelerators of this job.
//!
//! One rank is one emulated accelerator. [`Ranks`] is what a rank may ask of the others; today they
//! are threads of one process ([`threads`]), and the trait holds nothing that a message-passing
//! library could not provide. A rank that fails aborts the job: every other rank gets
//! [`Aborted`] from the call it is in or from its next one, so nobody waits for the dead.
#![forbid(unsafe_code)]

mod threads;

pub use threads::{ThreadRank, threads};

/// The job was ended by a rank that could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} ended the job: {reason}")]
pub struct Aborted {
    /// The rank that gave up first.
    pub rank: u32,
    /// What it said.
    pub reason: String,
}

/// One rank's view of its job. All ranks must make the same calls in the same order.
pub trait Ranks: Send + Sync {
    /// This rank, from 0.
    fn rank(&self) -> u32;

    /// How many ranks the job has.
    fn size(&self) -> u32;

    /// The machine that this rank runs on, from 0.
    fn node(&self) -> u32;

    /// How many machines the job runs on.
    fn nodes(&self) -> u32;

    /// Waits until every rank has come here and tells each the largest `value` that any brought.
    /// A barrier that carries news: a rank that saw a stop request tells the others in the step's
    /// own synchronisation.
    fn max(&self, value: u64) -> Result<u64, Aborted>;

    /// Brings every rank's `bytes` to rank 0, in rank order; the others get `None`.
    fn gather(&self, bytes: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Aborted>;

    /// Brings rank 0's `bytes` to every rank; what the others pass is dropped.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted>;

    /// Ends the job for every rank; the first reason given is the one that all of them see.
    fn abort(&self, reason: &str);

    /// Waits until every rank has come here.
    fn barrier(&self) -> Result<(), Aborted> {
        self.max(0).map(drop)
    }
}
