//! A format that is not in the table, in the table's form.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_trace::{
    Batch, Event, EventKind, EventSink, EventSource, FORMATS, FileSlice, Output, Process,
    ReadStats, Tables, TraceError, TraceFormat, WriteOptions, convert, recognize_among,
};

use crate::bed::{Bed, drain};

/// One event per line: `NAME START_NS DURATION_NS`.
const PLAIN: TraceFormat = TraceFormat {
    name: "plain",
    title: "Plain",
    about: "names and times: *.plain",
    suffixes: &[".plain"],
    recognize: |head, _| head.starts_with(b"plain 1\n"),
    open: Some(|files| PlainSource::open(&files[0]).map(|source| Box::new(source) as _)),
    create: Some(|path, _| Ok(Box::new(PlainSink { path: path.to_owned(), text: String::new() }))),
    ..TraceFormat::BASE
};

struct PlainSource {
    path: PathBuf,
    lines: std::vec::IntoIter<String>,
    intake: ReadStats,
}

impl PlainSource {
    fn open(file: &FileSlice) -> Result<Self, TraceError> {
        let text = fs::read_to_string(&file.path)
            .map_err(|source| TraceError::Read { path: file.path.clone(), source })?;
        let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        let intake = ReadStats { files: 1, ..ReadStats::default() };
        Ok(Self { path: file.path.clone(), lines: lines.into_iter(), intake })
    }
}

impl EventSource for PlainSource {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, TraceError> {
        batch.clear();
        if tables.processes.is_empty() {
            tables.add_process(Process { pid: 1, ..Process::default() });
        }
        for line in self.lines.by_ref().take(2) {
            let words: Vec<&str> = line.split(' ').collect();
            let bad = || TraceError::Content { path: self.path.clone(), what: "expected 3 words" };
            let [name, start, duration] = words[..] else { return Err(bad()) };
            batch.events.push(Event {
                name: tables.name_row(name),
                category: tables.name_row("POSIX"),
                start_ns: start.parse().map_err(|_| bad())?,
                duration_ns: duration.parse().map_err(|_| bad())?,
                kind: EventKind::Call,
                count: 1,
                ..Event::default()
            });
        }
        self.intake.events += batch.events.len() as u64;
        Ok(!batch.events.is_empty())
    }

    fn read_stats(&self) -> &ReadStats {
        &self.intake
    }
}

struct PlainSink {
    path: PathBuf,
    text: String,
}

impl EventSink for PlainSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<(), TraceError> {
        for event in &batch.events {
            let name = tables.name(event.name);
            self.text += &format!("{name} {} {}\n", event.start_ns, event.duration_ns);
        }
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> Result<(), TraceError> {
        fs::write(&self.path, format!("plain 1\n{}", self.text))
            .map_err(|source| TraceError::Write { path: self.path.clone(), source })
    }

    fn output(&self) -> Output {
        Output { paths: vec![self.path.clone()], slices: None }
    }
}

fn formats() -> Vec<TraceFormat> {
    FORMATS.iter().copied().chain([PLAIN]).collect()
}

/// Converts through the table, and says what was read and written.
fn converted(from: &Path, to: &Path, name: &str) -> (ReadStats, Output) {
    let formats = formats();
    let found = recognize_among(&formats, from).unwrap();
    let format = formats.iter().find(|format| format.name == name).unwrap();
    let mut sink = format.create.unwrap()(to, &WriteOptions::default()).unwrap();
    let intake = convert(|| found.open(), &mut *sink).unwrap();
    (intake, sink.output())
}

#[test]
fn a_format_of_ones_own_converts_to_and_from_all_others() {
    let bed = Bed::new();
    let text = "plain 1\nread 1800000000000000000 9000\nclose 1800000000000010000 1000\nstat 1800000000000020000 0\n";
    let first = bed.write("in.plain", text);
    for (name, to) in [("chrome", "t.json"), ("feedline", "folder"), ("dftracer", "logs/t.pfw")] {
        fs::create_dir_all(bed.path("logs")).unwrap();
        let (intake, output) = converted(&first, &bed.path(to), name);
        assert_eq!((intake.files, intake.events, output.paths.len()), (1, 3, 1), "{name}");
        let from = if name == "dftracer" { bed.path("logs") } else { bed.path(to) };
        let formats = formats();
        let found = recognize_among(&formats, &from).unwrap();
        assert_eq!(found.format.name, name);
        let shown = drain(&mut *found.open().unwrap()).shown_of_program();
        let events: Vec<_> = shown.iter().map(|it| (&*it.name, it.rest.duration_ns)).collect();
        assert_eq!(events, [("read", 9_000), ("close", 1_000), ("stat", 0)], "{name}");
    }
    let back = bed.path("back.plain");
    let (intake, output) = converted(&bed.path("folder"), &back, "plain");
    assert_eq!((intake.events, output.paths), (3, vec![back.clone()]));
    assert_eq!(fs::read_to_string(&back).unwrap(), text);
}

#[test]
fn errors_of_a_format_of_ones_own_name_the_file() {
    let bed = Bed::new();
    let path = bed.write("bad.plain", "plain 1\nread 5\n");
    let formats = formats();
    let mut source = recognize_among(&formats, &path).unwrap().open().unwrap();
    let error = source.next_batch(&mut Tables::default(), &mut Batch::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: expected 3 words", path.display()));
    // Without its row, the same file is unknown.
    let error = recognize_among(FORMATS, &path).unwrap_err();
    assert!(matches!(error, TraceError::Unknown { found, .. } if found == "plain 1\nread 5\n"));
}
