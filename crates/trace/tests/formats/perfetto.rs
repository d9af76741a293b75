//! Perfetto's traces, taken apart by a decoder of their bytes that knows nothing of the writer.

use std::collections::BTreeMap;
use std::path::Path;

use feedline_trace::perfetto::{PerfettoExport, View};
use feedline_trace::{
    Batch, Event, EventKind, EventSink as _, EventSource, Process, ReadStats, Slices, Tables,
    TraceError, convert,
};

use crate::bed::{Bed, Trace};

/// A trace that can be read again and again.
struct Again<'a> {
    trace: &'a Trace,
    at: usize,
}

impl EventSource for Again<'_> {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, TraceError> {
        batch.clear();
        *tables = self.trace.tables.clone();
        let events = &self.trace.batch.events[self.at..];
        batch.events.extend(events.iter().take(1_000));
        batch.texts.clone_from(&self.trace.batch.texts);
        self.at += batch.events.len();
        Ok(!batch.events.is_empty())
    }

    fn read_stats(&self) -> &ReadStats {
        &self.trace.intake
    }
}

#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

type Message = Vec<(u64, Field)>;

fn decode(mut bytes: &[u8]) -> Message {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Fixed(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content.to_vec())
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn number(message: &Message, field: u64) -> Option<u64> {
    message.iter().find_map(|(key, value)| match value {
        Field::Number(number) | Field::Fixed(number) if *key == field => Some(*number),
        _ => None,
    })
}

fn all(message: &Message, field: u64) -> Vec<Vec<u8>> {
    let content = |(key, value): &(u64, Field)| match value {
        Field::Bytes(bytes) if *key == field => Some(bytes.clone()),
        _ => None,
    };
    message.iter().filter_map(content).collect()
}

fn text(message: &Message, field: u64) -> Option<String> {
    all(message, field).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// What a viewer would show.
#[derive(Debug, Default)]
struct Seen {
    /// Names of tracks with those above them.
    tracks: BTreeMap<u64, (String, u64)>,
    /// `host/process/thread: outer > inner [start, end] annotations`
    slices: Vec<String>,
    counters: BTreeMap<String, Vec<(u64, f64)>>,
    instants: Vec<String>,
    /// Names of slices of each flow, in order; the last one ends it.
    flows: BTreeMap<u64, Vec<String>>,
}

fn look(path: &Path) -> Seen {
    let packets: Vec<_> =
        all(&decode(&std::fs::read(path).unwrap()), 1).iter().map(|p| decode(p)).collect();
    let mut seen = Seen::default();
    let mut words: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut events = Vec::new();
    for (order, packet) in packets.iter().enumerate() {
        assert_eq!(number(packet, 10), Some(1));
        assert_eq!(number(packet, 13), Some(if order == 0 { 3 } else { 2 }));
        for interned in all(packet, 12) {
            for (table, entry) in decode(&interned) {
                let Field::Bytes(entry) = entry else { panic!() };
                let entry = decode(&entry);
                words.insert((table, number(&entry, 1).unwrap()), text(&entry, 2).unwrap());
            }
        }
        for track in all(packet, 60).iter().map(|track| decode(track)) {
            let process = all(&track, 3).pop().and_then(|process| text(&decode(&process), 6));
            let thread = all(&track, 4).pop().and_then(|thread| text(&decode(&thread), 5));
            let name = text(&track, 2).or(process).or(thread).unwrap();
            seen.tracks.insert(number(&track, 1).unwrap(), (name, number(&track, 5).unwrap_or(0)));
        }
        for event in all(packet, 11) {
            events.push((number(packet, 8).unwrap(), decode(&event)));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    let mut open: BTreeMap<u64, Vec<(String, u64, String)>> = BTreeMap::new();
    for (at, event) in events {
        let track = number(&event, 11).unwrap();
        let title = seen.title(track);
        let name = number(&event, 10).map(|iid| words[&(2, iid)].clone()).unwrap_or_default();
        for (field, is_last) in [(47, false), (48, true)] {
            if let Some(flow) = number(&event, field) {
                let chain = seen.flows.entry(flow).or_default();
                assert!(chain.last().is_none_or(|last| last != "end"));
                chain.push(name.clone());
                chain.extend(is_last.then(|| "end".to_owned()));
            }
        }
        let mut notes = String::new();
        for note in all(&event, 4).iter().map(|note| decode(note)) {
            let value = match (number(&note, 4), number(&note, 17)) {
                (Some(value), _) => value.cast_signed().to_string(),
                (_, Some(iid)) => words[&(29, iid)].clone(),
                _ => text(&note, 9).unwrap(),
            };
            notes += &format!(" {}={value}", words[&(3, number(&note, 1).unwrap())]);
        }
        match number(&event, 9).unwrap() {
            1 => open.entry(track).or_default().push((name, at, notes)),
            2 => {
                let stack = open.get_mut(&track).unwrap();
                let path: Vec<_> = stack.iter().map(|(name, _, _)| name.as_str()).collect();
                let path = path.join(" > ");
                let (_, start, notes) = stack.pop().expect("an end has a begin");
                seen.slices.push(format!("{title}: {path} [{start}, {at}]{notes}"));
            }
            3 => seen.instants.push(format!("{title}: {name} {at}{notes}")),
            4 => {
                let value = f64::from_bits(number(&event, 44).unwrap());
                seen.counters.entry(title).or_default().push((at, value));
            }
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every begin has an end");
    seen
}

impl Seen {
    fn title(&self, track: u64) -> String {
        let (name, parent) = &self.tracks[&track];
        if *parent == 0 { name.clone() } else { format!("{}/{name}", self.title(*parent)) }
    }
}

fn trace() -> Trace {
    let mut trace = Trace::default();
    for (host, pid, rank) in [("n1", 10, 0), ("n2", 10, 1)] {
        let arguments = vec!["/bin/train".to_owned(), "x".to_owned()];
        trace.tables.processes.push(Process {
            host: host.into(),
            pid,
            rank: Some(rank),
            arguments,
            ..Process::default()
        });
    }
    trace
}

fn add<'a>(
    trace: &'a mut Trace,
    name: (&str, &str),
    start_ns: i64,
    duration_ns: u64,
) -> &'a mut Event {
    let category = trace.tables.name_row(name.0);
    let kind = if name.0 == "POSIX" { EventKind::Call } else { EventKind::Span };
    let name = trace.tables.name_row(name.1);
    trace.batch.events.push(Event {
        thread: 10,
        start_ns,
        duration_ns,
        kind,
        category,
        name,
        count: 1,
        ..Event::default()
    });
    trace.batch.events.last_mut().unwrap()
}

fn written(trace: &Trace, view: View) -> (Seen, Slices) {
    let bed = Bed::new();
    let path = bed.path("t.pftrace");
    let open = || -> Result<Box<dyn EventSource + '_>, TraceError> {
        Ok(Box::new(Again { trace, at: 0 }))
    };
    let mut export = PerfettoExport::new(&path, view);
    convert(open, &mut export).unwrap();
    let exported = export.output().slices.unwrap();
    assert_eq!(bed.names("."), ["t.pftrace"]);
    (look(&path), exported)
}

const MS: i64 = 1_000_000;

#[test]
fn calls_nest_below_their_threads_and_what_overlaps_has_a_lane() {
    let mut trace = trace();
    let file = Some(trace.tables.file_row("/d/a"));
    // Children come before their parents, as they end before them.
    let read = add(&mut trace, ("POSIX", "read"), 2 * MS, 1_000_000);
    (read.file, read.size, read.result, read.errno) = (file, Some(64), Some(-1), 5);
    add(&mut trace, ("app", "step"), MS, 9_000_000);
    add(&mut trace, ("app", "other"), 5 * MS, 8_000_000).process = 1;
    let late = add(&mut trace, ("app", "late"), 5 * MS, 9_000_000);
    late.thread = 10;
    add(&mut trace, ("thread", "rank 0 main"), MS, 0);
    let moment = add(&mut trace, ("app", "moment"), 3 * MS, 0);
    moment.kind = EventKind::Instant;
    let (seen, exported) = written(&trace, View::default());
    assert_eq!(
        seen.slices,
        [
            "host n1/rank 0 train x [n1 10]/rank 0 main: step > read [2000000, 3000000] file=/d/a size=64 result=-1 errno=5",
            "host n1/rank 0 train x [n1 10]/rank 0 main: step [1000000, 10000000]",
            "host n2/rank 1 train x [n2 10]/thread 10: other [5000000, 13000000]",
            "host n1/rank 0 train x [n1 10]/rank 0 main/overlapping 1: late [5000000, 14000000]",
        ]
    );
    assert_eq!(seen.instants, ["host n1/rank 0 train x [n1 10]/rank 0 main: moment 3000000"]);
    assert_eq!(exported, Slices { slices: 5, merged: 0 });
}

#[test]
fn counters_cover_every_call_and_counters_of_the_program_are_kept() {
    let mut trace = trace();
    for call in 0..10 {
        add(&mut trace, ("POSIX", "pread64"), call * MS, 1_000_000).result = Some(1_000);
    }
    let queue = add(&mut trace, ("app", "queue"), 4 * MS, 0);
    (queue.kind, queue.value) = (EventKind::Counter, Some(2.5));
    let view = View { min_duration_ns: 2_000_000, ..View::default() };
    let (seen, _) = written(&trace, view);
    assert!(seen.slices.is_empty());
    let process = "host n1/rank 0 train x [n1 10]";
    assert_eq!(seen.counters[&format!("{process}/bytes read")], [(0, 1e6), (10_000_000, 0.0)]);
    assert_eq!(seen.counters[&format!("{process}/calls in flight")], [(0, 1.0), (10_000_000, 0.0)]);
    assert_eq!(seen.counters[&format!("{process}/queue")], [(4_000_000, 2.5)]);
    assert_eq!(seen.counters.len(), 3);
}

#[test]
fn short_calls_are_merged_into_runs_within_what_they_belong_to() {
    let mut trace = trace();
    // Two steps of a millisecond, each with 4000 reads of 100 ns; one long read in the second.
    for step in 0..2 {
        for call in 0..4_000 {
            add(&mut trace, ("POSIX", "read"), step * MS + call * 200, 100).result = Some(10);
        }
        add(&mut trace, ("app", "step"), step * MS, 1_000_000);
    }
    add(&mut trace, ("POSIX", "read"), MS + 900_000, 50_000);
    let (seen, exported) = written(&trace, View { max_events: 1_000, ..View::default() });
    let thread = "host n1/rank 0 train x [n1 10]/thread 10";
    // A run takes at most 2 ms / 250 of the thread's time.
    let first =
        format!("{thread}: step > read (merged) [0, 8100] calls=41 bytes=410 total_ns=4100");
    assert_eq!(seen.slices[0], first);
    let whole: Vec<_> = seen.slices.iter().filter(|slice| !slice.contains("merged")).collect();
    let expected =
        ["step [0, 1000000]", "step > read [1900000, 1950000]", "step [1000000, 2000000]"];
    assert_eq!(
        whole,
        expected.map(|slice| format!("{thread}: {slice}")).iter().collect::<Vec<_>>()
    );
    let merged: Vec<_> = seen.slices.iter().filter(|slice| slice.contains("merged")).collect();
    assert!(merged.iter().all(|slice| slice.contains(": step > read (merged) [")));
    let sum = |key: &str| -> i64 {
        let value = |slice: &&String| {
            slice.split(key).nth(1).unwrap().split(' ').next().unwrap().parse::<i64>()
        };
        merged.iter().map(|slice| value(slice).unwrap()).sum()
    };
    assert_eq!((sum("calls="), sum("bytes="), sum("total_ns=")), (8_000, 80_000, 800_000));
    assert_eq!(merged.len(), 201);
    assert_eq!(exported, Slices { slices: 204, merged: 8_000 });
    let bytes = &seen.counters["host n1/rank 0 train x [n1 10]/bytes read"];
    assert_eq!((bytes[0].0, bytes[0].1.round()), (0, 40_000_000.0));
}

#[test]
fn a_view_shows_a_part() {
    let mut trace = trace();
    for second in 0..10 {
        add(&mut trace, ("app", "a"), 1_000 * MS * second, 1_000).process =
            u32::from(second % 2 == 1);
    }
    let starts = |view: View| -> Vec<String> {
        written(&trace, view)
            .0
            .slices
            .iter()
            .map(|slice| slice.split([' ', '[', ',']).rev().nth(2).unwrap().to_owned())
            .collect()
    };
    let window = View { window: "2..4.5".parse().unwrap(), ..View::default() };
    assert_eq!(starts(window.clone()), ["2000000000", "3000000000", "4000000000"]);
    let both = View { ranks: Some("1".parse().unwrap()), ..window };
    assert_eq!(starts(both.clone()), ["3000000000"]);
    assert_eq!(written(&trace, both).0.tracks.len(), 3);
}

#[test]
fn steps_and_requests_flow() {
    let mut trace = trace();
    for (name, start, step) in
        [("item", 1, 1), ("item", 2, 2), ("fetch.iter", 3, 1), ("compute", 4, 1), ("alone", 5, 9)]
    {
        let event = add(&mut trace, ("app", name), start * MS, 1_000);
        (event.epoch, event.step) = (Some(1), Some(step));
    }
    // The same step of another rank is another flow.
    let other = add(&mut trace, ("app", "compute"), 6 * MS, 1_000);
    (other.process, other.epoch, other.step) = (1, Some(1), Some(1));
    for (name, start) in [
        ("io_uring.submitted", 7),
        ("io_uring.completed", 8),
        ("io_uring.submitted", 9),
        ("io_uring.completed", 9),
    ] {
        add(&mut trace, ("IO_URING", name), start * MS, 0).arg = Some(77);
    }
    let (seen, _) = written(&trace, View::default());
    let mut flows: Vec<_> = seen.flows.values().map(|names| names.join(" ")).collect();
    flows.sort();
    let request = "io_uring.submitted io_uring.completed end";
    assert_eq!(flows, [request, request, "item fetch.iter compute end"]);
}

#[test]
fn an_empty_trace_is_one_too() {
    let (seen, exported) = written(&Trace::default(), View::default());
    assert!(seen.tracks.is_empty());
    assert_eq!(exported, Slices::default());
}
