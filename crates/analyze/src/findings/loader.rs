//! How many workers, and how many batches under way: what the model of the loader says they would save.
//!
//! Stalls in the middle of a worker's reading are called reading, also if one more worker would have been
//! done by then. So these two are told by what would be saved, not by what the worker was in.

use super::{Case, at_most, row};
use crate::analysis::{Confidence, Finding};
use crate::layer::Cause;
use crate::wording::{percent, seconds};

/// Workers that are busy for longer have no time for more batches.
const BUSY_SHARE: f64 = 0.9;
/// A cause that is more than this of all stalls is what is slow, however many workers there are.
const MAIN_SHARE: f64 = 0.5;

/// What a worker is in while it makes a batch.
const WORK: [Cause; 8] = [
    Cause::Open,
    Cause::Read,
    Cause::Write,
    Cause::ObjectStore,
    Cause::Decode,
    Cause::Transform,
    Cause::Python,
    Cause::Collate,
];

pub(super) fn add(case: &Case, found: &mut Vec<Finding>) {
    for finding in [few_workers(case), prefetch(case)].into_iter().flatten() {
        // The same thing may have been told by what workers were in; the model knows all of it.
        found.retain(|other| other.code != finding.code || other.explains_ns > finding.explains_ns);
        if !found.iter().any(|other| other.code == finding.code) {
            found.push(finding);
        }
    }
}

/// Share of their lives in which workers worked on batches.
fn busy_share(case: &Case) -> f64 {
    let ranks = case.analysis.ranks.iter().filter(|rank| rank.workers > 0);
    let (count, sum) =
        ranks.fold((0.0, 0.0), |(n, sum), it| (n + 1.0, sum + it.workers_busy_share));
    if count > 0.0 { sum / count } else { 0.0 }
}

fn few_workers(case: &Case) -> Option<Finding> {
    let what_if = &case.analysis.what_if;
    let saved_ns = what_if.saved_by_workers_ns;
    let busy = busy_share(case);
    let main = case.analysis.stall.iter().filter(|time| WORK.contains(&time.cause));
    let is_one_thing = main.map(|time| time.share).fold(0.0, f64::max) > MAIN_SHARE;
    if case.severity(saved_ns) < case.thresholds.cause_share || busy < BUSY_SHARE || is_one_thing {
        return None;
    }
    let title = "there are too few workers: more would save this".to_owned();
    let mut finding = case.finding("too-few-workers", title, saved_ns);
    finding.confidence = at_most(finding.confidence, Confidence::Medium);
    finding.evidence.push(row("workers a rank", what_if.workers.to_string()));
    finding.evidence.push(row("they were busy", percent(busy)));
    for one in what_if.cases.iter().filter(|one| one.change.starts_with("workers")) {
        let text =
            format!("{} per step, {} stalled", seconds(one.step_ns), percent(one.stall_share));
        finding.evidence.push(row(&one.change, text));
    }
    finding.actions = vec![
        "more workers, as long as cores and the storage take them".to_owned(),
        "or make their work cheaper: see what it consists of".to_owned(),
    ];
    finding.threshold = format!(
        "workers busy for {}, no single cause above {} of stalls, cause-share: {} of step time saved",
        percent(BUSY_SHARE),
        percent(MAIN_SHARE),
        percent(case.thresholds.cause_share)
    );
    finding.sql =
        "SELECT rank, workers, workers_busy_share, stall_ns FROM ranks ORDER BY stall_ns DESC"
            .into();
    Some(finding)
}

fn prefetch(case: &Case) -> Option<Finding> {
    let what_if = &case.analysis.what_if;
    let saved_ns = what_if.saved_by_prefetch_ns;
    let busy = busy_share(case);
    if case.severity(saved_ns) < case.thresholds.cause_share || busy >= BUSY_SHARE {
        return None;
    }
    let title =
        "too few batches may be under way: workers sit idle, and more would save this".to_owned();
    let mut finding = case.finding("small-prefetch", title, saved_ns);
    finding.confidence = at_most(finding.confidence, Confidence::Medium);
    finding.evidence.push(row("workers a rank", what_if.workers.to_string()));
    finding.evidence.push(row("batches under way, at most", what_if.outstanding.to_string()));
    finding.evidence.push(row("workers were busy", percent(busy)));
    for one in what_if.cases.iter().filter(|one| one.change.starts_with("prefetch")) {
        let text =
            format!("{} per step, {} stalled", seconds(one.step_ns), percent(one.stall_share));
        finding.evidence.push(row(&one.change, text));
    }
    finding.actions = vec![
        "raise the prefetch factor: every worker should have a batch to go on with".to_owned(),
    ];
    finding.threshold = format!(
        "workers idle for {} and more, cause-share: {} of step time saved",
        percent(1.0 - BUSY_SHARE),
        percent(case.thresholds.cause_share)
    );
    finding.sql =
        "SELECT epoch, step, stall_ns, service_ns, service_start_ns FROM steps ORDER BY stall_ns DESC LIMIT 20".into();
    Some(finding)
}
