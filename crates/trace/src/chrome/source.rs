//! Reads Chrome's JSON.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::chrome::records::Records;
use crate::chrome::{ORIGIN, PROCESS};
use crate::event::{Batch, Event, Kind};
use crate::flow::Source;
use crate::layout::{kind_named, usual_kind};
use crate::process::{End, Process};
use crate::quick::QuickMap;
use crate::tables::Tables;
use crate::trouble::{ConvertError, Damage, Intake};

/// Events of a batch.
const BATCH: usize = 10_000;
/// Threads with a name instead of a number are counted from here.
const NAMED_THREADS: u32 = 1 << 31;

/// A file of Chrome's JSON. Memory grows with what has begun and not ended, and with processes.
pub struct ChromeSource {
    path: PathBuf,
    records: Records,
    origin_ns: Option<i64>,
    record: u64,
    processes: QuickMap<String, u32>,
    threads: QuickMap<(u32, String), u32>,
    /// What has begun and not ended, by thread.
    begun: QuickMap<(u32, u32), Vec<Begun>>,
    /// The same for events that do not belong to a thread, by category and identity.
    begun_apart: QuickMap<(u32, String), Vec<Begun>>,
    last_ns: i64,
    is_at_end: bool,
    intake: Intake,
}

struct Begun {
    event: Event,
    args: Map<String, Value>,
}

impl ChromeSource {
    /// Opens a file, compressed or not.
    pub fn open(path: &Path) -> Result<Self, ConvertError> {
        let records = Records::open(path)
            .map_err(|source| ConvertError::Read { path: path.to_owned(), source })?;
        Ok(Self {
            path: path.to_owned(),
            records,
            origin_ns: None,
            record: 0,
            processes: QuickMap::default(),
            threads: QuickMap::default(),
            begun: QuickMap::default(),
            begun_apart: QuickMap::default(),
            last_ns: 0,
            is_at_end: false,
            intake: Intake { files: 1, ..Intake::default() },
        })
    }

    /// What was met so far; complete after the last batch.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    fn take(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
        mut record: Map<String, Value>,
    ) -> Result<(), &'static str> {
        let phase = match record.get("ph") {
            Some(Value::String(phase)) => phase.clone(),
            _ => return Err("has no kind in letters"),
        };
        let args = match record.remove("args") {
            Some(Value::Object(args)) => args,
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("args".to_owned(), other)]),
        };
        let process = self.process(tables, record.get("pid"));
        let thread = self.thread(tables, batch, process, record.get("tid"), record.get("ts"));
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or("");
        let mut event = Event {
            process,
            thread,
            start_ns: self.time(record.get("ts")).unwrap_or(self.last_ns),
            kind: Kind::Span,
            category: tables.name_row(text("cat")),
            name: tables.name_row(text("name")),
            count: 1,
            ..Event::default()
        };
        if phase == "M" {
            return self.metadata(tables, batch, event, &args);
        }
        if !record.contains_key("ts") {
            return Err("is an event without a time");
        }
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
                event.kind = Kind::Instant;
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
                kind: Kind::Counter,
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
            (PROCESS, _) => {
                let row = event.process as usize;
                tables.processes[row] = process_of(args);
            }
            ("process_name", Some(name)) => {
                if process.host == UNKNOWN_HOST {
                    process.name = Some(name.to_owned());
                }
            }
            ("process_sort_index" | "thread_sort_index", _) => {}
            ("thread_name", Some(name)) => {
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
        if let Some(row) = self.processes.get(&key) {
            return *row;
        }
        let number = key.parse().ok();
        let row = tables.add_process(Process {
            host: UNKNOWN_HOST.to_owned(),
            pid: number.unwrap_or(0),
            name: number.is_none().then(|| key.clone()),
            is_traced: true,
            ..Process::default()
        });
        self.processes.insert(key, row);
        row
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
                let next = NAMED_THREADS + u32::try_from(self.threads.len()).unwrap_or(0);
                let key = (process, name);
                if let Some(thread) = self.threads.get(&key) {
                    return *thread;
                }
                let event = Event {
                    process,
                    thread: next,
                    start_ns: self.time(at).unwrap_or(self.last_ns),
                    kind: Kind::Span,
                    category: tables.name_row("thread"),
                    name: tables.name_row(&key.1),
                    count: 1,
                    ..Event::default()
                };
                batch.events.push(event);
                self.threads.insert(key, next);
                next
            }
        }
    }

    fn time(&mut self, value: Option<&Value>) -> Option<i64> {
        let origin = *self.origin_ns.get_or_insert_with(|| origin(&self.records.head));
        Some(nanoseconds(value?)?.saturating_add(origin))
    }

    /// What never ended lasts to the end of the trace.
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
        for process in &mut tables.processes {
            // In the file processes are counted from 1, in the order of the trace that was written.
            let number = process.parent.map(|parent| (u64::from(parent) + 1).to_string());
            process.parent = number.and_then(|number| self.processes.get(&number)).copied();
        }
    }

    fn damage(&mut self, reason: &'static str) {
        let (path, line) = (&self.path, self.record);
        self.intake.bad(|| Damage { path: path.clone(), line, reason });
    }
}

impl Source for ChromeSource {
    type Error = ConvertError;

    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, ConvertError> {
        batch.clear();
        while batch.events.len() < BATCH && !self.is_at_end {
            let record = match self.records.next() {
                Ok(Some(bytes)) => serde_json::from_slice::<Map<String, Value>>(bytes),
                Ok(None) => {
                    self.is_at_end = true;
                    if self.records.is_cut() {
                        self.intake.damaged_files += 1;
                        self.intake.damaged(&self.path);
                    }
                    self.intake.too_long(self.records.too_long);
                    self.close(tables, batch);
                    break;
                }
                Err(source) => return Err(ConvertError::Read { path: self.path.clone(), source }),
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
}

const UNKNOWN_HOST: &str = "unknown";

fn origin(head: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(head);
    let value =
        text.split_once(&format!("\"{ORIGIN}\":\"")).and_then(|(_, rest)| rest.split('"').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
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
        Some(whole) => whole.checked_mul(1_000),
        #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
        None => number.as_f64().map(|float| (float * 1_000.0).round() as i64),
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
    let is_summary = event.kind == Kind::Summary;
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
