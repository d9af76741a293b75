//! Running programs under the library, and reading what it recorded.

#![allow(dead_code, reason = "every test program uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use feedline_recorder::{
    CallRecord, Class, Op, PROCESS_SUFFIX, ProcessFacts, ProcessFile, ReadError, SEGMENT_SUFFIX,
    SegmentEntry, SegmentFile, Summary,
};
use tempfile::TempDir;

/// The library, which cargo builds into the folder of the test programs.
pub(crate) fn library() -> PathBuf {
    let program = std::env::current_exe().expect("a test has a path");
    let library = program.with_file_name("libfeedline_preload.so");
    assert!(library.exists(), "no {}", library.display());
    library
}

/// A new folder under its real name, as the kernel calls it.
pub(crate) struct Folder {
    folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("feedline-preload-").tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A new folder in it.
    pub(crate) fn make(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}

/// Compiles a C program of `tests/c`.
pub(crate) fn compile(source: &str, folder: &Folder, flags: &[&str]) -> PathBuf {
    let program = folder.join(source.trim_end_matches(".c"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Werror",
            "-Wno-unused-function",
            "-Wno-unused-variable",
            "-Wno-nonnull",
            "-O0",
            "-fno-builtin",
            "-pthread",
        ])
        .args(["-Wno-deprecated-declarations", "-U_FORTIFY_SOURCE", "-o"])
        .arg(&program)
        .arg(path)
        .args(flags)
        .arg("-ldl")
        .output()
        .expect("no C compiler; install it with: apt-get install gcc libc6-dev");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A command that runs under the library, with its trace in `folder`.
pub(crate) fn traced(program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library()).env("FEEDLINE_TRACE", folder);
    command
}

/// Seconds after which a program is taken to stand still: none of these tests takes a hundredth of it.
const STANDS_STILL: u32 = 300;

/// Runs a command to its end. One that stands still is ended by an alarm, so that its test fails and the
/// others still run.
pub(crate) fn run(command: &mut Command) -> Output {
    // SAFETY: `alarm` may be called between fork and exec, and stays set across it.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(STANDS_STILL);
            Ok(())
        });
    }
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A call with its texts.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    pub(crate) path: String,
    /// The other path, or the number.
    pub(crate) arg: String,
    pub(crate) record: CallRecord,
}

impl Call {
    pub(crate) fn name(&self) -> &'static str {
        self.op.info().name
    }

    /// As programs log theirs.
    pub(crate) fn line(&self) -> String {
        let CallRecord { thread, size, offset, result, errno, .. } = self.record;
        let (name, path, arg) = (self.name(), &self.path, &self.arg);
        format!("{thread}\t{name}\t{path}\t{size}\t{offset}\t{arg}\t{result}\t{errno}")
    }
}

/// A process of a trace. Calls and summaries are in the order in which they began.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) facts: ProcessFacts,
    pub(crate) calls: Vec<Call>,
    pub(crate) summaries: Vec<(Call, Summary)>,
    pub(crate) skipped: u64,
    pub(crate) segments: usize,
    pub(crate) holes: usize,
}

impl Process {
    /// Calls of a name.
    pub(crate) fn named(&self, name: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.name() == name).collect()
    }

    /// Lines of each thread.
    pub(crate) fn lines(&self) -> BTreeMap<u32, Vec<String>> {
        let mut lines = BTreeMap::<u32, Vec<String>>::new();
        for call in &self.calls {
            lines.entry(call.record.thread).or_default().push(call.line());
        }
        lines
    }
}

/// Everything in a trace's folder.
pub(crate) fn read(trace: &Path) -> Vec<Process> {
    let mut names = Vec::new();
    if let Ok(entries) = std::fs::read_dir(trace.join("segments")) {
        names.extend(entries.map(|entry| entry.unwrap().path()));
    }
    names.sort();
    let ends = |path: &PathBuf, suffix: &str| path.to_string_lossy().ends_with(suffix);
    let facts = names.iter().filter(|path| ends(path, PROCESS_SUFFIX)).filter_map(|path| {
        match ProcessFile::open(path) {
            Ok(file) => Some(file.facts()),
            // It was killed while it made the file.
            Err(ReadError::Unfinished) => None,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    });
    let mut processes: Vec<Raw> = facts.map(Raw::new).collect();
    processes.sort_by_key(|process| process.facts.started);
    for path in names.iter().filter(|path| ends(path, SEGMENT_SUFFIX)) {
        let segment = match SegmentFile::open(path) {
            Ok(segment) => segment,
            // Its process was killed while it made the file.
            Err(ReadError::Unfinished) => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let process = processes
            .iter_mut()
            .find(|process| (process.facts.pid, process.facts.started) == segment.process())
            .expect("every segment has its process");
        process.add(&segment);
    }
    let mut texts = HashMap::new();
    for process in &processes {
        for (number, text) in &process.texts {
            texts.insert((process.facts.started, *number), text.clone());
        }
    }
    let parents: HashMap<u64, ProcessFacts> =
        processes.iter().map(|process| (process.facts.started, process.facts.clone())).collect();
    let names = Names { texts, parents };
    processes.into_iter().map(|process| process.finish(&names)).collect()
}

/// The only process of a trace.
pub(crate) fn read_one(trace: &Path) -> Process {
    let mut processes = read(trace);
    assert_eq!(processes.len(), 1, "{processes:?}");
    processes.remove(0)
}

struct Names {
    texts: HashMap<(u64, u32), (u32, String)>,
    parents: HashMap<u64, ProcessFacts>,
}

impl Names {
    /// The text of a number: the process's own, or that of the one it was forked off.
    fn text(&self, facts: &ProcessFacts, number: u32) -> String {
        if number == 0 {
            return String::new();
        }
        if number < facts.first_text
            && let Some(parent) = facts.parent_started
        {
            return self.text(&self.parents[&parent], number);
        }
        let Some((base, text)) = self.texts.get(&(facts.started, number)) else {
            panic!("text {number} is not in the trace of process {}", facts.pid)
        };
        match base {
            0 => text.clone(),
            base => format!("{}/{text}", self.text(facts, *base)),
        }
    }
}

struct Raw {
    facts: ProcessFacts,
    texts: HashMap<u32, (u32, String)>,
    calls: Vec<(Op, CallRecord)>,
    summaries: Vec<(Op, CallRecord, Summary)>,
    skipped: u64,
    segments: usize,
    holes: usize,
}

impl Raw {
    fn new(facts: ProcessFacts) -> Self {
        Self {
            facts,
            texts: HashMap::new(),
            calls: Vec::new(),
            summaries: Vec::new(),
            skipped: 0,
            segments: 0,
            holes: 0,
        }
    }

    fn add(&mut self, segment: &SegmentFile) {
        self.segments += 1;
        self.skipped += segment.skipped();
        self.holes += usize::from(segment.has_holes());
        for entry in segment.entries() {
            match entry {
                SegmentEntry::Call(op, record) => self.calls.push((op, record)),
                SegmentEntry::Summary(op, record, summary) => {
                    self.summaries.push((op, record, summary))
                }
                SegmentEntry::Text { number, base, text, .. } => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    assert_eq!(
                        self.texts.insert(number, (base, text)),
                        None,
                        "text {number} twice"
                    );
                }
            }
        }
    }

    fn finish(self, names: &Names) -> Process {
        let facts = self.facts;
        let call = |op: Op, record: CallRecord| {
            let row = op.info();
            let is_path = row.arg == "newpath" || row.class == Class::Copy;
            let arg = if is_path {
                names.text(&facts, u32::try_from(record.arg).unwrap())
            } else {
                record.arg.to_string()
            };
            Call { op, path: names.text(&facts, record.file), arg, record }
        };
        let mut calls: Vec<_> =
            self.calls.into_iter().map(|(op, record)| call(op, record)).collect();
        calls.sort_by_key(|call| call.record.start);
        let mut summaries: Vec<_> = self
            .summaries
            .into_iter()
            .map(|(op, record, summary)| (call(op, record), summary))
            .collect();
        summaries.sort_by_key(|(call, _)| call.record.start);
        let (skipped, segments, holes) = (self.skipped, self.segments, self.holes);
        Process { facts, calls, summaries, skipped, segments, holes }
    }
}
