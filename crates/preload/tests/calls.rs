//! Every call that the library knows, made by a C program that keeps an account of its own: the trace
//! must say the same, call by call.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use feedline_recorder::{Category, Class, Ending, OPS};
use support::{Folder, Process, compile, read, run, traced};

/// Calls that only other C libraries have: a newer one for `scanf` of C23.
const ELSEWHERE: [&str; 2] = ["__isoc23_fscanf", "__isoc23_vfscanf"];

/// Runs the program in a new folder `name`, with files as standard input and output.
fn make_calls(mode: &str, name: &str, folder: &Folder, mut command: Command) -> Output {
    let work = folder.make(name);
    std::fs::write(work.join("in"), "standard input").unwrap();
    let logs = folder.make(&format!("{name}-logs"));
    command.args([mode.as_ref(), work.as_os_str(), logs.as_os_str()]);
    command.stdin(File::open(work.join("in")).unwrap());
    command.stdout(File::create(work.join("out")).unwrap());
    run(&mut command)
}

/// The logs of a folder, by process; lines by thread.
fn logs(folder: &Path) -> BTreeMap<u32, BTreeMap<u32, Vec<String>>> {
    let mut logs = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let pid = path.file_stem().unwrap().to_string_lossy().parse().unwrap();
        let mut threads = BTreeMap::<u32, Vec<String>>::new();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let thread = line.split('\t').next().unwrap().parse().unwrap();
            threads.entry(thread).or_default().push(line.to_owned());
        }
        logs.insert(pid, threads);
    }
    logs
}

/// Compares each process that kept a log with its trace.
fn compare(folder: &Folder, name: &str, program: &Path) -> Vec<Process> {
    let processes = read(&folder.join("trace"));
    for (pid, threads) in logs(&folder.join(&format!("{name}-logs"))) {
        let process = processes
            .iter()
            .find(|process| {
                process.facts.pid == pid && Path::new(&process.facts.program) == program
            })
            .unwrap_or_else(|| panic!("process {pid} is not in the trace"));
        let traced = process.lines();
        for (thread, lines) in &threads {
            let seen = traced.get(thread).cloned().unwrap_or_default();
            for (index, line) in lines.iter().enumerate() {
                assert_eq!(seen.get(index), Some(line), "call {index} of thread {thread}");
            }
            assert_eq!(seen.len(), lines.len(), "{:?}", &seen[lines.len()..]);
        }
        assert_eq!(traced.len(), threads.len(), "threads of process {pid}");
        assert_eq!((process.facts.dropped, process.facts.filtered, process.holes), (0, 0, 0));
    }
    processes
}

#[test]
fn every_call_is_recorded_as_it_was_made() {
    let folder = Folder::new();
    let program = compile("calls.c", &folder, &[]);
    let command = traced(&program, &folder.join("trace"));
    let output = make_calls("alone", "work", &folder, command);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let processes = compare(&folder, "work", &program);

    let seen: BTreeSet<_> =
        processes.iter().flat_map(|process| &process.calls).map(|call| call.name()).collect();
    let expected: BTreeSet<_> = OPS
        .iter()
        .map(|op| op.info())
        .filter(|facts| !matches!(facts.category, Category::App | Category::Uring))
        .map(|facts| facts.name)
        .filter(|name| !ELSEWHERE.contains(name))
        .collect();
    assert_eq!(expected.difference(&seen).collect::<Vec<_>>(), Vec::<&&str>::new());
    // The process said how it ended.
    let main = processes.iter().find(|process| process.facts.parent_started.is_none()).unwrap();
    assert_eq!((main.facts.ending, main.facts.status), (Ending::Exit, 7));
    let became = main.calls.iter().filter(|call| call.op.info().class == Class::Process).count();
    assert!(became > 40, "{became}");
}

#[test]
fn eight_threads_are_recorded_side_by_side() {
    let folder = Folder::new();
    let program = compile("calls.c", &folder, &[]);
    let command = traced(&program, &folder.join("trace"));
    let output = make_calls("threads", "work", &folder, command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let processes = compare(&folder, "work", &program);
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0].lines().len(), 8);
}

#[test]
fn calls_do_the_same_with_and_without_the_library() {
    let folder = Folder::new();
    let program = compile("calls.c", &folder, &[]);
    let plain = make_calls("stable", "work", &folder, Command::new(&program));
    let mut first = account(&folder);
    std::fs::rename(folder.join("work"), folder.join("work-plain")).unwrap();
    std::fs::remove_dir_all(folder.join("work-logs")).unwrap();
    let watched = make_calls("stable", "work", &folder, traced(&program, &folder.join("trace")));
    let second = account(&folder);
    assert_eq!(plain.status.code(), Some(7), "{}", String::from_utf8_lossy(&plain.stderr));
    assert_eq!((plain.status, plain.stderr), (watched.status, watched.stderr));
    assert_eq!(first.len(), second.len());
    for (index, lines) in first.drain(..).enumerate() {
        assert_eq!(lines, second[index]);
    }
    for name in ["a", "b", "s", "out"] {
        let before = std::fs::read(folder.join("work-plain").join(name)).unwrap();
        assert_eq!(before, std::fs::read(folder.join("work").join(name)).unwrap(), "{name}");
    }
}

/// The logs of all processes, in no order but their own.
fn account(folder: &Folder) -> Vec<String> {
    let mut texts: Vec<_> = std::fs::read_dir(folder.join("work-logs"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    texts
}
