//! Traces a command and prints its report as JSON: `trace_command LIBRARY FOLDER COMMAND...`

#![expect(clippy::print_stdout, reason = "a program")]

use std::ffi::OsString;
use std::process::ExitCode;

use feedline_tracer::{TraceOptions, TracerError, launch};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(library), Some(folder)) = (words.next(), words.next()) else {
        println!("usage: trace_command LIBRARY FOLDER COMMAND...");
        return ExitCode::FAILURE;
    };
    let options = TraceOptions {
        library: Some(library.into()),
        folder: Some(folder.into()),
        ..TraceOptions::default()
    };
    match trace(&words.collect::<Vec<_>>(), &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn trace(command: &[OsString], options: &TraceOptions) -> Result<(), TracerError> {
    let mut program = launch(command, options)?;
    program.wait()?;
    program.wait_for_children()?;
    let report = program.finish()?;
    println!("{}", serde_json::to_string_pretty(&report).expect("numbers and text"));
    Ok(())
}
