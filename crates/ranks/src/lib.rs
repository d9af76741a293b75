//! Who else is running: the other emulated accelerators of this job.
//!
//! One rank is one emulated accelerator. A job is one process or several, joined by a [`Link`]; each
//! process holds one rank or several, as threads. [`Team`] is this process's part of the job,
//! [`Ranks`] what a rank may ask of the others. A rank that fails aborts the job: every other rank
//! gets [`Aborted`] from the call it is in or from its next one, so that none waits for a dead one.
//!
//! ```
//! use feedline_clock::Clock;
//! use feedline_ranks::{Ranks as _, Team};
//!
//! let clock = Clock::simulated();
//! clock.scope(|scope| {
//!     for member in Team::alone(4).members(&clock) {
//!         let name = format!("rank {}", member.rank());
//!         // A barrier that tells all ranks the largest value that any of them brought.
//!         scope.spawn(name, move || assert_eq!(member.max(member.rank().into()), Ok(3))).unwrap();
//!     }
//! });
//! ```
#![deny(unsafe_code)]

mod geometry;
mod link;
mod member;
mod team;

#[cfg(feature = "mpi")]
mod mpi;
#[cfg(any(test, feature = "rehearsal"))]
mod rehearsal;

#[cfg(feature = "mpi")]
pub use crate::mpi::{Mpi, MpiError};
pub use geometry::{Geometry, TooFewRanks};
pub use link::{Alone, Hear, Link};
pub use member::Member;
#[cfg(any(test, feature = "rehearsal"))]
pub use rehearsal::{Rehearsal, rehearse};
pub use team::Team;

/// The job was ended by a rank that could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} ended the job: {reason}")]
pub struct Aborted {
    /// The rank that gave up first, or the first one of the process that did.
    pub rank: u32,
    /// The reason that this rank gave.
    pub reason: String,
}

/// One rank's view of its job. All ranks must make the same calls in the same order.
pub trait Ranks: Send + Sync {
    /// This rank, from 0.
    fn rank(&self) -> u32;

    /// How many ranks the job has.
    fn size(&self) -> u32;

    /// Which rank of its machine this is, from 0, and how many there are on that machine.
    fn on_node(&self) -> (u32, u32);

    /// Waits until every rank has come here and tells each the largest `value` that any brought.
    /// A barrier that carries news: a rank that saw a stop request tells the others in the step's
    /// own synchronization.
    fn max(&self, value: u64) -> Result<u64, Aborted>;

    /// Ends the job for every rank; the first reason given is the one that all of them see.
    fn abort(&self, reason: &str);

    /// Waits until every rank has come here.
    fn barrier(&self) -> Result<(), Aborted> {
        self.max(0).map(drop)
    }
}
