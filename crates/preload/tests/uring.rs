//! Requests through liburing, against the account of the program that made them.

mod support;

use std::path::Path;

use feedline_recorder::{Category, OPS, Op};
use support::{Folder, Process, compile, read_one, run, traced};

/// Lines of a program's log: those of completions, and the others.
fn parts(lines: Vec<String>) -> (Vec<String>, Vec<String>) {
    lines.into_iter().partition(|line| line.contains("\tio_uring.completed\t"))
}

fn log(folder: &Path) -> Vec<String> {
    let entry =
        std::fs::read_dir(folder).unwrap().next().expect("the program wrote a log").unwrap();
    std::fs::read_to_string(entry.path()).unwrap().lines().map(str::to_owned).collect()
}

/// A completion may be in the ring at once or a little later, so their order is compared among
/// themselves.
fn compare(folder: &Folder, process: &Process) {
    let lines = process.calls.iter().map(|call| call.line()).collect();
    let (completed, others) = parts(lines);
    let (made, calls) = parts(log(&folder.join("logs")));
    for (index, line) in calls.iter().enumerate() {
        assert_eq!(others.get(index), Some(line), "call {index}");
    }
    assert_eq!(others.len(), calls.len(), "{:?}", &others[calls.len()..]);
    assert_eq!(completed, made);
    assert_eq!(completed.len(), 2 * (13 + 500 + 1));
    assert_eq!((process.facts.dropped, process.holes), (0, 0));
}

/// Compiles against liburing.
fn build(source: &str, folder: &Folder, flags: &[&str]) -> std::path::PathBuf {
    assert!(
        Path::new("/usr/include/liburing.h").exists(),
        "no liburing; bring it with: apt-get install -y liburing-dev"
    );
    compile(source, folder, &[flags, &["-luring"]].concat())
}

#[test]
fn every_request_and_every_completion_is_recorded_once() {
    let folder = Folder::new();
    let program = build("uring.c", &folder, &[]);
    let mut command = traced(program, &folder.join("trace"));
    let output = run(command.arg(folder.make("work")).arg(folder.make("logs")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let process = read_one(&folder.join("trace"));
    compare(&folder, &process);
    let is_seen = |op: &&Op| process.calls.iter().any(|call| call.op == **op);
    let ops = OPS.iter().filter(|op| op.info().category == Category::Uring);
    assert_eq!(ops.filter(|op| !is_seen(op)).collect::<Vec<_>>(), Vec::<&Op>::new());
}

#[test]
fn a_library_that_was_loaded_later_is_found() {
    let folder = Folder::new();
    let library = build("uring.c", &folder, &["-DPLUGIN", "-shared", "-fPIC"]);
    let program = compile("host.c", &folder, &[]);
    let mut command = traced(program, &folder.join("trace"));
    let output = run(command.arg(library).arg(folder.make("work")).arg(folder.make("logs")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compare(&folder, &read_one(&folder.join("trace")));
}
