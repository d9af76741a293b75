//! A data set: what makes, finds, verifies and reads it.
//!
//! A [`DatasetSpec`] describes a generated set, [`Generator`] makes it and [`Verification`] checks it
//! against its manifest; [`discover`] finds the files of a set that exists. A [`DataSet`] is read sample by
//! sample, in the order that an [`EpochOrder`] gives; [`Samples`] hands the bytes of any [`SampleFolder`] to
//! its caller. Nothing here emulates a framework.
//!
//! ```
//! # use std::sync::Arc;
//! # use feedline_clock::Clock;
//! # use feedline_store::{Memory, Store};
//! use feedline_dataset::{EpochOrder, ReadOptions, SampleFolder, Shuffle};
//!
//! # let (clock, memory) = (Clock::real(), Memory::new(Clock::real()));
//! # memory.put("train/a.csv", &b"1,2\n3,4\n"[..]);
//! # let store: Arc<dyn Store> = Arc::new(memory);
//! let folder = SampleFolder::open(&clock, &store, "train")?;
//! let order = EpochOrder::new(folder.index.clone(), Shuffle::Samples, 42);
//! for sample in folder.samples(&clock, order, ReadOptions::default())? {
//!     let sample = sample?;
//!     assert_eq!((sample.key.as_str(), &sample.parts[0].shape[..]), ("train/a.csv", &[2][..]));
//! }
//! # Ok::<(), feedline_dataset::DatasetError>(())
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
mod manifest_scan;

mod checksum;
mod discover;
mod entry_log;
mod existing_files;
mod generate;
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
mod sample_folder;
mod samples;

pub use cache_look::CacheLook;
pub use data_set::{DataSet, KeptFor, ReadMethod, Reading};
pub use discover::{Discovered, Listing, discover};
pub use error::{DatasetError, Result};
pub use existing_files::ExistingFiles;
pub use generate::{Generated, Generator};
pub use manifest::MANIFEST_NAME;
pub use names::{FileNames, NameRule};
pub use order::{EpochOrder, SampleId, SampleIndex, SampleSpace, Shuffle};
pub use permutation::Permutation;
pub use progress::{GenerationProgress, VerificationProgress};
pub use reader::SampleReader;
pub use sample_folder::SampleFolder;
pub use samples::{ReadOptions, Sample, Samples};
pub use shuffle_buffer::ShuffleBuffer;
pub use sizes::SampleSizes;
pub use spec::{DatasetSpec, SampleShape};
pub use verify::{BadFile, Fault, Strangers, Verification, Verified};
