//! Times and lengths that nobody can have meant: analyses of them end, whatever they say.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_analyze::load::NoProgress;
use feedline_analyze::partial::{PartialAnalysis, Shard};
use feedline_analyze::{Settings, analyze, partial_of, tables};
use feedline_trace::{Batch, Event, EventKind, EventSink as _, FolderWriter, Process, Tables};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use crate::files::{open, options, rows};

/// What happens in a training, and some that nobody knows.
const WHATS: [(EventKind, &str, &str); 16] = [
    (EventKind::Span, "data", "fetch.iter"),
    (EventKind::Span, "data", "fetch.iter"),
    (EventKind::Span, "compute", "step"),
    (EventKind::Span, "compute", "step"),
    (EventKind::Span, "data", "batch"),
    (EventKind::Span, "data", "item"),
    (EventKind::Span, "decode", "jpeg"),
    (EventKind::Span, "pipeline", "epoch"),
    (EventKind::Span, "comm", "all_reduce"),
    (EventKind::Span, "checkpoint", "save"),
    (EventKind::Call, "POSIX", "pread64"),
    (EventKind::Call, "POSIX", "open"),
    (EventKind::Call, "POSIX", "write"),
    (EventKind::Summary, "POSIX", "read"),
    (EventKind::Counter, "sys", "cpu"),
    (EventKind::Instant, "other", "now"),
];

const BASE_NS: i64 = 1_700_000_000_000_000_000;

fn start_ns(random: &mut StdRng) -> i64 {
    let far = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX / 2, i64::MAX - 1, i64::MAX];
    let near = BASE_NS + random.random_range(0..1_000_000_000);
    if random.random_range(0..3) == 0 { far[random.random_range(0..far.len())] } else { near }
}

fn length(random: &mut StdRng) -> u64 {
    let far = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1, u64::MAX];
    let near = random.random_range(0..100_000_000);
    if random.random_range(0..3) == 0 { far[random.random_range(0..far.len())] } else { near }
}

fn number(random: &mut StdRng) -> Option<i64> {
    let far = [i64::MIN, -1, 0, 1, i64::from(u32::MAX), i64::MAX - 1, i64::MAX];
    match random.random_range(0..4) {
        0 => None,
        1 => Some(far[random.random_range(0..far.len())]),
        _ => Some(random.random_range(0..10_000)),
    }
}

/// A folder of two ranks with four threads each.
fn own(dir: &Path, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut known = Tables::default();
    for pid in 1..=2_u32 {
        known.add_process(Process {
            host: format!("vm{pid}"),
            pid,
            rank: if seed.is_multiple_of(5) { Some(u32::MAX - pid + 1) } else { Some(pid - 1) },
            start_ns: start_ns(&mut random),
            end_ns: Some(start_ns(&mut random)),
            dropped: length(&mut random) / 2,
            filtered: length(&mut random) / 2,
            skipped: length(&mut random) / 2,
            is_traced: true,
            ..Process::default()
        });
    }
    let file = known.file_row("/data/x");
    let mut batch = Batch::default();
    let windows = ["{\"window_ns\":18446744073709551615}", "{\"window_ns\":7}", "{}"];
    batch.texts = windows.map(str::to_owned).to_vec();
    for _ in 0..400 {
        let (kind, category, name) = WHATS[random.random_range(0..WHATS.len())];
        let floats = [0.0, -1.0, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
        batch.events.push(Event {
            process: random.random_range(0..2),
            thread: random.random_range(1..=4),
            start_ns: start_ns(&mut random),
            duration_ns: length(&mut random),
            kind,
            category: known.name_row(category),
            name: known.name_row(name),
            file: (random.random_range(0..2) == 0).then_some(file),
            offset: number(&mut random),
            size: number(&mut random),
            result: number(&mut random),
            epoch: number(&mut random),
            step: number(&mut random),
            sample: number(&mut random),
            count: if kind == EventKind::Summary { (length(&mut random) >> 10).max(1) } else { 1 },
            shortest_ns: Some(length(&mut random)),
            longest_ns: Some(length(&mut random)),
            value: Some(floats[random.random_range(0..floats.len())]),
            extra: (kind == EventKind::Summary).then(|| random.random_range(0..3)),
            ..Event::default()
        });
    }
    let mut writer = FolderWriter::create(dir).unwrap();
    writer.write(&known, &batch).unwrap();
    writer.finish(&known).unwrap();
}

/// The same in lines of DFTracer, and in Chrome's JSON: there numbers may be anything.
fn lines(seed: u64) -> Vec<String> {
    let mut random = StdRng::seed_from_u64(seed);
    let odd = [
        "-9223372036854775808",
        "-9223372036854775807",
        "-1",
        "0",
        "1",
        "9223372036854775806",
        "9223372036854775807",
        "18446744073709551615",
        "1e300",
        "-1e300",
        "1.5",
        "9.3e18",
        "1e-300",
        "99999999999999999999999999",
        "null",
        "\"-9223372036854775808\"",
        "\"18446744073709551615\"",
    ];
    let mut pick = |near: &dyn Fn(&mut StdRng) -> u64| -> String {
        if random.random_range(0..3) == 0 {
            odd[random.random_range(0..odd.len())].to_owned()
        } else {
            near(&mut random).to_string()
        }
    };
    let small = |random: &mut StdRng| random.random_range(0..10_000_u64);
    (0..400)
        .map(|line| {
            let (kind, category, name) = WHATS[line * 7 % WHATS.len()];
            let phase = match kind {
                EventKind::Counter => "C",
                EventKind::Instant => "i",
                _ => "X",
            };
            let ts = pick(&|random| 1_700_000_000_000_000 + random.random_range(0..1_000_000));
            let [dur, pid, tid, size] = [&small as &dyn Fn(&mut StdRng) -> u64; 4].map(&mut pick);
            let (pid, tid) = if line % 9 == 0 { (pid, tid) } else { ("1".into(), (line % 4).to_string()) };
            let [offset, count, step] =
                [&small as &dyn Fn(&mut StdRng) -> u64; 3].map(&mut pick);
            format!(
                r#"{{"id":"{line}","name":"{name}","cat":"{category}","ph":"{phase}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{"hostname":"vm","fname":"/data/x","ret":{size},"result":{size},"size":{size},"size_sum":{size},"count":{count},"offset":{offset},"step":{step},"epoch":{step},"dft_cnt":{count},"dur_sum":{dur},"value":{size}}}}}"#
            )
        })
        .collect()
}

/// Everything that is made of a trace, by one thread, by more, and by two shards.
fn check(path: &Path, what: &str) {
    let inputs: Vec<PathBuf> = vec![path.to_owned()];
    let settings = |threads| Settings { load: options(threads, 1 << 26), ..Settings::default() };
    let whole = analyze(&inputs, &settings(1), &NoProgress).unwrap();
    let json = serde_json::to_string(&whole).unwrap();
    let again = analyze(&inputs, &settings(3), &NoProgress).unwrap();
    assert!(serde_json::to_string(&again).unwrap() == json, "{what}: threads do not agree");
    let parts = [1, 2].map(|index| {
        let part = partial_of(&inputs, Shard { index, of: 2 }, &settings(1), &NoProgress).unwrap();
        // As they travel.
        serde_json::from_str::<PartialAnalysis>(&serde_json::to_string(&part).unwrap()).unwrap()
    });
    let joined = PartialAnalysis::join(parts.into()).unwrap().assemble(&settings(1));
    assert!(serde_json::to_string(&joined).unwrap() == json, "{what}: shards do not agree");
    assert!(!tables::tables(&whole).is_empty(), "{what}");
    let _ = feedline_analyze::diff::diff(&whole, &joined, 0.05);
}

#[test]
fn folders_with_any_times_are_analyzed() {
    for seed in 0..40 {
        let folder = TempDir::new().unwrap();
        let dir = folder.path().join("t");
        own(&dir, seed);
        check(&dir, &format!("folder {seed}"));
    }
}

#[test]
fn lines_with_any_numbers_are_analyzed() {
    for seed in 0..40 {
        let folder = TempDir::new().unwrap();
        let unit = ["NS", "US", "MS", "SEC"][seed as usize % 4];
        let unit = format!(
            r#"{{"name":"CM","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{{"hostname":"vm","name":"time_metric","value":"{unit}"}}}}"#
        );
        let text = format!("[\n{unit}\n{}\n", lines(seed).join("\n"));
        let path = folder.path().join("t.pfw");
        fs::write(&path, text).unwrap();
        check(&path, &format!("lines {seed}"));
    }
}

#[test]
fn json_with_any_numbers_is_analyzed() {
    let bases =
        ["-9223372036854775808", "0", "1700000000000000000", "9223372036854775807", "1e300"];
    for seed in 0..40_u64 {
        let folder = TempDir::new().unwrap();
        let base = bases[seed as usize % bases.len()];
        let text = format!(
            r#"{{"baseTimeNanoseconds": {base}, "distributedInfo": {{"rank": 4294967295}}, "traceEvents": [{}]}}"#,
            lines(seed).join(",\n")
        );
        let path = folder.path().join("t.json");
        fs::write(&path, text).unwrap();
        check(&path, &format!("json {seed}"));
    }
}

/// What a trace holds; times count from [`BASE_NS`] on.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    rows: Vec<(i64, i64)>,
    problems: Vec<(String, u64)>,
    extent: (i64, i64),
}

fn told(path: &Path) -> Told {
    let trace = open(path, &options(2, 1 << 26));
    let (all, _) = rows(&trace);
    // Names of threads are no events.
    let all =
        all.iter().filter(|row| trace.event_types[row.event_type as usize].category != "thread");
    let rows = all.map(|row| (row.start_ns - BASE_NS, row.end_ns - BASE_NS)).collect();
    let problems = trace.problems.iter().map(|problem| (problem.code.clone(), problem.count));
    let problems = problems.collect();
    Told { rows, problems, extent: (trace.start_ns - BASE_NS, trace.end_ns - BASE_NS) }
}

#[test]
fn what_cannot_be_is_left_out_and_counted() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("t");
    let mut known = Tables::default();
    known.add_process(Process { pid: 1, is_traced: true, ..Process::default() });
    let (category, name) = (known.name_row("POSIX"), known.name_row("open"));
    let year_ns = 366 * 24 * 3600 * 1_000_000_000_u64;
    let event = |(start_ns, duration_ns): (i64, u64)| Event {
        thread: 1,
        start_ns,
        duration_ns,
        category,
        name,
        count: 1,
        ..Event::default()
    };
    let times = [
        (BASE_NS, 1_000),
        (i64::MIN, 5),
        (i64::MAX, 0),
        ((1 << 62) + 1, 1),
        (BASE_NS + 2, year_ns + 1),
        (BASE_NS + 3, u64::MAX / 2),
        (BASE_NS + 5_000, 2_000),
    ];
    let batch = Batch { events: times.map(event).to_vec(), texts: Vec::new() };
    let mut writer = FolderWriter::create(&dir).unwrap();
    writer.write(&known, &batch).unwrap();
    writer.finish(&known).unwrap();
    drop(writer);
    let of = |problems: Vec<(String, u64)>| Told {
        rows: vec![(0, 1_000), (5_000, 7_000)],
        problems,
        extent: (0, 7_000),
    };
    let bad = |code: &str, count: u64| (code.to_owned(), count);
    assert_eq!(told(&dir), of(vec![bad("bad-times", 5)]));

    let line = |ts: &str, dur: &str| {
        format!(
            r#"{{"id":"1","name":"open","cat":"POSIX","pid":"1","tid":"1","ts":{ts},"dur":{dur},"ph":"X","args":{{"hostname":"vm"}}}}"#
        )
    };
    let lines = [
        line("1700000000000000", "1"),
        line("1700000000000005", "2"),
        line("4611686018427388", "3"),
        line("-31622400000001", "3"),
        line("1700000000000005", "31622400000001"),
    ];
    let path = folder.path().join("t.pfw");
    fs::write(&path, format!("[\n{}\n", lines.join("\n"))).unwrap();
    let problems = vec![bad("bad-durations", 1), bad("bad-times", 2)];
    assert_eq!(told(&path), of(problems));

    // What is no number of nanoseconds at all is no event.
    let more = [line("1e300", "1"), line("-9223372036854775807", "1")];
    let text = format!("[{},\n{}]", lines.join(",\n"), more.join(",\n"));
    let path = folder.path().join("t.json");
    fs::write(&path, text).unwrap();
    let problems = vec![bad("bad-lines", 2), bad("bad-durations", 1), bad("bad-times", 2)];
    assert_eq!(told(&path), of(problems));
}
