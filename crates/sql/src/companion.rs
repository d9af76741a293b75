//! The command `feedline`, which converts and analyzes traces for this one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::SqlError;

/// The name of the command.
const NAME: &str = "feedline";

/// Where `feedline` is.
#[derive(Clone, Debug)]
pub(crate) struct Companion {
    program: PathBuf,
}

impl Companion {
    /// The one that stands beside this program, else the one in `PATH`.
    pub(crate) fn beside_this_program() -> Self {
        let beside = std::env::current_exe().ok().map(|path| path.with_file_name(NAME));
        Self { program: beside.filter(|path| path.is_file()).unwrap_or_else(|| NAME.into()) }
    }

    /// Converts a trace of another tool into a folder.
    pub(crate) fn convert(&self, trace: &Path, folder: &Path) -> Result<String, SqlError> {
        self.run("convert", [trace.as_os_str(), folder.as_os_str(), "--to".as_ref(), NAME.as_ref()])
    }

    /// Analyzes a trace, and exports the tables into a folder.
    pub(crate) fn analyze(&self, trace: &Path, folder: &Path) -> Result<String, SqlError> {
        let words = ["--export", "parquet", "--quiet", "--export-dir"].map(OsStr::new);
        let all = [trace.as_os_str()].into_iter().chain(words).chain([folder.as_os_str()]);
        self.run("analyze", all)
    }

    /// Runs it; what it said on stderr.
    fn run<'a>(
        &self,
        task: &str,
        words: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<String, SqlError> {
        let output = Command::new(&self.program)
            .arg(task)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(|source| SqlError::NoCompanion { program: self.program.clone(), source })?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        let line = |head: &str| said.lines().find_map(|line| line.strip_prefix(head));
        Err(SqlError::Companion {
            task: task.to_owned(),
            message: line("error: ").map_or_else(|| output.status.to_string(), str::to_owned),
            hint: line("hint: ").map(str::to_owned),
        })
    }
}
