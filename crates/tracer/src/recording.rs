//! This process, recorded by itself.
//!
//! The recorder writes segments in memory, as the preload library does in other programs, and a thread
//! drains them into the trace folder. If the process is killed, the next command that opens the trace
//! takes in what is left in memory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};

use feedline_recorder::{Config, Ending, Text, is_counter_trusted, name_thread, recorder};
use feedline_trace::{DrainReport, Drainer};

use crate::error::TracerError;
use crate::rounds::drain_until;
use crate::segment_folder;

/// Memory for segments of this process; more go to the disk of the trace folder.
const MEMORY_BYTES: u64 = 256 << 20;
/// What the trace says of a process whose work failed: the exit code of commands for errors.
const ERROR_STATUS: i32 = 2;

/// The absolute path of a folder for a trace, which must not exist yet or be empty.
///
/// # Errors
/// The folder has something in it, or cannot be read.
pub fn empty_folder(named: &Path) -> Result<PathBuf, TracerError> {
    match fs::read_dir(named).map(|mut entries| entries.next().is_none()) {
        Ok(false) => Err(TracerError::NotEmpty { folder: named.to_owned() }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TracerError::io("read", named)(error))
        }
        _ => std::path::absolute(named).map_err(TracerError::io("find", named)),
    }
}

/// Does some work and records it. All threads that record must have ended when the work returns.
/// `rank` is that of this process in its job; a process with several ranks has none, its threads say
/// whose they are.
///
/// # Errors
/// Nothing can be recorded, which is found out before the work begins, or the trace cannot be written.
pub fn record_this_process<T, E>(
    folder: &Path,
    rank: Option<u32>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<(Result<T, E>, DrainReport), TracerError> {
    let memory = segment_folder::create(folder)?;
    let mut drainer = Drainer::start(folder, &memory)?;
    let config = Config {
        folder: text(&memory)?,
        overflow: text(drainer.overflow())?,
        folder_bytes: MEMORY_BYTES,
        is_drained: true,
        counter: is_counter_trusted(),
        rank: rank.map_or(-1, u32::cast_signed),
        ..Config::EMPTY
    };
    let arguments: Vec<_> = std::env::args_os().collect();
    let arguments = arguments.iter().map(|argument| OsStr::as_encoded_bytes(argument));
    if !recorder().start(&config, arguments) {
        return Err(TracerError::NotRecording { folder: folder.to_owned() });
    }
    name_thread("main");
    let (working, end) = channel::<()>();
    let drain = move || {
        // The work comes first. Not lowering the priority is not an error.
        let _ = rustix::process::nice(10);
        let is_over =
            |pause| (end.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)).then_some(());
        drain_until(&mut drainer, is_over).1?;
        drainer.finish()
    };
    let thread = std::thread::Builder::new().name("drainer".to_owned());
    let draining = thread.spawn(drain).map_err(TracerError::io("drain into", folder))?;
    let done = work();
    recorder().end(Ending::Exit, i32::from(done.is_err()) * ERROR_STATUS);
    drop(working);
    let drained = draining.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok((done, drained?))
}

fn text(path: &Path) -> Result<Text<1024>, TracerError> {
    Text::new(path.as_os_str().as_encoded_bytes())
        .ok_or_else(|| TracerError::LongPath { path: path.to_owned() })
}
