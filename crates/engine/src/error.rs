//! What can go wrong before, around and during a run.

use std::io;

use feedline_bench::{BenchError, CalibrationError, Dialect, EmulationError};
use feedline_ranks::TooFewRanks;
use feedline_tracer::TracerError;
use feedline_workload::WorkloadError;

/// Why a run did not take place, or did not finish. Every variant names the user's own object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum EngineError {
    /// The workload file, or an override of it, is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The run itself failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A path was named, and there is no file.
    #[error("{name}: no such workload file")]
    NoWorkloadFile { name: String },
    /// A name that no shipped workload has.
    #[error("no workload is called `{name}`")]
    UnknownWorkload { name: String, meant: Vec<String> },
    /// A file of the user cannot be read.
    #[error("{path}: cannot be read")]
    Unreadable { path: String, source: io::Error },
    /// The user named a calibration that is not there.
    #[error("{file}: no such calibration")]
    NoCalibration { file: String },
    /// A run needs a calibration, and the file holds something else.
    #[error("{file}")]
    BadCalibration { file: String, source: CalibrationError },
    /// A limit or a fault of the emulated storage is not in the form of one.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// The run cannot be recorded, or its trace cannot be written.
    #[error("--trace")]
    Trace(#[from] TracerError),
    /// More processes than ranks.
    #[error(transparent)]
    Team(TooFewRanks),
    /// Process 0 of the job runs another build.
    #[error("this is Feedline {ours}, and process 0 runs Feedline {theirs}")]
    OtherVersion { ours: String, theirs: String },
    /// What process 0 sent is not an order of this build.
    #[error("process 0 runs a different version of Feedline")]
    OtherMessage(#[source] serde_json::Error),
    /// The system gave no random bytes.
    #[error("/dev/urandom: cannot be read")]
    NoSeed(#[source] io::Error),
    /// The limit of open files is not known.
    #[error("cannot look up how many files may be open")]
    OpenFiles(#[source] io::Error),
}

impl EngineError {
    /// Something to type that may help, in the words of the command line that the user used.
    pub fn hint(&self, dialect: Dialect) -> Option<String> {
        Some(match self {
            Self::Workload(error) => return error.hint(),
            Self::Bench(error) => return error.hint(dialect),
            Self::NoWorkloadFile { .. } => {
                "`feedline workloads` lists the built-in workloads".to_owned()
            }
            Self::UnknownWorkload { meant, .. } => match meant.as_slice() {
                [] => "`feedline workloads` lists all".to_owned(),
                [file] if file.ends_with(".yaml") => format!("did you mean the file {file}?"),
                near => format!("did you mean {}? `feedline workloads` lists all", near.join(", ")),
            },
            Self::NoCalibration { file } => format!("`feedline calibrate --out {file}` makes it"),
            Self::BadCalibration { .. } => "measure again with `feedline calibrate`, remove the \
                                            file, or run with --set reader.interpreter=none"
                .to_owned(),
            Self::Emulation(error) => error.hint(),
            Self::Trace(error) => return error.hint(),
            Self::Team(error) => {
                format!("--accelerators {} or more, or fewer processes", error.processes)
            }
            Self::OtherVersion { .. } => "install the same build on every host".to_owned(),
            _ => return None,
        })
    }

    /// The error of the run itself, if it got that far.
    pub fn bench(&self) -> Option<&BenchError> {
        match self {
            Self::Bench(error) => Some(error),
            _ => None,
        }
    }
}
