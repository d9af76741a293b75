//! From records to events.

use std::collections::HashMap;

use feedline_recorder::{AppEvent, CallRecord, Class, OPS, Op, SegmentEntry, SegmentFile, Summary};

use super::texts::Site;
use crate::clocks::{Clocks, Translation};
use crate::event::{Batch, Event, EventKind};
use crate::tables::Tables;

/// The number that the preload library puts in the place of a text for a file that is not recorded.
const SKIPPED_FILE: u64 = u32::MAX as u64;

/// What is known about the process of a segment.
pub(crate) struct Context<'a> {
    pub(crate) row: u32,
    pub(crate) is_counter: bool,
    pub(crate) clocks: &'a Clocks,
    pub(crate) file: &'a dyn Fn(u32) -> Option<u32>,
    pub(crate) site: &'a dyn Fn(u32) -> Option<Site>,
}

/// A process that another one started, or that it became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The new process; `None` if the one that calls became the program.
    pub(crate) pid: Option<u32>,
    /// The program's file.
    pub(crate) file: Option<u32>,
    pub(crate) start_ns: i64,
}

/// Turns records into events.
#[derive(Debug)]
pub(crate) struct Converter {
    /// Rows of categories and names by the numbers of calls.
    names: Vec<Site>,
    app: Site,
    /// Rows of the names of a program's own calls that move bytes.
    read: u32,
    write: u32,
}

/// Bytes that calls moved; a copy inside the kernel does both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl Moved {
    fn count(&mut self, class: Option<Class>, result: Option<i64>) {
        let bytes = result.and_then(|result| u64::try_from(result).ok()).unwrap_or(0);
        if matches!(class, Some(Class::Read | Class::Copy)) {
            self.read += bytes;
        }
        if matches!(class, Some(Class::Write | Class::Copy)) {
            self.written += bytes;
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
    }
}

/// What a segment had to say.
#[derive(Debug, Default)]
pub(crate) struct Gleaned {
    pub(crate) launches: Vec<Launch>,
    /// The end of the last event.
    pub(crate) last_ns: Option<i64>,
    /// Bytes that were read, and written.
    pub(crate) moved: Moved,
}

impl Converter {
    pub(crate) fn new(tables: &mut Tables) -> Self {
        let names = OPS.iter().map(|op| {
            let facts = op.info();
            (tables.name_row(facts.category.name()), tables.name_row(facts.name))
        });
        let names = names.collect();
        Self {
            names,
            app: (tables.name_row("APP"), tables.name_row("")),
            read: tables.name_row("read"),
            write: tables.name_row("write"),
        }
    }

    /// Puts the events of a segment into `batch`, in the order of threads and their starts.
    pub(crate) fn convert(
        &self,
        segment: &SegmentFile,
        context: &Context<'_>,
        batch: &mut Batch,
    ) -> Gleaned {
        let mut gleaned = Gleaned::default();
        let mut extras = HashMap::new();
        let mut line: Option<Translation> = None;
        for entry in segment.entries() {
            let (op, record, summary) = match entry {
                SegmentEntry::Call(op, record) => (op, record, None),
                SegmentEntry::Summary(op, record, summary) => (op, record, Some(summary)),
                SegmentEntry::Text { .. } => continue,
            };
            let time = match line {
                Some(line) if line.holds(record.start) => line,
                _ => *line.insert(context.clocks.around(record.start, context.is_counter)),
            };
            let mut event = Event {
                process: context.row,
                thread: record.thread,
                start_ns: time.at(record.start),
                duration_ns: time.length(record.end.saturating_sub(record.start)),
                count: 1,
                ..Event::default()
            };
            let extra = match AppEvent::unpack(op, &record) {
                Some(said) => {
                    self.annotate(&mut event, said, context);
                    None
                }
                None => self.describe(&mut event, op, &record, context),
            };
            let extra = match summary {
                Some(summary) => Some(summarize(&mut event, &summary, time)),
                None => extra.map(|(name, value)| format!("{{\"{name}\":{value}}}")),
            };
            event.extra = extra.map(|text| intern(&mut extras, &mut batch.texts, text));
            gleaned.moved.count(self.class(op, &event), event.result);
            if op.info().class == Class::Process && record.errno == 0 {
                gleaned.launches.extend(launch(op, &record, &event));
            }
            let end_ns = event.start_ns.saturating_add_unsigned(event.duration_ns);
            gleaned.last_ns = gleaned.last_ns.max(Some(end_ns));
            batch.events.push(event);
        }
        let key = |event: &Event| (event.thread, event.start_ns);
        if !batch.events.is_sorted_by_key(key) {
            batch.events.sort_by_key(key);
        }
        gleaned
    }

    /// What a call does; that of a program's own call follows from its name.
    fn class(&self, op: Op, event: &Event) -> Option<Class> {
        match op {
            Op::AppCall if event.name == self.read => Some(Class::Read),
            Op::AppCall if event.name == self.write => Some(Class::Write),
            _ => Some(op.info().class),
        }
    }

    /// Fills in a call. Gives what has no column of its own.
    fn describe(
        &self,
        event: &mut Event,
        op: Op,
        record: &CallRecord,
        context: &Context<'_>,
    ) -> Option<(&'static str, i64)> {
        let facts = op.info();
        let (category, name) = self.names.get(op as usize).copied().unwrap_or(self.app);
        (event.category, event.name) = (category, name);
        event.file = (context.file)(record.file);
        event.result = Some(record.result);
        event.errno = record.errno;
        let mut extra = None;
        let mut other = |name: &'static str, value: i64| {
            extra = extra.or((value != 0).then_some((name, value)));
        };
        let size = record.size.cast_signed();
        match facts.size {
            "" => {}
            "count" | "len" | "length" | "size" | "bufsize" => event.size = Some(size),
            name => other(name, size),
        }
        match facts.offset {
            "" => {}
            "offset" | "address" => event.offset = Some(record.offset),
            name => other(name, record.offset),
        }
        let names_file = facts.arg == "newpath" || facts.class == Class::Copy;
        match facts.arg {
            "" => {}
            _ if names_file && record.arg != SKIPPED_FILE => {
                event.other_file = u32::try_from(record.arg).ok().and_then(context.file);
            }
            _ if names_file => {}
            _ => event.arg = Some(record.arg.cast_signed()),
        }
        extra
    }

    /// Fills in what the program itself said.
    fn annotate(&self, event: &mut Event, said: AppEvent, context: &Context<'_>) {
        let signed =
            |count: Option<u64>| count.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let site = match said {
            AppEvent::Span { site, tags } => {
                event.kind = EventKind::Span;
                (event.epoch, event.step) = (tags.epoch, tags.step);
                (event.sample, event.size) = (signed(tags.sample), signed(tags.size));
                site
            }
            AppEvent::Counter { site, value } => {
                event.kind = EventKind::Counter;
                event.value = Some(value);
                site
            }
            AppEvent::Call { site, facts } => {
                event.file = (context.file)(facts.file);
                (event.offset, event.size) = (facts.offset, signed(facts.size));
                (event.result, event.errno) = (Some(facts.result), facts.errno);
                site
            }
        };
        (event.category, event.name) = (context.site)(site).unwrap_or(self.app);
    }
}

/// Fills in what a summary adds; the rest is text.
fn summarize(event: &mut Event, summary: &Summary, time: Translation) -> String {
    event.kind = EventKind::Summary;
    event.count = summary.calls;
    event.shortest_ns = Some(time.length(summary.shortest));
    event.longest_ns = Some(time.length(summary.longest));
    let window_ns = event.duration_ns;
    event.duration_ns = time.length(summary.total);
    let Summary { errors, least, most, .. } = summary;
    format!(r#"{{"window_ns":{window_ns},"errors":{errors},"least":{least},"most":{most}}}"#)
}

fn intern(known: &mut HashMap<String, u32>, texts: &mut Vec<String>, text: String) -> u32 {
    if let Some(row) = known.get(&text) {
        return *row;
    }
    // No more than slots of a segment.
    let row = texts.len() as u32;
    texts.push(text.clone());
    known.insert(text, row);
    row
}

/// The process that a successful call started.
fn launch(op: Op, record: &CallRecord, event: &Event) -> Option<Launch> {
    let number = |pid: Option<u32>| pid.filter(|pid| *pid > 0);
    let (file, start_ns) = (event.file, event.start_ns);
    match op {
        Op::PosixSpawn | Op::PosixSpawnp => {
            let pid = number(u32::try_from(record.result).ok())?;
            Some(Launch { pid: Some(pid), file, start_ns })
        }
        Op::Execve
        | Op::Execv
        | Op::Execvp
        | Op::Execvpe
        | Op::Execl
        | Op::Execlp
        | Op::Execle
        | Op::Fexecve
        // A child that shares its parent's memory says which process it is.
        | Op::Execveat => {
            Some(Launch { pid: number(u32::try_from(record.arg).ok()), file, start_ns })
        }
        _ => None,
    }
}
