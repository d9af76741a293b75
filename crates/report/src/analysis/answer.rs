//! The answer, what it rests on, what to do, and what would be if.

use feedline_analyze::Analysis;
use feedline_analyze::analysis::{CauseTime, StallVerdict, WhatIf};
use feedline_numbers::units;

use super::grid::grid;
use super::{claims_stalls, line, ns, part, plain, share};
use crate::bars;
use crate::style::{Ink, Style};
use crate::wrap::{hanging, labeled, shorten};

const MOST_FINDINGS: usize = 5;

/// What the verdict rests on.
pub(super) fn evidence(verdict: &StallVerdict, columns: usize) -> Vec<String> {
    if verdict.steps == 0 {
        return Vec::new();
    }
    let interval = verdict.stall_share_interval.map_or_else(String::new, |[low, high]| {
        format!(" (95 % interval {} to {})", units::fixed(100.0 * low, 1), share(high))
    });
    let text = format!(
        "stalled {} of step time{interval}, {}, split by cause with {} confidence; {} of steps stalled \
         for more than a tenth, p95 {}",
        share(verdict.stall_share),
        units::counted(verdict.steps, "step"),
        verdict.confidence.name(),
        share(verdict.stalled_steps_share),
        ns(verdict.stall_p95_ns),
    );
    let rates = [
        verdict.au_percent.map(|au| format!("AU {}", units::percent(au))),
        verdict.samples_per_second.map(|rate| format!("{} samples/s", units::number(rate))),
        verdict.read_bytes_per_second.map(|rate| format!("{}/s read", units::bytes(rate))),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let mut lines = labeled("evidence", &text, columns);
    lines.extend(line("rates", &rates.join(", "), columns));
    lines
}

/// Stalled time by cause, as bars. Causes beyond `most` are one line.
pub(super) fn stall(analysis: &Analysis, most: usize, style: Style) -> Vec<String> {
    let (all, stall_ns) = (&analysis.stall, analysis.verdict.stall_ns);
    if all.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<(&str, u64, f64)> = all.iter().take(most).map(named).collect();
    if all.len() > most {
        // The last line that is shown sums up all that are not.
        let rest = &all[most - 1..];
        let (ns, share) =
            (rest.iter().map(|one| one.ns).sum(), rest.iter().map(|one| one.share).sum());
        rows[most - 1] = ("others", ns, share);
    }
    let times: Vec<String> = rows.iter().map(|(_, time, _)| ns(*time)).collect();
    let time_columns = times.iter().map(|time| time.chars().count()).max().unwrap_or(0);
    let text = format!("{} over all ranks, by cause", ns(stall_ns));
    let mut lines = labeled("stalled", &text, style.columns());
    for ((name, _, part), time) in rows.into_iter().zip(times) {
        let text = format!("  {name:<13} {:>7}  {time:>time_columns$}", share(part));
        let room = style.columns().saturating_sub(text.chars().count() + 2);
        let bar = style.paint(Ink::DimRed, &bars::bar(part, room));
        lines.push(format!("{text}  {bar}").trim_end().to_owned());
    }
    lines
}

fn named(time: &CauseTime) -> (&'static str, u64, f64) {
    (time.cause.name(), time.ns, time.share)
}

/// The first findings; `explained` of them with their evidence and actions in full, the others with as much
/// of their actions as fits on a line.
pub(super) fn findings(analysis: &Analysis, explained: usize, columns: usize) -> Vec<String> {
    let all = &analysis.findings;
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["findings".to_owned()];
    for (place, finding) in all.iter().take(MOST_FINDINGS).enumerate() {
        let severity = match claims_stalls(analysis) {
            true => format!(" {} of step time,", share(finding.severity)),
            false => String::new(),
        };
        let text = format!(
            "{}: {},{severity} {} confidence",
            plain(&finding.title),
            ns(finding.explains_ns),
            finding.confidence.name(),
        );
        lines.extend(hanging(&format!("  {}. ", place + 1), "     ", &text, columns));
        let actions = plain(&finding.actions.join("; "));
        if place >= explained {
            if !actions.is_empty() {
                lines.push(format!("     do:   {}", shorten(&actions, columns - 11)));
            }
            continue;
        }
        let seen: Vec<String> = finding
            .evidence
            .iter()
            .map(|[name, value]| plain(&format!("{name} {value}")))
            .collect();
        if !seen.is_empty() {
            lines.push(format!("     seen: {}", shorten(&seen.join("; "), columns - 11)));
        }
        if !actions.is_empty() {
            lines.extend(hanging("     do:   ", "           ", &actions, columns));
        }
    }
    let rest = all.len().saturating_sub(MOST_FINDINGS);
    if rest > 0 {
        lines.push(format!("     and {} more", units::count(rest as u64)));
    }
    lines
}

/// The predictions of the loader model, or why there are none.
pub(super) fn what_if(what_if: &WhatIf, most: usize, columns: usize) -> Vec<String> {
    if let Some(why) = &what_if.refused {
        return line("what if", &format!("no predictions: {}", plain(why)), columns);
    }
    if what_if.cases.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "{} per step observed, {} modeled, with {} and {} in flight per rank",
        ns(what_if.observed_step_ns),
        ns(what_if.modelled_step_ns),
        units::counted(u64::from(what_if.workers), "worker"),
        batches(what_if.outstanding),
    );
    let rows: Vec<Vec<String>> = what_if
        .cases
        .iter()
        .take(most)
        .map(|case| {
            let [low, high] = case.step_interval_ns;
            vec![
                plain(&case.change),
                ns(case.step_ns),
                part(case.step_ns, what_if.observed_step_ns),
                share(case.stall_share),
                format!("{} to {}", ns(low), ns(high)),
            ]
        })
        .collect();
    let mut lines = labeled("what if", &text, columns);
    let heading = ["  change", "step", "of observed", "stalled", "90 % interval"];
    lines.extend(grid(&heading, &rows, columns));
    lines
}

fn batches(count: u32) -> String {
    match count {
        1 => "1 batch".to_owned(),
        count => format!("{} batches", units::count(u64::from(count))),
    }
}
