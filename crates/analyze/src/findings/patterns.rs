//! Findings about file access: sizes, offsets, repeated reads, errors, and targets slower than others.

use super::{RuleContext, row};
use crate::analysis::{Confidence, Coverage, FileUse, Finding, Phase};
use crate::layer::StallCause;
use crate::saturating::Total as _;
use crate::wording::{bytes, percent, rate, seconds};

/// Causes of stalls that reads are to blame for.
const READING: [StallCause; 2] = [StallCause::Read, StallCause::ObjectStore];

pub(super) fn findings(context: &RuleContext) -> Vec<Finding> {
    let rules = [
        small_reads(context),
        metadata(context),
        rereads(context),
        random(context),
        slow_target(context),
        saturated(context),
        errors(context),
    ];
    rules.into_iter().flatten().collect()
}

/// Whether a time is worth a finding. Without steps the cost of stalls is unknown, so the pattern alone decides.
fn matters(context: &RuleContext, ns: u64) -> bool {
    context.analysis.health.coverage == Coverage::CallsOnly
        || context.severity(ns) >= context.thresholds.cause_share
}

/// A share of a time; shares outside of 0 to 1 are clamped.
fn part(ns: u64, share: f64) -> u64 {
    (ns as f64 * share.clamp(0.0, 1.0)) as u64
}

/// Fits the time of a read as `fixed + slope * bytes` by least squares over the cells of sizes and latencies.
fn fit(cells: &[[u64; 3]]) -> Option<(f64, f64)> {
    let middle = |exponent: u64| 1.5 * 2_f64.powi(exponent as i32);
    let (mut n, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for [size, latency, count] in cells {
        let (x, y, w) = (middle(*size), middle(*latency), *count as f64);
        n += w;
        sx += w * x;
        sy += w * y;
        sxx += w * x * x;
        sxy += w * x * y;
    }
    let spread = n * sxx - sx * sx;
    // If all sizes are the same, they do not show how time grows with size.
    if n < 100.0 || spread <= 0.01 * sx * sx {
        return None;
    }
    let slope = (n * sxy - sx * sy) / spread;
    let fixed = (sy - slope * sx) / n;
    (slope > 0.0 && fixed > 0.0).then_some((fixed, slope))
}

fn small_reads(context: &RuleContext) -> Option<Finding> {
    let data = &context.analysis.data;
    let access = &context.analysis.access;
    let reads = data.read_sizes.counts.iter().copied().total();
    let mean = data.bytes_read as f64 / reads.max(1) as f64;
    let stalled_ns = context.stalled_ns(&READING);
    if reads < 1000 || mean >= context.thresholds.small_read_bytes as f64 {
        return None;
    }
    let fitted = fit(&data.read_size_by_latency);
    // Reads of a single size do not show which part of their time larger reads would save.
    let latency_share = fitted.map_or(0.0, |(fixed, slope)| fixed / (fixed + slope * mean));
    let explains_ns = part(stalled_ns, latency_share);
    if !matters(context, if fitted.is_some() { explains_ns } else { stalled_ns }) {
        return None;
    }
    let title = format!("reads are small: {} on average", bytes(mean));
    let mut finding = context.finding("small-reads", title, explains_ns);
    let limit = if fitted.is_some() { Confidence::High } else { Confidence::Low };
    finding.confidence = finding.confidence.min(limit);
    finding.evidence.push(row("reads", reads.to_string()));
    finding.evidence.push(row("consecutive reads", access.reads_consecutive.to_string()));
    let samples = context.analysis.ranks.iter().map(|rank| rank.samples).total();
    if samples > 0 {
        let each = reads as f64 / samples as f64;
        finding.evidence.push(row("reads per sample", format!("{each:.1}")));
    }
    if let Some((fixed, slope)) = fitted {
        finding.evidence.push(row(
            "time per read",
            format!("{} plus bytes at {}", seconds(fixed as u64), rate(1e9 / slope)),
        ));
        let needed = 9.0 * fixed / slope;
        finding.evidence.push(row("read size for 90 % of that rate", bytes(needed)));
    }
    finding.actions = vec![
        "read larger pieces: merge adjacent reads, or read whole samples at once".into(),
        "pack samples into shards that are read sequentially".into(),
    ];
    finding.threshold =
        format!("small-read-bytes: {}", bytes(context.thresholds.small_read_bytes as f64));
    finding.sql = "SELECT name, count(*) AS reads, avg(result) AS bytes, approx_percentile_cont(duration, 0.5) AS p50_ns FROM events WHERE class = 'read' GROUP BY name ORDER BY reads DESC".into();
    Some(finding)
}

fn metadata(context: &RuleContext) -> Option<Finding> {
    let analysis = context.analysis;
    let opens = analysis.data.opens;
    let share = analysis.data.metadata_calls as f64 / analysis.data.calls.max(1) as f64;
    let explains_ns = context.stalled_ns(&[StallCause::Open]);
    let is_storm = opens >= 1000 && share >= context.thresholds.metadata_calls_share;
    if !is_storm || !matters(context, explains_ns) {
        return None;
    }
    let title = format!("{} of all calls open, close or look up files", percent(share));
    let mut finding = context.finding("metadata-storm", title, explains_ns);
    finding.evidence.push(row("opens", opens.to_string()));
    let samples = analysis.ranks.iter().map(|rank| rank.samples).total();
    if samples > 0 {
        let each = opens as f64 / samples as f64;
        finding.evidence.push(row("opens per sample", format!("{each:.2}")));
    }
    if let Some(each) = analysis.data.opens_per_file {
        finding.evidence.push(row("opens per file", format!("{each:.1}")));
    }
    let mut folders: Vec<&FileUse> = analysis.folders.iter().collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.metadata_ns));
    finding.objects = folders.iter().take(3).map(|folder| folder.path.clone()).collect();
    finding.actions = vec![
        "pack many samples into one file, and keep files open".into(),
        "list folders once, and store sizes with the samples instead of calling stat".into(),
    ];
    finding.threshold = format!(
        "metadata-calls-share: {} of calls, and at least 1000 opens",
        percent(context.thresholds.metadata_calls_share)
    );
    finding.sql = "SELECT class, count(*) AS calls, sum(duration) AS ns FROM events WHERE class IN ('open', 'close', 'stat', 'directory') GROUP BY class ORDER BY ns DESC".into();
    Some(finding)
}

fn rereads(context: &RuleContext) -> Option<Finding> {
    let factor = context.analysis.data.reread_factor?;
    let epochs = context.analysis.epochs.iter().filter(|epoch| epoch.phase == Phase::Train).count();
    // Without epochs it is unknown how often data should be read.
    let each = factor / epochs as f64;
    if epochs == 0 || each < context.thresholds.reread_factor {
        return None;
    }
    let explains_ns = part(context.stalled_ns(&READING), 1.0 - 1.0 / each);
    if !matters(context, explains_ns) {
        return None;
    }
    let title = format!("each byte is read {each:.1} times per epoch");
    let mut finding = context.finding("rereads", title, explains_ns);
    finding.evidence.push(row("bytes read", bytes(context.analysis.data.bytes_read as f64)));
    finding
        .evidence
        .push(row("size of the files read", bytes(context.analysis.data.extent_read as f64)));
    finding.evidence.push(row("epochs", epochs.to_string()));
    let shared = context.analysis.files.iter().filter(|file| file.ranks > 1).count();
    finding.evidence.push(row("files read by several ranks", shared.to_string()));
    finding.actions = vec![
        "let ranks read different shards, or share data between ranks of a host".into(),
        "keep decoded indexes and headers instead of reading them again for each sample".into(),
    ];
    finding.threshold =
        format!("reread-factor: {} times per epoch", context.thresholds.reread_factor);
    finding.sql = "SELECT path, bytes_read, extent_read, reread_factor, ranks FROM file_use ORDER BY reread_factor DESC LIMIT 20".into();
    Some(finding)
}

fn random(context: &RuleContext) -> Option<Finding> {
    let access = &context.analysis.access;
    let jumps = access.reads_forward + access.reads_backward;
    let placed = jumps + access.reads_consecutive + access.reads_first;
    let share = jumps as f64 / placed.max(1) as f64;
    let explains_ns = part(context.stalled_ns(&READING), share);
    if placed < 1000 || share < context.thresholds.random_share || !matters(context, explains_ns) {
        return None;
    }
    let title = format!("{} of reads are at random offsets", percent(share));
    let mut finding = context.finding("random-access", title, explains_ns);
    finding.confidence = finding.confidence.min(Confidence::Medium);
    finding.evidence.push(row("forward jumps", access.reads_forward.to_string()));
    finding.evidence.push(row("backward jumps", access.reads_backward.to_string()));
    finding.evidence.push(row("consecutive reads", access.reads_consecutive.to_string()));
    finding.actions = vec![
        "shuffle shards, and samples within a window, instead of individual samples".into(),
        "on flash this may be harmless: compare with `feedline ceiling`".into(),
    ];
    finding.threshold =
        format!("random-share: {} of reads", percent(context.thresholds.random_share));
    finding.sql = "SELECT f.path, count(*) AS reads FROM events e JOIN files f ON e.file = f.id WHERE e.class = 'read' GROUP BY f.path ORDER BY reads DESC LIMIT 20".into();
    Some(finding)
}

/// Nanoseconds per call of 64 KiB. Larger calls count as several, since they may take longer.
fn pace(file: &FileUse) -> f64 {
    let calls = [file.opens, file.reads, file.writes, file.others].into_iter().total();
    let pieces = file.bytes_read.saturating_add(file.bytes_written) / (64 << 10);
    file.ns as f64 / (calls + pieces).max(1) as f64
}

/// Files or folders whose calls take many times as long as those of the others.
fn slow_target(context: &RuleContext) -> Option<Finding> {
    let candidates = [&context.analysis.folders, &context.analysis.files];
    let all_ns = context.analysis.folders.iter().map(|folder| folder.ns).total();
    let found = candidates.into_iter().find_map(|targets| {
        let used: Vec<&FileUse> =
            targets.iter().filter(|it| it.reads.saturating_add(it.writes) >= 3).collect();
        let mut paces: Vec<f64> = used.iter().map(|target| pace(target)).collect();
        paces.sort_by(f64::total_cmp);
        let median = *paces.get(paces.len().saturating_sub(1) / 2)?;
        let is_slow = |target: &&&FileUse| {
            pace(target) >= context.thresholds.slow_target_factor * median
                && target.ns.saturating_mul(20) >= all_ns / 5
        };
        let slow: Vec<&FileUse> = used.iter().filter(is_slow).copied().collect();
        let excess: f64 = slow.iter().map(|it| it.ns as f64 * (1.0 - median / pace(it))).sum();
        // A target is slow compared with others; if most are slow, the storage is.
        let is_few = !slow.is_empty() && slow.len() * 4 <= used.len() && used.len() >= 4;
        (is_few && excess >= 0.05 * all_ns as f64).then_some((slow, used.len(), median, excess))
    });
    let (mut slow, all, median, excess) = found?;
    let io = [StallCause::Open, StallCause::Read, StallCause::Write, StallCause::ObjectStore];
    let explains_ns = part(context.stalled_ns(&io), excess / all_ns.max(1) as f64);
    if !matters(context, explains_ns) {
        return None;
    }
    slow.sort_by(|a, b| pace(b).total_cmp(&pace(a)));
    let title = format!(
        "{} of {all} files or folders are slow: {} per call of 64 KiB, where others take {}",
        slow.len(),
        seconds(pace(slow[0]) as u64),
        seconds(median as u64)
    );
    let mut finding = context.finding("slow-target", title, explains_ns);
    finding.confidence = finding.confidence.min(Confidence::Medium);
    for target in slow.iter().take(5) {
        let text =
            format!("{} per call, {} in total", seconds(pace(target) as u64), seconds(target.ns));
        finding.evidence.push(row(&target.path, text));
        finding.objects.push(target.path.clone());
    }
    finding.actions = vec![
        "check the storage target (server, disk, mount) that holds them".into(),
        "move or copy them, and compare with `feedline diff`".into(),
    ];
    finding.threshold = format!(
        "slow-target-factor: {} times the median time per call",
        context.thresholds.slow_target_factor
    );
    finding.sql = "SELECT path, ns, reads, opens, bytes_read FROM file_use ORDER BY ns / (reads + opens + writes + others) DESC LIMIT 20".into();
    Some(finding)
}

/// More calls in flight do not bring more bytes.
fn saturated(context: &RuleContext) -> Option<Finding> {
    let timeline = &context.analysis.timeline;
    let mut used: Vec<(u64, u64)> =
        timeline.io_ns.iter().copied().zip(timeline.bytes_read.iter().copied()).collect();
    used.retain(|(io_ns, bytes)| *io_ns > 0 && *bytes > 0);
    if used.len() < 20 {
        return None;
    }
    used.sort_unstable();
    let quarter = used.len() / 4;
    let sums = |part: &[(u64, u64)]| {
        part.iter().fold((0.0, 0.0), |(io, moved), it| (io + it.0 as f64, moved + it.1 as f64))
    };
    let (low, high) = (sums(&used[..quarter]), sums(&used[used.len() - quarter..]));
    let (deeper, more) = (high.0 / low.0, high.1 / low.1);
    let busiest = high.0 / timeline.bucket_ns as f64 / quarter as f64;
    // Writes take time but bring no bytes; a single call at a time is slow by itself, not because of others.
    let data = &context.analysis.data;
    let is_reading = data.bytes_written.saturating_mul(10) <= data.bytes_read;
    if deeper < 1.5 || more > 1.1 || busiest < 2.0 || !is_reading {
        return None;
    }
    let explains_ns = part(context.stalled_ns(&READING), 1.0 - more / deeper);
    if !matters(context, explains_ns) {
        return None;
    }
    let bucket = timeline.bucket_ns as f64;
    let in_flight = |io: f64| format!("{:.1}", io / bucket / quarter as f64);
    let speed = |moved: f64| rate(moved / quarter as f64 / (bucket / 1e9));
    let title = "storage is saturated: more reads in flight do not bring more bytes".to_owned();
    let mut finding = context.finding("storage-saturated", title, explains_ns);
    finding.confidence = finding.confidence.min(Confidence::Medium);
    finding.evidence.push(row(
        "least busy quarter",
        format!("{} in flight, {}", in_flight(low.0), speed(low.1)),
    ));
    finding.evidence.push(row(
        "busiest quarter",
        format!("{} in flight, {}", in_flight(high.0), speed(high.1)),
    ));
    finding.actions = vec![
        "more workers would only wait longer; fewer may be enough".into(),
        "use faster storage, a cache close to the accelerators, or smaller samples".into(),
    ];
    finding.threshold =
        "1.5 times the reads in flight bring at most 1.1 times the bytes".to_owned();
    finding.sql = "SELECT time_bucket(1000000000, start) AS second, sum(result) AS bytes, sum(duration) / 1e9 AS in_flight FROM events WHERE class = 'read' GROUP BY second ORDER BY second".into();
    Some(finding)
}

/// Calls that returned an error. Programs probe for files, so a missing file is not an error here.
fn errors(context: &RuleContext) -> Option<Finding> {
    let harmless = ["ENOENT", "EEXIST", "ENOTTY", "EINTR", "EAGAIN", "ENOTDIR", "ESPIPE", "ECHILD"];
    let data = &context.analysis.data;
    let real = || data.errors_by_number.iter().filter(|it| !harmless.contains(&it.name.as_str()));
    let count = real().map(|it| it.count).total();
    if count == 0 {
        return None;
    }
    let title = format!("{count} file calls returned an error");
    let mut finding = context.finding("errors", title, 0);
    finding.confidence = Confidence::High;
    for error in real().take(5) {
        finding.evidence.push(row(&error.name, error.count.to_string()));
    }
    let mut files: Vec<&FileUse> =
        context.analysis.files.iter().filter(|it| it.errors > 0).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.errors));
    finding.objects = files.iter().take(5).map(|file| file.path.clone()).collect();
    finding.actions = vec!["check these files, and the storage logs of that time".into()];
    finding.threshold = format!("any error other than {}", harmless.join(", "));
    finding.sql = "SELECT f.path, e.name, e.errno, count(*) AS calls FROM events e LEFT JOIN files f ON e.file = f.id WHERE e.errno <> 0 GROUP BY f.path, e.name, e.errno ORDER BY calls DESC LIMIT 20".into();
    Some(finding)
}
