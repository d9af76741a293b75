//! Which sample next, who reads it, how batches queue up and are handed over.
//!
//! [`EpochOrder`] says which sample stands where, [`Dealing`] which rank reads it. A [`Loader`] reads batches with the concurrency and
//! the delivery order of a framework's: [`TorchLoader`] deals batches to workers, [`StreamLoader`]
//! puts them together from samples in a row. Both measure, for every batch, what the consumer waited
//! for. Nothing here knows about epochs' meaning or result files.
//!
//! ```
//! use feedline_loader::{EpochOrder, SampleSpace, Shuffle};
//!
//! let space = SampleSpace { files: 3, per_file: 4 };
//! let order = EpochOrder::new(space, Shuffle::Samples, 42);
//! let mut read: Vec<_> = (0..space.len()).map(|place| order.sample(place)).collect();
//! read.sort_by_key(|sample| (sample.file, sample.index));
//! read.dedup();
//! assert_eq!(read.len(), 12, "an epoch reads every sample once");
//! ```
#![forbid(unsafe_code)]

mod dealing;
mod order;
mod permutation;
mod share;
mod turns;

mod batch;
mod cache_look;
mod cost;
mod data_set;

mod deep;
mod handles;
mod interpreter;
mod spans;
mod watched;
mod worker;

mod torch;

mod pipeline;
mod shuffle_buffer;
mod stream;

mod loader;

pub use batch::{Batches, Delivered, Wait};
pub use cache_look::CacheLook;
pub use cost::{Curve, FrameworkCost, HandOver, Often, WorkerStart};
pub use data_set::{DataSet, FileNames, KeptFor, LoadError, Preprocess, ReadModel, Reading};
pub use dealing::{Dealing, EpochTally, LastBatch, Remainder, Sharding};
pub use loader::Loader;
pub use order::{EpochOrder, SampleId, SampleSpace, Shuffle};
pub use permutation::Permutation;
pub use share::EpochShare;
pub use stream::{Rows, StreamConfig, StreamLoader};
pub use torch::{Deal, TorchConfig, TorchLoader};
