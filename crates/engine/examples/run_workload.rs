//! Runs a workload and reads its typed result: `run_workload WORKLOAD DATA RESULTS [KEY=VALUE]...`
#![expect(clippy::print_stdout, reason = "it is an example")]

use std::error::Error;
use std::sync::Arc;

use feedline_bench::{Silent, SummaryFile};
use feedline_engine::{
    PlannedRun, RunOptions, RunOutput, WorkloadSelection, WorkloadSource, parse_overrides, quoted,
    run,
};
use feedline_ranks::Alone;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [workload, data, results, overrides @ ..] = words.as_slice() else {
        return Err("usage: run_workload WORKLOAD DATA RESULTS [KEY=VALUE]...".into());
    };
    let mut overrides = parse_overrides(overrides)?;
    overrides.extend(parse_overrides(&[format!("dataset.data_folder={}", quoted(data))])?);
    let source = WorkloadSource::find(workload, None)?;

    let selection = WorkloadSelection::new(source, overrides);
    let planned = PlannedRun::new(selection, RunOptions::new(1)?, &Arc::default())?;
    for warning in &planned.warnings {
        println!("warning: {warning}");
    }
    let output = RunOutput::new(results);
    let done = run(planned, &output, Arc::new(Alone), Arc::new(Silent))?;

    let summary = SummaryFile::read(&done.folder.join("summary.json"))?.feedline;
    println!("steps: {}, on {} accelerators", summary.steps, summary.accelerators);
    println!("verdict: {}", summary.verdict.result);
    println!("utilization: {:?} %", summary.au_strict_percentage);
    println!("results: {}", done.folder.display());
    Ok(())
}
