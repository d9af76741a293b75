//! Traces that tests draw by hand or at random, and the two kinds of files that they are written to.
//!
//! Times of a draft are nanoseconds since its beginning; in files they stand behind [`BASE_NS`].

#![allow(dead_code, reason = "every test program draws with some of it")]

pub(crate) mod brute;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use feedline_analyze::load::NoProgress;
use feedline_analyze::{Analysis, Settings};
use feedline_trace::dftracer::{DftracerSink, Dialect, TimeUnit};
use feedline_trace::{Batch, Event, EventKind, EventSink as _, FolderWriter, Process, Tables};

/// When drafts begin, in nanoseconds since 1970.
pub(crate) const BASE_NS: i64 = 1_700_000_000_000_000_000;
/// A microsecond.
pub(crate) const US: i64 = 1_000;
/// A millisecond.
pub(crate) const MS: i64 = 1_000_000;
/// A second.
pub(crate) const S: i64 = 1_000_000_000;

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct At {
    /// Row of the process.
    pub(crate) process: u32,
    /// The kernel's number.
    pub(crate) thread: u32,
}

/// A trace that is not written yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) tables: Tables,
    pub(crate) events: Vec<Event>,
}

impl Draft {
    /// A process of Feedline's.
    pub(crate) fn native(&mut self, host: &str, pid: u32) -> u32 {
        self.program(host, pid, "/usr/bin/feedline")
    }

    /// A process of Python's.
    pub(crate) fn python(&mut self, host: &str, pid: u32) -> u32 {
        self.program(host, pid, "/usr/bin/python3")
    }

    fn program(&mut self, host: &str, pid: u32, program: &str) -> u32 {
        self.tables.add_process(Process {
            host: host.to_owned(),
            pid,
            program: program.to_owned(),
            arguments: vec![program.rsplit('/').next().unwrap_or("").to_owned()],
            start_ns: BASE_NS,
            is_traced: true,
            ..Process::default()
        })
    }

    /// What is said about a process.
    pub(crate) fn of(&mut self, process: u32) -> &mut Process {
        &mut self.tables.processes[process as usize]
    }

    /// What a thread is called.
    pub(crate) fn name(&mut self, at: At, name: &str, when_ns: i64) {
        self.add(EventKind::Span, at, ("thread", name), (when_ns, when_ns));
    }

    /// Something that a program said.
    pub(crate) fn span(&mut self, at: At, what: (&str, &str), time: (i64, i64)) -> &mut Event {
        self.add(EventKind::Span, at, what, time)
    }

    /// A call on a file.
    pub(crate) fn call(
        &mut self,
        at: At,
        what: (&str, &str),
        time: (i64, i64),
        file: &str,
    ) -> &mut Event {
        let file = self.tables.file_row(file);
        let event = self.add(EventKind::Call, at, what, time);
        event.file = Some(file);
        event.result = Some(0);
        event
    }

    /// A call that moves bytes.
    pub(crate) fn moved(
        &mut self,
        at: At,
        what: (&str, &str),
        time: (i64, i64),
        file: &str,
        place: (i64, i64),
    ) -> &mut Event {
        let event = self.call(at, what, time, file);
        (event.offset, event.size, event.result) = (Some(place.0), Some(place.1), Some(place.1));
        event
    }

    fn add(&mut self, kind: EventKind, at: At, what: (&str, &str), time: (i64, i64)) -> &mut Event {
        assert!(time.0 <= time.1, "{what:?} ends before it begins");
        let (category, name) = (self.tables.name_row(what.0), self.tables.name_row(what.1));
        self.events.push(Event {
            process: at.process,
            thread: at.thread,
            start_ns: BASE_NS + time.0,
            duration_ns: time.1.abs_diff(time.0),
            kind,
            category,
            name,
            count: 1,
            ..Event::default()
        });
        self.events.last_mut().expect("one was added")
    }

    /// Category and name of an event.
    pub(crate) fn what(&self, event: &Event) -> (&str, &str) {
        (self.tables.name(event.category), self.tables.name(event.name))
    }

    fn batches(&self) -> impl Iterator<Item = Batch> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| (event.start_ns, std::cmp::Reverse(event.duration_ns)));
        let batches: Vec<_> = events.chunks(4096).map(<[Event]>::to_vec).collect();
        batches.into_iter().map(|events| Batch { events, texts: Vec::new() })
    }

    /// Writes a trace folder.
    pub(crate) fn write_folder(&self, dir: &Path) {
        let mut writer = FolderWriter::create(dir).expect("a folder");
        for batch in self.batches() {
            writer.write(&self.tables, &batch).expect("written");
        }
        writer.finish(&self.tables).expect("finished");
    }

    /// Writes files of DFTracer, one a process, beside each other in the folder of `path`.
    pub(crate) fn write_dftracer(&self, path: &Path, unit: TimeUnit) {
        let mut sink = DftracerSink::new(path, Dialect::Current, unit);
        for batch in self.batches() {
            sink.write(&self.tables, &batch).expect("written");
        }
        sink.finish(&self.tables).expect("finished");
    }

    /// Writes a trace folder and analyzes it.
    pub(crate) fn analysis(&self) -> Analysis {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("trace");
        self.write_folder(&path);
        analysis_of(&path)
    }
}

/// The analysis of a trace, by one thread.
pub(crate) fn analysis_of(path: &Path) -> Analysis {
    analysis_with(&[path.to_owned()], 1)
}

/// The analysis of a trace, by so many threads.
pub(crate) fn analysis_with(inputs: &[PathBuf], threads: usize) -> Analysis {
    let mut settings = Settings::default();
    settings.load.threads = NonZeroUsize::new(threads).expect("a thread");
    feedline_analyze::analyze(inputs, &settings, &NoProgress).expect("an analysis")
}

/// How far two numbers are apart, by the larger one.
pub(crate) fn apart(one: u64, other: u64) -> f64 {
    one.abs_diff(other) as f64 / one.max(other).max(1) as f64
}
