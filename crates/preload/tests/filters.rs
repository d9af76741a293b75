//! What the user asks for is recorded, and the rest is counted: files, kinds of calls, one of so many,
//! summaries; and the same in the words of DFTracer.

mod support;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use support::{Folder, Process, compile, library, read, read_one, run};

/// Calls of the program `harmless mixed`: on the wanted file, on the unwanted one, on the stream's, and
/// `setvbuf` of its output.
const WANTED: usize = 1106;
const UNWANTED: usize = 254;
const STREAM: usize = 102;
const ALL: usize = WANTED + UNWANTED + STREAM + 1;
/// Of these: reads, calls of streams, and calls that open or close.
const READS: usize = 1352;
const STDIO: usize = 103;
const OPENINGS: usize = 7;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<(Folder, PathBuf)> = OnceLock::new();
    let make = || {
        let folder = Folder::new();
        let program = compile("harmless.c", &folder, &[]);
        (folder, program)
    };
    &PROGRAM.get_or_init(make).1
}

/// Runs the program in a new folder; `FOLDER` in values of variables stands for that.
fn mixed(ending: &str, variables: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.make("keep").join("a.npz"), [1; 16]).unwrap();
    std::fs::write(folder.make("skip").join("b.txt"), [2; 16]).unwrap();
    let mut command = std::process::Command::new(program());
    command.arg("mixed").arg(folder.path()).arg(ending).env("LD_PRELOAD", library());
    let path = folder.path().to_string_lossy().into_owned();
    for (name, value) in variables {
        command.env(name, value.replace("FOLDER", &path));
    }
    let output = run(&mut command);
    assert_eq!(output.status.success(), ending == "end", "{output:?}");
    folder
}

fn traced(ending: &str, variables: &[(&str, &str)]) -> Process {
    let variables = [&[("FEEDLINE_TRACE", "FOLDER/trace")], variables].concat();
    read_one(&mixed(ending, &variables).join("trace"))
}

#[test]
fn files_are_chosen_by_patterns() {
    for (name, patterns, recorded) in [
        ("FEEDLINE_TRACE_INCLUDE", "FOLDER/keep", WANTED),
        ("FEEDLINE_TRACE_INCLUDE", "FOLDER/keep/**", WANTED),
        ("FEEDLINE_TRACE_INCLUDE", "/none:**/*.npz", WANTED),
        ("FEEDLINE_TRACE_INCLUDE", "FOLDER/skip/b*", UNWANTED),
        ("FEEDLINE_TRACE_INCLUDE", "/none", 0),
        ("FEEDLINE_TRACE_EXCLUDE", "**/*.txt", WANTED + 1),
        ("FEEDLINE_TRACE_EXCLUDE", "FOLDER/keep", ALL - WANTED),
        ("FEEDLINE_TRACE_EXCLUDE", "/none", ALL),
    ] {
        let process = traced("end", &[(name, patterns)]);
        assert_eq!(process.calls.len(), recorded, "{name}={patterns}");
        assert_eq!(process.facts.filtered as usize, ALL - recorded, "{name}={patterns}");
        assert_eq!(process.facts.dropped, 0);
    }
    let both = [
        ("FEEDLINE_TRACE_INCLUDE", "FOLDER/skip:FOLDER/keep"),
        ("FEEDLINE_TRACE_EXCLUDE", "FOLDER/*/*.npz"),
    ];
    assert_eq!(traced("end", &both).calls.len(), UNWANTED + STREAM);
}

#[test]
fn calls_are_chosen_by_their_kind() {
    for (list, recorded) in [
        ("read", READS),
        ("READ, write ,-stdio", READS),
        ("-stdio", ALL - STDIO),
        ("stdio", STDIO),
        ("posix,-read", ALL - STDIO - READS),
        ("-read,-write,-descriptor,-state", OPENINGS),
        ("nothing", 0),
    ] {
        let process = traced("end", &[("FEEDLINE_TRACE_CALLS", list)]);
        assert_eq!(process.calls.len(), recorded, "{list}");
        let is_named = |call: &support::Call| call.name() == "setvbuf" || !call.path.is_empty();
        assert!(process.calls.iter().all(is_named), "{list}");
    }
}

#[test]
fn of_so_many_calls_one_is_recorded_and_the_others_are_counted() {
    for one_of in [1, 2, 7, 1000] {
        let process = traced("end", &[("FEEDLINE_TRACE_SAMPLE", &one_of.to_string())]);
        let recorded = OPENINGS + (ALL - OPENINGS) / one_of;
        assert_eq!(process.calls.len(), recorded, "{one_of}");
        assert_eq!(process.skipped as usize, ALL - recorded, "{one_of}");
    }
}

#[test]
fn summaries_add_up_to_what_was_done() {
    // Reads of 8 bytes at the offsets 0 to 15 of 16 bytes, in turn.
    let moved: u64 = (0..1000_u64).map(|i| 8.min(16 - i % 16)).sum();
    for (ending, further) in [("end", 1), ("kill", 0)] {
        let process = traced(ending, &[("FEEDLINE_TRACE_SUMMARY_MS", "3600000")]);
        let of = |name: &str, file: &str| {
            let mut found = process
                .summaries
                .iter()
                .filter(|(call, _)| call.name() == name && call.path.ends_with(file));
            let first = found.next().unwrap_or_else(|| panic!("{name} of {file}"));
            assert_eq!(found.next().map(|(call, _)| call.line()), None);
            first
        };
        let (reads, summary) = of("pread", "/keep/a.npz");
        assert_eq!(summary.calls, 1100 + further);
        assert_eq!(summary.errors, 100);
        assert_eq!(
            (reads.record.size, reads.record.result),
            (8800 + 3 * further, (moved + 3 * further) as i64)
        );
        assert_eq!((summary.least, summary.most), (0, 8));
        assert!(summary.shortest <= summary.longest && summary.longest <= summary.total);
        assert!(reads.record.end - reads.record.start >= summary.total);
        let (others, summary) = of("pread", "/skip/b.txt");
        assert_eq!((summary.calls, summary.errors), (250 + further, 0));
        assert_eq!(others.record.result, 1000 + 2 * further as i64);
        assert_eq!((summary.least, summary.most), (if further == 1 { 2 } else { 4 }, 4));
        let (puts, summary) = of("fputc", "/skip/s.txt");
        assert_eq!((summary.calls, puts.record.result), (100, 100));
        let summed: u64 = process.summaries.iter().map(|(_, summary)| summary.calls).sum();
        let made = if ending == "end" { ALL } else { 1 + 3 + 1100 + 250 + 100 };
        assert_eq!(process.calls.len() + summed as usize, made);
    }
}

#[test]
fn summaries_are_closed_after_their_time() {
    let process = traced("end", &[("FEEDLINE_TRACE_SUMMARY_MS", "1")]);
    let summed: u64 = process.summaries.iter().map(|(_, summary)| summary.calls).sum();
    assert_eq!(process.calls.len() + summed as usize, ALL);
    for (call, _) in &process.summaries {
        let begun_ns = call.record.end - call.record.start;
        // The last call began within the time, but may have taken any time itself.
        assert!(begun_ns < 1_000_000_000, "{begun_ns}");
    }
}

#[test]
fn the_words_of_dftracer_are_understood() {
    for prefix in ["DFTRACER_", "DLIO_PROFILER_"] {
        let run = |more: &[(&str, &str)]| {
            let names: Vec<_> = [&[("ENABLE", "1"), ("LOG_FILE", "FOLDER/trace")], more]
                .concat()
                .iter()
                .map(|(name, value)| (format!("{prefix}{name}"), (*value).to_owned()))
                .collect();
            let variables: Vec<_> =
                names.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            read(&mixed("end", &variables).join("trace"))
        };
        let calls = |more: &[(&str, &str)]| run(more).first().map(|process| process.calls.len());
        assert_eq!(calls(&[]), Some(ALL));
        assert_eq!(calls(&[("DATA_DIR", "all")]), Some(ALL));
        assert_eq!(calls(&[("DATA_DIR", "FOLDER/keep")]), Some(WANTED));
        assert_eq!(calls(&[("DATA_DIR", "/none:FOLDER/skip")]), Some(UNWANTED + STREAM));
        assert_eq!(calls(&[("DISABLE_STDIO", "1")]), Some(ALL - STDIO));
        assert_eq!(calls(&[("DISABLE_POSIX", "1")]), Some(STDIO));
        assert_eq!(calls(&[("ENABLE_AGGREGATION", "1")]), Some(OPENINGS));
        assert_eq!(calls(&[("ENABLE", "0")]), None);
    }
}
