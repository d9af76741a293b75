//! Names the file that an error is about.

use std::path::Path;

use parquet::errors::ParquetError;

use crate::error::{Result, TraceError};

/// Names the file of an error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for Result<T, std::io::Error> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| TraceError::Io { path: path.to_owned(), source })
    }
}

impl<T> At<T> for Result<T, ParquetError> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| {
            let path = path.to_owned();
            match source {
                ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
                    Ok(source) => TraceError::Io { path, source: *source },
                    Err(cause) => {
                        TraceError::Damaged { path, source: ParquetError::External(cause) }
                    }
                },
                source => TraceError::Damaged { path, source },
            }
        })
    }
}
