//! `feedline plan-checkpoint`: what a checkpoint consists of, without making one.

use feedline_bench::CheckpointPlan;
use feedline_workload::{BUILT_IN, CheckpointMode, Workload, check_checkpoint, presets, resolve};
use serde_json::json;

use feedline_engine::WorkloadSource;

use crate::args::PlanCheckpointArgs;
use crate::{failure, selection, show};

pub(crate) fn main(args: &PlanCheckpointArgs) -> anyhow::Result<u8> {
    let selection = selection::named(&args.words, args.config_dir.as_deref(), &args.set)?;
    let resolved = resolve(&selection.composed()?)?;
    for warning in &resolved.warnings {
        failure::say(&format!("warning: {warning}"));
    }
    let workload = &resolved.workload;
    let ranks = args.ranks.unwrap_or_else(|| usual_ranks(&selection.source, workload));
    check_checkpoint(workload, ranks)?;
    let plan = CheckpointPlan::new(workload, ranks)?;
    let name = &selection.source.name;
    if args.json {
        let object = json!({
            "feedline_schema": feedline_bench::SCHEMA_VERSION,
            "checkpoint_plan": plan.to_json(name),
        });
        return show::print(&serde_json::to_string_pretty(&object)?);
    }
    let style = show::style();
    show::print(&feedline_report::checkpoint_plan::checkpoint_plan(name, &plan, workload, style))
}

/// The ranks that a shipped workload is known for, as long as its keys leave room for them; else those
/// of one copy of the model.
fn usual_ranks(source: &WorkloadSource, workload: &Workload) -> u32 {
    let parallelism = &workload.model.parallelism;
    let one_copy = parallelism.tensor.saturating_mul(parallelism.pipeline);
    let known = presets::find(&source.name).filter(|_| source.origin == BUILT_IN);
    let fits = |ranks: u32| match (workload.checkpoint.mode, parallelism.data) {
        (CheckpointMode::Subset, Some(data)) => ranks <= one_copy.saturating_mul(data),
        _ => ranks.is_multiple_of(one_copy),
    };
    known.and_then(|preset| preset.ranks).filter(|&ranks| fits(ranks)).unwrap_or(one_copy)
}
