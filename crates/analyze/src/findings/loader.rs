//! Too few workers, or too few batches in flight.
//!
//! A stall in the middle of a worker's read is attributed to reading, even if one more worker would have
//! prevented it. So these two are also found by what the model of the loader predicts they would save; a
//! finding explains the larger of the two times.

use super::{RuleContext, row, time_row};
use crate::analysis::{Confidence, Finding};
use crate::layer::StallCause;
use crate::wording::{percent, seconds};

/// Workers that are busier than this have no time for more batches.
const BUSY_SHARE: f64 = 0.9;
/// A cause with more than this share of all stalls is what is slow, however many workers there are.
const MAIN_SHARE: f64 = 0.5;

/// What a worker does while it makes a batch.
const WORK: [StallCause; 8] = [
    StallCause::Open,
    StallCause::Read,
    StallCause::Write,
    StallCause::ObjectStore,
    StallCause::Decode,
    StallCause::Transform,
    StallCause::Python,
    StallCause::Collate,
];

/// A setting of the loader that may be too small.
struct Setting {
    code: &'static str,
    cause: StallCause,
    title: &'static str,
    actions: [&'static str; 2],
    /// What predictions of it begin with.
    prediction: &'static str,
    /// What must hold for its prediction to count.
    condition: String,
    sql: &'static str,
}

pub(super) fn findings(context: &RuleContext) -> Vec<Finding> {
    let what_if = &context.analysis.what_if;
    let is_busy = context.busy_share() >= BUSY_SHARE;
    let work = context.analysis.stall.iter().filter(|time| WORK.contains(&time.cause));
    let has_main_cause = work.map(|time| time.share).fold(0.0, f64::max) > MAIN_SHARE;
    let workers = Setting {
        code: "too-few-workers",
        cause: StallCause::Workers,
        title: "too few workers: all of them are busy when a batch is due",
        actions: [
            "add workers while cores and storage have room: the what-if table shows how many",
            "make their work cheaper: see the other findings",
        ],
        prediction: "workers",
        condition: format!(
            "workers at least {} busy, no single cause above {} of stalls",
            percent(BUSY_SHARE),
            percent(MAIN_SHARE)
        ),
        sql: "SELECT rank, workers, workers_busy_share, stall_ns FROM ranks ORDER BY stall_ns DESC",
    };
    let prefetch = Setting {
        code: "small-prefetch",
        cause: StallCause::Prefetch,
        title: "too few batches in flight: workers sit idle while a batch is due",
        actions: [
            "raise the prefetch factor, so that every worker has a next batch to work on",
            "deliver batches out of order where training allows it",
        ],
        prediction: "prefetch",
        condition: format!("workers less than {} busy", percent(BUSY_SHARE)),
        sql: "SELECT epoch, step, stall_ns, service_ns, service_start_ns FROM steps ORDER BY stall_ns DESC LIMIT 20",
    };
    let saved_by_workers = (is_busy && !has_main_cause).then_some(what_if.saved_by_workers_ns);
    let saved_by_prefetch = (!is_busy).then_some(what_if.saved_by_prefetch_ns);
    let found = [(workers, saved_by_workers), (prefetch, saved_by_prefetch)];
    found.into_iter().filter_map(|(setting, saved)| finding(context, &setting, saved)).collect()
}

fn finding(context: &RuleContext, setting: &Setting, saved_ns: Option<u64>) -> Option<Finding> {
    let is_long = |ns: &u64| context.severity(*ns) >= context.thresholds.cause_share;
    let stalled_ns =
        Some(context.stalled_ns(&[setting.cause])).filter(|ns| *ns > 0).filter(is_long);
    let saved_ns = saved_ns.filter(is_long);
    let explains_ns = stalled_ns.max(saved_ns)?;
    let mut finding = context.finding(setting.code, setting.title.to_owned(), explains_ns);
    if saved_ns == Some(explains_ns) {
        finding.confidence = finding.confidence.min(Confidence::Medium);
        finding.evidence.push(row("stalled time it would save", seconds(explains_ns)));
    }
    if let Some(ns) = stalled_ns {
        let share = ns as f64 / context.analysis.verdict.stall_ns.max(1) as f64;
        finding.evidence.push(time_row("stalled, of all stalls", ns, share));
    }
    finding.evidence.extend(context.worker_rows());
    let predictions = context.analysis.what_if.cases.iter();
    for one in predictions.filter(|one| one.change.starts_with(setting.prediction)) {
        let (step, stalled) = (seconds(one.step_ns), percent(one.stall_share));
        finding.evidence.push(row(&one.change, format!("{step} per step, {stalled} stalled")));
    }
    finding.actions = setting.actions.map(str::to_owned).to_vec();
    finding.threshold = format!(
        "cause-share: {} of step time stalled for it, or predicted to be saved ({})",
        percent(context.thresholds.cause_share),
        setting.condition
    );
    finding.sql = setting.sql.to_owned();
    Some(finding)
}
