//! The slices of a trace that are written, and the runs of those that are not.

use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind};
use crate::perfetto::proto::{Interned, Table, annotate_int, annotate_json, annotate_text};
use crate::perfetto::scan::ThreadKey;
use crate::tables::Tables;

/// A slice, small enough for two million of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) thread: ThreadKey,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) category: u32,
    pub(crate) name: u32,
    pub(crate) is_instant: bool,
    /// The last of its flow.
    pub(crate) ends_flow: bool,
    /// What it is part of, 0 if of nothing.
    pub(crate) flow: u64,
    /// Encoded annotations, in [`Slices::details`].
    details: (u64, u32),
}

/// All slices.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    pub(crate) kept: Vec<Kept>,
    details: Vec<u8>,
}

impl Slices {
    pub(crate) fn details(&self, slice: &Kept) -> &[u8] {
        let from = usize::try_from(slice.details.0).unwrap_or(0);
        &self.details[from..from + slice.details.1 as usize]
    }

    /// Keeps an event as a slice of its own; its number.
    pub(crate) fn keep(
        &mut self,
        interned: &mut Interned,
        tables: &Tables,
        event: &Event,
        extra: Option<&str>,
    ) -> usize {
        let from = self.details.len();
        annotate(&mut self.details, interned, tables, event, extra);
        self.push(interned, event, (tables.name(event.category), tables.name(event.name)), from)
    }

    fn push(
        &mut self,
        interned: &mut Interned,
        event: &Event,
        names: (&str, &str),
        from: usize,
    ) -> usize {
        let small = |number: u64| u32::try_from(number).unwrap_or(0);
        self.kept.push(Kept {
            thread: (event.process, event.thread),
            start_ns: event.start_ns,
            end_ns: event.start_ns.saturating_add_unsigned(event.duration_ns),
            category: small(interned.number(Table::Category, names.0)),
            name: small(interned.number(Table::Name, names.1)),
            is_instant: event.kind == EventKind::Instant,
            ends_flow: false,
            flow: 0,
            details: (from as u64, small((self.details.len() - from) as u64)),
        });
        self.kept.len() - 1
    }

    fn keep_run(&mut self, interned: &mut Interned, tables: &Tables, run: &Run) {
        let from = self.details.len();
        let out = &mut self.details;
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        annotate_int(out, interned, "calls", signed(run.calls));
        annotate_int(out, interned, "bytes", run.bytes);
        annotate_int(out, interned, "total_ns", signed(run.total_ns));
        let event = Event {
            process: run.thread.0,
            thread: run.thread.1,
            start_ns: run.start_ns,
            duration_ns: run.end_ns.abs_diff(run.start_ns),
            ..Event::default()
        };
        let name = run.name.map_or_else(
            || "short calls".to_owned(),
            |name| format!("{} (merged)", tables.name(name)),
        );
        let category = run.category.map_or("merged", |category| tables.name(category));
        self.push(interned, &event, (category, &name), from);
    }
}

fn annotate(
    out: &mut Vec<u8>,
    interned: &mut Interned,
    tables: &Tables,
    event: &Event,
    extra: Option<&str>,
) {
    for (name, file) in [("file", event.file), ("other_file", event.other_file)] {
        if let Some(file) = file {
            annotate_text(out, interned, name, tables.file(file));
        }
    }
    for (name, number) in event.numbers() {
        annotate_int(out, interned, name, number);
    }
    if let Some(extra) = extra {
        annotate_json(out, interned, "extra", extra);
    }
}

/// Short calls of a thread, one after another, between two borders of slices that are kept.
#[derive(Clone, Debug)]
struct Run {
    thread: ThreadKey,
    /// Which pair of borders.
    between: usize,
    /// Which part of the time: a run over all of it would say nothing about when.
    part: i64,
    start_ns: i64,
    end_ns: i64,
    calls: u64,
    bytes: i64,
    total_ns: u64,
    /// The name of all of them, if it is one.
    name: Option<u32>,
    category: Option<u32>,
}

/// Makes runs of short calls.
#[derive(Debug)]
pub(crate) struct Runs {
    longest_run_ns: u64,
    /// Begins and ends of kept slices, in order, by thread.
    borders: FxHashMap<ThreadKey, Vec<i64>>,
    open: FxHashMap<ThreadKey, Run>,
}

impl Runs {
    pub(crate) fn new(slices: &Slices, longest_run_ns: u64) -> Self {
        let mut borders: FxHashMap<ThreadKey, Vec<i64>> = FxHashMap::default();
        for slice in &slices.kept {
            borders.entry(slice.thread).or_default().extend([slice.start_ns, slice.end_ns]);
        }
        for borders in borders.values_mut() {
            borders.sort_unstable();
            borders.dedup();
        }
        Self { longest_run_ns, borders, open: FxHashMap::default() }
    }

    pub(crate) fn add(
        &mut self,
        slices: &mut Slices,
        interned: &mut Interned,
        tables: &Tables,
        event: &Event,
    ) {
        let thread = (event.process, event.thread);
        let borders = self.borders.get(&thread).map_or(&[][..], Vec::as_slice);
        let between = borders.partition_point(|border| *border <= event.start_ns);
        let limit = borders.get(between).copied().unwrap_or(i64::MAX);
        let end_ns = event.start_ns.saturating_add_unsigned(event.duration_ns).min(limit);
        let part = event.start_ns.div_euclid(self.longest_run_ns.cast_signed());
        let bytes = event.result.filter(|result| *result > 0).unwrap_or(0);
        let fresh = Run {
            thread,
            between,
            part,
            start_ns: event.start_ns,
            end_ns,
            calls: event.count,
            bytes,
            total_ns: event.duration_ns,
            name: Some(event.name),
            category: Some(event.category),
        };
        let Some(run) = self.open.get_mut(&thread) else {
            self.open.insert(thread, fresh);
            return;
        };
        if run.between == between && run.part == part {
            run.start_ns = run.start_ns.min(fresh.start_ns);
            run.end_ns = run.end_ns.max(fresh.end_ns);
            run.calls += fresh.calls;
            run.bytes += fresh.bytes;
            run.total_ns += fresh.total_ns;
            run.name = run.name.filter(|name| *name == event.name);
            run.category = run.category.filter(|category| *category == event.category);
        } else {
            let done = std::mem::replace(run, fresh);
            slices.keep_run(interned, tables, &done);
        }
    }

    pub(crate) fn finish(&mut self, slices: &mut Slices, interned: &mut Interned, tables: &Tables) {
        for run in std::mem::take(&mut self.open).into_values() {
            slices.keep_run(interned, tables, &run);
        }
    }
}
