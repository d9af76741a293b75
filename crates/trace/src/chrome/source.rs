//! Reads Chrome's JSON.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::chrome::PROCESS;
use crate::chrome::head::Head;
use crate::chrome::processes::{Processes, UNKNOWN_HOST};
use crate::chrome::records::Records;
use crate::error::{Result, TraceError};
use crate::event::{Batch, Event, EventKind};
use crate::field_names::{kind_named, usual_kind};
use crate::file_slice::FileSlice;
use crate::flow::EventSource;
use crate::process::{End, Process};
use crate::read_stats::{Damage, ReadStats};
use crate::tables::Tables;

/// Events of a batch.
const BATCH: usize = 10_000;

/// Files of Chrome's JSON, one after the other. Memory grows with what has begun and not ended, and with
/// processes.
pub struct ChromeSource {
    slices: Vec<FileSlice>,
    /// What is known of the clock of every file.
    clocks: Vec<Clock>,
    /// The file that is read, and its records; none before it was opened.
    file: usize,
    records: Option<Records>,
    /// Whether an event of the file was met, and with it everything before the events.
    is_begun: bool,
    record: u64,
    processes: Processes,
    /// What has begun and not ended, by thread.
    begun: FxHashMap<(u32, u32), Vec<Begun>>,
    /// The same for events that do not belong to a thread, by category and identity.
    begun_apart: FxHashMap<(u32, String), Vec<Begun>>,
    last_ns: i64,
    intake: ReadStats,
}

/// What is known of the clock of a file, after it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// When its time 0 is, in nanoseconds since 1970, if the file says so.
    pub origin_ns: Option<i64>,
    /// When its first event begins: since 1970, or since a moment of which nothing is known.
    pub first_ns: Option<i64>,
    /// Whether its origin came after the events, which therefore do not count from there.
    is_late: bool,
}

struct Begun {
    event: Event,
    args: Map<String, Value>,
}

impl ChromeSource {
    /// Opens a file, compressed or not.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(vec![FileSlice::of(path)])
    }

    /// Files that belong together: one per rank, or one per part of the time.
    pub fn of(slices: Vec<FileSlice>) -> Result<Self> {
        let clocks = vec![Clock::default(); slices.len()];
        Self::with(slices, clocks)
    }

    fn with(slices: Vec<FileSlice>, clocks: Vec<Clock>) -> Result<Self> {
        let files = slices.len() as u64;
        let mut source = Self {
            slices,
            clocks,
            file: 0,
            records: None,
            is_begun: false,
            record: 0,
            processes: Processes::default(),
            begun: FxHashMap::default(),
            begun_apart: FxHashMap::default(),
            last_ns: 0,
            intake: ReadStats { files, ..ReadStats::default() },
        };
        source.open_file()?;
        Ok(source)
    }

    /// After the last batch: a source of the same files that gives other times, if a file said after its
    /// events when its time 0 is.
    pub fn again(&self) -> Result<Option<Self>> {
        if !self.clocks.iter().any(|clock| clock.is_late) {
            return Ok(None);
        }
        let known = |clock: &Clock| Clock { origin_ns: clock.origin_ns, ..Clock::default() };
        Self::with(self.slices.clone(), self.clocks.iter().map(known).collect()).map(Some)
    }

    /// Whether the first thing in a file's array is an event; other JSON is not a trace.
    pub fn has_events(slice: &FileSlice) -> Result<bool> {
        let error = |source| TraceError::Read { path: slice.name.clone(), source };
        let mut records = Records::open(slice).map_err(error)?;
        let first = records.next().map_err(error)?;
        let event = first.and_then(|text| serde_json::from_slice::<Map<_, Value>>(text).ok());
        Ok(event.is_some_and(|event| event.contains_key("ph")))
    }

    /// The clocks of the files, in their order.
    pub fn clocks(&self) -> &[Clock] {
        &self.clocks
    }

    fn take(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        mut record: Map<String, Value>,
    ) -> Result<(), &'static str> {
        let phase = match record.get("ph") {
            Some(Value::String(phase)) => phase.clone(),
            _ => return Err("has a kind that is not text"),
        };
        let args = match record.remove("args") {
            Some(Value::Object(args)) => args,
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("args".to_owned(), other)]),
        };
        self.begin();
        let process = self.process(tables, record.get("pid"));
        let thread = self.thread(tables, batch, process, record.get("tid"), record.get("ts"));
        let start_ns = self.time(record.get("ts"));
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or("");
        let mut event = Event {
            process,
            thread,
            start_ns: start_ns.unwrap_or(self.last_ns),
            kind: EventKind::Span,
            category: tables.name_row(text("cat")),
            name: tables.name_row(text("name")),
            count: 1,
            ..Event::default()
        };
        if phase == "M" {
            return self.metadata(tables, batch, event, &args);
        }
        if start_ns.is_none() {
            return Err("is an event without a timestamp");
        }
        self.processes.used(process);
        let first_ns = &mut self.clocks[self.file].first_ns;
        *first_ns = Some(first_ns.map_or(event.start_ns, |first| first.min(event.start_ns)));
        self.last_ns = self.last_ns.max(event.start_ns);
        event.kind = usual_kind(None, text("cat"));
        match phase.as_str() {
            "X" => {
                event.duration_ns =
                    record.get("dur").and_then(nanoseconds).unwrap_or(0).max(0).cast_unsigned();
                self.push(tables, batch, event, args);
            }
            "B" => self.begun.entry((process, thread)).or_default().push(Begun { event, args }),
            "E" => {
                let begun = self.begun.get_mut(&(process, thread)).and_then(Vec::pop);
                self.end(tables, batch, begun, &event, args);
            }
            "b" | "S" => {
                let key = (event.category, identity(&record));
                self.begun_apart.entry(key).or_default().push(Begun { event, args });
            }
            "e" | "F" => {
                let begun = self
                    .begun_apart
                    .get_mut(&(event.category, identity(&record)))
                    .and_then(Vec::pop);
                self.end(tables, batch, begun, &event, args);
            }
            "i" | "I" | "R" | "n" => {
                event.kind = EventKind::Instant;
                self.push(tables, batch, event, args);
            }
            "C" => self.counter(tables, batch, event, args),
            _ => self.intake.left_out += 1,
        }
        Ok(())
    }

    fn end(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        begun: Option<Begun>,
        end: &Event,
        args: Map<String, Value>,
    ) {
        let Some(mut begun) = begun else {
            self.intake.unpaired += 1;
            return;
        };
        let duration = end.start_ns.saturating_sub(begun.event.start_ns).max(0);
        begun.event.duration_ns = duration.cast_unsigned();
        begun.args.extend(args);
        self.push(tables, batch, begun.event, begun.args);
    }

    fn counter(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        event: Event,
        args: Map<String, Value>,
    ) {
        let base = tables.name(event.name).to_owned();
        let (series, rest): (Vec<_>, Vec<_>) =
            args.into_iter().partition(|(_, value)| value.is_number());
        let mut rest: Map<_, _> = rest.into_iter().collect();
        for (key, value) in series {
            let name = if key == "value" { base.clone() } else { format!("{base}/{key}") };
            let event = Event {
                kind: EventKind::Counter,
                name: tables.name_row(&name),
                value: value.as_f64(),
                extra: keep(batch, &std::mem::take(&mut rest)),
                ..event
            };
            batch.events.push(event);
        }
    }

    fn push(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        mut event: Event,
        args: Map<String, Value>,
    ) {
        let mut extra = Map::new();
        for (key, value) in args {
            if !fold(tables, &mut event, &key, &value) {
                extra.insert(key, value);
            }
        }
        event.extra = keep(batch, &extra);
        batch.events.push(event);
    }

    fn metadata(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        event: Event,
        args: &Map<String, Value>,
    ) -> Result<(), &'static str> {
        let text = args.get("name").and_then(Value::as_str);
        let name = tables.name(event.name).to_owned();
        let process = &mut tables.processes[event.process as usize];
        match (name.as_str(), text) {
            (PROCESS, _) => self.processes.describe(tables, event.process, process_of(args)),
            ("process_name", Some(name)) => {
                if process.host == UNKNOWN_HOST {
                    process.name = Some(name.to_owned());
                }
            }
            ("process_sort_index" | "thread_sort_index", _) => {}
            ("thread_name", Some(name)) => {
                self.processes.used(event.process);
                let event = Event {
                    category: tables.name_row("thread"),
                    name: tables.name_row(name),
                    ..event
                };
                batch.events.push(event);
            }
            _ => self.intake.left_out += 1,
        }
        Ok(())
    }

    fn process(&mut self, tables: &mut Tables, pid: Option<&Value>) -> u32 {
        let key = match pid {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        self.processes.row(tables, key)
    }

    fn thread(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        process: u32,
        tid: Option<&Value>,
        at: Option<&Value>,
    ) -> u32 {
        match tid {
            Some(Value::Number(number))
                if number.as_u64().is_some_and(|number| u32::try_from(number).is_ok()) =>
            {
                number.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
            }
            None => 0,
            Some(other) => {
                let name = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                let (thread, is_new) = self.processes.thread(process, &name);
                if is_new {
                    self.processes.used(process);
                    batch.events.push(Event {
                        process,
                        thread,
                        start_ns: self.time(at).unwrap_or(self.last_ns),
                        kind: EventKind::Span,
                        category: tables.name_row("thread"),
                        name: tables.name_row(&name),
                        count: 1,
                        ..Event::default()
                    });
                }
                thread
            }
        }
    }

    fn time(&self, value: Option<&Value>) -> Option<i64> {
        let origin_ns = self.clocks[self.file].origin_ns.unwrap_or(0);
        // Times out of range saturate, so the extreme values are not times.
        nanoseconds(value?)?
            .checked_add(origin_ns)
            .filter(|time| !matches!(*time, i64::MIN | i64::MAX))
    }

    /// Before the first record is taken, everything before it was seen.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let head = self.records.as_ref().map(|records| Head::of(&records.head)).unwrap_or_default();
        let clock = &mut self.clocks[self.file];
        clock.origin_ns = head.origin_ns.or(clock.origin_ns);
        self.last_ns = clock.origin_ns.unwrap_or(0);
        self.processes.begin(head.rank);
    }

    fn open_file(&mut self) -> Result<bool> {
        let Some(slice) = self.slices.get(self.file) else { return Ok(false) };
        let opened = Records::open(slice);
        self.records =
            Some(opened.map_err(|source| TraceError::Read { path: slice.name.clone(), source })?);
        (self.is_begun, self.record) = (false, 0);
        Ok(true)
    }

    fn end_file(&mut self, tables: &mut Tables, batch: &mut Batch) {
        self.begin();
        let Some(records) = self.records.take() else { return };
        if records.is_cut() {
            self.intake.damaged_files += 1;
            self.intake.damaged(&self.slices[self.file].name);
        }
        self.intake.too_long(records.too_long);
        self.close(tables, batch);
        let whole = Head::of(&records.head);
        let clock = &mut self.clocks[self.file];
        clock.is_late = clock.origin_ns.is_none() && whole.origin_ns.is_some();
        clock.origin_ns = clock.origin_ns.or(whole.origin_ns);
        self.processes.end(tables, whole.rank);
        self.file += 1;
    }

    /// What never ended lasts to the end of the file.
    fn close(&mut self, tables: &mut Tables, batch: &mut Batch) {
        let apart = std::mem::take(&mut self.begun_apart).into_values();
        let mut open: Vec<_> =
            std::mem::take(&mut self.begun).into_values().chain(apart).flatten().collect();
        open.sort_by_key(|begun| (begun.event.start_ns, begun.event.process, begun.event.thread));
        for mut begun in open {
            self.intake.unpaired += 1;
            begun.event.duration_ns =
                self.last_ns.saturating_sub(begun.event.start_ns).max(0).cast_unsigned();
            begun.args.insert("unfinished".to_owned(), Value::Bool(true));
            self.push(tables, batch, begun.event, begun.args);
        }
    }

    fn damage(&mut self, reason: &'static str) {
        let (path, line) = (&self.slices[self.file].name, self.record);
        self.intake.bad(|| Damage { path: path.clone(), line, reason });
    }
}

impl EventSource for ChromeSource {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while batch.events.len() < BATCH {
            let Some(records) = &mut self.records else {
                if self.open_file()? {
                    continue;
                }
                break;
            };
            let record = match records.next() {
                Ok(Some(bytes)) => serde_json::from_slice::<Map<String, Value>>(bytes),
                Ok(None) => {
                    self.end_file(tables, batch);
                    continue;
                }
                Err(source) => {
                    let path = self.slices[self.file].name.clone();
                    return Err(TraceError::Read { path, source });
                }
            };
            self.record += 1;
            let taken = record
                .map_err(|_| "is not JSON")
                .and_then(|record| self.take(tables, batch, record));
            if let Err(reason) = taken {
                self.damage(reason);
            }
        }
        self.intake.events += batch.events.len() as u64;
        Ok(!batch.events.is_empty())
    }

    fn read_stats(&self) -> &ReadStats {
        &self.intake
    }
}

/// Microseconds, whole or not, in nanoseconds.
fn nanoseconds(value: &Value) -> Option<i64> {
    let text;
    let number = match value {
        Value::String(quoted) => {
            text = quoted.parse::<serde_json::Number>().ok()?;
            &text
        }
        Value::Number(number) => number,
        _ => return None,
    };
    match number.as_i64() {
        Some(whole) => Some(whole.saturating_mul(1_000)),
        #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
        // Times of wall clocks have too many digits for their nanoseconds to fit one float.
        None => number.as_f64().map(|float| {
            let rest_ns = ((float - float.trunc()) * 1_000.0).round() as i64;
            (float.trunc() as i64).saturating_mul(1_000).saturating_add(rest_ns)
        }),
    }
}

fn identity(record: &Map<String, Value>) -> String {
    let of = |name: &str| record.get(name).map(Value::to_string).unwrap_or_default();
    format!("{}{}{}", of("id"), of("id2"), of("scope"))
}

/// Puts an argument into its field; false if it has none.
fn fold(tables: &mut Tables, event: &mut Event, key: &str, value: &Value) -> bool {
    if let Value::String(text) = value {
        match key {
            "file" => event.file = Some(tables.file_row(text)),
            "other_file" => event.other_file = Some(tables.file_row(text)),
            "kind" => match kind_named(text) {
                Some(kind) => event.kind = kind,
                None => return false,
            },
            _ => return false,
        }
        return true;
    }
    let Some(number) = value.as_i64() else { return false };
    let is_summary = event.kind == EventKind::Summary;
    match key {
        "offset" => event.offset = Some(number),
        "size" => event.size = Some(number),
        "result" => event.result = Some(number),
        "arg" => event.arg = Some(number),
        "epoch" => event.epoch = Some(number),
        "step" => event.step = Some(number),
        "sample" => event.sample = Some(number),
        "errno" => match u16::try_from(number) {
            Ok(number) => event.errno = number,
            Err(_) => return false,
        },
        "count" if is_summary => event.count = number.max(0).cast_unsigned(),
        "shortest_ns" if is_summary => event.shortest_ns = u64::try_from(number).ok(),
        "longest_ns" if is_summary => event.longest_ns = u64::try_from(number).ok(),
        _ => return false,
    }
    true
}

fn keep(batch: &mut Batch, extra: &Map<String, Value>) -> Option<u32> {
    if extra.is_empty() {
        return None;
    }
    batch.texts.push(serde_json::to_string(extra).unwrap_or_default());
    u32::try_from(batch.texts.len() - 1).ok()
}

fn process_of(args: &Map<String, Value>) -> Process {
    let text = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let small = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
    let words = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let status = args
        .get("exit_status")
        .and_then(Value::as_i64)
        .and_then(|status| i32::try_from(status).ok());
    Process {
        host: text("host").unwrap_or_default(),
        pid: small("pid").unwrap_or(0),
        parent_pid: small("parent_pid"),
        parent: small("parent"),
        rank: small("rank"),
        program: text("program").unwrap_or_default(),
        arguments: args.get("arguments").and_then(words).unwrap_or_default(),
        folder: text("folder").unwrap_or_default(),
        name: text("name"),
        start_ns: text("start_ns").and_then(|ns| ns.parse().ok()).unwrap_or(0),
        end_ns: text("end_ns").and_then(|ns| ns.parse().ok()),
        end: match (text("end").as_deref(), status) {
            (Some("exited"), Some(status)) => End::Exited(status),
            (Some("became"), _) => End::Became,
            (Some("killed"), _) => End::Killed,
            _ => End::Unknown,
        },
        dropped: number("dropped").unwrap_or(0),
        trouble: text("trouble"),
        filtered: number("filtered").unwrap_or(0),
        skipped: number("skipped").unwrap_or(0),
        is_traced: args.get("is_traced").and_then(Value::as_bool).unwrap_or(true),
    }
}
