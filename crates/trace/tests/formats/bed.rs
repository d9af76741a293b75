//! Traces in a temporary folder, and events as one can read them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use feedline_trace::dftracer::{DftracerSink, Dialect, TimeUnit};
use feedline_trace::{
    Batch, Event, EventSink, EventSource, Files, Process, ReadStats, Tables, recognize,
};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A whole trace in memory.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) tables: Tables,
    pub(crate) batch: Batch,
    pub(crate) intake: ReadStats,
}

/// An event with texts instead of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    pub(crate) other_file: Option<String>,
    pub(crate) extra: Option<serde_json::Value>,
    /// Everything else; rows are 0.
    pub(crate) rest: Event,
}

impl Trace {
    pub(crate) fn shown(&self) -> Vec<Shown> {
        self.batch.events.iter().map(|event| self.show(event)).collect()
    }

    fn show(&self, event: &Event) -> Shown {
        let process = &self.tables.processes[event.process as usize];
        let text = |row: u32| serde_json::from_str(&self.batch.texts[row as usize]).expect("JSON");
        Shown {
            pid: process.pid,
            host: process.host.clone(),
            category: self.tables.name(event.category).to_owned(),
            name: self.tables.name(event.name).to_owned(),
            file: event.file.map(|row| self.tables.file(row).to_owned()),
            other_file: event.other_file.map(|row| self.tables.file(row).to_owned()),
            extra: event.extra.map(text),
            rest: Event {
                process: 0,
                category: 0,
                name: 0,
                file: None,
                other_file: None,
                extra: None,
                ..*event
            },
        }
    }

    /// Events that are not the library's own.
    pub(crate) fn shown_of_program(&self) -> Vec<Shown> {
        self.shown().into_iter().filter(|shown| shown.category != "dftracer").collect()
    }

    pub(crate) fn process(&self, pid: u32) -> &Process {
        self.tables.processes.iter().find(|process| process.pid == pid).expect("a process")
    }

    /// Hands everything to a sink, in pieces of `size` events.
    pub(crate) fn write(&self, sink: &mut dyn EventSink, size: usize) {
        for events in self.batch.events.chunks(size) {
            let batch = Batch { events: events.to_vec(), texts: self.batch.texts.clone() };
            sink.write(&self.tables, &batch).expect("written");
        }
        sink.finish(&self.tables).expect("finished");
    }

    pub(crate) fn write_dftracer(&self, path: &Path, dialect: Dialect, unit: TimeUnit) {
        self.write(&mut DftracerSink::new(path, dialect, unit), 7);
    }
}

/// Everything that a source has.
pub(crate) fn drain(source: &mut dyn EventSource) -> Trace {
    let (mut trace, mut batch) = (Trace::default(), Batch::default());
    while source.next_batch(&mut trace.tables, &mut batch).expect("a batch") {
        assert!(!batch.events.is_empty());
        let texts = u32::try_from(trace.batch.texts.len()).unwrap();
        trace.batch.texts.append(&mut batch.texts);
        for mut event in batch.events.drain(..) {
            event.extra = event.extra.map(|row| row + texts);
            trace.batch.events.push(event);
        }
    }
    assert!(batch.events.is_empty());
    trace
}

/// Reads a file or folder of DFTracer.
pub(crate) fn read(path: &Path) -> Trace {
    let found = recognize(path).expect("a trace");
    assert_eq!((found.format.name, found.format.files), ("dftracer", Files::PerProcess));
    let mut source = found.open().expect("opened");
    let mut trace = drain(&mut *source);
    trace.intake = source.read_stats().clone();
    trace
}

pub(crate) struct Bed {
    dir: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// One gzip member a piece.
    pub(crate) fn write_members(&self, name: &str, pieces: &[&str]) -> PathBuf {
        let content: Vec<u8> = pieces.iter().flat_map(|piece| gzip(piece.as_bytes())).collect();
        self.write(name, content)
    }

    /// Names in a folder, in order.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Events of these lines.
pub(crate) fn lines(lines: &str) -> Trace {
    let bed = Bed::new();
    read(&bed.write("t.pfw", lines))
}
