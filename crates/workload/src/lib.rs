//! Workload files: what a run should do, in DLIO's YAML.
//!
//! [`compose`] merges the text of a workload and the overrides into one tree, [`resolve`] turns the tree
//! into a typed [`Workload`], and [`check`] checks it for a number of ranks. Every key is looked up in
//! one table ([`keys`]), so a misspelled, outdated or unused key causes a warning instead of being
//! ignored silently.
//!
//! Pure: text and numbers in, values and messages out. This crate touches no files, environment
//! variables, clocks, threads or globals.
//!
//! ```
//! use feedline_workload::{Source, check, compose, resolve};
//!
//! let text = "dataset: {num_files_train: 8}\nreader: {batch_sise: 4}\n";
//! let source = Source { name: "small", origin: "small.yaml", text };
//! let resolved = resolve(&compose(source, &[], &|_| String::new())?)?;
//! assert_eq!(resolved.workload.dataset.num_files_train, 8);
//! assert_eq!(
//!     resolved.warnings[0].to_string(),
//!     "small.yaml:2: unknown key `reader.batch_sise`, did you mean `reader.batch_size`?"
//! );
//! check(&resolved.workload, 1)?;
//! # Ok::<(), feedline_workload::WorkloadError>(())
//! ```

#![forbid(unsafe_code)]

mod keyword;
mod nearest;
mod node;

mod scalar;
mod yaml;

mod emit;
mod interpolate;

mod value_grammar;

mod hydra;
mod overrides;

mod compose;
mod hydra_files;

pub mod element;
mod root;
mod section;
mod sections;

mod schema;

mod docs;

mod legacy;
mod read;
mod time_spec;

mod resolve;

mod check;
mod combination;
mod saving;

mod error;
mod warning;

pub mod presets;

#[cfg(test)]
mod tests;

pub use feedline_formats::{Compression, Element, FORMATS, Python, SampleFormat};
pub use feedline_location::{Capabilities, Location};

pub use check::check;
pub use compose::{BUILT_IN, Composed, HydraSettings, Source, compose};
pub use docs::keys_markdown;
pub use emit::to_yaml;
pub use error::{Phase, Place, Result, WorkloadError};
pub use hydra::{Cfg, DEFAULT_WORKLOAD, DlioCommandLine};
pub use hydra_files::{DEFAULT_OUTPUT_SUBDIR, RunPaths, default_run_dir};
pub use interpolate::interpolate;
pub use node::{Map, Node, Value};
pub use overrides::{Action, Override};
pub use presets::Preset;
pub use resolve::{Resolved, resolve};
pub use saving::check as check_checkpoint;
pub use schema::{Effect, Key, Kind, find_key, keys};
pub use sections::checkpoint::{
    Checkpoint, CheckpointContainer, CheckpointMode, DirectIo, Ksm, SaveMode, StateSource,
};
pub use sections::dataset::{Dataset, Hdf5};
pub use sections::model::{Datatype, Model, Parallelism, Transformer};
pub use sections::reader::{
    DataLoader, Interpreter, IoEngine, MultiprocessingContext, ReadModel, ReadType, Reader,
    SampleOrder, Sampler, Sharding, ShuffleMode,
};
pub use sections::storage::{Storage, StorageType};
pub use sections::time::TimeSpec;
pub use sections::train::{Evaluation, Train};
pub use sections::workload::{
    Framework, Metric, Output, OutputMetric, Profiler, Profiling, Workflow, Workload,
};
pub use warning::{Warning, WarningKind};
pub use yaml::parse_yaml;
