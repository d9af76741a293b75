//! A program in need is not put in more of it: its memory, stacks, descriptors and limits stay its own,
//! and a trace that cannot be kept is said to be incomplete, by how much and why.

mod support;

use std::process::{Command, Output};

use feedline_recorder::DropReason;
use support::{Folder, Process, compile, library, read_one, run, succeed, traced};

/// A folder with the program and its files.
fn prepare() -> Folder {
    let folder = Folder::new();
    compile("harmless.c", &folder, &[]);
    std::fs::write(folder.join("file"), [7; 64]).unwrap();
    folder
}

/// Runs the program both ways, which must give the same; then gives what it said.
fn same(folder: &Folder, mode: &str, count: u32) -> String {
    let run =
        |mut command: Command| succeed(command.arg(mode).arg(folder.path()).arg(count.to_string()));
    let plain = run(Command::new(folder.join("harmless")));
    let watched = run(traced(folder.join("harmless"), &folder.join("trace")));
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text(&plain), text(&watched));
    assert_eq!(plain.stderr, watched.stderr);
    text(&watched)
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Calls, and output of `printf`, that were recorded or counted as dropped.
fn is_all_accounted_for(process: &Process, said: &str) {
    let printed = said.lines().count() as u64;
    let made = number(said, "made ") + printed + 1;
    assert_eq!(process.calls.len() as u64 + process.facts.dropped, made);
    assert!(process.facts.dropped > 0);
    assert_eq!(process.holes, 0);
}

#[test]
fn no_memory_is_taken_from_the_programs_heap() {
    let folder = prepare();
    let said = same(&folder, "memory", 2000);
    assert_eq!(number(&said, "allocations "), 0);
    let process = read_one(&folder.join("trace"));
    assert_eq!((process.named("open").len(), process.named("pread").len()), (2001, 40_000));
    assert!(process.segments > 10 && process.facts.dropped == 0);
}

#[test]
fn the_smallest_stacks_are_enough() {
    let folder = prepare();
    assert_eq!(same(&folder, "stacks", 10_000), "handled 10000\n");
    let process = read_one(&folder.join("trace"));
    assert_eq!(process.named("pread").len(), 20_000);
    assert_eq!((process.facts.dropped, process.holes), (0, 0));
}

#[test]
fn without_descriptors_events_are_dropped_and_counted() {
    let folder = prepare();
    let said = same(&folder, "no_descriptors", 20_000);
    let process = read_one(&folder.join("trace"));
    is_all_accounted_for(&process, &said);
    assert_eq!(process.facts.trouble, DropReason::Folder);
}

#[test]
fn without_room_for_files_events_are_dropped_and_counted() {
    let folder = prepare();
    let said = same(&folder, "small_files", 20_000);
    assert!(said.starts_with("write -1 errno 27\n"), "{said}");
    let process = read_one(&folder.join("trace"));
    is_all_accounted_for(&process, &said);
    assert_eq!(process.facts.trouble, DropReason::Room);
}

#[test]
fn without_address_space_events_are_dropped_and_counted() {
    let folder = prepare();
    let said = same(&folder, "small_memory", 20_000);
    assert!(said.starts_with("mmap 0 errno 12\n"), "{said}");
    let process = read_one(&folder.join("trace"));
    is_all_accounted_for(&process, &said);
    assert_eq!(process.facts.trouble, DropReason::Map);
}

/// A file system of 64 KiB in a mount namespace of its own; what is in it is brought out afterwards.
#[test]
fn on_a_full_disk_events_are_dropped_and_counted() {
    let folder = prepare();
    let script = r#"mkdir small trace && mount -t tmpfs -o size=64k tmpfs small || exit 9
        LD_PRELOAD=$1 FEEDLINE_TRACE=$PWD/small ./harmless reads $PWD 20000 && cp -r small/segments trace"#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    let output = succeed(command.arg(library()).current_dir(folder.path()));
    let said = String::from_utf8_lossy(&output.stdout);
    let process = read_one(&folder.join("trace"));
    is_all_accounted_for(&process, &said);
    assert_eq!(process.facts.trouble, DropReason::Room);
    assert_eq!(number(&said, "made "), 20_001);
}

#[test]
fn where_no_trace_can_be_the_program_runs_without_one() {
    let folder = prepare();
    std::fs::write(folder.join("a-file"), "").unwrap();
    let long = "x".repeat(2000);
    for trace in ["/proc/trace", "a-file/trace", "a-file", "", &long] {
        let mut command = Command::new(folder.join("harmless"));
        command.arg("reads").arg(folder.path()).arg("1000").current_dir(folder.path());
        command.env("LD_PRELOAD", library()).env("FEEDLINE_TRACE", trace);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{trace}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "made 1001\n", "{trace}");
        assert_eq!(output.stderr, b"", "{trace}");
    }
    assert_eq!(std::fs::read(folder.join("a-file")).unwrap(), b"");
}
