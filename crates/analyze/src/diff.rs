//! Two runs beside each other: what changed, by how much, and what it is due to.
//!
//! Step times are compared by their means, with the interval in which the difference lies if blocks of steps
//! are drawn again. Causes are compared as stalled time a step, so runs of different lengths compare.

use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, Phase, Step};
use crate::layer::StallCause;
use crate::resample::{Draws, blocks, quantile};
use crate::wording::{percent, seconds};

/// Times that blocks of steps are drawn again.
const DRAWS: usize = 1000;

/// Two runs beside each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// What the first was made of.
    pub first: Vec<String>,
    /// What the second was made of.
    pub second: Vec<String>,
    /// The answer, in one sentence.
    pub text: String,
    /// Whether the second is slower by more than was allowed, and not by chance.
    pub is_worse: bool,
    /// How much slower it may be, as a share.
    pub allowed: f64,
    /// Mean step time by the first one's, minus one; none if either has no steps.
    pub step_change: Option<f64>,
    /// The 95 % interval of it.
    pub step_change_interval: Option<[f64; 2]>,
    /// What the change is due to, the largest first: stalled, computing and other time per step.
    pub shifts: Vec<Shift>,
    /// Totals of both traces side by side.
    pub figures: Vec<Figure>,
    /// Calls and spans whose time changed most.
    pub functions: Vec<FunctionChange>,
    /// Why they may not compare.
    pub warnings: Vec<String>,
}

/// Time per step that was gained or lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// A cause, `compute`, `communication` or `other`.
    pub what: String,
    /// Nanoseconds per step in the first trace.
    pub first_ns: i64,
    /// Nanoseconds per step in the second trace.
    pub second_ns: i64,
}

impl Shift {
    /// Nanoseconds per step that were added; negative if it became faster.
    pub fn change_ns(&self) -> i64 {
        self.second_ns - self.first_ns
    }
}

/// A total of both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What is measured, such as `bytes read`.
    pub name: String,
    /// Its value in the first trace.
    pub first: f64,
    /// Its value in the second trace.
    pub second: f64,
    /// `ns`, `bytes`, `percent`, `count` or `per-second`.
    pub unit: String,
}

/// Calls or spans of one name in both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionChange {
    /// Category and name.
    pub name: String,
    /// How many there were.
    pub counts: [u64; 2],
    /// Mean duration of a call in each trace.
    pub mean_ns: [f64; 2],
    /// 99 % took no longer.
    pub p99_ns: [u64; 2],
    /// Sum of all durations in each trace.
    pub total_ns: [u64; 2],
}

fn training(analysis: &Analysis) -> Vec<&Step> {
    analysis.steps.iter().filter(|step| step.phase == Phase::Train).collect()
}

fn mean(values: impl ExactSizeIterator<Item = u64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.map(u128::from).sum::<u128>() as f64 / count
}

/// Compares two runs; the second may be slower by the share `allowed`.
pub fn diff(first: &Analysis, second: &Analysis, allowed: f64) -> Diff {
    let mut diff = Diff {
        first: first.trace.inputs.clone(),
        second: second.trace.inputs.clone(),
        allowed,
        figures: figures(first, second),
        functions: functions(first, second),
        warnings: warnings(first, second),
        ..Diff::default()
    };
    let (ours, theirs) = (training(first), training(second));
    if ours.is_empty() || theirs.is_empty() {
        diff.text = "one of the runs has no steps: only calls can be compared".to_owned();
        return diff;
    }
    diff.shifts = shifts(&ours, &theirs);
    let durations =
        |steps: &[&Step]| steps.iter().map(|step| step.duration_ns).collect::<Vec<u64>>();
    let (ours, theirs) = (durations(&ours), durations(&theirs));
    let (before, after) = (mean(ours.iter().copied()), mean(theirs.iter().copied()));
    let change = after / before.max(1.0) - 1.0;
    let interval = interval(&ours, &theirs);
    diff.step_change = Some(change);
    diff.step_change_interval = Some(interval);
    diff.is_worse = change > allowed && interval[0] > 0.0;
    diff.text = sentence(&diff, before, after, change, interval);
    diff
}

fn sentence(diff: &Diff, before: f64, after: f64, change: f64, interval: [f64; 2]) -> String {
    let times = format!("{} per step, before {}", seconds(after as u64), seconds(before as u64));
    if interval[0] <= 0.0 && interval[1] >= 0.0 {
        return format!("no difference beyond chance: {times}");
    }
    let word = if change > 0.0 { "slower" } else { "faster" };
    let main = diff.shifts.iter().take(2).map(|shift| {
        let sign = if shift.change_ns() < 0 { '-' } else { '+' };
        format!("{} {sign}{}", shift.what, seconds(shift.change_ns().unsigned_abs()))
    });
    let main = main.collect::<Vec<_>>().join(", ");
    format!("{} {word}: {times} ({main} per step)", percent(change.abs()))
}

/// The 95 % interval of the change of the mean.
fn interval(ours: &[u64], theirs: &[u64]) -> [f64; 2] {
    let mut draws = Draws::new(ours.len() as u64 ^ ((theirs.len() as u64) << 32));
    let mut drawn = |values: &[u64]| {
        let some = blocks(values.len(), &mut draws);
        let drawn = some.iter().flat_map(|(from, length)| &values[*from..from + length]);
        drawn.copied().map(u128::from).sum::<u128>() as f64 / values.len() as f64
    };
    let mut changes: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let before = drawn(ours);
            drawn(theirs) / before.max(1.0) - 1.0
        })
        .collect();
    changes.sort_by(f64::total_cmp);
    let at = |permille| quantile(&changes, permille).unwrap_or(0.0);
    [at(25), at(975)]
}

fn shifts(ours: &[&Step], theirs: &[&Step]) -> Vec<Shift> {
    let each = |steps: &[&Step], of: &dyn Fn(&Step) -> u64| {
        mean(steps.iter().map(|step| of(step))).round() as i64
    };
    let mut shifts: Vec<Shift> = Vec::new();
    let mut add = |what: &str, of: &dyn Fn(&Step) -> u64| {
        let shift =
            Shift { what: what.to_owned(), first_ns: each(ours, of), second_ns: each(theirs, of) };
        if shift.first_ns != 0 || shift.second_ns != 0 {
            shifts.push(shift);
        }
    };
    for cause in StallCause::ALL {
        add(cause.name(), &|step| step.parts_ns.get(cause as usize).copied().unwrap_or(0));
    }
    add("compute", &|step| step.compute_ns);
    let rest = |step: &Step| {
        step.duration_ns.saturating_sub(step.stall_ns).saturating_sub(step.compute_ns)
    };
    add("other", &rest);
    shifts.sort_by_key(|shift| std::cmp::Reverse(shift.change_ns().abs()));
    shifts
}

fn figures(first: &Analysis, second: &Analysis) -> Vec<Figure> {
    let mut rows = Vec::new();
    let mut add = |name: &str, unit: &str, of: &dyn Fn(&Analysis) -> Option<f64>| {
        if let (Some(ours), Some(theirs)) = (of(first), of(second)) {
            rows.push(Figure {
                name: name.to_owned(),
                first: ours,
                second: theirs,
                unit: unit.to_owned(),
            });
        }
    };
    add("run time", "ns", &|it| Some(it.trace.run_ns as f64));
    add("events", "count", &|it| Some(it.trace.events as f64));
    add("ranks", "count", &|it| Some(it.allocation.ranks as f64));
    add("steps", "count", &|it| Some(it.verdict.steps as f64));
    let has_steps = |it: &Analysis| it.verdict.steps > 0;
    add("stalled", "percent", &|it| has_steps(it).then_some(it.verdict.stall_share * 100.0));
    add("accelerator utilization", "percent", &|it| it.verdict.au_percent);
    add("samples", "per-second", &|it| it.verdict.samples_per_second);
    add("bytes read", "bytes", &|it| Some(it.data.bytes_read as f64));
    add("file calls", "count", &|it| Some(it.data.calls as f64));
    add("errors", "count", &|it| Some(it.data.errors as f64));
    add("checkpoint stalls", "ns", &|it| Some(it.checkpoints.stall_ns as f64));
    rows
}

fn functions(first: &Analysis, second: &Analysis) -> Vec<FunctionChange> {
    let mut rows = Vec::new();
    for ours in &first.functions {
        let same = second
            .functions
            .iter()
            .find(|theirs| theirs.category == ours.category && theirs.name == ours.name);
        if let Some(theirs) = same {
            rows.push(FunctionChange {
                name: format!("{}/{}", ours.category, ours.name),
                counts: [ours.count, theirs.count],
                mean_ns: [ours.latency.mean, theirs.latency.mean],
                p99_ns: [ours.latency.p99, theirs.latency.p99],
                total_ns: [ours.total_ns, theirs.total_ns],
            });
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns[0].abs_diff(row.total_ns[1])));
    rows.truncate(20);
    rows
}

/// The read models that runs of Feedline say they used, in order.
fn read_models(analysis: &Analysis) -> Vec<&str> {
    let marks = analysis.functions.iter().filter(|function| function.category == "read_model");
    let mut models: Vec<_> = marks.map(|function| function.name.as_str()).collect();
    models.sort_unstable();
    models
}

fn warnings(first: &Analysis, second: &Analysis) -> Vec<String> {
    let mut warnings = Vec::new();
    let (ours, theirs) = (first.allocation.ranks, second.allocation.ranks);
    if ours != theirs {
        warnings.push(format!("{ours} ranks compared with {theirs}"));
    }
    let (ours, theirs) = (read_models(first), read_models(second));
    if !ours.is_empty() && !theirs.is_empty() && ours != theirs {
        let (ours, theirs) = (ours.join(" and "), theirs.join(" and "));
        warnings.push(format!(
            "the first was read with the {ours} model, the second with {theirs}: they asked the storage \
             for different things"
        ));
    }
    for (which, analysis) in [("first", first), ("second", second)] {
        let limits = analysis.health.problems.iter().filter(|problem| problem.limits_claims);
        warnings.extend(limits.map(|problem| format!("the {which}: {}", problem.text)));
    }
    if first.health.coverage != second.health.coverage {
        warnings.push("the traces do not cover the same layers".to_owned());
    }
    warnings
}
