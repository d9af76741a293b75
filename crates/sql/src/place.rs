//! Where the tables of a trace are: in its own folder, or in one that is made of it.

use std::path::{Path, PathBuf};

use feedline_trace::{Files, Folder, recognize, recover};
use tempfile::TempDir;

use crate::companion::Companion;
use crate::error::SqlError;

/// A folder of Feedline's, and how long it is there.
#[derive(Debug)]
pub(crate) struct Place {
    /// The folder, as an absolute path: a cluster has another current folder.
    pub(crate) folder: PathBuf,
    _scratch: Option<TempDir>,
}

impl Place {
    /// Finds or makes the folder of a trace.
    pub(crate) fn find(
        trace: &Path,
        companion: &Companion,
        say: fn(&str),
    ) -> Result<Self, SqlError> {
        if recognize(trace)?.format.files == Files::Folder {
            for line in recovered(trace)? {
                say(&line);
            }
            Folder::open(trace)?;
            return Ok(Self { folder: absolute(trace)?, _scratch: None });
        }
        let scratch = scratch()?;
        let folder = scratch.path().join("trace");
        say(&format!("converting {} into {}", trace.display(), folder.display()));
        for line in
            companion.convert(trace, &folder)?.lines().filter(|l| l.starts_with("warning: "))
        {
            say(line);
        }
        Folder::open(&folder)?;
        Ok(Self { folder, _scratch: Some(scratch) })
    }
}

/// Takes in what processes left behind; what there is to say about it.
fn recovered(folder: &Path) -> Result<Vec<String>, SqlError> {
    let recovered = recover(folder)?;
    let shown = folder.display();
    let mut lines = Vec::new();
    let mut count = |number: u64, line: String| {
        if number > 0 {
            lines.push(line);
        }
    };
    count(
        recovered.events,
        format!("{shown}: recovered {} events from raw recordings", recovered.events),
    );
    let running = recovered.running;
    count(
        running,
        format!(
            "warning: {shown}: processes still recording: {running}; their latest events are missing"
        ),
    );
    let latest = "the latest events are missing";
    count(recovered.writing, format!("warning: {shown} is still being written; {latest}"));
    let elsewhere = recovered.elsewhere;
    count(
        elsewhere,
        format!(
            "warning: {shown}: recordings from other machines: {elsewhere}; they can only be recovered there"
        ),
    );
    lines.extend(recovered.problems.iter().map(|problem| format!("warning: {problem}")));
    Ok(lines)
}

/// A folder for the time of a session.
pub(crate) fn scratch() -> Result<TempDir, SqlError> {
    let error = |source| SqlError::Write { path: std::env::temp_dir(), source };
    tempfile::Builder::new().prefix("feedline-sql-").tempdir().map_err(error)
}

/// A path that means the same in every folder.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, SqlError> {
    std::path::absolute(path).map_err(|source| SqlError::Read { path: path.to_owned(), source })
}
