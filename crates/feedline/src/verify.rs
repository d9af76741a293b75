//! `feedline verify`.

use std::io::{self, Write as _};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use feedline_bench::{BenchError, Observer as _};
use feedline_clock::Clock;
use feedline_dataset::{BadFile, Fault, Verification, Verified};
use feedline_numbers::units;
use serde_json::{Value, json};

use crate::args::VerifyArgs;
use crate::progress::Progress;
use crate::{failure, signals};

/// The beginning of the one JSON object. The version is raised when a key changes its meaning or
/// goes away.
const OBJECT_BEGIN: &str = "{\n  \"feedline_verify\": 1,\n  \"bad\": [";
/// Threads unless told otherwise: more of them rarely read faster.
const MOST_THREADS: usize = 8;

/// Checks a data set.
pub(crate) fn main(args: &VerifyArgs) -> anyhow::Result<u8> {
    let stop = signals::stop()?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let progress = Progress::new();
    let verification = Verification {
        clock: &Clock::real(),
        data: &*feedline_engine::connect(&args.folder, &stop)?,
        threads: args.threads.map_or_else(cores, usize::from),
        stop: &stop,
        progress: &|done| progress.verifying(done),
    };
    let out = Mutex::new(Output { as_json: args.json, begun: false, failure: None });
    let locked = || out.lock().unwrap_or_else(PoisonError::into_inner);
    let verified = verification.run(&|bad| progress.beside(|| locked().bad_file(bad)));
    progress.phase_ends();
    let verified = verified.map_err(BenchError::from)?;
    let interrupted = stop.load(Ordering::Relaxed) && verified.checked_files < verified.files;
    let mut out = locked();
    out.end(&args.folder, &verified, interrupted);
    if let Some(error) = out.failure.take() {
        return Err(error.into());
    }
    if interrupted {
        let (checked, files) = (verified.checked_files, units::counted(verified.files, "file"));
        failure::say(&format!("stopped: {} of {files} checked", units::count(checked)));
        return Ok(failure::INTERRUPTED);
    }
    if verified.bad_files == 0 {
        return Ok(0);
    }
    let folder = &args.folder;
    failure::say(&format!(
        "hint: delete the bad files; `feedline run WORKLOAD --data {folder} --generate-only` generates them again"
    ));
    Ok(failure::MISSED)
}

/// What goes to stdout, as it is found: a set may have more bad files than memory should hold.
struct Output {
    as_json: bool,
    /// A bad file has been written.
    begun: bool,
    /// Why output ended early; a closed pipe is not an error.
    failure: Option<io::Error>,
}

impl Output {
    fn bad_file(&mut self, bad: &BadFile) {
        if !self.as_json {
            return self.write(&feedline_report::verify::bad_file(bad));
        }
        let begin = if self.begun { "," } else { OBJECT_BEGIN };
        self.begun = true;
        self.write(&format!("{begin}\n    {}", json_of(bad)));
    }

    fn end(&mut self, folder: &str, verified: &Verified, interrupted: bool) {
        if !self.as_json {
            if interrupted {
                return;
            }
            return self.write(&feedline_report::verify::summary(verified));
        }
        let begin = if self.begun { "\n  ],\n" } else { &format!("{OBJECT_BEGIN}],\n") };
        let strangers = &verified.strangers;
        let rest = json!({
            "folder": folder,
            "files": verified.files,
            "bytes": verified.bytes,
            "checked_files": verified.checked_files,
            "bad_files": verified.bad_files,
            "unknown_files": strangers.files,
            "unknown": strangers.named,
            "interrupted": interrupted,
            "good": verified.bad_files == 0 && !interrupted,
        });
        let rest = serde_json::to_string_pretty(&rest).unwrap_or_default();
        self.write(&format!("{begin}{}\n", rest.trim_start_matches("{\n")));
    }

    fn write(&mut self, text: &str) {
        if self.failure.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.failure = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
    }
}

fn json_of(bad: &BadFile) -> Value {
    let name = &bad.name;
    match &bad.fault {
        Fault::Missing => json!({"name": name, "fault": "missing"}),
        Fault::Size { found, expected } => {
            json!({"name": name, "fault": "size", "found": found, "expected": expected})
        }
        Fault::Checksum { found, expected } => {
            let hex = |crc32: &u32| format!("{crc32:08x}");
            json!({"name": name, "fault": "crc32", "found": hex(found), "expected": hex(expected)})
        }
        Fault::Unreadable { reason } => {
            json!({"name": name, "fault": "unreadable", "reason": reason})
        }
    }
}
