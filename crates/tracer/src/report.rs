//! What was recorded, in numbers.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_trace::{DrainReport, ProcessProblem};
use serde::{Serialize, Serializer};

use crate::cpu_time;
use crate::error::TracerError;

/// The version of `report.json`.
const VERSION: u32 = 1;

/// What was recorded of a program. `report.json` in the trace folder holds the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceReport {
    /// The trace folder.
    #[serde(serialize_with = "as_shown")]
    pub folder: PathBuf,
    /// How long the program and its children ran, in seconds.
    pub seconds: f64,
    /// Processes that recorded something.
    pub processes: u64,
    /// Processes that were still running when the trace ended.
    pub running: u64,
    /// Events in the trace.
    pub events: u64,
    /// Bytes of the trace's files.
    pub trace_bytes: u64,
    /// Events that were lost.
    pub dropped: u64,
    /// Calls that filters left out.
    pub filtered: u64,
    /// Calls that sampling left out.
    pub skipped: u64,
    /// Bytes that the recorded calls read.
    pub read_bytes: u64,
    /// Bytes that the recorded calls wrote.
    pub written_bytes: u64,
    /// CPU time of this process, which drained.
    pub tracer_cpu_seconds: f64,
    /// CPU time of the program and of those of its children that it waited for.
    pub program_cpu_seconds: f64,
    /// This process's share of all CPU time; `None` if none was used.
    pub tracer_cpu_percent: Option<f64>,
    /// Processes that lost events or were not traced at all.
    pub troubles: Vec<ProcessProblem>,
    /// Files of the recording that could not be read, each with the reason.
    pub problems: Vec<String>,
}

impl TraceReport {
    pub(crate) fn new(folder: &Path, drained: DrainReport, seconds: f64) -> Self {
        let (own, children) = (cpu_time::own_seconds(), cpu_time::children_seconds());
        let all = own + children;
        Self {
            folder: folder.to_owned(),
            seconds,
            processes: drained.processes,
            running: drained.running,
            events: drained.events,
            trace_bytes: drained.bytes,
            dropped: drained.dropped,
            filtered: drained.filtered,
            skipped: drained.skipped,
            read_bytes: drained.read_bytes,
            written_bytes: drained.written_bytes,
            tracer_cpu_seconds: own,
            program_cpu_seconds: children,
            tracer_cpu_percent: (all > 0.0).then(|| 100.0 * own / all),
            troubles: drained.process_problems,
            problems: drained.problems,
        }
    }

    /// Writes `report.json`, or `report-RANK.json` where several launchers share the folder.
    pub(crate) fn write(&self, rank: Option<u32>) -> Result<(), TracerError> {
        #[derive(Serialize)]
        struct Versioned<'a> {
            feedline_trace: u32,
            #[serde(flatten)]
            report: &'a TraceReport,
        }
        let name = rank.map_or("report.json".to_owned(), |rank| format!("report-{rank}.json"));
        let path = self.folder.join(name);
        let versioned = Versioned { feedline_trace: VERSION, report: self };
        let written = serde_json::to_string_pretty(&versioned)
            .map_err(Into::into)
            .and_then(|text| fs::write(&path, text + "\n"));
        written.map_err(TracerError::io("write", &path))
    }
}

/// Paths may hold bytes that JSON cannot.
fn as_shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
