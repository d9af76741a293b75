//! Writes a large trace folder whose content is known, to measure what reads it.
//!
//! `large DIR EVENTS`: a training of four ranks with four readers each, on a simulated clock. Readers open,
//! read and close files and preprocess samples; ranks wait for batches, compute and meet. Rows come as a
//! drained recording has them: a segment of one thread after the other. Prints what is in it, as JSON.

#![allow(clippy::print_stdout, reason = "a program of measurements")]

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use feedline_trace::{Batch, End, Event, EventKind, EventSink as _, FolderWriter, Process, Tables};

const RANKS: usize = 4;
const READERS: usize = 4;
const BATCH: u64 = 32;
const READS: i64 = 8;
const READ_BYTES: i64 = 128 * 1024;
/// A power of two: an odd number times the row of a file is a shuffled order.
const FILES: u64 = 64 * 1024;
const STEPS_AN_EPOCH: u64 = FILES / RANKS as u64 / BATCH;
/// Batches that readers of a rank are ahead of it.
const AHEAD: usize = 2 * READERS;
/// Events of a recorder's segment.
const SEGMENT: usize = 4092;
/// Events that are handed over at once.
const HANDED: usize = 8 * SEGMENT;
const START_NS: i64 = 1_800_000_000_000_000_000;

/// Rows of the words, in the order of their declaration.
#[derive(Clone, Copy)]
enum Word {
    Fetch,
    Compute,
    Meet,
    Train,
    Batch,
    Item,
    Preprocess,
    Open,
    Read,
    Close,
}

const WORDS: [(Word, EventKind, &str, &str); 10] = [
    (Word::Fetch, EventKind::Span, "dataloader", "fetch.iter"),
    (Word::Compute, EventKind::Span, "compute", "compute"),
    (Word::Meet, EventKind::Span, "comm", "all_reduce"),
    (Word::Train, EventKind::Span, "pipeline", "train"),
    (Word::Batch, EventKind::Span, "dataloader", "batch"),
    (Word::Item, EventKind::Span, "data", "item"),
    (Word::Preprocess, EventKind::Span, "data", "preprocess"),
    (Word::Open, EventKind::Call, "POSIX", "open"),
    (Word::Read, EventKind::Call, "POSIX", "read"),
    (Word::Close, EventKind::Call, "POSIX", "close"),
];

/// A thread, and what it recorded since its last whole segment.
struct Lane {
    process: u32,
    thread: u32,
    segment: Vec<Event>,
}

/// Where events go.
struct Recording {
    writer: FolderWriter,
    tables: Tables,
    batch: Batch,
    lanes: Vec<Lane>,
    /// By word: an event of it, to be filled.
    drafts: Vec<Event>,
    counts: [u64; WORDS.len()],
    random: u64,
}

/// A rank's clock and those of its readers.
#[derive(Clone, Default)]
struct Rank {
    now_ns: i64,
    free_ns: [i64; READERS],
    /// When it took its latest batches.
    taken_ns: VecDeque<i64>,
}

impl Recording {
    fn create(dir: &Path) -> Self {
        let mut tables = Tables::default();
        let drafts = WORDS.map(|(_, kind, category, name)| Event {
            kind,
            category: tables.name_row(category),
            name: tables.name_row(name),
            count: 1,
            ..Event::default()
        });
        for file in 0..FILES {
            tables.file_row(&format!("/data/train/part-{:03}/{file:08}.bin", file / 1024));
        }
        let mut recording = Self {
            writer: FolderWriter::create(dir).expect("a folder that can be written"),
            tables,
            batch: Batch::default(),
            lanes: Vec::new(),
            drafts: drafts.to_vec(),
            counts: [0; WORDS.len()],
            random: 0x9e37_79b9_7f4a_7c15,
        };
        for rank in 0..RANKS {
            recording.add_process(rank as u32);
        }
        recording
    }

    /// A process with one rank, whose threads say their names.
    fn add_process(&mut self, rank: u32) {
        let pid = 4000 + 100 * rank;
        let process = self.tables.add_process(Process {
            host: format!("node{}", rank / 2),
            pid,
            rank: Some(rank),
            program: "/usr/bin/train".to_owned(),
            arguments: vec!["train".to_owned()],
            folder: "/".to_owned(),
            start_ns: START_NS,
            is_traced: true,
            ..Process::default()
        });
        for number in 0..=READERS as u32 {
            let name = match number {
                0 => format!("rank {rank}"),
                _ => format!("rank {rank} reader {}", number - 1),
            };
            let event = Event {
                process,
                thread: pid + number,
                start_ns: START_NS,
                kind: EventKind::Span,
                category: self.tables.name_row("thread"),
                name: self.tables.name_row(&name),
                count: 1,
                ..Event::default()
            };
            self.lanes.push(Lane { process, thread: pid + number, segment: vec![event] });
        }
    }

    /// A time around a mean: from half of it on, and one of 256 takes 20 times as long.
    fn around(&mut self, mean_ns: i64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let drawn = mean_ns / 2 + mean_ns * (self.random >> 48).cast_signed() / (1 << 16);
        if self.random & 0xff == 0 { drawn * 20 } else { drawn }
    }

    /// Records an event; its end.
    fn add(&mut self, lane: usize, word: Word, times_ns: (i64, i64), facts: Event) -> i64 {
        let draft = self.drafts[word as usize];
        self.counts[word as usize] += 1;
        let lane = &mut self.lanes[lane];
        lane.segment.push(Event {
            process: lane.process,
            thread: lane.thread,
            start_ns: times_ns.0,
            duration_ns: (times_ns.1 - times_ns.0).cast_unsigned(),
            kind: draft.kind,
            category: draft.category,
            name: draft.name,
            count: 1,
            ..facts
        });
        if lane.segment.len() == SEGMENT {
            take(lane, &mut self.batch);
            self.hand_over(HANDED);
        }
        times_ns.1
    }

    fn hand_over(&mut self, at_least: usize) {
        if self.batch.events.len() >= at_least {
            self.writer.write(&self.tables, &self.batch).expect("a folder that can be written");
            self.batch.clear();
        }
    }

    /// A reader's work on a sample.
    fn item(&mut self, lane: usize, from_ns: i64, file: u64, tags: Event) -> i64 {
        let file = Event { file: Some(file as u32), ..Event::default() };
        let mut at_ns = from_ns + 300;
        let open = Event { result: Some(7), arg: Some(0o2000000), ..file };
        let took_ns = self.around(60_000);
        at_ns = self.add(lane, Word::Open, (at_ns, at_ns + took_ns), open);
        for number in 0..READS {
            let offset = Some(number * READ_BYTES);
            let read = Event { offset, size: Some(READ_BYTES), result: Some(READ_BYTES), ..file };
            let took_ns = self.around(50_000);
            at_ns = self.add(lane, Word::Read, (at_ns + 400, at_ns + 400 + took_ns), read);
        }
        let took_ns = self.around(6_000);
        let close = Event { result: Some(0), ..file };
        at_ns = self.add(lane, Word::Close, (at_ns + 200, at_ns + 200 + took_ns), close);
        let took_ns = self.around(300_000);
        at_ns = self.add(lane, Word::Preprocess, (at_ns + 500, at_ns + 500 + took_ns), tags);
        let item = Event { size: Some(READS * READ_BYTES), ..tags };
        self.add(lane, Word::Item, (from_ns, at_ns + 300), item)
    }

    /// A rank's turn in a step, up to the meeting of all.
    fn turn(&mut self, number: usize, rank: &mut Rank, epoch: u64, step: u64) {
        let reader = (step % READERS as u64) as usize;
        let consumer = number * (1 + READERS);
        let lane = consumer + 1 + reader;
        let tags = Event {
            epoch: Some(epoch.cast_signed()),
            step: Some(step.cast_signed() + 1),
            ..Event::default()
        };
        let room_ns = if rank.taken_ns.len() == AHEAD { rank.taken_ns.pop_front() } else { None };
        let start_ns = rank.free_ns[reader].max(room_ns.unwrap_or(0)) + 2_000;
        let mut at_ns = start_ns + 1_000;
        for sample in 0..BATCH {
            let place = (number as u64 * STEPS_AN_EPOCH + step) * BATCH + sample;
            let file = place.wrapping_mul(40_503).wrapping_add(epoch * 7_919) % FILES;
            let tags = Event { sample: Some(file.cast_signed()), ..tags };
            at_ns = self.item(lane, at_ns + 800, file, tags);
        }
        let sized = Event { size: Some(BATCH.cast_signed() * READS * READ_BYTES), ..tags };
        let ready_ns = self.add(lane, Word::Batch, (start_ns, at_ns + 30_000), sized);
        rank.free_ns[reader] = ready_ns;
        let fetched_ns = rank.now_ns.max(ready_ns) + 8_000;
        self.add(consumer, Word::Fetch, (rank.now_ns, fetched_ns), sized);
        rank.taken_ns.push_back(fetched_ns);
        let computed_ns = fetched_ns + 1_000 + 5_000_000;
        rank.now_ns = self.add(consumer, Word::Compute, (fetched_ns + 1_000, computed_ns), tags);
    }

    /// All ranks wait for the last.
    fn meet(&mut self, ranks: &mut [Rank], epoch: u64, step: u64) {
        let last_ns = ranks.iter().map(|rank| rank.now_ns).max().unwrap_or(START_NS);
        for (number, rank) in ranks.iter_mut().enumerate() {
            let tags = Event {
                epoch: Some(epoch.cast_signed()),
                step: Some(step.cast_signed() + 1),
                ..Event::default()
            };
            let times_ns = (rank.now_ns + 500, last_ns + 40_000);
            rank.now_ns = self.add(number * (1 + READERS), Word::Meet, times_ns, tags) + 500;
        }
    }

    fn events(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn finish(mut self, end_ns: i64) -> serde_json::Value {
        for lane in &mut self.lanes {
            take(lane, &mut self.batch);
        }
        self.hand_over(1);
        for process in &mut self.tables.processes {
            (process.end_ns, process.end) = (Some(end_ns), End::Exited(0));
        }
        self.writer.finish(&self.tables).expect("a folder that can be written");
        let names = WORDS.iter().map(|(word, _, _, name)| (*name, self.counts[*word as usize]));
        serde_json::json!({
            "events": self.events(),
            "names": names.collect::<BTreeMap<_, _>>(),
            "steps": self.counts[Word::Fetch as usize],
            "bytes": self.writer.written().bytes,
        })
    }
}

/// The segment of a thread, in the order of starts, what encloses others first.
fn take(lane: &mut Lane, batch: &mut Batch) {
    lane.segment.sort_by_key(|event| (event.start_ns, std::cmp::Reverse(event.duration_ns)));
    batch.events.append(&mut lane.segment);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, wanted] = &arguments[..] else { panic!("usage: large DIR EVENTS") };
    let wanted: u64 = wanted.parse().expect("a number of events");
    let mut recording = Recording::create(Path::new(dir));
    let mut ranks = vec![Rank { now_ns: START_NS + 1_000_000, ..Rank::default() }; RANKS];
    for epoch in 1.. {
        let begin_ns: Vec<i64> = ranks.iter().map(|rank| rank.now_ns).collect();
        for rank in &mut ranks {
            rank.now_ns += 1_000;
            (rank.free_ns, rank.taken_ns) = ([rank.now_ns + 200_000; READERS], VecDeque::new());
        }
        for step in 0..STEPS_AN_EPOCH {
            if recording.events() >= wanted {
                break;
            }
            for (number, rank) in ranks.iter_mut().enumerate() {
                recording.turn(number, rank, epoch, step);
            }
            recording.meet(&mut ranks, epoch, step);
        }
        for (number, rank) in ranks.iter_mut().enumerate() {
            let train = Event { epoch: Some(epoch.cast_signed()), ..Event::default() };
            let times_ns = (begin_ns[number], rank.now_ns);
            rank.now_ns =
                recording.add(number * (1 + READERS), Word::Train, times_ns, train) + 1_000;
        }
        if recording.events() >= wanted {
            break;
        }
    }
    let end_ns = ranks.iter().map(|rank| rank.now_ns).max().unwrap_or(START_NS) + 1_000_000;
    println!("{}", recording.finish(end_ns));
}
