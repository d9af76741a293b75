//! What was recorded before a program ended, however it ended, is in the trace; and nothing is lost or
//! said twice by programs that are disturbed while they record.

mod support;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use feedline_recorder::Ending;
use support::{Folder, Process, compile, read, read_one, run, succeed, traced};

struct Survivor {
    folder: Folder,
    output: Output,
}

/// The program, compiled once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(Folder, PathBuf)> = OnceLock::new();
    let make = || {
        let folder = Folder::new();
        let program = compile("survive.c", &folder, &[]);
        (folder, program)
    };
    &PROGRAM.get_or_init(make).1
}

impl Survivor {
    fn run(arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let mut command = traced(program(), &folder.join("trace"));
        command.arg(arguments[0]).arg(folder.path()).args(&arguments[1..]);
        let output = run(&mut command);
        Self { folder, output }
    }

    fn succeed(arguments: &[&str]) -> Self {
        let survivor = Self::run(arguments);
        let Output { status, stderr, .. } = &survivor.output;
        assert!(status.success(), "{status} {}", String::from_utf8_lossy(stderr));
        survivor
    }

    /// What the program said before its end, in words of four bytes.
    fn shared(&self) -> Vec<u32> {
        let bytes = std::fs::read(self.folder.join("shared")).unwrap();
        bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    fn one(&self) -> Process {
        read_one(&self.folder.join("trace"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}

/// Offsets of reads of a file, in their order.
fn offsets(process: &Process, path: &str) -> Vec<i64> {
    let reads = process.named("pread");
    reads.iter().filter(|call| call.path == path).map(|call| call.record.offset).collect()
}

fn row(count: impl Into<i64>) -> Vec<i64> {
    (0..count.into()).collect()
}

/// Nothing was dropped, and no slot is a hole.
fn is_whole(process: &Process) {
    assert_eq!((process.facts.dropped, process.holes), (0, 0));
}

#[test]
fn every_way_to_die_leaves_what_came_before() {
    use Ending::{Exec, Exit, None};
    // 508 and 4092 slots fill the first two segments, three of them with the names of files.
    for reads in [0, 499, 500, 10_000] {
        for (how, signal, code, ending, last) in [
            ("kill", Some(9), Option::None, None, Option::None),
            ("term", Some(15), Option::None, None, Option::None),
            ("segv", Some(11), Option::None, None, Option::None),
            ("abort", Some(6), Option::None, None, Option::None),
            ("exit_group", Option::None, Some(5), None, Option::None),
            ("_exit", Option::None, Some(5), Exit, Some("_exit")),
            ("quick_exit", Option::None, Some(5), Exit, Some("quick_exit")),
            ("exec", Option::None, Some(0), Exec, Some("execv")),
        ] {
            let survivor = Survivor::run(&["die", &reads.to_string(), how]);
            let status = survivor.output.status;
            assert_eq!((status.signal(), status.code()), (signal, code), "{how}");
            let processes = read(&survivor.folder.join("trace"));
            let process = &processes[0];
            assert_eq!(offsets(process, &survivor.path("file")), row(reads), "{how}");
            assert_eq!(process.calls.len(), 3 + reads as usize + usize::from(last.is_some()));
            assert_eq!(
                process.calls.last().map(|call| call.name()).filter(|name| !name.contains("pread")),
                last.or((reads == 0).then_some("open")),
            );
            assert_eq!(process.facts.ending, ending, "{how}");
            is_whole(process);
            // The program that it became is a process of its own, under the same number.
            assert_eq!(processes.len(), if how == "exec" { 2 } else { 1 });
            assert!(processes.iter().all(|other| other.facts.pid == process.facts.pid));
        }
    }
}

#[test]
fn threads_that_are_killed_leave_all_that_came_back() {
    let survivor = Survivor::run(&["threads_die", "20000"]);
    assert_eq!(survivor.output.status.signal(), Some(9));
    let process = survivor.one();
    let shared = survivor.shared();
    let mut threads = BTreeMap::<u32, Vec<i64>>::new();
    for call in process.named("pread") {
        threads.entry(call.record.thread).or_default().push(call.record.offset);
    }
    let mut recorded: Vec<_> = threads.into_values().collect();
    let mut made: Vec<_> = (0..4).map(|thread| shared[thread * 16]).collect();
    recorded.sort_by_key(Vec::len);
    made.sort_unstable();
    assert_eq!(recorded.len(), 4);
    for (offsets, made) in recorded.iter().zip(made) {
        assert!(made > 20_000);
        // The last one may have been recorded, but not yet counted.
        assert!(offsets.len() == made as usize || offsets.len() == made as usize + 1);
        assert_eq!(*offsets, row(offsets.len() as i64));
    }
    assert_eq!(process.facts.dropped, 0);
}

#[test]
fn signal_handlers_that_read_lose_nothing() {
    let survivor = Survivor::succeed(&["disturbed", "100000"]);
    let process = survivor.one();
    let shared = survivor.shared();
    assert!(shared[16] + shared[32] >= 100_000);
    for (name, count) in [("file", shared[0]), ("other", shared[16]), ("third", shared[32])] {
        assert_eq!(offsets(&process, &survivor.path(name)), row(count), "{name}");
    }
    let missing = shared[16].div_ceil(64) + shared[32].div_ceil(64);
    assert_eq!(process.named("open").len(), 3 + missing as usize);
    is_whole(&process);
}

#[test]
fn jumps_out_of_handlers_leave_the_recorder_working() {
    let survivor = Survivor::succeed(&["jumps", "50000"]);
    let process = survivor.one();
    let shared = survivor.shared();
    assert!(shared[201] > 0, "no signal came at the right time");
    let seen = offsets(&process, &survivor.path("file"));
    assert!(seen.is_sorted_by(|a, b| a < b), "a read stands there twice");
    let done: Vec<_> = (0..50_000).filter(|i| shared[1024 + *i as usize] == 1).collect();
    let lost: Vec<_> = done.iter().filter(|i| seen.binary_search(i).is_err()).collect();
    assert_eq!(lost, Vec::<&i64>::new());
    assert_eq!(process.facts.dropped, 0);
}

#[test]
fn canceled_threads_unwind_through_the_library() {
    let survivor = Survivor::succeed(&["cancel"]);
    let expected = "canceled 1 cleaned 1\ncanceled 1 cleaned 1\n";
    assert_eq!(String::from_utf8_lossy(&survivor.output.stdout), expected);
    let folder = Folder::new();
    let mut plain = Command::new(program());
    let plain = succeed(plain.arg("cancel").arg(folder.path()));
    assert_eq!(plain.stdout, survivor.output.stdout);
    let process = survivor.one();
    // Reads that never came back are none; those of the clean-up did.
    assert_eq!(offsets(&process, &survivor.path("file")), [77, 77]);
    assert_eq!(process.named("read").len() + process.named("fgetc").len(), 0);
}

#[test]
fn children_that_the_c_library_does_not_know_of_have_their_own_traces() {
    let survivor = Survivor::succeed(&["raw_forks"]);
    let processes = read(&survivor.folder.join("trace"));
    let file = survivor.path("file");
    let rows: Vec<_> = processes.iter().map(|process| offsets(process, &file)).collect();
    assert_eq!(rows, [vec![0, 1, 2, 0, 1, 2, 3], row(5), row(6)]);
    let parent = &processes[0].facts;
    for child in &processes[1..] {
        assert_eq!(child.facts.parent_started, Some(parent.started));
        assert_eq!(child.facts.parent, parent.pid);
        assert_ne!(child.facts.pid, parent.pid);
        assert_eq!(child.calls.len(), offsets(child, &file).len());
        is_whole(child);
    }
}

#[test]
fn forks_among_threads_keep_both_sides_apart() {
    let survivor = Survivor::succeed(&["forks", "50"]);
    let processes = read(&survivor.folder.join("trace"));
    assert_eq!(processes.len(), 51);
    let (file, other) = (survivor.path("file"), survivor.path("other"));
    for child in &processes[1..] {
        let names: Vec<_> = child.calls.iter().map(|call| call.name()).collect();
        assert_eq!(names, ["pread", "pread", "pread", "_exit"]);
        assert_eq!(offsets(child, &other), row(3));
        is_whole(child);
    }
    let parent = &processes[0];
    let shared = survivor.shared();
    let mut threads = BTreeMap::<u32, Vec<i64>>::new();
    for call in parent.named("pread") {
        assert_eq!(call.path, file);
        threads.entry(call.record.thread).or_default().push(call.record.offset);
    }
    let mut recorded: Vec<_> = threads.values().map(Vec::len).collect();
    let mut made: Vec<_> = (0..4).map(|thread| shared[thread * 16] as usize).collect();
    recorded.sort_unstable();
    made.sort_unstable();
    assert_eq!(recorded, made);
    assert!(threads.values().all(|offsets| *offsets == row(offsets.len() as i64)));
    assert_eq!((parent.named("fork").len(), parent.named("waitpid").len()), (50, 50));
    is_whole(parent);
}

#[test]
fn short_threads_hand_their_segments_on() {
    let survivor = Survivor::succeed(&["short", "1000"]);
    let process = survivor.one();
    let mut seen = offsets(&process, &survivor.path("file"));
    seen.sort_unstable();
    assert_eq!(seen, row(1000));
    // The main thread and eight at a time.
    assert!(process.segments <= 9, "{}", process.segments);
    is_whole(&process);
}
