//! Recordings that nobody took into the trace, since the launcher was killed too.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use feedline_analyze::load::NoProgress;
use feedline_analyze::{Analysis, Settings};
use feedline_recorder::{CallRecord, Config, Op, Text, TextKind, now, recorder};
use feedline_trace::Drainer;
use tempfile::TempDir;

use crate::files::{open, options, rows};

/// Where the program that is killed records.
const FOLDER: &str = "FEEDLINE_TEST_SEGMENTS";

/// Records an open, 300 reads of 4096 bytes and a span, and is gone without a word.
fn record(folder: &str) -> ! {
    let config = Config {
        folder: Text::new(folder.as_bytes()).unwrap(),
        is_drained: true,
        rank: 3,
        ..Config::EMPTY
    };
    assert!(recorder().start(&config, [b"training".as_slice()].into_iter()));
    let recorder = recorder();
    let file = recorder.text(TextKind::Path, 0, b"/data/a.bin");
    let site = recorder.text(TextKind::Span, 0, b"data\0item");
    let begin = now();
    let record = |at: u64, file: u32| CallRecord {
        start: begin + at * 10,
        end: begin + at * 10 + 5,
        file,
        ..CallRecord::default()
    };
    recorder.commit(Op::Open, &CallRecord { result: 5, ..record(0, file) });
    for at in 1..=300_u64 {
        let offset = at.cast_signed() * 4096;
        let read = CallRecord { size: 4096, result: 4096, offset, ..record(at, file) };
        recorder.commit(Op::Pread64, &read);
    }
    recorder.commit(Op::Span, &CallRecord { result: 2, offset: 7, arg: 41, ..record(400, site) });
    std::process::abort();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn analysis(dir: &Path) -> Analysis {
    feedline_analyze::analyze(&[dir.to_owned()], &Settings::default(), &NoProgress).unwrap()
}

fn problems(analysis: &Analysis) -> Vec<(&str, u64)> {
    let all = analysis.health.problems.iter();
    all.map(|problem| (problem.code.as_str(), problem.count)).collect()
}

#[test]
fn recordings_of_a_killed_launcher_are_the_same_rows() {
    if let Ok(folder) = std::env::var(FOLDER) {
        record(&folder);
    }
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    let finished = Drainer::start(&at("finished"), &at("memory")).unwrap();
    let killed = Drainer::start(&at("killed"), &at("other-memory")).unwrap();
    let name = "segments::recordings_of_a_killed_launcher_are_the_same_rows";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FOLDER, at("memory"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "it was ended by a signal");
    copy(&at("memory"), &at("other-memory"));
    // The same of a program that had no launcher at all.
    copy(&at("memory"), &at("alone/segments"));
    assert_eq!(finished.finish().unwrap().events, 302);
    drop(killed);
    let expected = open(&at("finished"), &options(1, 1 << 24));
    assert_eq!(expected.events, 302);
    let (whole, _) = rows(&expected);
    let moved: u64 = whole.iter().map(|row| row.bytes).filter(|bytes| *bytes == 4096).sum();
    assert_eq!(moved, 300 * 4096);
    assert_eq!(problems(&analysis(&at("finished"))), [("killed-processes", 1)]);
    for name in ["killed", "alone"] {
        let said = analysis(&at(name));
        assert_eq!(problems(&said), [("killed-processes", 1), ("picked-up", 302)], "{name}");
        assert!(said.health.problems[0].limits_claims && !said.health.problems[1].limits_claims);
        assert_eq!(said.trace.events, 302);
        let trace = open(&at(name), &options(2, 1 << 24));
        // Who picks recordings up looks at the wall clock by itself: all times are off by the same.
        let by_ns = trace.start_ns - expected.start_ns;
        let (mut found, _) = rows(&trace);
        for row in &mut found {
            (row.start_ns, row.end_ns) = (row.start_ns - by_ns, row.end_ns - by_ns);
        }
        assert!(found == whole, "{name}");
        assert_eq!(trace.end_ns - by_ns, expected.end_ns, "{name}");
        let mut processes = trace.tables.processes.clone();
        for process in &mut processes {
            process.start_ns -= by_ns;
            process.end_ns = process.end_ns.map(|end_ns| end_ns - by_ns);
        }
        assert_eq!(processes, expected.tables.processes, "{name}");
        assert_eq!((processes[0].rank, processes[0].arguments.len()), (Some(3), 1), "{name}");
        // They are in the trace now, and are not picked up again.
        assert_eq!(problems(&analysis(&at(name))), [("killed-processes", 1)], "{name}");
    }
}
