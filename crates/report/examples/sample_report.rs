//! Writes the page of an analysis that was made up, for judges of the page and for work on its looks.
//!
//! `sample_report small PAGE` has 8 ranks and 2,000 steps, `sample_report large PAGE` 512 ranks and 200,000
//! steps, `sample_report calls PAGE` storage calls only. `sample_report screen` prints the screen.

#![allow(clippy::print_stdout, reason = "a program of tests")]

use std::error::Error;

use feedline_report::{Style, analysis_screen, html_report};

#[path = "made_up/analysis.rs"]
mod made_up;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (analysis, path) = match words[..] {
        ["small", path] => (made_up::analysis(made_up::SMALL), path),
        ["large", path] => (made_up::analysis(made_up::LARGE), path),
        ["calls", path] => (made_up::calls_only(), path),
        ["screen"] => {
            let style = Style { width: 100, color: false };
            print!("{}", analysis_screen(&made_up::analysis(made_up::SMALL), style));
            return Ok(());
        }
        _ => return Err("expected small, large or calls and a path, or screen".into()),
    };
    std::fs::write(path, html_report(&analysis))?;
    Ok(())
}
