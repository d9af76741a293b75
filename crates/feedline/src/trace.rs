//! `feedline trace`: runs a program and records what it does with files.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use feedline_bench::Dialect;
use feedline_tracer::{Existing, Launched, TraceOptions, TraceReport};

use crate::args::TraceArgs;
use crate::{failure, launcher};

/// Traces a program; its exit code.
pub(crate) fn main(args: TraceArgs) -> anyhow::Result<u8> {
    let options = TraceOptions {
        folder: args.out,
        existing: if args.overwrite { Existing::Replace } else { Existing::Refuse },
        rank: launcher::started().map(|started| started.rank),
        data: args.data,
        include: args.include,
        exclude: args.exclude,
        calls: args.calls,
        sample: args.sample,
        summary_ms: args.summary,
        memory_bytes: args.memory << 20,
        library: args.library,
    };
    let mut program = feedline_tracer::launch(&args.command, &options)?;
    // The program comes first. Not lowering the priority is not an error.
    let _ = rustix::process::nice(10);
    let code = code_of(program.wait()?);
    let folder = program.folder().to_owned();
    let report = match finish(program) {
        Ok(report) => report,
        Err(error) => {
            failure::print(&error.context("the trace is not complete"), Dialect::Feedline);
            failure::say(&format!(
                "hint: free some space, then `feedline convert {} OUT` adds the rest",
                folder.display()
            ));
            return Ok(if code == 0 { failure::ERROR } else { code });
        }
    };
    if !args.quiet {
        feedline_report::trace::screen(&report).lines().for_each(failure::say);
    }
    Ok(code)
}

/// Children may outlive the program. What they do belongs to the trace, so it goes on until they have
/// ended, or until the user has had enough.
fn finish(mut program: Launched) -> anyhow::Result<TraceReport> {
    let running = program.running()?;
    if running > 0 {
        failure::say(&format!(
            "the program has ended; waiting for {running} of its processes (Ctrl-C ends the trace)",
        ));
    }
    program.wait_for_children()?;
    Ok(program.finish()?)
}

/// The program's exit code, as a shell would give it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(failure::ERROR)
}
