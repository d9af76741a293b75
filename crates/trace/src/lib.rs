//! Traces: what an event is, the folder in which a trace is kept, and the formats of other tools.
//!
//! A trace comes from a [`Source`] in batches and goes to a [`Sink`]; every format is one or both. What
//! events share (names, files, processes) stands in [`Tables`], which grow while events come.

#![forbid(unsafe_code)]

mod alive;
mod clocks;
mod drain;
mod error;
mod event;
mod file_slice;
mod flow;
mod folder;
mod pickup;
mod process;
mod tables;

mod intake;
mod json;
mod layout;
mod unfinished;
mod words;

pub mod chrome;
pub mod dftracer;
pub mod perfetto;

mod formats;
mod recognize;

pub use drain::{DrainReport, Drainer, ProcessProblem};
pub use error::TraceError;
pub use event::{Batch, Event, Kind};
pub use file_slice::FileSlice;
pub use flow::{Output, Sink, Slices, Source, convert, copy_events};
pub use folder::{
    ABSENT, Block, BlockFacts, Blocks, Column, ColumnFacts, Folder, FolderSink, FolderWriter,
    Survey, VERSION, Written, columns_of,
};
pub use formats::{
    Access, CreateSink, FORMATS, Files, OpenSource, TraceFormat, WriteOption, WriteOptions,
    readable,
};
pub use intake::{Damage, Intake};
pub use pickup::{Recovered, recover};
pub use process::{End, Process};
pub use recognize::{Found, recognize, recognize_among};
pub use tables::Tables;
