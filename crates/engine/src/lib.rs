//! A run of a workload as a library call: choose a workload, say how it is run, get its results.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use feedline_engine::{
//!     PlannedRun, RunOptions, RunOutput, WorkloadSelection, WorkloadSource, parse_overrides, run,
//! };
//!
//! let source = WorkloadSource::find("unet3d_h100", None)?;
//! let overrides = parse_overrides(&["dataset.data_folder=/mnt/data", "train.epochs=2"])?;
//! let selection = WorkloadSelection::new(source, overrides);
//! let planned = PlannedRun::new(selection, RunOptions::new(4)?, &Arc::default())?;
//! let output = RunOutput::new("results");
//! let alone = Arc::new(feedline_ranks::Alone);
//! let finished = run(planned, &output, alone, Arc::new(feedline_bench::Silent))?;
//! println!("{:?}", finished.results.assessment.verdict);
//! # Ok::<(), feedline_engine::EngineError>(())
//! ```
//!
//! This crate prints nothing and reads no command line. It installs no signal handlers either: a
//! caller that wants to end a run early sets the flag that it planned the run with.

mod error;

mod selection;

mod options;
mod stored_calibration;

mod place;
mod planned;
mod quick;

mod run;

pub use error::EngineError;
pub use options::RunOptions;
pub use place::connect;
pub use planned::{PlannedRun, QuickData, quoted};
pub use run::{FinishedRun, RunOrder, RunOutput, VERSION, dismiss, hear, run};
pub use selection::{WorkloadSelection, WorkloadSource, parse_overrides};
pub use stored_calibration::{StoredCalibration, calibration_path};
