//! The numbers that support the answer: who, where the time went, calls, epochs, ranks, checkpoints, health.

use feedline_analyze::Analysis;
use feedline_analyze::analysis::{
    AccessPatterns, Checkpoints, Epoch, Function, Health, LayerTime, Overlap, RoleCount, Stragglers,
};
use feedline_numbers::units;

use super::grid::grid;
use super::{line, ns, part, plain, share};
use crate::wrap::{item, labeled};

const MOST_PLACES: usize = 2;

/// Who took part, and with what.
pub(super) fn traced(analysis: &Analysis, columns: usize) -> Vec<String> {
    let (who, data) = (&analysis.allocation, &analysis.data);
    let text = format!(
        "{}, {}; processes: {}; threads: {} computing, {} doing I/O; {} in {}",
        units::counted(who.hosts.len() as u64, "host"),
        units::counted(who.ranks, "rank"),
        roles(&who.processes),
        units::count(who.compute_threads),
        units::count(who.io_threads),
        units::counted(analysis.trace.events, "event"),
        ns(analysis.trace.run_ns),
    );
    let mut lines = labeled("traced", &text, columns);
    if data.calls == 0 {
        return lines;
    }
    let reread = data
        .reread_factor
        .map_or_else(String::new, |factor| format!(", each byte {} times", units::number(factor)));
    let text = format!(
        "{}, {} ({} with errors); read {}{reread}; wrote {}",
        units::counted(data.files, "file"),
        units::counted(data.calls, "call"),
        units::count(data.errors),
        units::bytes(data.bytes_read as f64),
        units::bytes(data.bytes_written as f64),
    );
    lines.extend(labeled("data", &text, columns));
    lines
}

fn roles(roles: &[RoleCount]) -> String {
    if roles.is_empty() {
        return "n/a".to_owned();
    }
    let one = |role: &RoleCount| format!("{} {}", units::count(role.count), plain(&role.role));
    roles.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The layers with most time, in their order.
pub(super) fn layers(all: &[LayerTime], most: usize, columns: usize) -> Vec<String> {
    // Those that others lie inside of say least.
    let mut times: Vec<u64> = all.iter().map(|layer| layer.self_ns).collect();
    times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
    let least = times.get(most.saturating_sub(1)).copied().unwrap_or(0);
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter(|layer| layer.self_ns >= least)
        .take(most)
        .map(|layer| {
            vec![
                layer.layer.name().to_owned(),
                ns(layer.mean_ns),
                ns(layer.exposed_mean_ns),
                ns(layer.least_ns),
                ns(layer.most_ns),
                ns(layer.self_ns),
                units::count(layer.events),
                units::bytes(layer.bytes as f64),
            ]
        })
        .collect();
    let heading = ["layers", "per rank", "exposed", "least", "most", "self", "events", "bytes"];
    grid(&heading, &rows, columns)
}

/// What computation hides, and what it does not.
pub(super) fn overlaps(all: &[Overlap], columns: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|overlap| {
            vec![
                plain(&overlap.what),
                ns(overlap.total_ns),
                ns(overlap.overlapped_ns),
                ns(overlap.exposed_ns),
                ns(overlap.compute_ns),
                ns(overlap.compute_alone_ns),
            ]
        })
        .collect();
    let heading = ["overlap", "per rank", "overlapped", "exposed", "compute", "compute alone"];
    grid(&heading, &rows, columns)
}

/// The functions that took longest.
pub(super) fn functions(all: &[Function], most: usize, columns: usize) -> Vec<String> {
    let mut longest: Vec<&Function> = all.iter().collect();
    longest.sort_by_key(|function| std::cmp::Reverse(function.self_ns));
    let rows: Vec<Vec<String>> = longest.into_iter().take(most).map(function).collect();
    let heading = [
        "functions",
        "count",
        "total",
        "size min",
        "p25",
        "mean",
        "p50",
        "p75",
        "max",
        "time p50",
        "p99",
        "errors",
    ];
    grid(&heading, &rows, columns)
}

fn function(function: &Function) -> Vec<String> {
    let mut cells =
        vec![plain(&function.name), units::count(function.count), ns(function.total_ns)];
    match &function.size {
        Some(size) => {
            let values = [
                size.min as f64,
                size.p25 as f64,
                size.mean,
                size.p50 as f64,
                size.p75 as f64,
                size.max as f64,
            ];
            cells.extend(values.map(units::bytes));
        }
        None => cells.extend(["-"; 6].map(String::from)),
    }
    cells.push(ns(function.latency.p50));
    cells.push(ns(function.latency.p99));
    cells.push(units::count(function.errors));
    cells
}

/// Where calls began.
pub(super) fn access(access: &AccessPatterns, columns: usize) -> Vec<String> {
    let pattern = |noun: &str, counts: [u64; 5]| {
        let all: u64 = counts.iter().sum();
        let words =
            ["consecutive", "forward", "backward", "first in a file", "at an unknown offset"];
        let some = words.iter().zip(counts).filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            some.map(|(word, count)| format!("{} {word}", part(count, all))).collect();
        (all > 0).then(|| format!("{noun} {}", parts.join(", ")))
    };
    let reads = pattern(
        "reads",
        [
            access.reads_consecutive,
            access.reads_forward,
            access.reads_backward,
            access.reads_first,
            access.reads_unplaced,
        ],
    );
    let writes = pattern(
        "writes",
        [
            access.writes_consecutive,
            access.writes_forward,
            access.writes_backward,
            access.writes_first,
            access.writes_unplaced,
        ],
    );
    let maps = (access.maps > 0).then(|| {
        let bytes = units::bytes(access.bytes_mapped as f64);
        format!("{bytes} mapped by {}", units::counted(access.maps, "call"))
    });
    let parts: Vec<String> = [reads, writes, maps].into_iter().flatten().collect();
    line("access", &parts.join("; "), columns)
}

/// The first epochs.
pub(super) fn epochs(all: &[Epoch], most: usize, columns: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = all
        .iter()
        .take(most)
        .map(|epoch| {
            vec![
                format!("{} {}", epoch.phase.name(), epoch.epoch),
                units::count(epoch.steps),
                units::percent(epoch.au_percent),
                part(epoch.stall_ns, epoch.step_ns),
                ns(epoch.first_batch_ns),
                units::number(epoch.samples_per_second),
                ns(epoch.duration_ns),
            ]
        })
        .collect();
    let heading = ["epochs", "steps", "AU", "stalled", "first batch", "samples/s", "duration"];
    let mut lines = grid(&heading, &rows, columns);
    if all.len() > most {
        lines.push(format!("  and {} more", units::count((all.len() - most) as u64)));
    }
    lines
}

/// What waiting for the slowest rank cost, and who that was.
pub(super) fn stragglers(all: &Stragglers, most: usize, columns: usize) -> Vec<String> {
    if all.ranks.is_empty() {
        return Vec::new();
    }
    let ranks = all.ranks.iter().take(most).map(|one| {
        format!(
            "rank {} on {} {} in {} of steps because of {}",
            one.rank,
            plain(&one.host),
            ns(one.lost_ns),
            share(one.slowest_share),
            plain(&one.because),
        )
    });
    let text = format!(
        "waiting for the slowest rank cost {}, the median rank took {}: {}",
        ns(all.lost_ns),
        ns(all.median_ns),
        ranks.collect::<Vec<_>>().join("; "),
    );
    labeled("stragglers", &text, columns)
}

/// Saves and loads together.
pub(super) fn checkpoints(all: &Checkpoints, columns: usize) -> Vec<String> {
    let Some(longest) = all.transfers.iter().max_by_key(|transfer| transfer.duration_ns) else {
        return Vec::new();
    };
    let count = |direction: &str| {
        all.transfers.iter().filter(|transfer| transfer.direction == direction).count() as u64
    };
    let bytes: u64 = all.transfers.iter().map(|transfer| transfer.bytes).sum();
    let counts: Vec<String> = [("save", count("save")), ("load", count("load"))]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(noun, count)| units::counted(count, noun))
        .collect();
    let interval = all
        .interval_ns
        .map_or_else(String::new, |interval| format!("; one save every {}", ns(interval)));
    let text = format!(
        "{}, {} in total, slowest {} (rank {}); ranks waited for {}, {} of their time{interval}",
        counts.join(", "),
        units::bytes(bytes as f64),
        ns(longest.duration_ns),
        longest.slowest_rank,
        ns(all.stall_ns),
        share(all.stall_share),
    );
    labeled("checkpoints", &text, columns)
}

/// What may be said, and what is wrong with the trace.
pub(super) fn health(health: &Health, most: usize, columns: usize) -> Vec<String> {
    let nothing = if health.problems.is_empty() { "; no problems found" } else { "" };
    let mut lines = labeled("health", &format!("{}{nothing}", health.coverage.sentence()), columns);
    for problem in health.problems.iter().take(most) {
        let limit = if problem.limits_claims { "; the numbers above may be wrong" } else { "" };
        let mut places: Vec<String> =
            problem.places.iter().take(MOST_PLACES).map(|place| plain(place)).collect();
        let rest = problem.places.len().saturating_sub(MOST_PLACES);
        if rest > 0 {
            places.push(format!("{} more", units::count(rest as u64)));
        }
        let places =
            if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        let text = format!("{}: {}{places}{limit}", plain(&problem.code), plain(&problem.text));
        lines.extend(item("", &text, columns));
    }
    let rest = health.problems.len().saturating_sub(most);
    if rest > 0 {
        lines.extend(item("", &format!("and {} more", units::count(rest as u64)), columns));
    }
    lines
}
