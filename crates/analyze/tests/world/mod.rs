//! Random traces, and all that is in them in the words of the test.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use feedline_analyze::StackLayer;
use feedline_trace::EventKind;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::draft::brute::{Interval, self_ns};
use crate::draft::{At, Draft, MS, S};

/// Ranks of a random trace.
pub(crate) const RANKS: usize = 4;

/// What a call does, as far as the numbers here tell calls apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOp {
    Open,
    Close,
    Stat,
    Read,
    Write,
    Other,
}

/// Something that may happen.
type EventType = (&'static str, &'static str, StackLayer);

const CONSUMER: [EventType; 6] = [
    ("dataloader", "fetch.iter", StackLayer::Fetch),
    ("compute", "compute", StackLayer::Compute),
    ("comm", "all_reduce", StackLayer::Communication),
    ("checkpoint", "capture", StackLayer::Checkpoint),
    ("pipeline", "train", StackLayer::Pipeline),
    ("mine", "phase", StackLayer::Other),
];
const WORKER: [EventType; 6] = [
    ("dataloader", "batch", StackLayer::Batch),
    ("data", "item", StackLayer::Sample),
    ("reader", "NPZReader.parse", StackLayer::Decode),
    ("data", "preprocess", StackLayer::Transform),
    ("dataloader", "collate", StackLayer::Collate),
    ("mine", "phase", StackLayer::Other),
];
const CALLS: [(&str, &str, StackLayer, FileOp); 9] = [
    ("POSIX", "open64", StackLayer::Storage, FileOp::Open),
    ("POSIX", "close", StackLayer::Storage, FileOp::Close),
    ("POSIX", "stat", StackLayer::Storage, FileOp::Stat),
    ("POSIX", "pread64", StackLayer::Storage, FileOp::Read),
    ("POSIX", "read", StackLayer::Storage, FileOp::Read),
    ("POSIX", "pwrite64", StackLayer::Storage, FileOp::Write),
    ("POSIX", "fsync", StackLayer::Storage, FileOp::Other),
    ("S3", "get", StackLayer::ObjectStore, FileOp::Read),
    ("S3", "put", StackLayer::ObjectStore, FileOp::Write),
];

/// An event, in the words of this program.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) rank: usize,
    pub(crate) lane: At,
    pub(crate) what: (&'static str, &'static str),
    pub(crate) layer: StackLayer,
    pub(crate) op: Option<FileOp>,
    pub(crate) time: Interval,
    pub(crate) bytes: u64,
    pub(crate) file: String,
    pub(crate) offset: Option<i64>,
    pub(crate) errno: u16,
}

impl Known {
    pub(crate) fn ns(&self) -> u64 {
        self.time.1.abs_diff(self.time.0)
    }

    pub(crate) fn is_io(&self) -> bool {
        self.op.is_some()
    }

    pub(crate) fn is_read(&self) -> bool {
        self.op == Some(FileOp::Read)
    }
}

/// A random trace.
pub(crate) struct World {
    random: StdRng,
    pub(crate) draft: Draft,
    pub(crate) events: Vec<Known>,
    pub(crate) counters: Vec<(i64, f64)>,
    /// Where the last read or write of a file by a thread ended.
    ends: BTreeMap<(At, String), i64>,
    /// Whether all reads say where they read.
    pub(crate) is_placed: bool,
    /// When the first event began, once somebody asked.
    first_ns: OnceCell<i64>,
}

impl World {
    /// Four ranks on two machines whose processes have the same numbers; each has a thread that only reads
    /// and writes, and two workers that are processes of their own.
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self {
            random: StdRng::seed_from_u64(seed),
            draft: Draft::default(),
            events: Vec::new(),
            counters: Vec::new(),
            ends: BTreeMap::new(),
            is_placed: seed.is_multiple_of(2),
            first_ns: OnceCell::new(),
        };
        for rank in 0..RANKS {
            let host = format!("node{}", rank % 2);
            let pid = 500 + 10 * (rank / 2) as u32;
            let main = world.draft.python(&host, pid);
            world.draft.of(main).rank = Some(rank as u32);
            let consumer = At { process: main, thread: pid };
            world.fill(rank, consumer, Some(&CONSUMER));
            // Whoever fetches is a consumer, so each of them has to.
            world.span(rank, consumer, &CONSUMER[0], (201 * S, 201 * S + 5 * MS));
            world.fill(rank, At { process: main, thread: pid + 1 }, None);
            for worker in 2..4 {
                let process = world.draft.python(&host, pid + worker);
                let of = world.draft.of(process);
                (of.parent, of.parent_pid) = (Some(main), Some(pid));
                world.fill(rank, At { process, thread: pid + worker }, Some(&WORKER));
            }
        }
        for _ in 0..200 {
            let (at_ns, value) = (world.random.random_range(S..190 * S), world.random.random());
            let at = At { process: 0, thread: 500 };
            let event = world.draft.span(at, ("queue", "depth"), (at_ns, at_ns));
            (event.kind, event.value) = (EventKind::Counter, Some(value));
            world.counters.push((at_ns, value));
        }
        world
    }

    /// Events of a thread over 200 seconds: mostly of a millisecond, some of many seconds.
    fn fill(&mut self, rank: usize, at: At, spans: Option<&[EventType]>) {
        let mut now_ns = self.random.random_range(0..2 * S);
        while now_ns < 199 * S {
            let length_ns = match self.random.random_range(0..20) {
                0 => 0,
                1 => self.random.random_range(1..20 * S),
                2..6 => self.random.random_range(1..2 * S),
                _ => self.random.random_range(1..2 * MS),
            };
            let time = (now_ns, now_ns + length_ns);
            self.event(rank, at, spans, time, 0);
            now_ns = time.1 + self.random.random_range(0..2 * S);
        }
    }

    fn event(
        &mut self,
        rank: usize,
        at: At,
        spans: Option<&[EventType]>,
        time: Interval,
        depth: u32,
    ) {
        // Calls of workers are parts of their work.
        let is_worker = spans.is_some_and(|spans| spans[0].2 == StackLayer::Batch);
        let may_call = depth > 0 || !is_worker;
        let Some(spans) = spans.filter(|_| !may_call || self.random.random_bool(0.6)) else {
            return self.call(rank, at, time);
        };
        let what = spans[self.random.random_range(0..spans.len())];
        // What lies below a span of the program's own is no part of loading if nothing else says so.
        let what =
            if depth == 0 && is_worker && what.2 == StackLayer::Other { spans[0] } else { what };
        self.span(rank, at, &what, time);
        let mut from_ns = time.0 + 1;
        while depth < 4 && time.1 - from_ns > 3 && self.random.random_bool(0.7) {
            let from = self.random.random_range(from_ns..time.1 - 1);
            let to = self.random.random_range(from..time.1);
            self.event(rank, at, Some(spans), (from, to), depth + 1);
            from_ns = to;
        }
    }

    fn span(&mut self, rank: usize, lane: At, what: &EventType, time: Interval) {
        let bytes =
            if what.2 == StackLayer::Sample { self.random.random_range(1..1_000_000) } else { 0 };
        let event = self.draft.span(lane, (what.0, what.1), time);
        event.size = (bytes > 0).then_some(bytes);
        self.events.push(Known {
            rank,
            lane,
            what: (what.0, what.1),
            layer: what.2,
            op: None,
            time,
            bytes: bytes.cast_unsigned(),
            file: String::new(),
            offset: None,
            errno: 0,
        });
    }

    fn call(&mut self, rank: usize, lane: At, time: Interval) {
        let (category, name, layer, op) = CALLS[self.random.random_range(0..CALLS.len())];
        let number = self.random.random_range(0..4);
        let file = match (layer, op, name) {
            (StackLayer::ObjectStore, FileOp::Read, _) => format!("s3://bucket/in/{number}"),
            (StackLayer::ObjectStore, ..) => format!("s3://bucket/out/{number}"),
            (_, FileOp::Write | FileOp::Other, _) => format!("/out/{number}"),
            (_, _, "read") => format!("/data/b/{number}"),
            _ => format!("/data/a/{number}"),
        };
        let moves = matches!(op, FileOp::Read | FileOp::Write);
        let size = 1_i64 << self.random.random_range(0..22);
        let bytes = if moves { self.random.random_range(1..=size) } else { 0 };
        let has_place = moves && (self.is_placed || name == "pread64" || name == "pwrite64");
        let last = self.ends.get(&(lane, file.clone())).copied();
        let goes_on = last.filter(|_| self.random.random_bool(0.5));
        let anywhere = self.random.random_range(0..600) * 4096;
        let offset = has_place.then_some(goes_on.unwrap_or(anywhere));
        if let Some(offset) = offset {
            self.ends.insert((lane, file.clone()), offset + bytes);
        }
        let fails = matches!(op, FileOp::Open | FileOp::Stat) && self.random.random_bool(0.2);
        let errno = if fails { [2, 13][self.random.random_range(0..2)] } else { 0 };
        let event = self.draft.call(lane, (category, name), time, &file);
        (event.offset, event.errno) = (offset, errno);
        if moves {
            (event.size, event.result) = (Some(bytes), Some(bytes));
        }
        if fails {
            event.result = Some(-1);
        }
        let (what, bytes) = ((category, name), bytes.cast_unsigned());
        let op = Some(op);
        self.events.push(Known { rank, lane, what, layer, op, time, bytes, file, offset, errno });
    }

    pub(crate) fn of(&self, is_meant: impl Fn(&Known) -> bool) -> Vec<&Known> {
        self.events.iter().filter(|event| is_meant(event)).collect()
    }

    pub(crate) fn times(&self, is_meant: impl Fn(&Known) -> bool) -> Vec<Interval> {
        self.events.iter().filter(|event| is_meant(event)).map(|event| event.time).collect()
    }

    pub(crate) fn first_ns(&self) -> i64 {
        *self.first_ns.get_or_init(|| self.events.iter().map(|event| event.time.0).min().unwrap())
    }

    pub(crate) fn last_ns(&self) -> i64 {
        self.events.iter().map(|event| event.time.1).max().unwrap()
    }

    /// Self time of all events, in their order.
    pub(crate) fn self_ns(&self) -> Vec<u64> {
        let mut lanes: BTreeMap<At, Vec<usize>> = BTreeMap::new();
        for (row, event) in self.events.iter().enumerate() {
            lanes.entry(event.lane).or_default().push(row);
        }
        let mut all = vec![0; self.events.len()];
        for rows in lanes.values() {
            let times: Vec<Interval> = rows.iter().map(|row| self.events[*row].time).collect();
            for (row, ns) in rows.iter().zip(self_ns(&times)) {
                all[*row] = ns;
            }
        }
        all
    }
}
