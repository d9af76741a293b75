//! Writes Chrome's JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::chrome::{ORIGIN, PROCESS};
use crate::error::Result;
use crate::event::{Batch, Event, EventKind};
use crate::field_names::usual_kind;
use crate::flow::{EventSink, Output};
use crate::json;
use crate::partial_file::PartialStream;
use crate::process::{End, Process};
use crate::tables::Tables;

/// A file of Chrome's JSON that is being written.
#[derive(Debug)]
pub struct ChromeSink {
    file: PartialStream,
    origin_ns: Option<i64>,
    /// Processes that have been named.
    named: Vec<bool>,
}

impl ChromeSink {
    /// Compressed if the name ends with `.gz`.
    pub fn new(path: &Path) -> Result<Self> {
        Ok(Self { file: PartialStream::create(path)?, origin_ns: None, named: Vec::new() })
    }

    /// Begins a record. The first one comes after the head of the file.
    fn begin(&mut self, at_ns: i64) -> &mut Vec<u8> {
        let is_first = self.origin_ns.is_none();
        self.origin_ns.get_or_insert(at_ns);
        let out = self.file.buffer();
        if is_first {
            let head = format!(
                "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"{ORIGIN}\":\"{at_ns}\"}},\"traceEvents\":[\n"
            );
            out.extend_from_slice(head.as_bytes());
        } else {
            out.extend_from_slice(b",\n");
        }
        out
    }

    fn metadata(&mut self, at_ns: i64, record: &Value) {
        let text = record.to_string();
        self.begin(at_ns).extend_from_slice(text.as_bytes());
    }

    fn name_process(&mut self, tables: &Tables, row: u32, at_ns: i64) {
        let index = row as usize;
        if self.named.len() <= index {
            self.named.resize(index + 1, false);
        }
        let Some(process) = tables.processes.get(index) else { return };
        if std::mem::replace(&mut self.named[index], true) {
            return;
        }
        let record = |name: &str, args: Value| json!({"name": name, "ph": "M", "pid": row + 1, "tid": 0, "args": args});
        self.metadata(at_ns, &record("process_name", json!({"name": process.title()})));
        self.metadata(
            at_ns,
            &record("process_sort_index", json!({"sort_index": process.rank.unwrap_or(row)})),
        );
        self.metadata(at_ns, &record(PROCESS, facts(process)));
    }

    fn event(&mut self, tables: &Tables, event: &Event, extra: Option<&str>) {
        let (category, name) = (tables.name(event.category), tables.name(event.name));
        let names_thread = event.kind == EventKind::Span && category == "thread";
        let phase = match event.kind {
            _ if names_thread => "M",
            EventKind::Counter => "C",
            EventKind::Instant => "i",
            EventKind::Call | EventKind::Span | EventKind::Summary => "X",
        };
        let origin_ns = self.origin_ns.unwrap_or(event.start_ns);
        let out = self.begin(event.start_ns);
        out.extend_from_slice(b"{\"name\":");
        json::text(out, if names_thread { "thread_name" } else { name });
        out.extend_from_slice(b",\"cat\":");
        json::text(out, category);
        out.extend_from_slice(format!(",\"ph\":\"{phase}\",\"pid\":").as_bytes());
        json::int(out, event.process + 1);
        out.extend_from_slice(b",\"tid\":");
        json::int(out, event.thread);
        out.extend_from_slice(b",\"ts\":");
        microseconds(out, event.start_ns.saturating_sub(origin_ns));
        if phase == "X" {
            out.extend_from_slice(b",\"dur\":");
            microseconds(out, i64::try_from(event.duration_ns).unwrap_or(i64::MAX));
        } else if phase == "i" {
            out.extend_from_slice(b",\"s\":\"t\"");
        }
        let args_from = out.len();
        if names_thread {
            out.extend_from_slice(b",\"args\":{\"name\":");
            json::text(out, name);
            out.extend_from_slice(b"}}");
            return;
        }
        out.extend_from_slice(b",\"args\":{");
        arguments(out, tables, event);
        if let Some(extra) = extra {
            json::append(out, args_from, extra, None);
        }
        if out.ends_with(b",\"args\":{") {
            out.truncate(args_from);
            out.push(b'}');
        } else {
            out.extend_from_slice(b"}}");
        }
    }
}

impl EventSink for ChromeSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        for event in &batch.events {
            self.name_process(tables, event.process, event.start_ns);
            let extra = batch.extra(event);
            self.event(tables, event, extra);
            self.file.flush()?;
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        // What was learned of a process after its first event takes the place of what was said then.
        for row in 0..tables.processes.len() {
            if let Ok(row) = u32::try_from(row) {
                if let Some(named) = self.named.get_mut(row as usize) {
                    *named = false;
                }
                let at_ns = self.origin_ns.unwrap_or(tables.processes[row as usize].start_ns);
                self.name_process(tables, row, at_ns);
                self.file.flush()?;
            }
        }
        let is_empty = self.origin_ns.is_none();
        let out = self.file.buffer();
        out.extend_from_slice(if is_empty { b"{\"traceEvents\":[]}\n" } else { b"\n]}\n" });
        self.file.finish()
    }

    fn output(&self) -> Output {
        Output { paths: vec![self.file.path().to_owned()], slices: None }
    }
}

fn microseconds(out: &mut Vec<u8>, ns: i64) {
    let (whole, rest) = ((ns / 1_000).abs(), (ns % 1_000).abs());
    if ns < 0 {
        out.push(b'-');
    }
    json::int(out, whole);
    if rest != 0 {
        out.extend_from_slice(format!(".{rest:03}").trim_end_matches('0').as_bytes());
    }
}

fn arguments(out: &mut Vec<u8>, tables: &Tables, event: &Event) {
    if event.kind == EventKind::Counter {
        json::key(out, "value");
        json::float(out, event.value.unwrap_or(0.0));
    } else if event.kind != EventKind::Instant
        && usual_kind(None, tables.name(event.category)) != event.kind
    {
        json::key(out, "kind");
        json::text(out, event.kind.name());
    }
    for (name, file) in [("file", event.file), ("other_file", event.other_file)] {
        if let Some(file) = file {
            json::key(out, name);
            json::text(out, tables.file(file));
        }
    }
    for (name, number) in event.numbers() {
        json::key(out, name);
        json::int(out, number);
    }
}

fn facts(process: &Process) -> Value {
    let (end, status) = match process.end {
        End::Unknown => ("unknown", None),
        End::Exited(status) => ("exited", Some(status)),
        End::Became => ("became", None),
        End::Killed => ("killed", None),
    };
    json!({
        "host": process.host,
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "parent": process.parent,
        "rank": process.rank,
        "program": process.program,
        "arguments": process.arguments,
        "folder": process.folder,
        "name": process.name,
        // In quotes, since JavaScript's numbers are too short.
        "start_ns": process.start_ns.to_string(),
        "end_ns": process.end_ns.map(|ns| ns.to_string()),
        "end": end,
        "exit_status": status,
        "dropped": process.dropped,
        "trouble": process.trouble,
        "filtered": process.filtered,
        "skipped": process.skipped,
        "is_traced": process.is_traced,
    })
}
