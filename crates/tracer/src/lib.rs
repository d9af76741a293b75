//! Records what programs do with files: launches a program under the preload library, or records this
//! process itself, and drains the recording into a trace folder while it grows.
//!
//! ```no_run
//! use feedline_tracer::{TraceOptions, launch};
//!
//! let options = TraceOptions { data: vec!["/data".into()], ..TraceOptions::default() };
//! let mut program = launch(&["python".into(), "train.py".into()], &options)?;
//! let status = program.wait()?;
//! let report = program.finish()?;
//! println!("{status}: {} events in {}", report.events, report.folder.display());
//! # Ok::<(), feedline_tracer::TracerError>(())
//! ```
//!
//! Draining happens in the caller's thread, inside [`Launched::wait`]; only [`record_this_process`]
//! starts a thread. What is recorded survives a kill of the program and of the tracer:
//! `feedline_trace::recover` brings it into the trace later.

#![forbid(unsafe_code)]

mod claim;
mod cpu_time;
mod error;
mod filters;
mod launch;
mod library;
mod options;
mod program;
mod recording;
mod report;
mod rounds;
mod segment_folder;

pub use error::TracerError;
pub use launch::{Launched, launch};
pub use options::{Existing, TraceOptions};
pub use recording::{empty_folder, record_this_process};
pub use report::TraceReport;
