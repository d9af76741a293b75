//! The output folder: claimed by one run at a time, written file by file, each complete or absent.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use feedline_store::{remove_stale, write_file};

use crate::error::{BenchError, Result};

const LOCK_NAME: &str = ".feedline.lock";
/// The file by which a folder is known to hold results.
pub(crate) const SUMMARY_NAME: &str = "summary.json";

/// Endings of the files that each rank writes.
const RANK_ENDINGS: [&str; 3] = ["_output.json", "_per_epoch_stats.json", "_steps.csv"];

/// What to do with results that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep them and refuse to run.
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
    pub fn claim(path: &Path, existing: Existing) -> Result<Self> {
        let output = |source| BenchError::Output { file: path.display().to_string(), source };
        fs::create_dir_all(path).map_err(output)?;
        let lock = File::create(path.join(LOCK_NAME)).map_err(output)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(BenchError::OutputBusy { folder: path.display().to_string() });
            }
            // A file system without locks cannot tell of other runs; run anyway.
            Err(fs::TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(fs::TryLockError::Error(source)) => return Err(output(source)),
        }
        let claimed = Self { path: path.to_owned(), _lock: lock };
        remove_stale(path).map_err(output)?;
        let earlier = results_in(path).map_err(output)?;
        if existing == Existing::Refuse && !earlier.is_empty() {
            return Err(BenchError::OutputTaken { folder: path.display().to_string() });
        }
        earlier.iter().try_for_each(fs::remove_file).map_err(output)?;
        Ok(claimed)
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
    ) -> Result<()> {
        self.write_at(&self.path.join(name), fill)
    }

    /// Writes a file elsewhere in the same way.
    pub fn write_at(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let attempt = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            write_file(path, fill)
        };
        attempt().map_err(|source| BenchError::Output { file: path.display().to_string(), source })
    }
}

/// The result files of an earlier run; those of its ranks must not mix with ours.
fn results_in(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let of_rank = |ending: &&str| {
            name.strip_suffix(ending).is_some_and(|rank| rank.parse::<u32>().is_ok())
        };
        if name == SUMMARY_NAME || RANK_ENDINGS.iter().any(of_rank) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.join(LOCK_NAME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn results_of_an_earlier_run_are_refused_or_removed_whole() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["summary.json", "0_output.json", "1_output.json", "3_per_epoch_stats.json"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        fs::write(folder.path().join("my_output.json"), "mine").unwrap();
        let refused = OutputFolder::claim(folder.path(), Existing::Refuse).unwrap_err();
        assert!(matches!(refused, BenchError::OutputTaken { .. }), "{refused}");
        assert_eq!(names(folder.path()).len(), 5);
        let claimed = OutputFolder::claim(folder.path(), Existing::Replace).unwrap();
        let busy = OutputFolder::claim(folder.path(), Existing::Replace).unwrap_err();
        assert!(matches!(busy, BenchError::OutputBusy { .. }), "{busy}");
        drop(claimed);
        assert_eq!(names(folder.path()), ["my_output.json"]);
    }

    #[test]
    fn what_a_crashed_run_left_is_not_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("0_output.json"), "mine").unwrap();
        let refused = OutputFolder::claim(folder.path(), Existing::Refuse).unwrap_err();
        assert!(matches!(refused, BenchError::OutputTaken { .. }), "{refused}");
        assert_eq!(names(folder.path()), ["0_output.json"]);
    }

    #[test]
    fn a_file_that_cannot_be_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let claimed = OutputFolder::claim(folder.path(), Existing::Refuse).unwrap();
        let error = claimed.write("a.json", |file| {
            file.write_all(b"{")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(matches!(error.unwrap_err(), BenchError::Output { .. }));
        claimed.write("b/c.yaml", |file| file.write_all(b"x: 1")).unwrap();
        drop(claimed);
        assert_eq!(names(folder.path()), ["b"]);
    }
}
