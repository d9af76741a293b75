//! Traces: what an event is, the folder in which a trace is kept, and the formats of other tools.
//!
//! A trace comes from an [`EventSource`] in batches and goes to an [`EventSink`]; every format is one or both.
//! What events share (names, files, processes) is in [`Tables`], which grow while events come.
//!
//! ```
//! use feedline_trace::{Batch, Tables, TraceError, recognize};
//!
//! /// How often a trace in any readable format opens files.
//! fn opens(trace: &std::path::Path) -> Result<usize, TraceError> {
//!     let mut source = recognize(trace)?.open()?;
//!     let (mut tables, mut batch, mut count) = (Tables::default(), Batch::default(), 0);
//!     while source.next_batch(&mut tables, &mut batch)? {
//!         count += batch.events.iter().filter(|event| tables.name(event.name) == "open64").count();
//!     }
//!     Ok(count)
//! }
//! # let folder = tempfile::tempdir()?;
//! # let trace = folder.path().join("trace.json");
//! # std::fs::write(&trace, r#"[{"name":"open64","ph":"X","ts":1,"dur":5,"pid":1,"tid":1}]"#)?;
//! assert_eq!(opens(&trace)?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use error::{Result, TraceError};
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
