//! What can be wrong with a trace folder.

use std::path::{Path, PathBuf};

use feedline_recorder::ReadError;
use parquet::errors::ParquetError;

/// Why a trace folder is not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The system says no.
    #[error("{}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it says.
        source: std::io::Error,
    },
    /// There is no `trace.json`, or another program's.
    #[error("{}: not a trace of Feedline", path.display())]
    NotATrace {
        /// The folder.
        path: PathBuf,
    },
    /// Written by a later Feedline.
    #[error("{}: version {found} of the trace format; this Feedline reads up to {known}", path.display())]
    Version {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The last one that is known here.
        known: u32,
    },
    /// A file of the folder is cut off, or was changed.
    #[error("{}: damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What its reader says.
        source: ParquetError,
    },
    /// A file is whole but holds something that no trace does.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// A file has no such column, or it has another type.
    #[error("{}: no column `{column}` of type {expected}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A file that a program recorded into and that nobody has read yet.
    #[error("{}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// Why it is not read.
        source: ReadError,
    },
    /// Another process writes this part of the trace now.
    #[error("{}: another process is writing it", path.display())]
    Busy {
        /// The writer's file.
        path: PathBuf,
    },
}

/// Names the file of an error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, FolderError>;
}

impl<T> At<T> for Result<T, std::io::Error> {
    fn at(self, path: &Path) -> Result<T, FolderError> {
        self.map_err(|source| FolderError::Io { path: path.to_owned(), source })
    }
}

impl<T> At<T> for Result<T, ParquetError> {
    fn at(self, path: &Path) -> Result<T, FolderError> {
        self.map_err(|source| {
            let path = path.to_owned();
            match source {
                ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
                    Ok(source) => FolderError::Io { path, source: *source },
                    Err(cause) => {
                        FolderError::Damaged { path, source: ParquetError::External(cause) }
                    }
                },
                source => FolderError::Damaged { path, source },
            }
        })
    }
}
