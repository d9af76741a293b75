//! Traces: what an event is, the folder in which a trace is kept, and the formats of other tools.
//!
//! A trace comes from a [`Source`] in batches and goes to a [`Sink`]; every format is one or both. What
//! events share (names, files, processes) stands in [`Tables`], which grow while events come.

#![forbid(unsafe_code)]

mod alive;
mod clocks;
mod drain;
mod event;
mod flow;
mod folder;
mod pickup;
mod process;
mod tables;

mod civil;
mod json;
mod layout;
mod quick;
mod trouble;
mod unfinished;

pub mod chrome;
pub mod dialect;
pub mod perfetto;
mod recognise;

pub use drain::{DrainReport, Drainer};
pub use event::{Batch, Event, Kind};
pub use flow::{Sink, Source, pour};
pub use folder::{
    ABSENT, Block, BlockFacts, Blocks, Column, ColumnFacts, Folder, FolderError, FolderWriter,
    Survey, VERSION, Written, columns_of,
};
pub use pickup::{Recovered, recover};
pub use process::{End, Process};
pub use quick::{Quick, QuickMap};
pub use recognise::{Found, recognise};
pub use tables::Tables;
pub use trouble::{ConvertError, Damage, Intake};
