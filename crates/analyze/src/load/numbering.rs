//! Lanes and kinds of events get their numbers in the order in which they are met, and events become rows.

use feedline_trace::{Event, EventKind, Tables};
use rustc_hash::FxHashMap;

use crate::errno::UNKNOWN_ERROR;
use crate::layer::{EventType, Measure, StackLayer};
use crate::row::{Lane, NONE, Row};

/// No event takes longer than a year; a duration that says so is damage.
pub(crate) const LONGEST_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// What was met so far.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) event_types: Vec<EventType>,
    /// The layer of every kind of event.
    pub(crate) layers: Vec<StackLayer>,
    /// Which field holds the bytes, by kind of event.
    measures: Vec<Measure>,
    /// First and last moment of every lane.
    pub(crate) spans: Vec<TimeSpan>,
    /// Events without metadata records.
    pub(crate) events: u64,
    /// Rows that are summaries, and the calls that they cover.
    pub(crate) summaries: [u64; 2],
    /// From the first to the last event, metadata and counters not among them.
    pub(crate) extent: TimeSpan,
    by_lane: FxHashMap<(u32, u32), u32>,
    last_lane: Option<((u32, u32), u32)>,
    by_what: FxHashMap<(u32, u32, u32), u32>,
}

/// From a first to a last moment; empty at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

impl Default for TimeSpan {
    fn default() -> Self {
        Self { start_ns: i64::MAX, end_ns: i64::MIN }
    }
}

impl TimeSpan {
    pub(crate) fn add(&mut self, other: Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start_ns > self.end_ns
    }
}

impl Numbering {
    /// The number of a thread of a process.
    #[inline]
    pub(crate) fn lane(&mut self, process: u32, thread: u32) -> u32 {
        let key = (process, thread);
        if let Some((last, lane)) = self.last_lane
            && last == key
        {
            return lane;
        }
        let lane = *self.by_lane.entry(key).or_insert_with(|| {
            self.lanes.push(Lane { process, thread, ..Lane::default() });
            self.spans.push(TimeSpan::default());
            self.lanes.len() as u32 - 1
        });
        self.last_lane = Some((key, lane));
        lane
    }

    /// The number of a kind of event; `key` identifies category and name.
    #[inline]
    pub(crate) fn event_type<'t>(
        &mut self,
        kind: EventKind,
        key: (u32, u32),
        texts: impl FnOnce() -> (&'t str, &'t str),
    ) -> u32 {
        *self.by_what.entry((kind as u32, key.0, key.1)).or_insert_with(|| {
            let (category, name) = texts();
            let event_type = EventType::new(kind, category, name);
            self.layers.push(event_type.layer);
            self.measures.push(event_type.measure());
            self.event_types.push(event_type);
            self.event_types.len() as u32 - 1
        })
    }

    /// From the first to the last event: of the metadata if there is nothing else.
    pub(crate) fn whole_extent(&self) -> TimeSpan {
        let mut extent = self.extent;
        if extent.is_empty() {
            self.spans.iter().for_each(|span| extent.add(*span));
        }
        if extent.is_empty() { TimeSpan { start_ns: 0, end_ns: 0 } } else { extent }
    }

    /// Counts events of a lane and a kind.
    pub(crate) fn count(&mut self, lane: u32, event_type: u32, events: u64) {
        let of = &self.event_types[event_type as usize];
        let facts = &mut self.lanes[lane as usize];
        facts.events[of.layer as usize] += events;
        if of.kind == EventKind::Span && of.layer == StackLayer::Meta && of.category == "thread" {
            facts.name = Some(of.name.clone());
        }
        if !of.is_metadata() {
            self.events += events;
        }
    }

    /// An event as a row.
    #[inline]
    pub(crate) fn row(&mut self, tables: &Tables, event: &Event, window_ns: Option<u64>) -> Row {
        let lane = self.lane(event.process, event.thread);
        let event_type = self.event_type(event.kind, (event.category, event.name), || {
            (tables.name(event.category), tables.name(event.name))
        });
        let row = row(event, lane, event_type, self.measures[event_type as usize], window_ns);
        self.count(lane, event_type, 1);
        let extent = TimeSpan { start_ns: row.start_ns, end_ns: row.end_ns };
        self.spans[lane as usize].add(extent);
        if self.layers[event_type as usize] != StackLayer::Meta {
            self.extent.add(extent);
        }
        if event.kind == EventKind::Summary {
            self.summaries = [self.summaries[0] + 1, self.summaries[1].saturating_add(event.count)];
        }
        row
    }
}

#[inline]
fn row(event: &Event, lane: u32, event_type: u32, measure: Measure, window_ns: Option<u64>) -> Row {
    let bytes = match measure {
        Measure::Value => event.value.unwrap_or(0.0).to_bits(),
        Measure::Result => event.result.unwrap_or(0).max(0).cast_unsigned(),
        Measure::Size => event.size.unwrap_or(0).max(0).cast_unsigned(),
        Measure::Nothing => 0,
    };
    let (length_ns, offset) = match event.kind {
        // The calls of a summary took their time between its start and its end.
        EventKind::Summary => (
            window_ns.unwrap_or(event.duration_ns),
            i64::try_from(event.duration_ns).unwrap_or(i64::MAX),
        ),
        _ => (event.duration_ns, event.offset.unwrap_or(-1)),
    };
    Row {
        start_ns: event.start_ns,
        end_ns: event.start_ns.saturating_add_unsigned(length_ns),
        bytes,
        offset,
        lane,
        event_type,
        file: event.file.unwrap_or(NONE),
        epoch: small(event.epoch),
        step: small(event.step),
        count: u32::try_from(event.count).unwrap_or(u32::MAX),
        // Other tracers say that a call was refused, not why.
        errno: match (event.errno, event.result) {
            (0, Some(result)) if result < 0 && event.kind == EventKind::Call => UNKNOWN_ERROR,
            (errno, _) => errno,
        },
        kind: event.kind,
    }
}

#[inline]
fn small(number: Option<i64>) -> u32 {
    number.map_or(NONE, |number| u32::try_from(number).unwrap_or(NONE))
}
