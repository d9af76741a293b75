//! Workload files: what a run should do, read from YAML that DLIO understands.
//!
//! The way of the data: a preset or a file's text and the overrides are composed into one tree
//! ([`compose`]), the tree becomes a typed [`Workload`] ([`resolve`]), and the workload is checked
//! against the number of ranks ([`check`]). Along the way every key is held against one table
//! ([`keys`]), so that a misspelt, old or useless key is named instead of ignored.
//!
//! Pure: text and numbers in, values and messages out. No file, environment, clock, thread or
//! global is touched.
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
mod sections;

mod schema;
mod schema_keys;

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

pub use feedline_location::{Capabilities, Location};

pub use check::check;
pub use compose::{BUILT_IN, Composed, HydraSettings, Source, compose};
pub use docs::keys_markdown;
pub use emit::to_yaml;
pub use error::{Phase, Place, WorkloadError};
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
pub use sections::dataset::{Compression, Dataset, Format, Hdf5};
pub use sections::model::{Datatype, Model, Parallelism, Transformer};
pub use sections::reader::{
    DataLoader, Interpreter, IoEngine, MultiprocessingContext, PythonVersion, ReadModel, ReadType,
    Reader, SampleOrder, Sampler, Sharding, Shuffle,
};
pub use sections::storage::{Storage, StorageType};
pub use sections::time::TimeSpec;
pub use sections::train::{Evaluation, Train};
pub use sections::workload::{
    Framework, Metric, Output, OutputMetric, Profiler, Profiling, Workflow, Workload,
};
pub use warning::{Warning, WarningKind};
pub use yaml::parse_yaml;
