//! Writes DFTracer's files: one per process, whatever their number.
//!
//! Text is gathered in pieces of at most 1 MiB, each of which becomes a gzip member of whole lines, as
//! parallel readers like it. All pieces together take a bounded part of memory; what grows is a set of
//! the files that each process named.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dftracer::chunk::ELEMENT;
use crate::dftracer::hash::hash_of;
use crate::dftracer::join::UNNAMED;
use crate::error::{Result, TraceError};
use crate::event::{Batch, Event, EventKind};
use crate::field_names::{FieldNames, LIBC_LAYER, op_info, usual_kind};
use crate::flow::{EventSink, Output};
use crate::json;
use crate::partial_file::{Packing, PartialFile};
use crate::process::{End, Process};
use crate::tables::Tables;

/// Text of a gzip member.
const MEMBER_BYTES: usize = 1 << 20;
/// Text of all processes that waits to be written.
const WAITING_BYTES: usize = 64 << 20;
/// The version that the records are those of.
const VERSION: i64 = 20003;

/// Which files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Lines with numbers for kinds, as DFTracer writes since 2.1.1.
    Current,
    /// Letters, and brackets around the lines, as before.
    Legacy,
}

/// The unit of times in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// What all tools expect.
    #[default]
    Microseconds,
    /// Nothing is rounded.
    Nanoseconds,
}

impl TimeUnit {
    fn ns(self) -> i64 {
        match self {
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// A trace of DFTracer that is being written.
#[derive(Debug)]
pub struct DftracerSink {
    folder: PathBuf,
    /// The beginning of all names.
    prefix: String,
    packing: Packing,
    dialect: Dialect,
    unit: TimeUnit,
    streams: FxHashMap<u32, Stream>,
    names: HashSet<String>,
    waiting_bytes: usize,
    pending: Option<Counter>,
    line: Vec<u8>,
    /// Hashes of files by their rows: a digest per event would be most of the work.
    hashes: FxHashMap<u32, [u8; 16]>,
}

/// The file of a process.
#[derive(Debug)]
struct Stream {
    file: PartialFile,
    text: Vec<u8>,
    host: String,
    pid: u32,
    last_id: u64,
    events: u64,
    named_files: FxHashSet<u32>,
    last_ns: i64,
    has_end: bool,
}

/// Series of one counter that go into one record.
#[derive(Debug)]
struct Counter {
    event: Event,
    base: String,
    series: Vec<(String, f64)>,
    extra: Option<String>,
}

impl DftracerSink {
    /// Files in the folder of `path`, whose names begin with its name without `.pfw` and `.pfw.gz`;
    /// compressed if it says so.
    pub fn new(path: &Path, dialect: Dialect, unit: TimeUnit) -> Self {
        let (folder, prefix) = place(path);
        Self {
            folder,
            prefix,
            packing: Packing::of(path),
            dialect,
            unit,
            streams: FxHashMap::default(),
            names: HashSet::new(),
            waiting_bytes: 0,
            pending: None,
            line: Vec::new(),
            hashes: FxHashMap::default(),
        }
    }

    /// Files of an earlier trace under the same name.
    pub fn existing(path: &Path) -> Result<Vec<PathBuf>> {
        let (folder, prefix) = place(path);
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let error = |source| TraceError::Read { path: folder.clone(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let is_ours = name.as_deref().and_then(|name| {
                let rest = name.strip_prefix(&prefix)?.strip_prefix('-')?;
                let hash = rest.strip_suffix(".gz").unwrap_or(rest).strip_suffix("-app.pfw")?;
                Some(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
            });
            if is_ours == Some(true) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    fn open(&mut self, tables: &Tables, event: &Event, first: Option<&str>) -> Result<()> {
        let process = &tables.processes[event.process as usize];
        let identity =
            format!("{}-{}-{}", executable(&process.arguments), process.host, process.pid);
        let mut hash = hash_of(&identity);
        // The same program under the same number twice.
        while !self.names.insert(format!("{hash:016x}")) {
            hash = hash_of(&format!("{identity}-{hash:016x}"));
        }
        let suffix = if self.packing == Packing::Gzip { "pfw.gz" } else { "pfw" };
        let path = self.folder.join(format!("{}-{hash:016x}-app.{suffix}", self.prefix));
        let mut stream = Stream {
            file: PartialFile::create(path, self.packing)?,
            text: Vec::new(),
            host: format!("{:016x}", hash_of(&process.host)),
            pid: process.pid,
            last_id: 0,
            events: 0,
            named_files: FxHashSet::default(),
            last_ns: 0,
            has_end: false,
        };
        if self.dialect == Dialect::Legacy {
            stream.text.extend_from_slice(b"[\n");
        }
        self.prologue(&mut stream, process, event.thread);
        let start_ns = if first.is_some() || process.start_ns == 0 {
            event.start_ns
        } else {
            process.start_ns
        };
        self.start_record(&mut stream, process, start_ns, first.unwrap_or(""));
        self.waiting_bytes += stream.text.len();
        self.streams.insert(event.process, stream);
        Ok(())
    }

    fn prologue(&self, stream: &mut Stream, process: &Process, thread: u32) {
        let host = stream.host.clone();
        self.pair(stream, thread, "HH", &process.host, &host);
        let pid = process.pid.to_string();
        self.pair(stream, thread, "thread_name", &pid, "thread_name");
        if self.dialect == Dialect::Current || self.unit != TimeUnit::Microseconds {
            let unit = if self.unit == TimeUnit::Microseconds { "US" } else { "NS" };
            self.pair(stream, thread, "CM", "time_metric", unit);
        }
        if let Some(rank) = process.rank {
            self.pair(stream, thread, "PR", "rank", &rank.to_string());
        }
        let ranked = process.rank.map(|rank| format!("Rank {rank}"));
        if let Some(name) = process.name.as_ref().or(ranked.as_ref()) {
            self.pair(stream, thread, "process_name", name, "process_name");
        }
    }

    /// The event with which the library begins, and the strings in it.
    fn start_record(&self, stream: &mut Stream, process: &Process, start_ns: i64, known: &str) {
        let command = process.arguments.join(";");
        let mut args = Vec::new();
        let mut hashes = Vec::new();
        for (key, text) in
            [("exec_hash", &process.program), ("cmd_hash", &command), ("cwd", &process.folder)]
        {
            if !text.is_empty() {
                let hash = format!("{:016x}", hash_of(text));
                self.pair(stream, process.pid, "SH", text, &hash);
                hashes.push((key, hash));
            }
        }
        if !known.contains("\"version\"") {
            json::key(&mut args, "version");
            json::int(&mut args, VERSION);
        }
        for (key, hash) in hashes {
            json::key(&mut args, key);
            json::text(&mut args, &hash);
        }
        if !known.contains("\"date\"") {
            json::key(&mut args, "date");
            // In UTC, as C's `asctime` writes it: `Fri Jan 15 08:00:00 2027`.
            let date = Timestamp::from_nanosecond(start_ns.into()).unwrap_or_default();
            json::text(&mut args, &date.strftime("%a %b %e %H:%M:%S %Y").to_string());
        }
        if let Some(parent) = process.parent_pid {
            json::key(&mut args, "ppid");
            json::int(&mut args, parent);
        }
        append_members(&mut args, json::inner(known));
        self.border(stream, "start", process.pid, start_ns, &args);
    }

    fn border(&self, stream: &mut Stream, name: &str, thread: u32, at_ns: i64, args: &[u8]) {
        stream.last_id += 1;
        let mut line = Vec::new();
        let head = Head { name, category: "dftracer", layer: 1, thread, pid: stream.pid };
        line.extend_from_slice(b"{\"id\":");
        json::int(&mut line, stream.last_id);
        line.push(b',');
        self.head(&mut line, &head);
        self.span(&mut line, at_ns, 0);
        begin_args(&mut line, &stream.host);
        append_members(&mut line, std::str::from_utf8(args).unwrap_or(""));
        line.extend_from_slice(b"}}\n");
        stream.text.extend_from_slice(&line);
        stream.events += 1;
    }

    /// A record of a name and a value.
    fn pair(&self, stream: &mut Stream, thread: u32, record: &str, name: &str, value: &str) {
        let mut args = Vec::new();
        json::key(&mut args, "name");
        json::text(&mut args, name);
        json::key(&mut args, "value");
        json::text(&mut args, value);
        self.metadata(stream, thread, record, &args);
    }

    fn metadata(&self, stream: &mut Stream, thread: u32, name: &str, args: &[u8]) {
        let mut line = Vec::with_capacity(args.len() + 128);
        line.push(b'{');
        if self.dialect == Dialect::Legacy {
            stream.last_id += 1;
            line.extend_from_slice(b"\"id\":");
            json::int(&mut line, stream.last_id);
            line.push(b',');
        }
        self.head(
            &mut line,
            &Head { name, category: "dftracer", layer: 1, thread, pid: stream.pid },
        );
        line.extend_from_slice(self.phase(b",\"ph\":4", b",\"ph\":\"M\""));
        begin_args(&mut line, &stream.host);
        append_members(&mut line, std::str::from_utf8(args).unwrap_or(""));
        line.extend_from_slice(b"}}\n");
        stream.text.extend_from_slice(&line);
    }

    fn phase(&self, current: &'static [u8], legacy: &'static [u8]) -> &'static [u8] {
        if self.dialect == Dialect::Current { current } else { legacy }
    }

    /// Name, category, layer, process and thread.
    fn head(&self, line: &mut Vec<u8>, head: &Head) {
        self.name(line, head);
        line.extend_from_slice(b",\"pid\":");
        json::int(line, head.pid);
        line.extend_from_slice(b",\"tid\":");
        json::int(line, head.thread);
    }

    fn name(&self, line: &mut Vec<u8>, head: &Head) {
        line.extend_from_slice(b"\"name\":");
        json::text(line, head.name);
        line.extend_from_slice(b",\"cat\":");
        json::text(line, head.category);
        if self.dialect == Dialect::Current {
            line.extend_from_slice(b",\"type\":");
            json::int(line, head.layer);
        }
    }

    /// Both ends are rounded down, so that what lies within something stays within it.
    fn span(&self, line: &mut Vec<u8>, start_ns: i64, duration_ns: u64) {
        let unit = self.unit.ns();
        let end_ns = start_ns.saturating_add_unsigned(duration_ns);
        let start = start_ns.div_euclid(unit);
        line.extend_from_slice(b",\"ts\":");
        json::int(line, start);
        line.extend_from_slice(b",\"dur\":");
        json::int(line, end_ns.div_euclid(unit) - start);
        line.extend_from_slice(self.phase(b",\"ph\":1", b",\"ph\":\"X\""));
    }

    fn rounded(&self, duration_ns: u64) -> u64 {
        let unit = self.unit.ns().cast_unsigned();
        (duration_ns + unit / 2) / unit
    }

    fn event(&mut self, tables: &Tables, event: &Event, extra: Option<&str>) -> Result<()> {
        let (category, name) = (tables.name(event.category), tables.name(event.name));
        let is_own = event.kind == EventKind::Instant && category == "dftracer";
        if !self.streams.contains_key(&event.process) {
            let starts = is_own && name == "start";
            self.open(tables, event, starts.then_some(extra.unwrap_or("{}")))?;
            if starts {
                return Ok(());
            }
        }
        let Some(mut stream) = self.streams.remove(&event.process) else { return Ok(()) };
        let before = stream.text.len();
        stream.last_ns =
            stream.last_ns.max(event.start_ns.saturating_add_unsigned(event.duration_ns));
        let members = json::inner(extra.unwrap_or(""));
        match (event.kind, category, name) {
            (EventKind::Instant, "dftracer", "start" | "end") => {
                self.border(&mut stream, name, event.thread, event.start_ns, members.as_bytes());
                stream.has_end |= name == "end";
            }
            (EventKind::Instant, "dftracer", _) => {
                self.metadata(&mut stream, event.thread, name, members.as_bytes());
            }
            (EventKind::Span, "thread", _) => {
                self.pair(&mut stream, event.thread, "thread_name", name, "thread_name");
            }
            _ => self.record(tables, &mut stream, event, members),
        }
        self.waiting_bytes += stream.text.len() - before;
        let result = self.spill(&mut stream);
        self.streams.insert(event.process, stream);
        result
    }

    fn record(&mut self, tables: &Tables, stream: &mut Stream, event: &Event, members: &str) {
        for file in [event.file, event.other_file].into_iter().flatten() {
            if stream.named_files.insert(file) && hash_in(tables.file(file)).is_none() {
                let path = tables.file(file);
                let hash = format!("{:016x}", hash_of(path));
                self.pair(stream, event.thread, "FH", path, &hash);
            }
        }
        let (category, name) = (tables.name(event.category), tables.name(event.name));
        let layer = if event.kind == EventKind::Call { LIBC_LAYER } else { layer_of(category) };
        let head = Head { name, category, layer, thread: event.thread, pid: stream.pid };
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        if event.kind == EventKind::Summary {
            line.push(b'{');
            self.name(&mut line, &head);
            self.moment(
                &mut line,
                &head,
                event.start_ns,
                self.phase(b",\"ph\":3", b",\"ph\":\"C\""),
            );
        } else {
            stream.last_id += 1;
            line.extend_from_slice(b"{\"id\":");
            json::int(&mut line, stream.last_id);
            line.push(b',');
            self.head(&mut line, &head);
            self.span(&mut line, event.start_ns, event.duration_ns);
        }
        begin_args(&mut line, &stream.host);
        self.arguments(tables, &mut line, event, members);
        line.extend_from_slice(b"}}\n");
        stream.text.extend_from_slice(&line);
        stream.events += 1;
        self.line = line;
    }

    /// Time, kind, process and thread, in the order of counters.
    fn moment(&self, line: &mut Vec<u8>, head: &Head, at_ns: i64, phase: &[u8]) {
        line.extend_from_slice(b",\"ts\":");
        json::int(line, at_ns.div_euclid(self.unit.ns()));
        line.extend_from_slice(phase);
        line.extend_from_slice(b",\"pid\":");
        json::int(line, head.pid);
        line.extend_from_slice(b",\"tid\":");
        json::int(line, head.thread);
    }

    fn arguments(&mut self, tables: &Tables, line: &mut Vec<u8>, event: &Event, members: &str) {
        let (category, name) = (tables.name(event.category), tables.name(event.name));
        let args_from = line.len();
        let layer = (self.dialect == Dialect::Current)
            .then_some(if event.kind == EventKind::Call { LIBC_LAYER } else { layer_of(category) });
        if event.kind != EventKind::Summary && usual_kind(layer, category) != event.kind {
            json::key(line, "feedline");
            json::text(line, event.kind.name());
        }
        if let Some(file) = event.file {
            json::key(line, "fhash");
            self.hash_text(line, tables, file);
        }
        let facts = op_info(name);
        if let Some(file) = event.other_file {
            let is_path = facts.is_none_or(|facts| facts.arg == "newpath");
            json::key(line, if is_path { "newpath_hash" } else { "to_hash" });
            self.hash_text(line, tables, file);
        }
        let layout = FieldNames::of(facts, event.kind);
        let sum = if event.kind == EventKind::Summary { "_sum" } else { "" };
        if event.kind == EventKind::Summary {
            number(line, "dft_cnt", "", Some(event.count));
            number(line, "dur", "_sum", Some(self.rounded(event.duration_ns)));
            number(line, "dur", "_min", event.shortest_ns.map(|ns| self.rounded(ns)));
            number(line, "dur", "_max", event.longest_ns.map(|ns| self.rounded(ns)));
        }
        let counted = Counted::of(event, &layout);
        number(line, layout.size, sum, counted.size);
        number(line, layout.offset, "", event.offset);
        number(line, layout.arg, "", counted.arg);
        number(line, "ret", sum, counted.result);
        number(line, ELEMENT, "", counted.element);
        number(line, "errno", "", (event.errno != 0).then_some(event.errno));
        number(line, "epoch", "", event.epoch);
        number(line, "step", "", event.step);
        number(line, "image_idx", "", event.sample);
        append_own(line, args_from, members);
    }

    fn hash_text(&mut self, line: &mut Vec<u8>, tables: &Tables, file: u32) {
        let hash = self.hashes.entry(file).or_insert_with(|| {
            let path = tables.file(file);
            let known = hash_in(path).and_then(|hash| hash.as_bytes().try_into().ok());
            known.unwrap_or_else(|| hex(hash_of(path)))
        });
        line.push(b'"');
        line.extend_from_slice(hash);
        line.push(b'"');
    }

    /// Takes a series; those of one counter at one moment become one record.
    fn counter(&mut self, tables: &Tables, event: &Event, extra: Option<&str>) -> Result<()> {
        let name = tables.name(event.name);
        let (base, series) = match name.rsplit_once('/') {
            Some((base, series)) if !base.is_empty() && !series.is_empty() && is_plain(series) => {
                (base, series)
            }
            _ => (name, "value"),
        };
        let value = event.value.unwrap_or(0.0);
        if let Some(counter) = &mut self.pending
            && counter.base == base
            && extra.is_none()
            && (counter.event.process, counter.event.thread) == (event.process, event.thread)
            && (counter.event.start_ns, counter.event.category) == (event.start_ns, event.category)
            && counter.series.iter().all(|(known, _)| known != series)
        {
            counter.series.push((series.to_owned(), value));
            return Ok(());
        }
        self.flush_counter(tables)?;
        self.pending = Some(Counter {
            event: *event,
            base: base.to_owned(),
            series: vec![(series.to_owned(), value)],
            extra: extra.map(str::to_owned),
        });
        Ok(())
    }

    fn flush_counter(&mut self, tables: &Tables) -> Result<()> {
        let Some(counter) = self.pending.take() else { return Ok(()) };
        let event = &counter.event;
        if !self.streams.contains_key(&event.process) {
            self.open(tables, event, None)?;
        }
        let Some(mut stream) = self.streams.remove(&event.process) else { return Ok(()) };
        let before = stream.text.len();
        let category = tables.name(event.category);
        let layer = if matches!(category, "sys" | "io" | "net") { 7 } else { layer_of(category) };
        let head =
            Head { name: &counter.base, category, layer, thread: event.thread, pid: stream.pid };
        let mut line = vec![b'{'];
        self.name(&mut line, &head);
        self.moment(&mut line, &head, event.start_ns, self.phase(b",\"ph\":2", b",\"ph\":\"C\""));
        begin_args(&mut line, &stream.host);
        let args_from = line.len();
        for (series, value) in &counter.series {
            json::key(&mut line, series);
            json::float(&mut line, *value);
        }
        append_own(&mut line, args_from, json::inner(counter.extra.as_deref().unwrap_or("")));
        line.extend_from_slice(b"}}\n");
        stream.text.extend_from_slice(&line);
        stream.events += 1;
        stream.last_ns = stream.last_ns.max(event.start_ns);
        self.waiting_bytes += stream.text.len() - before;
        let result = self.spill(&mut stream);
        self.streams.insert(event.process, stream);
        result
    }

    /// Writes what makes a member, and everything if too much waits.
    fn spill(&mut self, current: &mut Stream) -> Result<()> {
        while current.text.len() >= MEMBER_BYTES {
            self.waiting_bytes -= current.write_member()?;
        }
        if self.waiting_bytes > WAITING_BYTES {
            for stream in self.streams.values_mut() {
                while !stream.text.is_empty() {
                    stream.write_member()?;
                }
            }
            self.waiting_bytes = current.text.len();
        }
        Ok(())
    }

    fn end(&self, stream: &mut Stream, process: &Process) {
        if !stream.has_end {
            let mut args = Vec::new();
            json::key(&mut args, "num_events");
            json::int(&mut args, stream.events);
            if let End::Exited(status) = process.end {
                json::key(&mut args, "exit_status");
                json::int(&mut args, status);
            }
            number(&mut args, "dropped", "", (process.dropped > 0).then_some(process.dropped));
            if let Some(trouble) = &process.trouble {
                json::key(&mut args, "trouble");
                json::text(&mut args, trouble);
            }
            let at_ns = process.end_ns.unwrap_or(stream.last_ns);
            self.border(stream, "end", process.pid, at_ns, &args);
        }
        if self.dialect == Dialect::Legacy {
            stream.text.extend_from_slice(b"]\n");
        }
    }
}

impl Stream {
    /// Writes whole lines of at most a member; how many bytes.
    fn write_member(&mut self) -> Result<usize> {
        let most = self.text.len().min(MEMBER_BYTES);
        let end = self.text[..most].iter().rposition(|byte| *byte == b'\n');
        // A line that is longer than a member is a member of its own.
        let end = end.or_else(|| self.text.iter().position(|byte| *byte == b'\n'));
        let end = end.map_or(self.text.len(), |at| at + 1);
        self.file.append(&self.text[..end])?;
        self.text.drain(..end);
        Ok(end)
    }
}

impl EventSink for DftracerSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        for event in &batch.events {
            let extra = batch.extra(event);
            if event.kind == EventKind::Counter {
                self.counter(tables, event, extra)?;
            } else {
                self.flush_counter(tables)?;
                self.event(tables, event, extra)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.flush_counter(tables)?;
        let mut streams = std::mem::take(&mut self.streams);
        for (process, stream) in &mut streams {
            self.end(stream, &tables.processes[*process as usize]);
            while !stream.text.is_empty() {
                stream.write_member()?;
            }
        }
        for stream in streams.values_mut() {
            stream.file.finish()?;
        }
        self.streams = streams;
        Ok(())
    }

    fn output(&self) -> Output {
        let paths = self.streams.values().map(|stream| stream.file.path().to_owned());
        Output { paths: paths.collect(), slices: None }
    }
}

/// What all records of a kind begin with.
struct Head<'a> {
    name: &'a str,
    category: &'a str,
    layer: i64,
    thread: u32,
    pid: u32,
}

/// Sizes and results as the call counts them.
struct Counted {
    size: Option<i64>,
    arg: Option<i64>,
    result: Option<i64>,
    element: Option<i64>,
}

impl Counted {
    fn of(event: &Event, layout: &FieldNames) -> Self {
        let plain = Self { size: event.size, arg: event.arg, result: event.result, element: None };
        let element = event.arg.filter(|size| layout.counts_elements && *size > 0);
        let (Some(element), EventKind::Call) = (element, event.kind) else {
            let is_odd =
                layout.counts_elements && event.kind == EventKind::Call && event.arg.is_some();
            return if is_odd { Self { arg: Some(1), element: event.arg, ..plain } } else { plain };
        };
        let divides = |bytes: Option<i64>| bytes.is_none_or(|bytes| bytes % element == 0);
        if !divides(event.size) || !divides(event.result) {
            return Self { arg: Some(1), element: Some(element), ..plain };
        }
        let count = |bytes: Option<i64>| bytes.map(|bytes| bytes / element);
        Self { size: count(event.size), result: count(event.result), ..plain }
    }
}

fn place(path: &Path) -> (PathBuf, String) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = stem.strip_suffix(".pfw").unwrap_or(stem);
    (folder.unwrap_or(Path::new(".")).to_owned(), stem.to_owned())
}

/// The program as DFTracer names it: the first argument that is neither an option nor an interpreter.
fn executable(arguments: &[String]) -> &str {
    let is_program = |argument: &&String| {
        let rejected = ["python", "env", "multiprocessing"];
        !argument.starts_with('-') && !rejected.iter().any(|word| argument.contains(word))
    };
    let base = |argument: &'_ String| argument.rfind('/').map_or(0, |slash| slash + 1);
    arguments.iter().find(is_program).map_or("DEFAULT", |argument| &argument[base(argument)..])
}

fn layer_of(category: &str) -> i64 {
    match category {
        "dftracer" => 1,
        "POSIX" | "STDIO" => LIBC_LAYER,
        _ => 2,
    }
}

/// Keys that a reader of counters takes for something else.
fn is_plain(series: &str) -> bool {
    let taken = [
        "value", "hhash", "fhash", "hostname", "fname", "level", "p_idx", "feedline", "dft_cnt",
        "dur_sum",
    ];
    !taken.contains(&series) && !series.ends_with("_hash")
}

fn begin_args(line: &mut Vec<u8>, host: &str) {
    line.extend_from_slice(b",\"args\":{\"hhash\":\"");
    line.extend_from_slice(host.as_bytes());
    line.push(b'"');
}

fn number(line: &mut Vec<u8>, key: &str, suffix: &str, value: Option<impl itoa::Integer>) {
    let Some(value) = value else { return };
    json::comma(line);
    line.push(b'"');
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(suffix.as_bytes());
    line.extend_from_slice(b"\":");
    json::int(line, value);
}

fn append_members(line: &mut Vec<u8>, members: &str) {
    if !members.is_empty() {
        json::comma(line);
        line.extend_from_slice(members.as_bytes());
    }
}

/// Appends members whose names may be taken; `hhash` always is.
fn append_own(line: &mut Vec<u8>, args_from: usize, members: &str) {
    if !members.is_empty() {
        json::append(line, args_from, &format!("{{{members}}}"), Some("hhash"));
    }
}

/// The hash of a path whose name is not known.
fn hash_in(path: &str) -> Option<&str> {
    path.strip_prefix(UNNAMED).filter(|hash| hash.len() == 16)
}

fn hex(number: u64) -> [u8; 16] {
    std::array::from_fn(|at| b"0123456789abcdef"[usize::from((number >> (60 - 4 * at)) as u8 & 15)])
}
