//! Several files of Chrome's JSON are one trace: one a rank, as PyTorch's profiler writes them.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_analyze::Settings;
use feedline_analyze::load::{AnalyzeError, NoProgress, Trace};
use feedline_trace::chrome::ChromeSink;
use feedline_trace::{Batch, Event, EventSink as _, Process, Tables};
use tempfile::TempDir;

use crate::files::{archive, count, gzip, open, options, rows};

const BASE_NS: i64 = 1_700_000_000_000_000_000;

/// A fetch and a computation of a step, from a moment on, in microseconds.
fn step(pid: u32, tid: &str, at_us: f64) -> String {
    let compute_us = at_us + 4.5;
    format!(
        r#"{{"ph":"X","cat":"user_annotation","name":"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__","pid":{pid},"tid":{tid},"ts":{at_us},"dur":4.5}},
{{"ph":"X","cat":"compute","name":"forward","pid":{pid},"tid":{tid},"ts":{compute_us},"dur":10.25}}"#
    )
}

fn text(before: &str, events: &str, behind: &str) -> String {
    format!("{{\"schemaVersion\": 1,{before}\n\"traceEvents\": [\n{events}\n]{behind}}}")
}

fn job(rank: u32) -> String {
    format!(r#""distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}}"#)
}

/// Two ranks whose processes have the same number, and whose files begin 100 µs after one another. The second
/// says so behind its events.
fn two_ranks() -> [(&'static str, String); 2] {
    let base = |ns: i64| format!("\"baseTimeNanoseconds\": {ns}");
    let first = step(7, "7", 10.5)
        + r#",
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":"stream 7","ts":16,"dur":5.25}"#;
    [
        ("rank0.pt.trace.json", text(&format!("{}, {},", job(0), base(BASE_NS)), &first, "")),
        (
            "rank1.pt.trace.json",
            text("", &step(7, "7", 3.0), &format!(", {}, {}", base(BASE_NS + 100_000), job(1))),
        ),
    ]
}

/// What can be told of a trace: start, end and rank of every event that is not metadata.
fn told(trace: &Trace) -> Vec<(i64, i64, Option<u32>)> {
    let of = |lane: u32| trace.tables.processes[trace.lanes[lane as usize].process as usize].rank;
    let (all, _) = rows(trace);
    let events =
        all.iter().filter(|row| trace.event_types[row.event_type as usize].category != "thread");
    events.map(|row| (row.start_ns - BASE_NS, row.end_ns - BASE_NS, of(row.lane))).collect()
}

fn processes(trace: &Trace) -> Vec<(u32, Option<u32>)> {
    trace.tables.processes.iter().map(|process| (process.pid, process.rank)).collect()
}

fn write(folder: &Path, files: &[(&str, String)]) -> Vec<PathBuf> {
    files
        .iter()
        .map(|(name, text)| {
            let path = folder.join(name);
            let bytes = text.as_bytes();
            fs::write(&path, if name.ends_with(".gz") { gzip(bytes) } else { bytes.to_vec() })
                .unwrap();
            path
        })
        .collect()
}

#[test]
fn one_file_a_rank_is_one_trace() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run");
    fs::create_dir_all(run.join("plugins/profile")).unwrap();
    let files = two_ranks();
    let named = write(&run.join("plugins/profile"), &files);
    // JSON that is no trace may lie beside them.
    write(
        &run,
        &[("config.json", r#"{"lr": [{"a": 1}]}"#.to_owned()), ("x.json", "17".to_owned())],
    );
    let tar = archive(&[
        ("run/rank0.json", files[0].1.as_bytes()),
        ("run/config.json", b"{\"lr\": 1}"),
        ("run/rank1.json.gz", &gzip(files[1].1.as_bytes())),
    ]);
    fs::write(folder.path().join("t.tar.gz"), gzip(&tar)).unwrap();
    fs::write(folder.path().join("t.tar"), &tar).unwrap();
    let pattern = run.join("plugins/*/*.json");
    let reversed = vec![named[1].clone(), named[0].clone(), named[1].clone()];
    let tars = ["t.tar.gz", "t.tar"].map(|name| vec![folder.path().join(name)]);
    for inputs in [vec![run], vec![pattern], named, reversed].into_iter().chain(tars) {
        let trace = Trace::open(&inputs, &options(2, 1 << 20), &NoProgress).unwrap();
        assert_eq!((trace.source, trace.events), ("chrome", 5), "{inputs:?}");
        let expected = [
            (10_500, 15_000, Some(0)),
            (15_000, 25_250, Some(0)),
            (16_000, 21_250, Some(0)),
            (103_000, 107_500, Some(1)),
            (107_500, 117_750, Some(1)),
        ];
        assert_eq!(told(&trace), expected, "{inputs:?}");
        assert_eq!(processes(&trace), [(7, Some(0)), (0, Some(0)), (7, Some(1))]);
        assert_eq!((trace.start_ns, trace.end_ns), (BASE_NS + 10_500, BASE_NS + 117_750));
        assert_eq!(trace.problems, []);
        let analysis =
            feedline_analyze::analyze(&inputs, &Settings::default(), &NoProgress).unwrap();
        let ranks: Vec<(u32, u64)> =
            analysis.ranks.iter().map(|rank| (rank.rank, rank.steps)).collect();
        assert_eq!(ranks, [(0, 1), (1, 1)]);
    }
}

/// Two steps: the program fetches from 0 to 10 µs and from 40 to 52, its device copies from 2 to 4 and computes
/// from 4 to 30 and from 44 to 60.
fn steps_with_a_device() -> String {
    let event = |cat: &str, name: &str, who: &str, ts: u32, dur: u32| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{who},"ts":{ts},"dur":{dur}}}"#)
    };
    let (main, stream) = (r#""pid":7,"tid":7"#, r#""pid":0,"tid":"stream 7""#);
    let next = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    [
        event("user_annotation", next, main, 0, 10),
        event("gpu_memcpy", "Memcpy HtoD", stream, 2, 2),
        event("kernel", "gemm", stream, 4, 26),
        event("user_annotation", next, main, 40, 12),
        event("kernel", "gemm", stream, 44, 16),
    ]
    .join(",\n")
}

#[test]
fn what_a_device_does_is_computation_of_its_rank() {
    let folder = TempDir::new().unwrap();
    let base = format!("\"baseTimeNanoseconds\": {BASE_NS}");
    let of_rank = |rank| text(&format!("{base}, {},", job(rank)), &steps_with_a_device(), "");
    let both = write(folder.path(), &[("0.json", of_rank(0)), ("1.json", of_rank(1))]);
    let nobody = text(&format!("{base},"), &steps_with_a_device(), "");
    let alone = write(folder.path(), &[("alone.json", nobody)]);
    for (inputs, ranks) in [(both, vec![0, 0, 1, 1]), (alone, vec![0, 0])] {
        let analysis =
            feedline_analyze::analyze(&inputs, &Settings::default(), &NoProgress).unwrap();
        let steps = analysis.steps.iter();
        let found: Vec<(u32, u64, u64, u64)> =
            steps.map(|step| (step.rank, step.fetch_ns, step.stall_ns, step.compute_ns)).collect();
        let expected: Vec<_> = ranks
            .iter()
            .zip([(10_000, 2_000, 26_000), (12_000, 4_000, 16_000)].iter().cycle())
            .map(|(rank, (fetch, stall, compute))| (*rank, *fetch, *stall, *compute))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn parts_of_a_rank_are_one_process_and_others_are_not() {
    let folder = TempDir::new().unwrap();
    let base = format!("\"baseTimeNanoseconds\": {BASE_NS},");
    let of_rank = |rank: u32, at_us: f64| {
        text(&format!("{}, {base}", job(rank)), &step(7, "\"main\"", at_us), "")
    };
    let of_nobody = |at_us: f64| text(&base, &step(7, "\"main\"", at_us), "");
    let files = [
        ("a.json", of_rank(1, 0.0)),
        ("b.json.gz", of_rank(1, 100.0)),
        ("c.json", of_rank(0, 200.0)),
        ("d.json", of_nobody(300.0)),
        ("e.json", of_nobody(400.0)),
    ];
    write(folder.path(), &files);
    let trace = open(folder.path(), &options(1, 1 << 20));
    assert_eq!(processes(&trace), [(7, Some(1)), (7, Some(0)), (7, None), (7, None)]);
    // A thread with a name is one thread wherever the process goes on.
    let lanes: Vec<(u32, Option<&str>, u64)> = trace
        .lanes
        .iter()
        .map(|lane| (lane.process, lane.name.as_deref(), lane.events.iter().sum()))
        .collect();
    // Two events a file, and one that names the thread.
    let main = Some("main");
    assert_eq!(lanes, [(0, main, 5), (1, main, 3), (2, main, 3), (3, main, 3)]);
    assert_eq!(trace.events, 10);
}

/// Writes events of a parent and a child as Feedline does.
fn written(path: &Path, begun_ns: i64, at_ns: i64) {
    let mut tables = Tables::default();
    let process = |pid: u32, parent: Option<u32>| Process {
        host: "vm".to_owned(),
        pid,
        parent,
        start_ns: begun_ns + i64::from(pid),
        is_traced: true,
        ..Process::default()
    };
    tables.add_process(process(5, Some(1)));
    tables.add_process(process(4, None));
    let (category, name) = (tables.name_row("data"), tables.name_row("item"));
    let event = |process: u32| Event {
        process,
        thread: 9,
        start_ns: at_ns + i64::from(process),
        duration_ns: 3,
        kind: feedline_trace::EventKind::Span,
        category,
        name,
        count: 1,
        ..Event::default()
    };
    let mut sink = ChromeSink::new(path).unwrap();
    sink.write(&tables, &Batch { events: vec![event(0), event(1)], texts: Vec::new() }).unwrap();
    sink.finish(&tables).unwrap();
}

#[test]
fn processes_that_are_the_same_are_one_whoever_wrote_them() {
    let folder = TempDir::new().unwrap();
    written(&folder.path().join("a.json"), BASE_NS, BASE_NS + 1_000);
    written(&folder.path().join("b.json"), BASE_NS, BASE_NS + 2_000);
    // The numbers were given again.
    written(&folder.path().join("c.json"), BASE_NS + 500, BASE_NS + 3_000);
    let trace = open(folder.path(), &options(1, 1 << 20));
    let found: Vec<(u32, i64, Option<u32>)> = trace
        .tables
        .processes
        .iter()
        .map(|process| (process.pid, process.start_ns - BASE_NS, process.parent))
        .collect();
    assert_eq!(found, [(5, 5, Some(1)), (4, 4, None), (5, 505, Some(3)), (4, 504, None)]);
    let (all, _) = rows(&trace);
    let places: Vec<(i64, u32)> = all
        .iter()
        .map(|row| (row.start_ns - BASE_NS, trace.lanes[row.lane as usize].process))
        .collect();
    assert_eq!(places, [(1_000, 0), (1_001, 1), (2_000, 0), (2_001, 1), (3_000, 2), (3_001, 3)]);
}

#[test]
fn clocks_that_have_nothing_in_common_are_refused() {
    let folder = TempDir::new().unwrap();
    let base = format!("\"baseTimeNanoseconds\": {BASE_NS},");
    let files = [
        ("based.json", text(&base, &step(1, "1", 1.0), "")),
        // As profilers wrote them before they named a base.
        ("wall.json", text("", &step(1, "1", 1_700_000_000_000_020.0), "")),
        ("boot.json", text("", &step(1, "1", 77.0), "")),
        ("boot2.json", text("", &step(1, "1", 99.0), "")),
        ("none.json", r#"{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}}]}"#.into()),
    ];
    write(folder.path(), &files);
    let opened = |names: &[&str]| {
        let inputs: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
        Trace::open(&inputs, &options(1, 1 << 20), &NoProgress)
    };
    let wall = opened(&["wall.json", "based.json", "none.json"]).unwrap();
    let starts: Vec<i64> = told(&wall).iter().map(|(start, _, _)| *start).collect();
    assert_eq!(starts, [1_000, 5_500, 20_000, 24_500]);
    assert_eq!(wall.problems, []);
    for names in [["based.json", "boot.json"], ["boot.json", "wall.json"]] {
        let error = opened(&names).unwrap_err();
        assert!(matches!(error, AnalyzeError::Clocks { .. }), "{error}");
        let known = folder.path().join(names.iter().find(|name| **name != "boot.json").unwrap());
        let text = format!(
            "{} has a start time and {} does not: they cannot share a time axis",
            known.display(),
            folder.path().join("boot.json").display()
        );
        assert_eq!(error.to_string(), text);
    }
    let both = opened(&["boot.json", "boot2.json", "none.json"]).unwrap();
    assert_eq!((both.events, count(&both, "unknown-clocks")), (4, 2));
    assert_eq!((both.start_ns, both.end_ns), (77_000, 113_750));
    assert_eq!(count(&opened(&["boot.json"]).unwrap(), "unknown-clocks"), 0);
    // Files of other kinds stay apart.
    fs::write(folder.path().join("t.pfw"), "{}\n").unwrap();
    let mixed = opened(&["boot.json", "t.pfw"]).unwrap_err();
    assert!(matches!(mixed, AnalyzeError::Mixed { .. }), "{mixed}");
}

#[test]
fn what_is_wrong_in_a_file_of_many_is_named_by_it() {
    let folder = TempDir::new().unwrap();
    let base = format!("\"baseTimeNanoseconds\": {BASE_NS},");
    let whole = text(&base, &step(1, "1", 1.0), "");
    let bad = text(&base, &(step(1, "1", 5.0) + ",\n{\"ph\":\"X\",\"name\":\"no time\"}"), "");
    let cut = text(&base, &step(1, "1", 9.0), "");
    let cut = cut[..cut.len() - 9].to_owned();
    write(folder.path(), &[("a.json", whole), ("b.json", bad), ("c.json", cut)]);
    let trace = open(folder.path(), &options(1, 1 << 20));
    let places: Vec<(&str, &[String])> = trace
        .problems
        .iter()
        .map(|problem| (problem.code.as_str(), problem.places.as_slice()))
        .collect();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let line = [format!("{}:3 is an event without a timestamp", at("b.json"))];
    let torn = [at("c.json")];
    assert_eq!(places, [("bad-lines", &line[..]), ("truncated-file", &torn[..])]);
    assert_eq!(trace.events, 5);
}
