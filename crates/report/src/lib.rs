//! What a person sees: the screen at the end of a run, the plan of a dry run, the list of
//! workloads, the explanation of a metric, the result of a check, the analysis of a trace as a screen
//! and as a page.
//!
//! Pure: values come in, text goes out. Every text ends with a newline, and its lines end without
//! blanks. Nothing here prints, reads a clock or asks the terminal: width and color come in as
//! [`Style`]. A number that does not exist is written `n/a`.
//!
//! ```
//! use feedline_dataset::Verified;
//! use feedline_report::{Style, explain, verify};
//!
//! let verified = Verified { files: 168, bytes: 4_096_000, bad_files: 2, ..Verified::default() };
//! assert_eq!(verify::summary(&verified), "2 of 168 files are bad\n");
//!
//! let narrow = explain::index(Style { width: 60, color: false });
//! assert!(narrow.ends_with('\n') && narrow.lines().all(|line| line.trim_end() == line));
//! ```

#![forbid(unsafe_code)]

mod style;

mod wrap;

mod bars;
mod headline;
mod samples;
mod shown;

pub mod screen;

pub mod analysis;
pub mod html;

pub mod calibration;
pub mod ceiling;
pub mod checkpoint_plan;
pub mod diff;
pub mod explain;
pub mod export;
pub mod metrics;
pub mod plan;
pub mod trace;
pub mod verify;
pub mod workloads;

pub use analysis::analysis_screen;
pub use html::html_report;
pub use shown::Shown;
pub use style::Style;
