//! Emulated loaders of frameworks: which rank and worker reads which sample, how batches queue up and
//! are handed over, what the framework costs.
//!
//! [`Dealing`] says which rank reads what of an epoch. A [`Loader`] reads batches with the concurrency and the
//! delivery order of a framework's: [`TorchLoader`] deals batches to workers, [`StreamLoader`] puts them
//! together from samples in a row. An [`Epoch`] is an iterator over batches that owns the threads which read
//! them. Both loaders measure, for every batch, what the consumer waited for. The samples
//! are those of a [`feedline_dataset::DataSet`]; their bytes are read, decoded and dropped.
//!
//! ```
//! use feedline_dataset::SampleSpace;
//! use feedline_loader::{Dealing, LastBatch, Remainder, Sharding};
//!
//! let dealing = Dealing {
//!     index: SampleSpace { files: 5, per_file: 2 }.into(),
//!     ranks: 4,
//!     batch: 2,
//!     sharding: Sharding::Strided,
//!     remainder: Remainder::Pad,
//!     last_batch: LastBatch::Keep,
//! };
//! // Ten samples for four ranks: two are read twice, so that each rank has three.
//! assert_eq!((dealing.samples(0), dealing.steps()), (3, 2));
//! assert_eq!(dealing.tally(2).repeated, 2);
//! ```
#![forbid(unsafe_code)]

mod dealing;
mod share;
mod turns;

mod batch;
mod cost;
mod epoch;
mod error;

mod interpreter;
mod readers;
mod spans;
mod watched;
mod worker;

mod torch;

mod pipeline;
mod stream;

mod loader;

pub use batch::{Delivered, Wait};
pub use cost::{Curve, FrameworkCost, HandOver, Often, WorkerStart};
pub use dealing::{Dealing, EpochTally, LastBatch, Remainder, Sharding};
pub use epoch::Epoch;
pub use error::{LoadError, Result};
pub use loader::Loader;
pub use share::EpochShare;
pub use stream::{ReaderSharding, StreamConfig, StreamLoader};
pub use torch::{BatchAssignment, TorchConfig, TorchLoader};
pub use worker::Preprocess;
