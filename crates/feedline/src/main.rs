//! The `feedline` command: arguments, progress, printing and exit codes. The libraries compute what
//! it prints; only this crate writes to a terminal or chooses an exit code.
//!
//! When it is started under the name `dlio_benchmark` (a link to the binary), it takes DLIO's command
//! line: see [`dlio`].

mod analyze;
mod args;
mod calibrate;
mod ceiling;
mod convert;
mod dlio;
mod failure;
mod job;
mod launcher;
mod load_progress;
mod plan_checkpoint;
mod progress;
mod require;
mod run;
mod selection;
mod show;
mod signals;
mod sql;
mod trace;
mod verdict_lane;
mod verify;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use feedline_bench::Dialect;
use job::Job;

/// The name under which the command takes DLIO's command line.
const DLIO_NAME: &str = "dlio_benchmark";

fn main() -> ExitCode {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    // A traced program joins its own job; the launcher of its trace must not do so in its place.
    let is_trace =
        name != DLIO_NAME && std::env::args_os().nth(1).is_some_and(|word| word == "trace");
    let job = match if is_trace { Ok(Job::alone()) } else { Job::join() } {
        Ok(job) => job,
        Err(error) if name == DLIO_NAME => return failure::report_once(&error, dlio::ERROR),
        Err(error) => return failure::report_once(&error, failure::ERROR),
    };
    if name == DLIO_NAME {
        return dlio::main(std::env::args().skip(1).collect(), job);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let code = failure::usage(&error, &job);
            return job.end(Ok(code), Dialect::Feedline, |_| failure::ERROR);
        }
    };
    let result = match args.command {
        Command::Run(run) => run::main(&run, &job),
        _ if !job.leads() => job.wait().map(|()| 0).map_err(Into::into),
        _ if job.processes() > 1 => Err(failure::hinted(
            format!(
                "only `feedline run` can run in several processes, but {} were started",
                job.processes()
            ),
            "start this command once, without the launcher",
        )),
        Command::Trace(args) => trace::main(args),
        Command::Analyze(args) => analyze::main(&args),
        Command::Merge(args) => analyze::merge(&args),
        Command::Diff(args) => analyze::diff(&args),
        Command::Sql(args) => sql::main(&args),
        Command::Verify(verify) => verify::main(&verify),
        Command::Convert(args) => convert::main(&args),
        Command::Ceiling(args) => ceiling::main(&args),
        Command::Calibrate(args) => calibrate::main(&args),
        Command::PlanCheckpoint(args) => plan_checkpoint::main(&args),
        Command::Workloads { name } => show::workloads(name.as_deref()),
        Command::Explain { metric } => show::explain(metric.as_deref()),
        Command::Reference { page } => show::reference(page),
    };
    if is_trace {
        // Launchers of traces do not know of one another, and the first to fail may end the job: each
        // one reports its own error.
        return ExitCode::from(result.unwrap_or_else(|error| {
            failure::print(&error, Dialect::Feedline);
            failure::ERROR
        }));
    }
    job.end(result, Dialect::Feedline, |_| failure::ERROR)
}
