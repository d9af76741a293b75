//! Saving and loading checkpoints during a run: what the processes agree on first ([`setup`]), what
//! all ranks share ([`job`]), one rank's saves and loads ([`saver`]), when they are due
//! ([`schedule`]), and a run that does nothing else ([`phase`]).
//!
//! How a checkpoint is laid out and written is the crate `checkpoint`'s business. This is not a part
//! of that crate because it follows the workload, meets other ranks and reports to the results.

pub(crate) mod job;
pub(crate) mod phase;
pub(crate) mod saver;
pub(crate) mod schedule;
pub(crate) mod setup;
