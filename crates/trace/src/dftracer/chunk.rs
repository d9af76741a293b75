//! A piece of a DFTracer file, understood by itself.
//!
//! [`Chunk::parse`] is a pure function of whole lines: names are numbered within the chunk and hashes
//! stay hashes, so chunks can be parsed by many threads in any order. What they mean together
//! (which path a hash is, which unit times have) is left to the joiner.

use std::borrow::Cow;

use feedline_recorder::OpInfo;

use crate::dftracer::hash::Hash;
use crate::dftracer::record::{Arg, Line, Phase, Scanned, is_about_others};
use crate::dftracer::usual_line::Recent;
use crate::event::{Event, EventKind};
use crate::field_names::{Field, FieldNames, kind_named, op_info, usual_kind};
use crate::json;
use crate::words::Words;

/// How a record names its host or its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// The line does not name it.
    #[default]
    Not,
    /// Named by a hash, which a metadata line explains.
    Hash(Hash),
    /// By a text: its number in [`Chunk::words`].
    Text(u32),
}

/// An event as its file has it.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent {
    /// Times are in the file's unit; category and name are numbers of [`Chunk::words`]; process, file
    /// and extra are not set.
    pub event: Event,
    /// The process id.
    pub pid: u32,
    /// Its host.
    pub host: Named,
    /// The file that the event is about.
    pub file: Named,
    /// Its other arguments that are hashes: a range of [`Chunk::hashes`].
    pub hashes: (u32, u32),
    /// Row of [`Chunk::extras`].
    pub extra: Option<u32>,
}

impl RawEvent {
    /// An event of which nothing else is known yet.
    pub(crate) fn new(event: Event, pid: u32) -> Self {
        let (host, file) = (Named::Not, Named::Not);
        Self { event, pid, host, file, hashes: (0, 0), extra: None }
    }
}

/// A record about other records.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// `FH`, `HH`, `CM`…
    pub name: String,
    /// Category, as in the file.
    pub category: String,
    /// The process that wrote it.
    pub pid: u32,
    /// The thread id.
    pub tid: u32,
    /// Its host.
    pub host: Named,
    /// What it is about.
    pub key: Option<String>,
    /// The value, if it is a text.
    pub text: Option<String>,
    /// The value, if it can be a hash.
    pub hash: Option<Hash>,
    /// All arguments but the host: members of a JSON object.
    pub args: String,
}

/// What a line is.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are events")]
pub enum Item {
    /// An event of the program.
    Event(RawEvent),
    /// A line that describes other lines.
    Metadata(Box<Metadata>),
}

/// A line that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The line within the chunk, from 0.
    pub line: u64,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// How much of the lines of a chunk is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseScope {
    /// All lines with all fields.
    Everything,
    /// All lines, but of events only what has its own field: no [`Chunk::extras`] and no strings by hash, but
    /// for the library's first and last events.
    Rows,
    /// Only metadata lines, which describe other lines; the rest is skipped.
    Metadata,
}

/// What the lines of a chunk say.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Events and what is about them, in the order of the file.
    pub items: Vec<Item>,
    /// Arguments that are hashes: their names as numbers of `words`, and values.
    pub hashes: Vec<(u32, Hash)>,
    /// Arguments without a field of their own: members of JSON objects.
    pub extras: Vec<String>,
    /// Lines that are not understood.
    pub bad: Vec<BadLine>,
    /// How many lines it has.
    pub lines: u64,
    /// Lines that are not UTF-8.
    pub not_utf8: u64,
    /// Lines that are no metadata and were understood.
    pub records: u64,
    is_lean: bool,
    words: Words,
    facts: Vec<Option<&'static OpInfo>>,
    /// How calls of every word carry their fields.
    layouts: Vec<FieldNames>,
    pub(crate) recent: Recent,
}

impl Chunk {
    /// The names, categories and paths of its events.
    pub fn words(&self) -> &[Box<str>] {
        self.words.texts()
    }

    /// Reads whole lines; the last one may lack its end.
    pub fn parse(bytes: &[u8], scope: ParseScope) -> Self {
        let mut chunk = Self { is_lean: scope == ParseScope::Rows, ..Self::default() };
        match std::str::from_utf8(bytes) {
            Ok(text) => chunk.lines(text, scope),
            Err(_) => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    let text = String::from_utf8_lossy(line);
                    chunk.not_utf8 += u64::from(matches!(text, Cow::Owned(_)));
                    chunk.lines(&text, scope);
                }
            }
        }
        chunk
    }

    fn lines(&mut self, text: &str, scope: ParseScope) {
        let mut record = Line::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            // Old versions leave blanks at the beginning and write a bracket over one of them later, so
            // it may be in the line of a record.
            let line =
                rest[..end].trim_start_matches(|c: char| c.is_whitespace() || c == '[' || c == ']');
            rest = rest.get(end + 1..).unwrap_or("");
            let is_done = line.is_empty() || (self.is_lean && self.parse_usual(line));
            if !is_done {
                self.line(&mut record, line, scope);
            }
            self.lines += 1;
        }
    }

    fn line<'a>(&mut self, record: &mut Line<'a>, text: &'a str, scope: ParseScope) {
        let only = (scope == ParseScope::Metadata).then_some(is_of_interest as fn(&str) -> bool);
        match record.scan(text, only) {
            Scanned::Uninteresting => return,
            Scanned::Record => {}
            Scanned::Unusual => {
                if let Err(reason) = record.parse(text) {
                    self.bad.push(BadLine { line: self.lines, reason });
                    if successor(text).is_none_or(|tail| record.parse(tail).is_err()) {
                        return;
                    }
                }
            }
        }
        if let Err(reason) = self.understand(record, scope) {
            self.bad.push(BadLine { line: self.lines, reason });
        }
    }

    fn understand(&mut self, line: &Line, scope: ParseScope) -> Result<(), &'static str> {
        let number = |number| u32::try_from(number).map_err(|_| "has an invalid process number");
        let (pid, tid) = (number(line.pid)?, number(line.tid)?);
        let is_known = is_about_others(&line.name);
        if line.phase == Phase::Metadata || (line.start.is_none() && is_known) {
            self.metadata(line, pid, tid);
            return Ok(());
        }
        if scope == ParseScope::Metadata && !is_border(&line.name, &line.category) {
            return Ok(());
        }
        let start = line.start.ok_or("is an event without a timestamp")?;
        let kind = match line.phase {
            Phase::Complete if is_border(&line.name, &line.category) => EventKind::Instant,
            Phase::Complete => said_kind(line).unwrap_or(usual_kind(line.layer, &line.category)),
            Phase::Aggregate => EventKind::Summary,
            Phase::Counter if is_summary(line) => EventKind::Summary,
            Phase::Counter => EventKind::Counter,
            Phase::Metadata | Phase::Unknown => return Err("is an event of an unknown kind"),
        };
        let duration =
            u64::try_from(line.duration.unwrap_or(0)).map_err(|_| "ends before it begins")?;
        let (category, name) = (self.word(&line.category), self.word(&line.name));
        let event = Event {
            thread: tid,
            start_ns: start,
            duration_ns: duration,
            kind,
            category,
            name,
            count: 1,
            ..Event::default()
        };
        let mut raw = RawEvent::new(event, pid);
        self.records += 1;
        if kind == EventKind::Counter {
            self.counters(line, &mut raw);
        } else {
            self.event(line, &mut raw);
        }
        Ok(())
    }

    fn event(&mut self, line: &Line, raw: &mut RawEvent) {
        let layout = self.layout(raw.event.name, raw.event.kind);
        let first_hash = to_u32(self.hashes.len());
        let mut extra = Vec::new();
        for (key, value) in &line.args {
            if self.place(raw, key, value) || fold(&mut raw.event, &layout, key, value) {
                continue;
            }
            if self.is_lean && raw.event.kind != EventKind::Instant {
                continue;
            }
            member(&mut extra, key, value);
        }
        if layout.counts_elements {
            in_bytes(&mut raw.event, line);
        }
        raw.hashes = (first_hash, to_u32(self.hashes.len()));
        raw.extra = self.keep(extra);
        self.items.push(Item::Event(*raw));
    }

    /// Takes what says where: host, file, other strings.
    fn place(&mut self, raw: &mut RawEvent, key: &str, value: &Arg) -> bool {
        match key {
            "hhash" => raw.host = named(value),
            "fhash" => raw.file = named(value),
            "hostname" | "fname" => {
                let Arg::Text(text) = value else { return false };
                let word = Named::Text(self.word(text));
                *(if key == "fname" { &mut raw.file } else { &mut raw.host }) = word;
            }
            // Nesting that was counted over all threads of a process says nothing.
            "level" | "p_idx" | "feedline" => {}
            _ if key.ends_with("_hash")
                || (key == "cwd" && raw.event.kind == EventKind::Instant) =>
            {
                let is_file = matches!(key, "pathname_hash" | "path_hash");
                if self.is_lean && !is_file && raw.event.kind != EventKind::Instant {
                    return true;
                }
                let Named::Hash(hash) = named(value) else { return false };
                let word = self.word(key);
                self.hashes.push((word, hash));
            }
            _ => return false,
        }
        true
    }

    /// One event per series.
    fn counters(&mut self, line: &Line, raw: &mut RawEvent) {
        let mut extra = Vec::new();
        let mut series = Vec::new();
        for (key, value) in &line.args {
            if self.place(raw, key, value) {
                continue;
            }
            match value.float() {
                Some(number) if number.is_finite() => series.push((key, number)),
                _ if self.is_lean => {}
                _ => member(&mut extra, key, value),
            }
        }
        raw.extra = self.keep(extra);
        for (key, number) in series {
            let name = if key == "value" {
                line.name.clone()
            } else {
                format!("{}/{key}", line.name).into()
            };
            raw.event.name = self.word(&name);
            raw.event.value = Some(number);
            self.items.push(Item::Event(*raw));
            raw.extra = None;
        }
    }

    fn metadata(&mut self, line: &Line, pid: u32, tid: u32) {
        let mut metadata = Metadata {
            name: line.name.clone().into_owned(),
            category: line.category.clone().into_owned(),
            pid,
            tid,
            host: Named::Not,
            key: None,
            text: None,
            hash: None,
            args: String::new(),
        };
        let mut args = Vec::new();
        for (key, value) in &line.args {
            match (&**key, value) {
                ("hhash", value) => {
                    metadata.host = named(value);
                    continue;
                }
                ("name", Arg::Text(text)) => metadata.key = Some(text.clone().into_owned()),
                ("value", Arg::Text(text)) => {
                    metadata.text = Some(text.clone().into_owned());
                    metadata.hash = Some(Hash::from_text(text));
                }
                ("value", Arg::Int(number)) => {
                    metadata.text = Some(number.to_string());
                    metadata.hash = Some(Hash::Number(number.cast_unsigned()));
                }
                ("value", Arg::Raw(raw)) => metadata.hash = raw.parse().ok().map(Hash::Number),
                _ => {}
            }
            member(&mut args, key, value);
        }
        metadata.args = String::from_utf8(args).unwrap_or_default();
        self.items.push(Item::Metadata(Box::new(metadata)));
    }

    fn keep(&mut self, extra: Vec<u8>) -> Option<u32> {
        if extra.is_empty() {
            return None;
        }
        self.extras.push(String::from_utf8(extra).ok()?);
        Some(to_u32(self.extras.len() - 1))
    }

    /// How an event of a name and kind carries its fields.
    pub(crate) fn layout(&self, name: u32, kind: EventKind) -> FieldNames {
        match kind {
            EventKind::Call | EventKind::Summary => self.layouts[name as usize],
            EventKind::Span | EventKind::Counter | EventKind::Instant => FieldNames::of(None, kind),
        }
    }

    pub(crate) fn word(&mut self, text: &str) -> u32 {
        let (number, is_new) = self.words.number(text);
        if is_new {
            let facts = op_info(text);
            self.facts.push(facts);
            self.layouts.push(FieldNames::of(facts, EventKind::Call));
        }
        number
    }
}

/// The size of an element where bytes are no multiple of it, so that others are told of elements of 1 byte.
pub(crate) const ELEMENT: &str = "element";

/// Begins with the library's own events, which say what the process is.
fn is_border(name: &str, category: &str) -> bool {
    category == "dftracer" && matches!(name, "start" | "end")
}

fn is_of_interest(name: &str) -> bool {
    is_about_others(name) || matches!(name, "start" | "end")
}

/// The kind that a record of ours names where the usual one is wrong.
fn said_kind(line: &Line) -> Option<EventKind> {
    let (_, value) = line.args.iter().find(|(key, _)| key == "feedline")?;
    let Arg::Text(name) = value else { return None };
    kind_named(name)
}

/// Old dialects wrote aggregates as counters.
fn is_summary(line: &Line) -> bool {
    line.args.iter().any(|(key, _)| key == "dft_cnt" || key == "dur_sum")
}

fn named(value: &Arg) -> Named {
    match value {
        Arg::Int(number) => Named::Hash(Hash::Number(number.cast_unsigned())),
        Arg::Text(text) => Named::Hash(Hash::from_text(text)),
        Arg::Raw(raw) => raw.parse().map_or(Named::Not, |number| Named::Hash(Hash::Number(number))),
    }
}

/// Puts an argument into its field; false if it has none, or it is taken.
fn fold(event: &mut Event, layout: &FieldNames, key: &str, value: &Arg) -> bool {
    let Some(number) = value.number() else { return false };
    if layout.counts_elements && key == ELEMENT {
        return true;
    }
    if event.kind == EventKind::Summary && fold_summary(event, layout, key, number) {
        return true;
    }
    fold_number(event, layout, key, number)
}

/// Puts a number into the field of an argument; false if it has none, or it is taken.
pub(crate) fn fold_number(event: &mut Event, layout: &FieldNames, key: &str, number: i64) -> bool {
    let Some(field) = layout.field(key) else { return false };
    let place = match field {
        Field::Size => &mut event.size,
        Field::Offset => &mut event.offset,
        Field::Arg => &mut event.arg,
        Field::Result => &mut event.result,
        Field::Epoch => &mut event.epoch,
        Field::Step => &mut event.step,
        Field::Sample => &mut event.sample,
        Field::Errno => {
            let Ok(number) = u16::try_from(number) else { return false };
            event.errno = number;
            return true;
        }
    };
    if place.is_some() {
        return false;
    }
    *place = Some(number);
    true
}

fn fold_summary(event: &mut Event, layout: &FieldNames, key: &str, number: i64) -> bool {
    let Ok(positive) = u64::try_from(number) else { return false };
    match key {
        "dft_cnt" => event.count = positive,
        "dur" => {
            event.duration_ns = positive;
            (event.shortest_ns, event.longest_ns) = (Some(positive), Some(positive));
        }
        "dur_sum" => event.duration_ns = positive,
        "dur_min" => event.shortest_ns = Some(positive),
        "dur_max" => event.longest_ns = Some(positive),
        _ => {
            let Some(base) = key.strip_suffix("_sum") else { return false };
            let place = match layout.field(base) {
                Some(Field::Size) => &mut event.size,
                Some(Field::Result) => &mut event.result,
                _ => return false,
            };
            if place.is_some() {
                return false;
            }
            *place = Some(number);
        }
    }
    true
}

/// `fread` and its like count elements; events count bytes.
fn in_bytes(event: &mut Event, line: &Line) {
    let of =
        |name: &str| line.args.iter().find(|(key, _)| key == name).and_then(|(_, v)| v.number());
    let element = match event.kind {
        EventKind::Summary => of("size_min").filter(|size| of("size_max") == Some(*size)),
        _ => event.arg,
    };
    let Some(element) = element.filter(|size| *size > 0) else { return };
    let bytes = |count: Option<i64>| count.map(|count| count.saturating_mul(element));
    (event.size, event.result) = (bytes(event.size), bytes(event.result));
    if let Some(true_size) = of(ELEMENT) {
        event.arg = Some(true_size);
    }
}

fn member(out: &mut Vec<u8>, key: &str, value: &Arg) {
    json::key(out, key);
    match value {
        Arg::Int(number) => json::int(out, *number),
        Arg::Text(text) => json::text(out, text),
        Arg::Raw(raw) => out.extend_from_slice(raw.as_bytes()),
    }
}

/// A record that was cut off without its line end takes the next one along: where that begins.
fn successor(text: &str) -> Option<&str> {
    let begins = ["{\"id\":", "{\"name\":\""];
    let at = begins.iter().filter_map(|begin| text.rfind(begin)).max().filter(|at| *at > 0)?;
    Some(&text[at..])
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
