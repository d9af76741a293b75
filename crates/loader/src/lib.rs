//! Which sample next, who reads it, how batches queue up and are handed over.
//!
//! [`EpochOrder`] says which sample stands where; [`TorchLoader`] reads batches with the concurrency
//! and the delivery order of PyTorch's `DataLoader` and measures, for every batch, what the
//! consumer waited for. Nothing here knows about ranks, epochs' meaning or result files.
#![forbid(unsafe_code)]

mod order;
mod permutation;
mod torch;
mod worker;

pub use order::{EpochOrder, SampleId, SampleSpace, Shuffle};
pub use permutation::Permutation;
pub use torch::{Batches, Delivered, EpochShare, TorchConfig, TorchLoader, Wait};
pub use worker::{DataSet, FileNames, LoadError, Preprocess};
