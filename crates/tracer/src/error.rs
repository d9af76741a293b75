//! Why a program was not traced, or its trace is not whole.

use std::io;
use std::path::PathBuf;

use feedline_trace::TraceError;

/// Why a program was not traced, or its trace is not whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracerError {
    /// The command is empty.
    #[error("no program to trace")]
    NoProgram,
    /// The program cannot be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program as the user wrote it.
        program: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// The program was started but its end cannot be waited for.
    #[error("cannot wait for the program")]
    Wait(#[source] io::Error),
    /// Signals for the program cannot be received.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    /// A file or folder cannot be found, read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, e.g. `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system reports.
        source: io::Error,
    },
    /// Several launchers of one job would each remove the others' trace.
    #[error("cannot replace {}: every process of the job would remove it", folder.display())]
    SharedReplace {
        /// The trace folder.
        folder: PathBuf,
    },
    /// The folder has other files in it.
    #[error("{} already exists and is not a trace", folder.display())]
    NotATrace {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder has a trace in it.
    #[error("{} already holds a trace", folder.display())]
    Exists {
        /// The trace folder.
        folder: PathBuf,
    },
    /// The folder has the trace of an earlier parallel job in it.
    #[error("{} already holds the trace of another job", folder.display())]
    OtherJob {
        /// The trace folder.
        folder: PathBuf,
    },
    /// The folder must be empty.
    #[error("{} is not empty", folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// A word in the list of calls is neither a layer nor a kind.
    #[error("unknown kind of calls `{word}`")]
    UnknownCalls {
        /// The word.
        word: String,
        /// All words that are known.
        known: Vec<String>,
    },
    /// The preload library takes patterns as a list separated by colons.
    #[error("{pattern} contains a colon, which separates patterns")]
    Colon {
        /// The pattern as the user wrote it.
        pattern: String,
    },
    /// The preload library keeps patterns in memory of a fixed size.
    #[error("file patterns take {bytes} bytes, at most {most} fit")]
    LongPatterns {
        /// Their length.
        bytes: usize,
        /// The most that fits.
        most: usize,
    },
    /// The preload library is not where it was looked for.
    #[error("preload library not found: {}", path.display())]
    NoLibrary {
        /// The file.
        path: PathBuf,
    },
    /// A preload library of another build records what this one cannot read.
    #[error("{} belongs to a different build of Feedline", path.display())]
    OtherBuild {
        /// The file.
        path: PathBuf,
    },
    /// The dynamic loader splits `LD_PRELOAD` at colons and spaces.
    #[error("cannot preload {}: its path contains a colon or a space", path.display())]
    LibraryPath {
        /// The file.
        path: PathBuf,
    },
    /// The recorder keeps paths in memory of a fixed size.
    #[error("the path {} is too long", path.display())]
    LongPath {
        /// The folder.
        path: PathBuf,
    },
    /// The recorder could not create its first segment.
    #[error("cannot record into {}", folder.display())]
    NotRecording {
        /// The folder.
        folder: PathBuf,
    },
    /// The recording cannot be drained into the trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl TracerError {
    /// Something to type that may help, in the words of `feedline trace`.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Start { .. } => {
                "the program and its arguments go after --, as in: feedline trace -- ls /"
                    .to_owned()
            }
            Self::SharedReplace { folder } => format!(
                "run `rm -r {}` before the job, or choose another folder with -o",
                folder.display()
            ),
            Self::NotATrace { .. } => "choose another folder with -o".to_owned(),
            Self::Exists { .. } => {
                "use --overwrite to replace it, or choose another folder with -o".to_owned()
            }
            Self::OtherJob { .. } => "choose another folder with -o, or remove this one".to_owned(),
            Self::NotEmpty { .. } => "choose a new folder, or remove this one".to_owned(),
            Self::UnknownCalls { known, .. } => format!("use one of {}", known.join(", ")),
            Self::Colon { .. } => "match the colon with ?".to_owned(),
            Self::LongPatterns { .. } => "use fewer patterns, with **".to_owned(),
            Self::NoLibrary { .. } => {
                "`cargo build --release -p feedline-preload` builds it beside \
                                       the program; or use --library FILE"
                    .to_owned()
            }
            Self::OtherBuild { .. } => {
                "build both with `cargo build --release -p feedline -p feedline-preload`".to_owned()
            }
            Self::LibraryPath { .. } => "copy it elsewhere and use --library FILE".to_owned(),
            Self::LongPath { .. } => "at most 1000 bytes fit".to_owned(),
            Self::NotRecording { .. } => {
                "check for free space in /dev/shm and in the trace folder".to_owned()
            }
            _ => return None,
        })
    }

    /// For `map_err`: the system refused to do something with a file or folder.
    pub(crate) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
