//! How errors reach the user: one line, the chain of causes, one hint.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use feedline_bench::{BenchError, Dialect, EmulationError};
use feedline_engine::EngineError;
use feedline_tracer::TracerError;
use feedline_workload::WorkloadError;

use crate::job::Job;
use crate::launcher;

/// Exit code of a command that ended with an error.
pub(crate) const ERROR: u8 = 2;
/// Exit code of a command that completed but did not meet a requirement.
pub(crate) const MISSED: u8 = 1;
/// Exit code of a run that a signal stopped; it has written the results so far.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error of the command itself, with a hint.
#[derive(Debug)]
struct Hinted {
    message: String,
    hint: String,
}

/// An error of the command itself; the hint says what to type instead.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Hinted { message: message.into(), hint: hint.into() })
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Hinted {}

/// Prints an error once per job, before its processes are connected: only launcher rank 0 prints.
pub(crate) fn report_once(error: &anyhow::Error, code: u8) -> ExitCode {
    print_once(error, Dialect::Feedline);
    ExitCode::from(code)
}

/// Prints an error that all processes a launcher started have in common: only the first one does.
pub(crate) fn print_once(error: &anyhow::Error, dialect: Dialect) {
    if launcher::started().is_none_or(|started| started.rank == 0) {
        print(error, dialect);
    }
}

/// Prints what is wrong with a command line, or the requested help, and returns the exit code.
pub(crate) fn usage(error: &clap::Error, job: &Job) -> u8 {
    if job.leads() {
        // If stdout is closed, nothing is left to report it to.
        let _ = error.print();
    }
    if error.use_stderr() { ERROR } else { 0 }
}

/// Prints an error, its causes and its hint.
pub(crate) fn print(error: &anyhow::Error, dialect: Dialect) {
    print_as("error", error, dialect);
}

/// Prints an error of one process of a job; `place` names the process.
pub(crate) fn print_at(place: &str, error: &anyhow::Error, dialect: Dialect) {
    print_as(&format!("error: {place}"), error, dialect);
}

fn print_as(head: &str, error: &anyhow::Error, dialect: Dialect) {
    say(&format!("{head}: {error:#}"));
    if let Some(hint) = hint(error, dialect) {
        say(&format!("hint: {hint}"));
    }
}

/// Prints a line to stderr. A run goes on if stderr is closed: its results are in files.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Warns that the trace of this process is incomplete.
pub(crate) fn warn_of_lost_events(lost: u64) {
    if lost > 0 {
        say(&format!("warning: {lost} events were lost and are not in the trace"));
    }
}

/// The error of a run that `cause` is or wraps.
pub(crate) fn bench<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a BenchError> {
    let of_engine = || cause.downcast_ref::<EngineError>().and_then(EngineError::bench);
    cause.downcast_ref().or_else(of_engine)
}

fn hint(error: &anyhow::Error, dialect: Dialect) -> Option<String> {
    error.chain().find_map(|cause| {
        let engine = || cause.downcast_ref::<EngineError>().and_then(|error| error.hint(dialect));
        let bench = || cause.downcast_ref::<BenchError>().and_then(|error| error.hint(dialect));
        let emulation = || cause.downcast_ref::<EmulationError>().map(EmulationError::hint);
        let tracer = || cause.downcast_ref::<TracerError>().and_then(TracerError::hint);
        let workload = || cause.downcast_ref::<WorkloadError>().and_then(WorkloadError::hint);
        let own = || cause.downcast_ref::<Hinted>().map(|hinted| hinted.hint.clone());
        engine().or_else(bench).or_else(emulation).or_else(tracer).or_else(workload).or_else(own)
    })
}
