//! Traces: what an event is, the folder in which a trace is kept, and the formats of other tools.
//!
//! A trace comes from a [`EventSource`] in batches and goes to a [`EventSink`]; every format is one or both. What
//! events share (names, files, processes) is in [`Tables`], which grow while events come.

#![forbid(unsafe_code)]

mod alive;
mod clocks;
mod drain;
mod error;
mod event;
mod file_slice;
mod flow;
mod folder;
mod process;
mod recover;
mod tables;

mod field_names;
mod json;
mod partial_file;
mod read_stats;
mod words;

pub mod chrome;
pub mod dftracer;
pub mod perfetto;

mod formats;
mod recognize;

pub use drain::{DrainReport, Drainer, ProcessProblem};
pub use error::TraceError;
pub use event::{Batch, Event, EventKind};
pub use file_slice::FileSlice;
pub use flow::{EventSink, EventSource, Output, Slices, convert, copy_events};
pub use folder::{
    ABSENT, Block, BlockFacts, Blocks, Column, ColumnFacts, Folder, FolderSink, FolderWriter,
    RowGroupContents, VERSION, Written, columns_of,
};
pub use formats::{
    Access, CreateSink, FORMATS, Files, OpenSource, TraceFormat, WriteOption, WriteOptions,
    readable,
};
pub use process::{End, Process};
pub use read_stats::{Damage, ReadStats};
pub use recognize::{RecognizedTrace, recognize, recognize_among};
pub use recover::{Recovered, recover};
pub use tables::Tables;
