//! Why a trace cannot be read or written.

use std::io;
use std::path::PathBuf;

use feedline_recorder::ReadError;
use parquet::errors::ParquetError;

/// What reading or writing a trace returns.
pub type Result<T, E = TraceError> = std::result::Result<T, E>;

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A file or folder of the input cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// A file or folder of the output cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// A folder without a trace.
    #[error("no trace in {path}: no file there ends with {}", suffixes.join(" or "))]
    Empty {
        /// The folder.
        path: PathBuf,
        /// Suffixes of files that would be a trace.
        suffixes: Vec<&'static str>,
    },
    /// No format recognizes the file.
    #[error("unrecognized trace format: {path} (starts with {found:?})")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The first characters of the file.
        found: String,
    },
    /// The format can be written but not read.
    #[error("{path} is a {title} trace: Feedline writes this format but cannot read it")]
    WriteOnly {
        /// The file.
        path: PathBuf,
        /// Name of the format.
        title: &'static str,
    },
    /// The output already exists.
    #[error("{path} already exists")]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// The system says no.
    #[error("{path}")]
    Io {
        /// The file or folder that the operation was on.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is no `trace.json`, or another program's.
    #[error("{}: not a Feedline trace", .path.display())]
    NotATrace {
        /// The folder.
        path: PathBuf,
    },
    /// Written by a later Feedline.
    #[error("{}: version {found} of the trace format; this Feedline reads up to {known}", .path.display())]
    Version {
        /// The file that says so.
        path: PathBuf,
        /// Version of the trace.
        found: u32,
        /// The last one that is known here.
        known: u32,
    },
    /// A file of the folder is cut off, or was changed.
    #[error("{}: damaged", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What its reader says.
        source: ParquetError,
    },
    /// A file is whole but holds something that no trace does.
    #[error("{}: {what}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content.
        what: &'static str,
    },
    /// A file has no such column, or it has another type.
    #[error("{}: no column `{column}` of type {expected}", .path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A raw recording that could not be read.
    #[error("{path}")]
    Recording {
        /// The file.
        path: PathBuf,
        /// Why it is not read.
        source: ReadError,
    },
    /// Another process writes this part of the trace now.
    #[error("{}: another process is writing it", .path.display())]
    Busy {
        /// File of the writer that holds the lock.
        path: PathBuf,
    },
}
