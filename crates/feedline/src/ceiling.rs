//! `feedline ceiling`: what this client could feed if the storage were infinitely fast.

use feedline_bench::{BenchError, Client, Probe};
use feedline_clock::Clock;
use feedline_engine::{PlannedRun, RunOptions, StoredCalibration};
use serde_json::json;

use crate::args::CeilingArgs;
use crate::{failure, selection, show, signals};

pub(crate) fn main(args: &CeilingArgs) -> anyhow::Result<u8> {
    let selection = selection::named(&args.words, args.config_dir.as_deref(), &args.set)?;
    let calibration = StoredCalibration::find(args.calibration.as_deref())?;
    let options = RunOptions { calibration, ..RunOptions::new(1)? };
    let planned = PlannedRun::new(selection, options, &Default::default())?;
    for warning in &planned.warnings {
        failure::say(&format!("warning: {warning}"));
    }
    let workload = &planned.workload;
    let name = &planned.composed.name;
    if !workload.workflow.train || workload.train.computation_time.mean_seconds() <= 0.0 {
        return Err(failure::hinted(
            format!("workload {name} does not train, or computes nothing"),
            "the demand of an accelerator follows from `train.computation_time` and \
             `reader.batch_size`; set both",
        ));
    }
    let stop = signals::stop()?;
    let folder = std::env::temp_dir().join(format!("feedline-ceiling-{}", std::process::id()));
    let client = Client {
        clock: Clock::real(),
        folder: &folder,
        stop,
        framework: planned.plan.framework.clone(),
        seen: &|probe: Probe| {
            failure::say(&format!("tried: {}", feedline_report::ceiling::probe(&probe)));
        },
    };
    failure::say("measuring how fast this client is with files in memory");
    let measured = client.measure(workload);
    let _ = std::fs::remove_dir_all(&folder);
    let found = match measured {
        Err(BenchError::Stopped) => return Ok(failure::INTERRUPTED),
        other => other?,
    };
    if args.json {
        let object = json!({
            "feedline_schema": feedline_bench::SCHEMA_VERSION,
            "ceiling": found.to_json(name),
        });
        return show::print(&serde_json::to_string_pretty(&object)?);
    }
    show::print(&feedline_report::ceiling::ceiling(name, workload, &found, show::style()))
}
