//! A program that records known events, for tests and judges of trace folders.
//!
//! `known events FOLDER OVERFLOW` records known events and `known killed FOLDER` then waits to be killed;
//! `known reads FOLDER FILE COUNT` reads a file as fast as it can and records every call, `known turns
//! FOLDER` records 10,000 calls whenever it is told a line; `known judge DIR` records and drains a trace
//! into DIR and says how much. To measure with: `known measure DIR FOLDER PID` drains a folder until a
//! process is gone, `known count DIR` reads a trace.

#![allow(clippy::print_stdout, reason = "a program of tests")]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use feedline_recorder::{
    CallRecord, Config, Ending, Op, Text, TextKind, is_counter_trusted, now, recorder,
};
use feedline_trace::{Batch, Drainer, EventSource as _, Folder, Tables};

fn config(folder: &str, overflow: &str) -> Config {
    Config {
        folder: Text::new(folder.as_bytes()).expect("a short path"),
        overflow: Text::new(overflow.as_bytes()).expect("a short path"),
        rank: 3,
        ..Config::EMPTY
    }
}

fn start(folder: &str, overflow: &str, is_drained: bool) {
    let counter = is_counter_trusted();
    start_with(&Config { is_drained, counter, ..config(folder, overflow) });
}

fn start_with(config: &Config) {
    let arguments = [b"known".as_slice(), b"events"];
    assert!(recorder().start(config, arguments.into_iter()), "recording did not start");
}

fn record(file: u32) -> CallRecord {
    let start = now();
    CallRecord { start, end: now().max(start + 1), file, ..CallRecord::default() }
}

/// One event of each kind.
fn events() {
    let recorder = recorder();
    let base = recorder.text(TextKind::Path, 0, b"/data/set");
    let file = recorder.text(TextKind::Path, base, b"../other//a.bin");
    let pipe = recorder.text(TextKind::Object, 0, b"pipe:[7]");
    let site = recorder.text(TextKind::Span, 0, b"data\0item");
    let depth = recorder.text(TextKind::Span, 0, b"queue\0depth");
    let flags = CallRecord { arg: 0o1101, size: 0o644, result: 5, ..record(file) };
    recorder.commit(Op::Open, &flags);
    for index in 0..1000_i64 {
        let offset = index * 4096;
        let read = CallRecord { size: 4096, result: 4096, offset, ..record(file) };
        recorder.commit(Op::Pread64, &read);
    }
    recorder.commit(Op::Write, &CallRecord { size: 10, result: -1, errno: 32, ..record(pipe) });
    recorder.commit(Op::Rename, &CallRecord { arg: u64::from(base), ..record(file) });
    let span = CallRecord { size: u64::MAX, result: 2, offset: 7, arg: 41, ..record(site) };
    recorder.commit(Op::Span, &span);
    recorder.commit(Op::Counter, &CallRecord { size: 2.5_f64.to_bits(), ..record(depth) });
    recorder.commit(Op::Close, &record(file));
}

/// A thousand reads of 10 to 19 ns, one of ten with an error, without looking at the clock.
fn thinned(config: Config) {
    start_with(&config);
    let recorder = recorder();
    let file = recorder.text(TextKind::Path, 0, b"/data/a.bin");
    let begin = now();
    for index in 0..1000_u64 {
        let start = begin + index * 100;
        let is_bad = index % 10 == 3;
        let record = CallRecord {
            start,
            end: start + 10 + index % 10,
            size: 4096,
            result: if is_bad { -1 } else { 1000 + index.cast_signed() },
            errno: if is_bad { 5 } else { 0 },
            file,
            ..CallRecord::default()
        };
        recorder.commit(Op::Read, &record);
    }
    recorder.end(Ending::Exit, 7);
}

fn reads(path: &str, count: u64) {
    let recorder = recorder();
    let text = recorder.text(TextKind::Path, 0, path.as_bytes());
    let file = File::open(path).expect("a file to read");
    let size = file.metadata().expect("a file to read").len() / 4096 * 4096;
    let mut buffer = [0; 4096];
    for index in 0..count {
        let offset = index * 4096 % size;
        let start = now();
        let read = file.read_at(&mut buffer, offset).expect("a file to read");
        let end = now();
        let record = CallRecord {
            start,
            end,
            size: 4096,
            result: read as i64,
            offset: offset as i64,
            file: text,
            ..CallRecord::default()
        };
        recorder.commit(Op::Pread64, &record);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["events", folder, overflow] => {
            start(folder, overflow, false);
            events();
            recorder().end(Ending::Exit, 0);
        }
        ["reads", folder, file, count] => {
            start(folder, "", true);
            reads(file, count.parse().expect("a number"));
            recorder().end(Ending::Exit, 0);
        }
        ["killed", folder] => {
            start(folder, "", true);
            events();
            println!("ready");
            std::io::stdout().flush().expect("somebody listens");
            // Until it is killed, or its other end is gone.
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        ["turns", folder] => turns(folder),
        ["thinned", folder, "summaries"] => {
            thinned(Config { summary_ns: u64::MAX, ..config(folder, "") });
        }
        ["thinned", folder, "samples"] => thinned(Config { one_of: 10, ..config(folder, "") }),
        ["judge", dir] => {
            let memory = Path::new(dir).join("memory");
            let mut drainer = Drainer::start(Path::new(dir), &memory).expect("a folder");
            start(memory.to_str().expect("a plain path"), "", true);
            events();
            recorder().end(Ending::Exit, 0);
            drainer.round().expect("a folder");
            let report = drainer.finish().expect("a folder");
            println!("{} {} {}", std::process::id(), report.events, report.dropped);
        }
        ["measure", dir, memory, pid] => measure(dir, memory, pid),
        ["count", dir] => count(dir),
        _ => panic!("unknown arguments {arguments:?}"),
    }
}

/// Records 10,000 calls at the start and at every line, and says when they are recorded.
fn turns(folder: &str) {
    start(folder, "", true);
    let file = recorder().text(TextKind::Path, 0, b"/data/a.bin");
    let mut first = 0;
    loop {
        for offset in first..first + 10_000 {
            recorder().commit(Op::Pread64, &CallRecord { offset, ..record(file) });
        }
        first += 10_000;
        println!("ready");
        std::io::stdout().flush().expect("somebody listens");
        // Until it is killed, or its other end is gone.
        if std::io::stdin().read_line(&mut String::new()).is_ok_and(|bytes| bytes == 0) {
            break;
        }
    }
}

/// Drains until a process is gone, and says what that cost.
fn measure(dir: &str, memory: &str, pid: &str) {
    let mut drainer = Drainer::start(Path::new(dir), Path::new(memory)).expect("a folder");
    println!("ready");
    while Path::new("/proc").join(pid).exists() {
        drainer.round().expect("a folder");
        std::thread::sleep(drainer.pause());
    }
    let report = drainer.finish().expect("a folder");
    println!("{report:?}");
}

/// Reads all events of a trace.
fn count(dir: &str) {
    let mut folder = Folder::open(Path::new(dir)).expect("a trace");
    let (mut tables, mut batch, mut events) = (Tables::default(), Batch::default(), 0);
    while folder.next_batch(&mut tables, &mut batch).expect("a trace") {
        events += batch.events.len();
    }
    println!("{events}");
}
