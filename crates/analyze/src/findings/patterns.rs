//! How files are used: sizes, places, repetition, errors, and targets that are slower than others.

use super::{Case, at_most, row};
use crate::analysis::{Confidence, Coverage, FileUse, Finding, Phase};
use crate::layer::Cause;
use crate::saturating::Total as _;
use crate::wording::{bytes, percent, rate, seconds};

/// Stalls that reading is to blame for.
const READING: [Cause; 2] = [Cause::Read, Cause::ObjectStore];

pub(super) fn findings(case: &Case) -> Vec<Finding> {
    let rules = [
        small_reads(case),
        metadata(case),
        rereads(case),
        random(case),
        slow_target(case),
        saturated(case),
        errors(case),
    ];
    rules.into_iter().flatten().collect()
}

/// Without steps nobody knows what stalls cost: then rules speak by the pattern alone.
fn matters(case: &Case, ns: u64) -> bool {
    case.analysis.health.coverage == Coverage::CallsOnly
        || case.severity(ns) >= case.thresholds.cause_share
}

/// A part of a time.
fn part(ns: u64, share: f64) -> u64 {
    (ns as f64 * share.clamp(0.0, 1.0)) as u64
}

/// The time of a read is `a + bytes / b`, by least squares over the cells of sizes and latencies.
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
    // Sizes that are all the same say nothing about how the time grows with them.
    if n < 100.0 || spread <= 0.01 * sx * sx {
        return None;
    }
    let slope = (n * sxy - sx * sy) / spread;
    let fixed = (sy - slope * sx) / n;
    (slope > 0.0 && fixed > 0.0).then_some((fixed, slope))
}

fn small_reads(case: &Case) -> Option<Finding> {
    let data = &case.analysis.data;
    let access = &case.analysis.access;
    let reads = data.read_sizes.counts.iter().copied().total();
    let mean = data.bytes_read as f64 / reads.max(1) as f64;
    let stalled_ns = case.stalled_ns(&READING);
    if reads < 1000 || mean >= case.thresholds.small_read_bytes as f64 {
        return None;
    }
    let fitted = fit(&data.read_size_by_latency);
    // Reads of one size do not tell which part of their time larger ones would save.
    let latency_share = fitted.map_or(0.0, |(fixed, slope)| fixed / (fixed + slope * mean));
    let explains_ns = part(stalled_ns, latency_share);
    if !matters(case, if fitted.is_some() { explains_ns } else { stalled_ns }) {
        return None;
    }
    let title = format!("reads are small: {} on average", bytes(mean));
    let mut finding = case.finding("small-reads", title, explains_ns);
    let limit = if fitted.is_some() { Confidence::High } else { Confidence::Low };
    finding.confidence = at_most(finding.confidence, limit);
    finding.evidence.push(row("reads", reads.to_string()));
    finding.evidence.push(row("read on from the last one", access.reads_consecutive.to_string()));
    let samples = case.analysis.ranks.iter().map(|rank| rank.samples).total();
    if samples > 0 {
        let each = reads as f64 / samples as f64;
        finding.evidence.push(row("reads a sample", format!("{each:.1}")));
    }
    if let Some((fixed, slope)) = fitted {
        finding.evidence.push(row(
            "a read takes",
            format!("{} plus its bytes at {}", seconds(fixed as u64), rate(1e9 / slope)),
        ));
        let wanted = 9.0 * fixed / slope;
        finding.evidence.push(row("for 90 % of that rate reads need", bytes(wanted)));
    }
    finding.actions = vec![
        "read larger pieces: merge reads that follow each other, or read whole samples at once"
            .into(),
        "pack samples into shards that are read in a row".into(),
    ];
    finding.threshold =
        format!("small-read-bytes: {}", bytes(case.thresholds.small_read_bytes as f64));
    finding.sql = "SELECT name, count(*) AS reads, avg(result) AS bytes, approx_percentile_cont(duration, 0.5) AS p50_ns FROM events WHERE class = 'read' GROUP BY name ORDER BY reads DESC".into();
    Some(finding)
}

fn metadata(case: &Case) -> Option<Finding> {
    let analysis = case.analysis;
    let opens = analysis.data.opens;
    let share = analysis.data.metadata_calls as f64 / analysis.data.calls.max(1) as f64;
    let explains_ns = case.stalled_ns(&[Cause::Open]);
    let is_storm = opens >= 1000 && share >= case.thresholds.metadata_calls_share;
    if !is_storm || !matters(case, explains_ns) {
        return None;
    }
    let title = format!("{} of all calls only open, close or look up files", percent(share));
    let mut finding = case.finding("metadata-storm", title, explains_ns);
    finding.evidence.push(row("opens", opens.to_string()));
    let samples = analysis.ranks.iter().map(|rank| rank.samples).total();
    if samples > 0 {
        let each = opens as f64 / samples as f64;
        finding.evidence.push(row("opens a sample", format!("{each:.2}")));
    }
    if let Some(each) = analysis.data.opens_per_file {
        finding.evidence.push(row("opens a file", format!("{each:.1}")));
    }
    let mut folders: Vec<&FileUse> = analysis.folders.iter().collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.metadata_ns));
    finding.objects = folders.iter().take(3).map(|folder| folder.path.clone()).collect();
    finding.actions = vec![
        "pack many samples into one file, and keep files open".into(),
        "list folders once, and keep sizes beside the samples instead of asking for them".into(),
    ];
    finding.threshold = format!(
        "metadata-calls-share: {} of calls, and 1000 opens",
        percent(case.thresholds.metadata_calls_share)
    );
    finding.sql = "SELECT class, count(*) AS calls, sum(duration) AS ns FROM events WHERE class IN ('open', 'close', 'stat', 'directory') GROUP BY class ORDER BY ns DESC".into();
    Some(finding)
}

fn rereads(case: &Case) -> Option<Finding> {
    let factor = case.analysis.data.reread_factor?;
    let epochs = case.analysis.epochs.iter().filter(|epoch| epoch.phase == Phase::Train).count();
    // Without epochs nobody knows how often data should be read.
    let each = factor / epochs as f64;
    if epochs == 0 || each < case.thresholds.reread_factor {
        return None;
    }
    let explains_ns = part(case.stalled_ns(&READING), 1.0 - 1.0 / each);
    if !matters(case, explains_ns) {
        return None;
    }
    let title = format!("every byte is read {each:.1} times an epoch");
    let mut finding = case.finding("rereads", title, explains_ns);
    finding.evidence.push(row("bytes read", bytes(case.analysis.data.bytes_read as f64)));
    finding.evidence.push(row("of files of", bytes(case.analysis.data.extent_read as f64)));
    finding.evidence.push(row("epochs", epochs.to_string()));
    let shared = case.analysis.files.iter().filter(|file| file.ranks > 1).count();
    finding.evidence.push(row("files that several ranks read", shared.to_string()));
    finding.actions = vec![
        "let ranks read different shards, or share what one of a host has read".into(),
        "keep decoded indexes and headers instead of reading them for every sample".into(),
    ];
    finding.threshold = format!("reread-factor: {} times an epoch", case.thresholds.reread_factor);
    finding.sql = "SELECT path, bytes_read, extent_read, reread_factor, ranks FROM file_use ORDER BY reread_factor DESC LIMIT 20".into();
    Some(finding)
}

fn random(case: &Case) -> Option<Finding> {
    let access = &case.analysis.access;
    let jumps = access.reads_forward + access.reads_backward;
    let placed = jumps + access.reads_consecutive + access.reads_first;
    let share = jumps as f64 / placed.max(1) as f64;
    let explains_ns = part(case.stalled_ns(&READING), share);
    if placed < 1000 || share < case.thresholds.random_share || !matters(case, explains_ns) {
        return None;
    }
    let title = format!("{} of reads jump to another place of their file", percent(share));
    let mut finding = case.finding("random-access", title, explains_ns);
    finding.confidence = at_most(finding.confidence, Confidence::Medium);
    finding.evidence.push(row("further on", access.reads_forward.to_string()));
    finding.evidence.push(row("back", access.reads_backward.to_string()));
    finding.evidence.push(row("on from the last", access.reads_consecutive.to_string()));
    finding.actions = vec![
        "shuffle shards, and samples within a window, instead of single samples".into(),
        "on media without seeks this may be harmless: compare with `feedline ceiling`".into(),
    ];
    finding.threshold = format!("random-share: {} of reads", percent(case.thresholds.random_share));
    finding.sql = "SELECT f.path, count(*) AS reads FROM events e JOIN files f ON e.file = f.id WHERE e.class = 'read' GROUP BY f.path ORDER BY reads DESC LIMIT 20".into();
    Some(finding)
}

/// Nanoseconds a call of 64 KiB: larger ones count as several, since they may take longer.
fn pace(file: &FileUse) -> f64 {
    let calls = [file.opens, file.reads, file.writes, file.others].into_iter().total();
    let pieces = file.bytes_read.saturating_add(file.bytes_written) / (64 << 10);
    file.ns as f64 / (calls + pieces).max(1) as f64
}

/// Files, or folders, whose calls take many times as long as those of the others.
fn slow_target(case: &Case) -> Option<Finding> {
    let candidates = [&case.analysis.folders, &case.analysis.files];
    let all_ns = case.analysis.folders.iter().map(|folder| folder.ns).total();
    let found = candidates.into_iter().find_map(|targets| {
        let used: Vec<&FileUse> =
            targets.iter().filter(|it| it.reads.saturating_add(it.writes) >= 3).collect();
        let mut paces: Vec<f64> = used.iter().map(|target| pace(target)).collect();
        paces.sort_by(f64::total_cmp);
        let median = *paces.get(paces.len().saturating_sub(1) / 2)?;
        let is_slow = |target: &&&FileUse| {
            pace(target) >= case.thresholds.slow_target_factor * median
                && target.ns.saturating_mul(20) >= all_ns / 5
        };
        let slow: Vec<&FileUse> = used.iter().filter(is_slow).copied().collect();
        let excess: f64 = slow.iter().map(|it| it.ns as f64 * (1.0 - median / pace(it))).sum();
        // A target is slow beside others; if most are, it is the storage.
        let is_few = !slow.is_empty() && slow.len() * 4 <= used.len() && used.len() >= 4;
        (is_few && excess >= 0.05 * all_ns as f64).then_some((slow, used.len(), median, excess))
    });
    let (mut slow, all, median, excess) = found?;
    let io = [Cause::Open, Cause::Read, Cause::Write, Cause::ObjectStore];
    let explains_ns = part(case.stalled_ns(&io), excess / all_ns.max(1) as f64);
    if !matters(case, explains_ns) {
        return None;
    }
    slow.sort_by(|a, b| pace(b).total_cmp(&pace(a)));
    let title = format!(
        "slower than the other files or folders: {} of {all}, with {} a call of 64 KiB where others need {}",
        slow.len(),
        seconds(pace(slow[0]) as u64),
        seconds(median as u64)
    );
    let mut finding = case.finding("slow-target", title, explains_ns);
    finding.confidence = at_most(finding.confidence, Confidence::Medium);
    for target in slow.iter().take(5) {
        let text =
            format!("{} a call, {} in all", seconds(pace(target) as u64), seconds(target.ns));
        finding.evidence.push(row(&target.path, text));
        finding.objects.push(target.path.clone());
    }
    finding.actions = vec![
        "look at the storage target (server, disk, mount) that these lie on".into(),
        "move or copy them, and compare again with `feedline diff`".into(),
    ];
    finding.threshold = format!(
        "slow-target-factor: {} times the median time a call",
        case.thresholds.slow_target_factor
    );
    finding.sql = "SELECT path, ns, reads, opens, bytes_read FROM file_use ORDER BY ns / (reads + opens + writes + others) DESC LIMIT 20".into();
    Some(finding)
}

/// More calls in flight bring no more bytes.
fn saturated(case: &Case) -> Option<Finding> {
    let timeline = &case.analysis.timeline;
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
    // Writes take time and bring no bytes; a single call at a time is slow, not held up by others.
    let data = &case.analysis.data;
    let is_reading = data.bytes_written.saturating_mul(10) <= data.bytes_read;
    if deeper < 1.5 || more > 1.1 || busiest < 2.0 || !is_reading {
        return None;
    }
    let explains_ns = part(case.stalled_ns(&READING), 1.0 - more / deeper);
    if !matters(case, explains_ns) {
        return None;
    }
    let bucket = timeline.bucket_ns as f64;
    let in_flight = |io: f64| format!("{:.1}", io / bucket / quarter as f64);
    let speed = |moved: f64| rate(moved / quarter as f64 / (bucket / 1e9));
    let title = "the storage gives no more: more reads in flight bring no more bytes".to_owned();
    let mut finding = case.finding("storage-saturated", title, explains_ns);
    finding.confidence = at_most(finding.confidence, Confidence::Medium);
    finding.evidence.push(row(
        "least busy quarter",
        format!("{} in flight, {}", in_flight(low.0), speed(low.1)),
    ));
    finding.evidence.push(row(
        "busiest quarter",
        format!("{} in flight, {}", in_flight(high.0), speed(high.1)),
    ));
    finding.actions = vec![
        "more workers would wait longer, not read more: fewer would do".into(),
        "faster storage, a cache near the accelerators, or smaller samples".into(),
    ];
    finding.threshold =
        "1.5 times the reads in flight bring at most 1.1 times the bytes".to_owned();
    finding.sql = "SELECT time_bucket(1000000000, start) AS second, sum(result) AS bytes, sum(duration) / 1e9 AS in_flight FROM events WHERE class = 'read' GROUP BY second ORDER BY second".into();
    Some(finding)
}

/// Reads and writes that were refused. That a file is not there is how programs look for it.
fn errors(case: &Case) -> Option<Finding> {
    let harmless = ["ENOENT", "EEXIST", "ENOTTY", "EINTR", "EAGAIN", "ENOTDIR", "ESPIPE", "ECHILD"];
    let data = &case.analysis.data;
    let real = || data.errors_by_number.iter().filter(|it| !harmless.contains(&it.name.as_str()));
    let count = real().map(|it| it.count).total();
    if count == 0 {
        return None;
    }
    let title = format!("{count} calls on files ended in an error");
    let mut finding = case.finding("errors", title, 0);
    finding.confidence = Confidence::High;
    for error in real().take(5) {
        finding.evidence.push(row(&error.name, error.count.to_string()));
    }
    let mut files: Vec<&FileUse> = case.analysis.files.iter().filter(|it| it.errors > 0).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.errors));
    finding.objects = files.iter().take(5).map(|file| file.path.clone()).collect();
    finding.actions =
        vec!["look at these files, and at what the storage logged at that time".into()];
    finding.threshold = format!("any error but {}", harmless.join(", "));
    finding.sql = "SELECT f.path, e.name, e.errno, count(*) AS calls FROM events e LEFT JOIN files f ON e.file = f.id WHERE e.errno <> 0 GROUP BY f.path, e.name, e.errno ORDER BY calls DESC LIMIT 20".into();
    Some(finding)
}
