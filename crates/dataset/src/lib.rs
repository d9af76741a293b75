//! A data set: what makes, finds, verifies and reads it.
//!
//! A [`DatasetSpec`] describes a generated set, [`Generator`] makes it and [`Verification`] checks it
//! against its manifest; [`discover`] finds the files of a set that exists. A [`DataSet`] is read sample by
//! sample, in the order that an [`EpochOrder`] gives. Nothing here emulates a framework.
//!
//! ```
//! use feedline_dataset::{EpochOrder, SampleSpace, Shuffle};
//!
//! let space = SampleSpace { files: 3, per_file: 4 };
//! let order = EpochOrder::new(space, Shuffle::Samples, 42);
//! let mut read: Vec<_> = (0..space.len()).map(|place| order.sample(place)).collect();
//! read.sort_by_key(|sample| (sample.file, sample.index));
//! read.dedup();
//! assert_eq!(read.len(), 12, "an epoch reads every sample once");
//! ```
#![forbid(unsafe_code)]

mod error;

mod names;

mod legacy_random;
mod sizes;
mod spec;

mod recipe;

mod manifest;
mod manifest_reader;
mod walk;

mod checksum;
mod discover;
mod existing_files;
mod generate;
mod ledger;
mod progress;
mod room;
mod verify;

mod order;
mod permutation;
mod shuffle_buffer;

mod cache_look;
mod data_set;
mod deep;
mod handles;
mod reader;

pub use cache_look::CacheLook;
pub use data_set::{DataSet, KeptFor, ReadMethod, Reading};
pub use discover::{Discovered, Listing, discover};
pub use error::DatasetError;
pub use existing_files::ExistingFiles;
pub use generate::{Generated, Generator};
pub use manifest::MANIFEST_NAME;
pub use names::{FileNames, NameRule};
pub use order::{EpochOrder, SampleId, SampleSpace, Shuffle};
pub use permutation::Permutation;
pub use progress::{GenerationProgress, VerificationProgress};
pub use reader::SampleReader;
pub use shuffle_buffer::ShuffleBuffer;
pub use sizes::SampleSizes;
pub use spec::{DatasetSpec, SampleShape};
pub use verify::{BadFile, Fault, Strangers, Verification, Verified};
