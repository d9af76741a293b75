//! Who starved this training: from the events of a trace to causes in seconds.
//!
//! [`load`] brings the events of any trace as [`Row`]s, in the order of their starts; every kernel is a
//! small state that takes rows, and that can be merged with that of another shard. What comes out is an
//! [`Analysis`], which holds whole numbers only where a metric can be one, so that threads and shards agree
//! to the last digit.
//!
//! ```
//! use feedline_analyze::analysis::Answer;
//! use feedline_analyze::load::NoProgress;
//! use feedline_analyze::{Settings, analyze};
//!
//! # let folder = tempfile::tempdir()?;
//! # let trace = folder.path().join("trace.json");
//! # std::fs::write(&trace, r#"[{"name":"read","cat":"POSIX","ph":"X","ts":1,"dur":5,"pid":1,"tid":1}]"#)?;
//! let analysis = analyze(&[trace], &Settings::default(), &NoProgress)?;
//! assert_eq!(analysis.trace.events, 1);
//! assert_eq!(analysis.verdict.answer, Answer::NoSteps);
//! for finding in &analysis.findings {
//!     println!("{}: {}", finding.title, finding.actions.join("; "));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod access;
mod clocks;
mod cover;
mod errno;
mod histogram;
pub mod interval;
mod lanes;
pub mod layer;
mod named;
mod resample;
pub mod row;
mod saturating;
mod wording;

pub mod load;
mod roster;
mod steps;
mod sweep;
mod tally;

mod assemble;
mod findings;
mod job;
pub mod partial;
mod summary;
mod what_if;

pub mod analysis;
pub mod diff;
pub mod tables;

pub use analysis::Analysis;
pub use layer::{EventType, StackLayer, StallCause};
pub use row::{Lane, NONE, Row};

use std::path::PathBuf;

use job::epochs::EXCLUDED_STEPS;
use load::{LoadOptions, LoadProgress, Trace};
use partial::{PartialAnalysis, Shard};

pub use findings::Thresholds;
pub use load::AnalyzeError;

/// How a trace is analyzed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How it is read.
    pub load: LoadOptions,
    /// From when on rules speak.
    pub thresholds: Thresholds,
    /// Steps of a block that utilization leaves out, at its beginning and at its end.
    pub excluded_steps: [u32; 2],
}

impl Default for Settings {
    fn default() -> Self {
        let (load, thresholds) = (LoadOptions::default(), Thresholds::default());
        Self { load, thresholds, excluded_steps: EXCLUDED_STEPS }
    }
}

/// Reads a trace and says what is in it.
pub fn analyze(
    inputs: &[PathBuf],
    settings: &Settings,
    progress: &dyn LoadProgress,
) -> Result<Analysis, AnalyzeError> {
    Ok(partial_of(inputs, Shard::WHOLE, settings, progress)?.assemble(settings))
}

/// Reads the part of a trace that is in a shard.
pub fn partial_of(
    inputs: &[PathBuf],
    shard: Shard,
    settings: &Settings,
    progress: &dyn LoadProgress,
) -> Result<PartialAnalysis, AnalyzeError> {
    let trace = Trace::open(inputs, &settings.load, progress)?;
    let names = inputs.iter().map(|input| input.display().to_string()).collect();
    PartialAnalysis::read(&trace, names, shard, progress)
}
