//! A trace of which every event is known, and the command to ask it.
//!
//! Moments are nanoseconds after 2027-01-15T08:00:00Z. Two writers made it, so every table has two files.
//!
//! ```text
//! rank 0  thread 1  open a.npz [0,10)  read a.npz [10,110) 4096 B   close a.npz [200,205)
//!         thread 2                     read a.npz [60,160) 4096 B
//!         thread 1  span dataloader fetch [0,220), epoch 1, step 1
//! rank 1  thread 7  open b.npz [1000,1020)  read b.npz [1020,1320) 1000 B  read b.npz [1400,1450) errno 5
//!                   write out.bin [2000,2040) 512 B   counter queue depth 2.5 at 2500
//!                   summary of 10 reads of b.npz at 3000, 500 ns together, 10,000 B
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use feedline_trace::{Batch, Event, EventKind, EventSink as _, FolderWriter, Process, Tables};
use tempfile::TempDir;

/// When it all began.
pub(crate) const BEGIN_NS: i64 = 1_800_000_000_000_000_000;

pub(crate) struct Bed {
    dir: TempDir,
}

/// How the command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bed {
    /// A folder with `trace` in it.
    pub(crate) fn new() -> Self {
        // On the disk of the build, so that programs can be linked into it.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        let bed = Self { dir };
        write_trace(&bed.path("trace"));
        bed
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        // The command names files by their true paths.
        self.dir.path().canonicalize().expect("a temporary folder").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a temporary folder");
    }

    /// The command, in this folder.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedline-sql"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        ran(&mut self.command(args))
    }

    /// What a query gives as CSV.
    #[track_caller]
    pub(crate) fn csv(&self, query: &str) -> String {
        self.ask(query, &[])
    }

    #[track_caller]
    pub(crate) fn ask(&self, query: &str, more: &[&str]) -> String {
        let args = [&["trace", query, "--format", "csv"], more].concat();
        let ran = self.run(&args);
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)), "{query}");
        ran.stdout
    }

    /// A folder of an analysis: two steps of each of two ranks, written by the command itself.
    pub(crate) fn analysis(&self) -> PathBuf {
        let folder = self.path("analysis");
        fs::create_dir(&folder).expect("a temporary folder");
        for (table, query) in ANALYSIS {
            let file = folder.join(format!("{table}.parquet"));
            let file = file.to_str().expect("a plain path");
            let ran = self.run(&["trace", query, "--format", "parquet", "--out", file]);
            assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)), "{table}");
        }
        folder
    }
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("a program that starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Rows with the columns of `feedline-analyze`'s types, as far as queries of the documentation go.
const ANALYSIS: [(&str, &str); 8] = [
    (
        "steps",
        "select *, 20 as service_ns, -5 as service_start_ns from (values \
         (0, 'train', 1, 1, 1, 0, 100, 60, 50, 40), \
         (0, 'train', 1, 1, 2, 100, 50, 10, 5, 40), (1, 'train', 1, 1, 1, 0, 120, 80, 70, 40), \
         (1, 'train', 1, 1, 2, 120, 40, 0, 0, 40)) as t(rank, phase, epoch, block, step, start_ns, \
         duration_ns, fetch_ns, stall_ns, compute_ns)",
    ),
    (
        "epochs",
        "select 'train' as phase, 1 as epoch, 0 as start_ns, 160 as duration_ns, 4 as steps, \
         310 as step_ns, 125 as stall_ns, 160 as compute_ns, 50.5 as au_percent, 9000 as bytes_read, \
         8 as samples",
    ),
    (
        "stalls",
        "select * from (values (0, 'train', 1, 1, 'read', 30), (0, 'train', 1, 1, 'decode', 20), \
         (0, 'train', 1, 2, 'decode', 5), (1, 'train', 1, 1, 'read', 70)) \
         as t(rank, phase, epoch, step, cause, ns)",
    ),
    (
        "findings",
        "select 'slow-read' as code, 'reads are slow' as title, 100 as explains_ns, \
         0.32 as severity, 'high' as confidence",
    ),
    (
        "functions",
        "select 'storage' as layer, 'POSIX' as category, 'read' as name, 14 as count, 1 as errors, \
         1050 as total_ns, 1050 as self_ns, 19192 as bytes",
    ),
    (
        "ranks",
        "select *, 2 as workers, 0.9 as workers_busy_share, 4 as samples from (values \
         (0, 'box', 2, 150, 55, 8192), (1, 'box', 2, 160, 70, 11000)) \
         as t(rank, host, steps, step_ns, stall_ns, bytes_read)",
    ),
    (
        "file_use",
        "select '/data/a.npz' as path, 900 as ns, 2 as opens, 9 as reads, 0 as writes, 3 as others, \
         8192 as bytes_read, 4096 as extent_read, 2.0 as reread_factor, 2 as ranks",
    ),
    (
        "layers",
        "select 'storage' as layer, 9 as events, 19704 as bytes, 500 as mean_ns, \
         400 as exposed_mean_ns",
    ),
];

fn write_trace(dir: &Path) {
    write_part(
        dir,
        0,
        &[
            Fact { name: "open", file: "/data/a.npz", span: (0, 10), result: 3, ..POSIX },
            Fact { file: "/data/a.npz", span: (10, 110), size: 4096, result: 4096, ..POSIX },
            Fact {
                thread: 2,
                file: "/data/a.npz",
                span: (60, 160),
                offset: 4096,
                size: 4096,
                result: 4096,
                ..POSIX
            },
            Fact { name: "close", file: "/data/a.npz", span: (200, 205), ..POSIX },
            Fact {
                kind: EventKind::Span,
                category: "dataloader",
                name: "fetch",
                span: (0, 220),
                ..POSIX
            },
        ],
    );
    let rank_one = Fact { thread: 7, file: "/data/b.npz", ..POSIX };
    write_part(
        dir,
        1,
        &[
            Fact { name: "open", span: (1000, 1020), result: 3, ..rank_one },
            Fact { span: (1020, 1320), size: 4096, result: 1000, ..rank_one },
            Fact { span: (1400, 1450), size: 4096, result: -1, errno: 5, ..rank_one },
            Fact {
                name: "write",
                file: "/data/out.bin",
                span: (2000, 2040),
                size: 512,
                result: 512,
                ..rank_one
            },
            Fact {
                kind: EventKind::Counter,
                category: "queue",
                name: "depth",
                file: "",
                span: (2500, 2500),
                ..rank_one
            },
            Fact {
                kind: EventKind::Summary,
                span: (3000, 3500),
                result: 10_000,
                count: 10,
                ..rank_one
            },
        ],
    );
}

/// An event in short.
#[derive(Clone, Copy)]
struct Fact {
    kind: EventKind,
    category: &'static str,
    name: &'static str,
    thread: u32,
    file: &'static str,
    span: (i64, i64),
    offset: i64,
    size: i64,
    result: i64,
    errno: u16,
    count: u64,
}

const POSIX: Fact = Fact {
    kind: EventKind::Call,
    category: "POSIX",
    name: "read",
    thread: 1,
    file: "",
    span: (0, 0),
    offset: 0,
    size: 0,
    result: 0,
    errno: 0,
    count: 1,
};

fn write_part(dir: &Path, rank: u32, facts: &[Fact]) {
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    let process = tables.add_process(Process {
        host: "box".to_owned(),
        pid: 100 * (rank + 1),
        rank: Some(rank),
        program: "/bin/train".to_owned(),
        arguments: vec!["train".to_owned()],
        folder: "/work".to_owned(),
        start_ns: BEGIN_NS,
        is_traced: true,
        ..Process::default()
    });
    for fact in facts {
        let (is_call, is_span) = (fact.kind != EventKind::Counter, fact.kind == EventKind::Span);
        let is_call = is_call && !is_span;
        let event = Event {
            process,
            thread: fact.thread,
            start_ns: BEGIN_NS + fact.span.0,
            duration_ns: (fact.span.1 - fact.span.0).unsigned_abs(),
            kind: fact.kind,
            category: tables.name_row(fact.category),
            name: tables.name_row(fact.name),
            file: (!fact.file.is_empty()).then(|| tables.file_row(fact.file)),
            offset: is_call.then_some(fact.offset),
            size: is_call.then_some(fact.size),
            result: is_call.then_some(fact.result),
            errno: fact.errno,
            epoch: is_span.then_some(1),
            step: is_span.then_some(1),
            count: fact.count,
            value: (fact.kind == EventKind::Counter).then_some(2.5),
            ..Event::default()
        };
        batch.events.push(event);
    }
    let mut writer = FolderWriter::create(dir).expect("a temporary folder");
    writer.write(&tables, &batch).expect("a temporary folder");
    writer.finish(&tables).expect("a temporary folder");
}
