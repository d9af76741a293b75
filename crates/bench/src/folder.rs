//! The output folder: claimed by one run at a time, written file by file, each complete or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::BenchError;

const LOCK_NAME: &str = ".feedline.lock";
/// The file by which a folder is known to hold results.
pub(crate) const SUMMARY_NAME: &str = "summary.json";

/// What to do with results that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They are somebody's work: refuse.
    Refuse,
    /// Replace them, as DLIO does.
    Replace,
}

/// An output folder that no other run writes to as long as this lives.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// Locked; the lock ends with the process, however it ends.
    _lock: File,
}

impl OutputFolder {
    /// Makes the folder if needed and claims it.
    pub fn claim(path: &Path, existing: Existing) -> Result<Self, BenchError> {
        let output = |source| BenchError::Output { file: path.display().to_string(), source };
        fs::create_dir_all(path).map_err(output)?;
        let lock = File::create(path.join(LOCK_NAME)).map_err(output)?;
        match lock.try_lock() {
            Ok(()) if existing == Existing::Refuse && path.join(SUMMARY_NAME).exists() => {
                let _ = fs::remove_file(path.join(LOCK_NAME));
                Err(BenchError::OutputTaken { folder: path.display().to_string() })
            }
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => {
                Err(BenchError::OutputBusy { folder: path.display().to_string() })
            }
            Err(fs::TryLockError::Error(source)) => Err(output(source)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below the folder; it appears under its name only when it is complete.
    pub fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), BenchError> {
        self.write_at(&self.path.join(name), fill)
    }

    /// Writes a file elsewhere in the same way.
    pub fn write_at(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), BenchError> {
        let attempt = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let partial = path.with_added_extension("partial");
            let written = File::create(&partial).and_then(|file| {
                let mut file = BufWriter::new(file);
                fill(&mut file)?;
                file.flush()
            });
            match written {
                Ok(()) => fs::rename(&partial, path),
                Err(error) => {
                    let _ = fs::remove_file(&partial);
                    Err(error)
                }
            }
        };
        attempt().map_err(|source| BenchError::Output { file: path.display().to_string(), source })
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.join(LOCK_NAME));
    }
}
