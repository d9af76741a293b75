//! What to record, and where.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What happens if the trace folder already holds a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Existing {
    /// It is an error.
    #[default]
    Refuse,
    /// The old trace is removed once the program has started.
    Replace,
}

/// How a program is traced. By default every call on every file is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceOptions {
    /// The folder of the trace; without one, `feedline_traces/PROGRAM-DATE-PID`.
    pub folder: Option<PathBuf>,
    /// What happens to a trace that is already there.
    pub existing: Existing,
    /// The rank of this process, if several launchers of one parallel job share the folder.
    pub rank: Option<u32>,
    /// Record only files in these folders.
    pub data: Vec<PathBuf>,
    /// Record only files whose path matches one of these globs.
    pub include: Vec<String>,
    /// Do not record files whose path matches one of these globs.
    pub exclude: Vec<String>,
    /// Which calls to record: a comma list of layers and kinds, those with a minus left out.
    pub calls: Option<String>,
    /// Record one call in this many, and count the others.
    pub sample: Option<u32>,
    /// Merge calls of one kind on one file by one thread into one summary per this many milliseconds.
    pub summary_ms: Option<u32>,
    /// Memory that each process may take for events that are not written yet; more goes to disk.
    pub memory_bytes: u64,
    /// The preload library; without one, the file beside this program or in `../lib`.
    pub library: Option<PathBuf>,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            folder: None,
            existing: Existing::Refuse,
            rank: None,
            data: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            calls: None,
            sample: None,
            summary_ms: None,
            memory_bytes: 256 << 20,
            library: None,
        }
    }
}

impl TraceOptions {
    /// The folder for the trace of this program.
    pub(crate) fn folder_for(&self, program: &OsStr) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| {
            let name = Path::new(program).file_name().map_or_else(OsString::new, OsStr::to_owned);
            let date = jiff::Zoned::now().strftime("%Y-%m-%d-%H-%M-%S");
            let name = name.to_string_lossy();
            Path::new("feedline_traces").join(format!("{name}-{date}-{}", std::process::id()))
        })
    }
}
