//! `feedline trace`: programs of others, what they did, and what the command says about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use feedline_trace::{Batch, End, Event, EventSource as _, Folder, Process, Tables};

use crate::bed::{Bed, Ran, Running, ran};

/// The library, which cargo does not build for tests that are not linked to it.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("this program has a file");
        let target = program.ancestors().nth(3).expect("deps, profile and target folder");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--offline", "-p", "feedline-preload", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo starts");
        assert!(status.success(), "the library is built");
        target.join("debug/libfeedline_preload.so")
    })
}

/// `feedline trace` into the folder `t`.
fn trace(bed: &Bed, options: &[&str], command: &[&str]) -> Command {
    let mut trace = bed.feedline(&["trace", "-o", "t", "--library"]);
    trace.arg(library()).args(options).arg("--").args(command);
    trace
}

struct Trace {
    tables: Tables,
    events: Vec<Event>,
}

impl Trace {
    fn read(bed: &Bed) -> Self {
        let mut folder = Folder::open(&bed.path("t")).expect("a trace");
        let (mut tables, mut batch) = (Tables::default(), Batch::default());
        let mut events = Vec::new();
        while folder.next_batch(&mut tables, &mut batch).expect("events") {
            events.extend(batch.events.iter().copied());
        }
        events.sort_by_key(|event| event.start_ns);
        Self { tables, events }
    }

    /// Calls of a name on a file of the bed.
    fn calls(&self, name: &str, file: &Path) -> Vec<&Event> {
        let is_meant = |event: &&Event| {
            self.tables.name(event.name) == name
                && event.file.is_some_and(|row| Path::new(self.tables.file(row)) == file)
        };
        self.events.iter().filter(is_meant).collect()
    }

    fn processes(&self, program: &str) -> Vec<&Process> {
        let is_meant = |process: &&Process| process.program.ends_with(program);
        self.tables.processes.iter().filter(is_meant).collect()
    }
}

fn with_file() -> Bed {
    let bed = Bed::new();
    bed.write("data", vec![7; 40_960]);
    bed
}

const READ_ALL: [&str; 5] = ["dd", "if=data", "of=/dev/null", "bs=4096", "status=none"];

#[test]
fn every_read_is_in_the_trace_with_its_file_and_bytes() {
    let bed = with_file();
    let ran = ran(&mut trace(&bed, &[], &READ_ALL));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let trace = Trace::read(&bed);
    let reads = trace.calls("read", &bed.path("data").canonicalize().expect("the file"));
    let moved: Vec<_> = reads.iter().map(|read| (read.size, read.result, read.errno)).collect();
    let mut expected = vec![(Some(4096), Some(4096), 0); 10];
    expected.push((Some(4096), Some(0), 0));
    assert_eq!(moved, expected);
    assert!(reads.is_sorted_by_key(|read| read.start_ns), "one thread, one after the other");
    let writes = trace.calls("write", Path::new("/dev/null"));
    assert_eq!(writes.iter().filter_map(|write| write.result).sum::<i64>(), 40_960);
    let [process] = trace.processes("/dd")[..] else { panic!("{:?}", trace.tables.processes) };
    assert_eq!(process.arguments, READ_ALL);
    assert_eq!(
        (process.end.clone(), process.dropped, process.is_traced),
        (End::Exited(0), 0, true)
    );
    let report = bed.json("t/report.json");
    assert_eq!(report["events"], trace.events.len());
    assert_eq!((&report["processes"], &report["dropped"]), (&1.into(), &0.into()));
    assert_eq!((&report["read_bytes"], &report["written_bytes"]), (&40_960.into(), &40_960.into()));
    let first = format!("traced      {} events of 1 process in ", trace.events.len());
    assert!(ran.stderr.starts_with(&first), "{}", ran.stderr);
    assert!(ran.stderr.contains("read 41.0 kB, wrote 41.0 kB; 0 dropped\n"), "{}", ran.stderr);
    assert!(bed.tree().iter().all(|path| !path.ends_with(".segment")), "{:?}", bed.tree());
}

#[test]
fn the_exit_code_is_the_program_s() {
    for (line, code) in [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
        let bed = Bed::new();
        let ran = ran(&mut trace(&bed, &["--quiet"], &["sh", "-c", line]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{line}");
        let trace = Trace::read(&bed);
        let ends: Vec<_> = trace.tables.processes.iter().map(|process| &process.end).collect();
        let expected = if code == 137 { End::Killed } else { End::Exited(code) };
        assert_eq!(ends, [&expected], "{line}");
    }
}

#[test]
fn children_and_what_they_become_have_parents() {
    let bed = with_file();
    let line = "dd if=data of=/dev/null bs=40960 status=none; (exec cat data >/dev/null); :";
    let ran = ran(&mut trace(&bed, &[], &["dash", "-c", line]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = Trace::read(&bed);
    let rows = &trace.tables.processes;
    let row = |process: &Process| rows.iter().position(|other| other == process);
    let [dd] = trace.processes("/dd")[..] else { panic!("{rows:?}") };
    let [cat] = trace.processes("/cat")[..] else { panic!("{rows:?}") };
    let root = rows.iter().find(|process| process.parent.is_none()).expect("the first process");
    // A simple command of dash is a child in its parent's memory until it is another program.
    assert_eq!(dd.parent.map(|row| row as usize), row(root), "{dd:?}");
    let before = &rows[cat.parent.expect("what it was before") as usize];
    assert_eq!((before.pid, &before.end), (cat.pid, &End::Became), "{before:?}");
    assert_eq!(before.parent.map(|row| row as usize), row(root), "{before:?}");
}

#[test]
fn signals_for_the_launcher_reach_the_program() {
    let bed = Bed::new();
    let line = "trap 'echo got it; exit 3' TERM; : >ready; while :; do sleep 0.01; done";
    let mut command = trace(&bed, &[], &["sh", "-c", line]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::new(command.spawn().expect("the command starts"));
    bed.wait_until("the program is ready", |bed| bed.path("ready").exists());
    running.signal("TERM");
    let ran = running.wait();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "got it\n"), "{ran:?}");
}

#[test]
fn a_killed_launcher_loses_nothing() {
    let bed = with_file();
    let line = "dd if=data of=/dev/null bs=4096 status=none; : >ready; exec sleep 1000";
    let mut command = trace(&bed, &[], &["sh", "-c", line]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running::new(command.spawn().expect("the command starts"));
    bed.wait_until("the program is ready", |bed| bed.path("ready").exists());
    running.signal("KILL");
    running.wait();
    // The program is killed too, as when a whole job is.
    let found = bed.shell("pkill -KILL -f 'sleep 1000$'");
    assert_eq!(found.code, Some(0), "{found:?}");
    let recovered = feedline_trace::recover(&bed.path("t")).expect("what is left");
    assert!(recovered.events > 0, "{recovered:?}");
    let trace = Trace::read(&bed);
    let reads = trace.calls("read", &bed.path("data").canonicalize().expect("the file"));
    assert_eq!(reads.len(), 11);
    assert_eq!(reads.iter().filter_map(|read| read.result).sum::<i64>(), 40_960);
}

#[test]
fn only_what_was_asked_for_is_recorded_and_the_rest_is_counted() {
    let bed = with_file();
    bed.write("other", vec![1; 10]);
    let line = "cat other >/dev/null; dd if=data of=/dev/null bs=4096 status=none";
    let data = bed.path("data").canonicalize().expect("the file");
    let glob = format!("{}/d?ta", data.parent().expect("a folder").display());
    let ran = ran(&mut trace(&bed, &["-i", &glob, "--calls=read,open"], &["sh", "-c", line]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = Trace::read(&bed);
    let named: std::collections::BTreeSet<_> = trace
        .events
        .iter()
        .map(|event| (trace.tables.name(event.name), event.file.map(|row| trace.tables.file(row))))
        .collect();
    let shown = data.to_str().expect("a path in UTF-8");
    let files: Vec<_> = named.iter().filter_map(|(_, file)| *file).collect();
    assert!(files.iter().all(|file| *file == shown), "{named:?}");
    assert_eq!(trace.calls("read", &data).len(), 11);
    assert!(bed.json("t/report.json")["filtered"].as_u64() > Some(0), "{ran:?}");
}

#[test]
fn samples_and_summaries_add_up() {
    let bed = with_file();
    let made = ran(&mut trace(&bed, &["--sample", "4", "--calls=read"], &READ_ALL));
    assert_eq!(made.code, Some(0), "{made:?}");
    let sampled = Trace::read(&bed);
    let report = bed.json("t/report.json");
    let skipped = report["skipped"].as_u64().expect("a number");
    let seen = sampled.events.len() as u64;
    let bed = with_file();
    ran(&mut trace(&bed, &["--calls=read"], &READ_ALL));
    assert_eq!(seen + skipped, Trace::read(&bed).events.len() as u64);
    assert_eq!(seen, (seen + skipped) / 4);

    let bed = with_file();
    ran(&mut trace(&bed, &["--summary", "60000"], &READ_ALL));
    let trace = Trace::read(&bed);
    let [read] = trace.calls("read", &bed.path("data").canonicalize().expect("the file"))[..]
    else {
        panic!("{:?}", trace.events)
    };
    assert_eq!((read.count, read.size, read.result), (11, Some(11 * 4096), Some(40_960)));
    assert!(read.shortest_ns <= read.longest_ns && read.longest_ns > Some(0), "{read:?}");
}

#[test]
fn programs_that_cannot_be_traced_are_named() {
    let bed = Bed::new();
    bed.write("static.c", "int main(void) { return 5; }");
    let compiled = bed.shell("cc -static -o static static.c");
    assert_eq!(compiled.code, Some(0), "{compiled:?}");
    let direct = ran(&mut trace(&bed, &[], &["./static"]));
    assert_eq!(direct.code, Some(5), "{direct:?}");
    assert!(direct.stderr.contains("not traced  ./static: statically linked\n"), "{direct:?}");
    let below = ran(&mut trace(&bed, &["--overwrite"], &["sh", "-c", "./static; exit 0"]));
    assert_eq!(below.code, Some(0), "{below:?}");
    let path = bed.path("static").canonicalize().expect("the program");
    let line = format!("not traced  {}: statically linked\n", path.display());
    assert!(below.stderr.contains(&line), "{}", below.stderr);
}

#[track_caller]
fn refuses(bed: &Bed, args: &[&str], stderr: &str) {
    let before = bed.tree();
    let Ran { code, stdout, stderr: said } =
        ran(bed.feedline(&["trace", "--library"]).arg(library()).args(args));
    assert_eq!((code, stdout.as_str(), said.as_str()), (Some(2), "", stderr));
    assert_eq!(bed.tree(), before, "something was left behind");
}

#[test]
fn bad_requests_leave_nothing_behind() {
    let bed = Bed::new();
    bed.write("full/file", "x");
    refuses(
        &bed,
        &["-o", "t", "--", "./no-such-program"],
        "error: cannot start ./no-such-program: No such file or directory (os error 2)\n\
         hint: the program and its arguments go after --, as in: feedline trace -- ls /\n",
    );
    refuses(
        &bed,
        &["-o", "full", "--", "true"],
        "error: full already exists and is not a trace\nhint: choose another folder with -o\n",
    );
    refuses(
        &bed,
        &["-o", "small.yaml/t", "--", "true"],
        "error: cannot create the trace folder small.yaml/t: Not a directory (os error 20)\n",
    );
    refuses(
        &bed,
        &["-i", "a:b", "--", "true"],
        "error: a:b contains a colon, which separates patterns\nhint: match the colon with ?\n",
    );
    refuses(
        &bed,
        &["--library", "none.so", "--", "true"],
        "error: the argument '--library <FILE>' cannot be used multiple times\n\n\
         Usage: feedline trace [OPTIONS] -- <CMD>...\n\nFor more information, try '--help'.\n",
    );
    let missing = ran(&mut bed.feedline(&["trace", "--library", "none.so", "--", "true"]));
    assert_eq!(
        missing.stderr,
        "error: preload library not found: none.so\n\
         hint: `cargo build --release -p feedline-preload` builds it beside the program; or use --library FILE\n"
    );
    let unknown = ran(&mut bed.feedline(&["trace", "--calls=raed", "--", "true"]));
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.starts_with("error: unknown kind of calls `raed`\nhint: use one of "));
    let twice = |options: &[&str]| ran(&mut trace(&bed, options, &["true"])).code;
    assert_eq!((twice(&[]), twice(&[]), twice(&["--overwrite"])), (Some(0), Some(2), Some(0)));
    // A program that does not start replaces nothing.
    let before = Trace::read(&bed).events.len();
    let failed = ran(&mut trace(&bed, &["--overwrite"], &["./no-such-program"]));
    assert_eq!(failed.code, Some(2), "{failed:?}");
    assert_eq!(Trace::read(&bed).events.len(), before);
    std::fs::create_dir(bed.path("mine")).expect("a folder");
    refuses(
        &bed,
        &["-o", "mine", "--", "./no-such-program"],
        "error: cannot start ./no-such-program: No such file or directory (os error 2)\n\
         hint: the program and its arguments go after --, as in: feedline trace -- ls /\n",
    );
}

#[test]
fn folders_and_patterns_may_be_given_in_any_way() {
    for option in [
        "--data=.",
        "--data=./sub/..",
        "--include=da*",
        "--include=./d?ta",
        "--include=sub/../data",
    ] {
        let bed = with_file();
        std::fs::create_dir(bed.path("sub")).expect("a folder");
        for path in ["data", "sub/../data", ".//data"] {
            let input = format!("if={path}");
            let command = ["dd", &input, "of=/dev/null", "bs=4096", "status=none"];
            let ended = ran(&mut trace(&bed, &["--overwrite", option], &command));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let file = bed.path("data").canonicalize().expect("the file");
            assert_eq!(Trace::read(&bed).calls("read", &file).len(), 11, "{option} {path}");
        }
    }
}

#[test]
fn a_trace_that_cannot_be_written_does_not_end_the_program() {
    let bed = with_file();
    bed.write(
        "run",
        format!(
            "mkdir small && mount -t tmpfs -o size=64k none small && \
             $FEEDLINE trace -o small/t --library {} -- sh -c 'while ! [ -s full ]; do \
             dd if=/dev/zero of=small/fill bs=1k 2>/dev/null; echo yes >full; done; \
             dd if=data of=/dev/null bs=1 status=none; exit 7'",
            library().display()
        ),
    );
    let ended = bed.unshared("sh run");
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let first = ended.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("error: the trace is not complete: "), "{ended:?}");
    assert!(first.ends_with("No space left on device (os error 28)"), "{ended:?}");
    assert!(ended.stderr.contains("\nhint: free some space, then `feedline convert "), "{ended:?}");
}
