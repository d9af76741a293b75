//! A whole trace folder, which gets its name when it is complete.

use std::fs;
use std::path::{Path, PathBuf};

use super::writer::FolderWriter;
use crate::error::{Result, TraceError};
use crate::event::Batch;
use crate::flow::{EventSink, Output};
use crate::tables::Tables;

/// Writes under a hidden name, and replaces what has the final name at the end. Removes what it has
/// written if it is dropped before that.
#[derive(Debug)]
pub struct FolderSink {
    path: PathBuf,
    hidden: PathBuf,
    writer: FolderWriter,
    is_finished: bool,
}

impl FolderSink {
    /// Begins a folder beside its final place.
    pub fn create(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        let writer = FolderWriter::create(&hidden).inspect_err(|_| {
            // The error matters more than what may stay.
            let _ = fs::remove_dir_all(&hidden);
        })?;
        Ok(Self { path: path.to_owned(), hidden, writer, is_finished: false })
    }

    fn publish(&self) -> Result<()> {
        let write_error = |source| TraceError::Write { path: self.path.clone(), source };
        if self.path.is_dir() {
            fs::remove_dir_all(&self.path).map_err(write_error)?;
        } else if self.path.exists() {
            fs::remove_file(&self.path).map_err(write_error)?;
        }
        fs::rename(&self.hidden, &self.path).map_err(write_error)
    }
}

impl EventSink for FolderSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        self.writer.write(tables, batch)
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.writer.finish(tables)?;
        self.publish()?;
        self.is_finished = true;
        Ok(())
    }

    fn output(&self) -> Output {
        Output { paths: vec![self.path.clone()], slices: None }
    }
}

impl Drop for FolderSink {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nothing can be done about what stays; its name is hidden.
            let _ = fs::remove_dir_all(&self.hidden);
        }
    }
}
