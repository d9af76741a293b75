//! SQL over a trace: its tables, those of its analysis, and views that need no join, with DataFusion in this
//! process or on a Ballista cluster.
//!
//! [`run`] is the command; [`scalars`] and [`aggregates`] are for clusters. Nothing here changes a trace,
//! except that recordings which processes left behind are taken into it first, as every Feedline command
//! does that reads one.

#![forbid(unsafe_code)]

mod bucket;
mod busy;
mod companion;
mod engine;
mod error;
mod functions;
mod listing;
mod outlet;
mod output;
mod place;
mod session;
mod statement;
mod tables;
mod text_table;
mod trouble;
mod views;

mod command;

pub use command::{Args, run};
pub use engine::Engine;
pub use error::SqlError;
pub use functions::{aggregates, scalars};
pub use output::Format;
