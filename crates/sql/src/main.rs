//! The `feedline-sql` command: the one place that prints an error or chooses an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use feedline_sql::{Args, run};

/// The exit code of any error.
const ERROR: u8 = 2;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = error.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
            // If nobody reads it there is nothing else to do about it.
            let _ = write!(std::io::stderr().lock(), "error: {error}\n{hint}");
            ExitCode::from(ERROR)
        }
    }
}
