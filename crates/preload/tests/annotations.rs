//! Programs that say what they do, compiled in every way that matters, with and without the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use feedline_recorder::{
    AppEvent, PROCESS_SUFFIX, ProcessFile, SEGMENT_SUFFIX, SegmentEntry, SegmentFile, Tags,
};

/// How programs are compiled, and whether they can be preloaded.
const COMPILERS: [(&[&str], bool); 6] = [
    (&["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"], true),
    (&["cc", "-O2"], true),
    (&["cc", "-O2", "-no-pie", "-fno-pie"], true),
    (&["c++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"], true),
    (&["cc", "-O2", "-static"], false),
    (&["cc", "-O2", "-Wall", "-Werror", "-DFEEDLINE_DISABLED"], false),
];

/// Builds something of the workspace, which cargo does not do for tests that are not linked to it.
fn build(what: &[&str]) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .args(what)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "{what:?}");
    target.join("debug")
}

fn library() -> PathBuf {
    build(&["-p", "feedline-preload"]).join("libfeedline_preload.so")
}

fn compile(compiler: &[&str], program: &Path) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(compiler[0])
        .args(&compiler[1..])
        .arg("-I")
        .arg(package.join("../../include"))
        .arg(package.join("tests/annotated.c"))
        .arg("-o")
        .arg(program)
        .status()
        .unwrap();
    assert!(status.success(), "{compiler:?}");
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The spans and counters of a program and its child, with their names in place of numbers.
fn events(segments: &Path) -> Vec<(u32, String, AppEvent)> {
    let paths = || std::fs::read_dir(segments).unwrap().map(|entry| entry.unwrap().path());
    let named =
        |suffix: &'static str| paths().filter(move |path| path.to_str().unwrap().ends_with(suffix));
    let mut processes: Vec<_> =
        named(PROCESS_SUFFIX).map(|path| ProcessFile::open(&path).unwrap().facts()).collect();
    processes.sort_by_key(|process| process.start.monotonic_ns);
    let order: BTreeMap<_, _> = processes.iter().map(|process| process.pid).zip(0_u32..).collect();
    let mut sites = BTreeMap::new();
    let mut found = Vec::new();
    for path in named(SEGMENT_SUFFIX) {
        let segment = SegmentFile::open(&path).unwrap();
        let process = order[&segment.process().0];
        for entry in segment.entries() {
            match entry {
                SegmentEntry::Text { number, text, .. } => {
                    sites.insert((process, number), String::from_utf8_lossy(text).into_owned());
                }
                SegmentEntry::Call(op, record) => {
                    if let Some(event) = AppEvent::unpack(op, &record) {
                        assert!(record.start <= record.end);
                        found.push((process, record.end, event));
                    }
                }
                SegmentEntry::Summary(..) => panic!("nothing is summed up"),
            }
        }
    }
    found.sort_by_key(|(_, end, _)| *end);
    let named = |(process, _, event): (u32, u64, AppEvent)| {
        let (AppEvent::Span { site, .. }
        | AppEvent::Counter { site, .. }
        | AppEvent::Call { site, .. }) = event;
        // A forked child goes on with its parent's numbers.
        let name = sites.get(&(process, site)).or_else(|| sites.get(&(0, site))).unwrap();
        (process, name.replace('\0', "/"), without_site(event))
    };
    found.into_iter().map(named).collect()
}

fn without_site(event: AppEvent) -> AppEvent {
    match event {
        AppEvent::Span { tags, .. } => AppEvent::Span { site: 0, tags },
        AppEvent::Counter { value, .. } => AppEvent::Counter { site: 0, value },
        AppEvent::Call { facts, .. } => AppEvent::Call { site: 0, facts },
    }
}

fn step(epoch: i64, step: i64, sample: u64) -> AppEvent {
    let (epoch, step, sample, size) = (Some(epoch), Some(step), Some(sample), Some(4096));
    AppEvent::Span { site: 0, tags: Tags { epoch, step, sample, size } }
}

fn queue(value: f64) -> AppEvent {
    AppEvent::Counter { site: 0, value }
}

/// What the program in C says, in its child too, and what the one in Rust says, which has none.
fn expected() -> [(u32, &'static str, AppEvent); 8] {
    [
        (0, "loader/queue", queue(1.5)),
        (0, "pipeline/step", step(1, 1, 10)),
        (0, "pipeline/step", step(1, 2, 20)),
        (0, "loader/queue", queue(4.5)),
        (0, "pipeline/step", step(1, 3, 30)),
        (0, "ai_root/ai_root", AppEvent::Span { site: 0, tags: Tags::NONE }),
        (1, "loader/queue", queue(6.0)),
        (1, "pipeline/step", step(2, 4, 40)),
    ]
}

#[track_caller]
fn check(trace: &Path, expected: &[(u32, &str, AppEvent)]) {
    let found = events(&trace.join("segments"));
    let found: Vec<_> =
        found.iter().map(|(process, name, event)| (*process, name.as_str(), *event)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_program_in_rust_says_the_same() {
    let (folder, library) = (tempfile::tempdir().unwrap(), library());
    let program = build(&["-p", "feedline-recorder", "--example", "annotated"]);
    let program = program.join("examples/annotated");
    assert_eq!(output(&mut Command::new(&program)), "0\n");
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", &library).env("FEEDLINE_TRACE", folder.path());
    assert_eq!(output(&mut command), "1\n");
    check(folder.path(), &expected()[..6]);
    assert_eq!(output(Command::new(&program).env("LD_PRELOAD", &library)), "0\n");
}

#[test]
fn a_program_says_what_it_does_if_anybody_listens() {
    let (folder, library) = (tempfile::tempdir().unwrap(), library());
    for (number, (compiler, is_heard)) in COMPILERS.iter().enumerate() {
        let program = folder.path().join(format!("program-{number}"));
        compile(compiler, &program);
        assert_eq!(output(&mut Command::new(&program)), "0\n", "{compiler:?}");
        let trace = folder.path().join(format!("trace-{number}"));
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", &library).env("FEEDLINE_TRACE", &trace);
        let heard = output(&mut command);
        assert_eq!(heard, if *is_heard { "1\n" } else { "0\n" }, "{compiler:?}");
        if *is_heard {
            check(&trace, &expected());
        }
        // Loaded, but with nothing to do.
        let idle = output(Command::new(&program).env("LD_PRELOAD", &library));
        assert_eq!(idle, "0\n", "{compiler:?}");
    }
}
