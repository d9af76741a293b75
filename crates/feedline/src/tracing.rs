//! `feedline run --trace`: this process's own part of a run, recorded while it runs.
//!
//! The recorder writes segments in memory, as the preload library does in other programs, and a thread of
//! this process takes them into the trace folder. If the process is killed, what is left in memory is
//! taken in by the next command that opens the trace.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context as _;
use feedline_recorder::{Config, Ending, Text, is_counter_trusted, name_thread, recorder};
use feedline_trace::{DrainReport, Drainer, FolderError};

use crate::failure;
use crate::trace::memory_folder;

/// Segments of this process in memory; what goes beyond that goes to the trace folder's disk.
const MEMORY_BYTES: u64 = 256 << 20;

/// The folder that a user named for a trace, on process 0: one that is not there or has nothing in it.
/// The other processes may work elsewhere, so it is made absolute.
pub(crate) fn folder(named: &Path) -> anyhow::Result<PathBuf> {
    let shown = named.display();
    let mut entries = match std::fs::read_dir(named) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return std::path::absolute(named).with_context(|| format!("--trace {shown}"));
        }
        Err(error) => return Err(error).with_context(|| format!("--trace {shown}")),
    };
    match entries.next() {
        None => std::path::absolute(named).with_context(|| format!("--trace {shown}")),
        Some(_) => Err(failure::hinted(
            format!("--trace {shown}: the folder is not empty"),
            "name a folder that is not there yet, or remove this one",
        )),
    }
}

/// Works, and records it if there is a folder for that. `ranks` are those of this process.
pub(crate) fn traced<T>(
    folder: Option<&Path>,
    ranks: Range<u32>,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let Some(folder) = folder else { return work() };
    let tracing = Tracing::start(folder, ranks)?;
    let done = work();
    tracing.finish(if done.is_ok() { 0 } else { failure::ERROR })?;
    done
}

/// A recording that goes on.
struct Tracing {
    /// Dropped to end the draining.
    going_on: Sender<()>,
    draining: JoinHandle<Result<DrainReport, FolderError>>,
}

impl Tracing {
    fn start(folder: &Path, ranks: Range<u32>) -> anyhow::Result<Self> {
        let memory = memory_folder(folder)?;
        let shown = || format!("--trace {}", folder.display());
        let drainer = Drainer::start(folder, &memory).with_context(shown)?;
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
            return Err(failure::hinted(
                format!("{}: nothing can be recorded", shown()),
                "is there room in /dev/shm, and in the trace folder?",
            ));
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
        let draining = thread.spawn(drain).with_context(shown)?;
        Ok(Self { going_on, draining })
    }

    /// All threads that record are gone.
    fn finish(self, code: u8) -> anyhow::Result<()> {
        recorder().end(Ending::Exit, i32::from(code));
        drop(self.going_on);
        let drained = self.draining.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let report = drained.context("the trace cannot be written")?;
        if report.dropped > 0 {
            failure::say(&format!("warning: {} events are not in the trace", report.dropped));
        }
        Ok(())
    }
}

fn text(path: &Path) -> anyhow::Result<Text<1024>> {
    Text::new(path.as_os_str().as_encoded_bytes()).ok_or_else(|| {
        failure::hinted(
            format!("--trace {}: the path is too long", path.display()),
            "1000 bytes fit",
        )
    })
}
