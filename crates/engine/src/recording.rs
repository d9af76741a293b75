//! This process's own part of a run, recorded while it runs.
//!
//! The recorder writes segments in memory, as the preload library does in other programs, and a thread of
//! this process takes them into the trace folder. If the process is killed, what is left in memory is
//! taken in by the next command that opens the trace.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use feedline_recorder::{Config, Ending, Text, is_counter_trusted, name_thread, recorder};
use feedline_trace::{DrainReport, Drainer, TraceError};

use crate::error::EngineError;

/// The folder where files are in memory.
const MEMORY: &str = "/dev/shm";
/// Less free memory than that, and segments go to disk.
const LEAST_MEMORY_BYTES: u64 = 64 << 20;

/// Segments of this process in memory; what goes beyond that goes to the trace folder's disk.
const MEMORY_BYTES: u64 = 256 << 20;

/// The folder that a user named for a trace: one that is not there or has nothing in it. It is made
/// absolute, since other processes of the job may work elsewhere.
///
/// # Errors
/// It has something in it, or cannot be looked at.
pub fn trace_folder(named: &Path) -> Result<PathBuf, EngineError> {
    let folder = || named.display().to_string();
    let wrong = |source| EngineError::TraceFolder { folder: folder(), source };
    let taken = match std::fs::read_dir(named) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(wrong(error)),
    };
    match taken {
        true => Err(EngineError::TraceFolderTaken { folder: folder() }),
        false => std::path::absolute(named).map_err(wrong),
    }
}

/// A folder of our own in memory, or in the trace folder where there is no room for it.
///
/// # Errors
/// It cannot be made.
pub fn memory_folder(trace: &Path) -> Result<PathBuf, EngineError> {
    let has_room = rustix::fs::statvfs(MEMORY)
        .is_ok_and(|facts| facts.f_bavail.saturating_mul(facts.f_frsize) >= LEAST_MEMORY_BYTES);
    let now = jiff::Timestamp::now().as_nanosecond();
    let name = format!("feedline-{}-{now}", std::process::id());
    let root = if has_room { Path::new(MEMORY).to_owned() } else { trace.join("segments") };
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).map_err(|source| EngineError::TraceFolder {
        folder: folder.display().to_string(),
        source,
    })?;
    Ok(folder)
}

/// Works, and records it if there is a folder for that. `ranks` are those of this process. Also how
/// many events were lost.
pub(crate) fn recorded<T>(
    folder: Option<&Path>,
    ranks: Range<u32>,
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<(T, u64), EngineError> {
    let Some(folder) = folder else { return Ok((work()?, 0)) };
    let recording = Recording::start(folder, ranks)?;
    let done = work();
    let lost = recording.finish(i32::from(done.is_err()) * ERROR_STATUS)?;
    Ok((done?, lost))
}

/// What the trace says of a process whose run failed: the command's exit code for errors.
const ERROR_STATUS: i32 = 2;

/// A recording that goes on.
struct Recording {
    /// Dropped to end the draining.
    going_on: Sender<()>,
    draining: JoinHandle<Result<DrainReport, TraceError>>,
}

impl Recording {
    fn start(folder: &Path, ranks: Range<u32>) -> Result<Self, EngineError> {
        let memory = memory_folder(folder)?;
        let shown = || folder.display().to_string();
        let drainer = Drainer::start(folder, &memory).map_err(EngineError::TraceNotWritten)?;
        let config = Config {
            folder: text(&memory)?,
            overflow: text(drainer.overflow())?,
            folder_bytes: MEMORY_BYTES,
            is_drained: true,
            counter: is_counter_trusted(),
            // A process with several ranks has none of its own: its threads say whose they are.
            rank: if ranks.len() == 1 { ranks.start.cast_signed() } else { -1 },
            ..Config::EMPTY
        };
        let arguments: Vec<_> = std::env::args_os().collect();
        let arguments = arguments.iter().map(|argument| OsStr::as_encoded_bytes(argument));
        if !recorder().start(&config, arguments) {
            return Err(EngineError::NothingRecorded { folder: shown() });
        }
        name_thread("main");
        let (going_on, end) = channel::<()>();
        let mut drainer = drainer;
        let drain = move || {
            // The readers come first. Not an error if it may not.
            let _ = rustix::process::nice(10);
            while end.recv_timeout(drainer.pause()) == Err(RecvTimeoutError::Timeout) {
                drainer.round()?;
            }
            drainer.finish()
        };
        let thread = std::thread::Builder::new().name("drainer".to_owned());
        let draining = thread
            .spawn(drain)
            .map_err(|source| EngineError::TraceFolder { folder: shown(), source })?;
        Ok(Self { going_on, draining })
    }

    /// All threads that record are gone. Returns how many events are not in the trace.
    fn finish(self, status: i32) -> Result<u64, EngineError> {
        recorder().end(Ending::Exit, status);
        drop(self.going_on);
        let drained = self.draining.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(drained.map_err(EngineError::TraceNotWritten)?.dropped)
    }
}

fn text(path: &Path) -> Result<Text<1024>, EngineError> {
    Text::new(path.as_os_str().as_encoded_bytes())
        .ok_or_else(|| EngineError::TracePathTooLong { folder: path.display().to_string() })
}
