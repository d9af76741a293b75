//! Writes a Perfetto trace.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::event::{Batch, Event, EventKind};
use crate::flow::{self, EventSink, Output};
use crate::partial_file::PartialStream;
use crate::perfetto::counters::{Bins, RATES, Traffic};
use crate::perfetto::flows::Flows;
use crate::perfetto::lanes::{Act, Stay, lay_out};
use crate::perfetto::proto::{self, BEGIN, INSTANT, Packets};
use crate::perfetto::scan::{ThreadKey, TraceScan};
use crate::perfetto::slices::{Runs, Slices};
use crate::tables::Tables;

/// A Perfetto trace that is being written. It takes the events of a trace once, or twice if calls have
/// to be merged: until [`is_complete`](EventSink::is_complete) says so.
#[derive(Debug)]
pub(super) struct PerfettoSink {
    file: PartialStream,
    packets: Packets,
    scan: TraceScan,
    shortest_kept_ns: u64,
    slices: Slices,
    flows: Flows,
    runs: Option<Runs>,
    bins: Bins,
    traffic: FxHashMap<u32, Traffic>,
    tracks: Tracks,
    merged: u64,
    is_complete: bool,
}

/// Numbers of tracks.
#[derive(Debug, Default)]
struct Tracks {
    last: u64,
    hosts: FxHashMap<String, u64>,
    processes: FxHashMap<u32, (u64, u32)>,
    threads: FxHashMap<ThreadKey, u64>,
    counters: FxHashMap<(u32, u32), u64>,
}

impl PerfettoSink {
    /// Writes what a complete scan has seen.
    pub(super) fn new(path: &Path, scan: TraceScan) -> Result<Self> {
        let (origin, end) = (scan.origin_ns.min(scan.end_ns), scan.end_ns.max(scan.origin_ns));
        let window = scan.view.window;
        let at = |side: Option<i64>, otherwise| {
            side.map_or(otherwise, |ns| scan.origin_ns.saturating_add(ns))
        };
        let is_empty = scan.threads.is_empty();
        let (start_ns, end_ns) = if is_empty {
            (0, 0)
        } else {
            (at(window.start_ns, origin), at(window.end_ns, end).min(end))
        };
        let mut sink = Self {
            file: PartialStream::create(path)?,
            packets: Packets::default(),
            shortest_kept_ns: scan.shortest_kept_ns(),
            bins: Bins::new(start_ns, end_ns.max(start_ns), scan.processes.len()),
            scan,
            slices: Slices::default(),
            flows: Flows::default(),
            runs: None,
            traffic: FxHashMap::default(),
            tracks: Tracks::default(),
            merged: 0,
            is_complete: false,
        };
        sink.describe()?;
        Ok(sink)
    }

    /// The tree of hosts, processes and threads.
    fn describe(&mut self) -> Result<()> {
        let mut threads: Vec<ThreadKey> =
            self.scan.threads.keys().copied().filter(|key| self.scan.shows_thread(*key)).collect();
        threads.sort_unstable();
        let mut pids = Pids::new(&self.scan);
        for key in threads {
            if !self.tracks.processes.contains_key(&key.0) {
                self.describe_process(key.0, &mut pids);
            }
            self.describe_thread(key, &mut pids);
            self.file.flush()?;
        }
        Ok(())
    }

    fn describe_process(&mut self, row: u32, pids: &mut Pids) {
        let Some(process) = self.scan.processes.get(row as usize) else { return };
        let (title, rank, host) = (process.title(), process.rank, process.host.clone());
        let (command, real_pid) = (process.arguments.clone(), process.pid);
        let parent = self.host(&host);
        let pid = pids.of(row, real_pid);
        let uuid = self.tracks.next();
        let mut about = Vec::new();
        proto::number(&mut about, 1, u64::from(pid));
        for word in &command {
            proto::bytes(&mut about, 2, word.as_bytes());
        }
        proto::bytes(&mut about, 6, title.as_bytes());
        proto::bytes(&mut about, 8, format!("host {host}, pid {real_pid}").as_bytes());
        let mut track = Vec::new();
        proto::number(&mut track, 1, uuid);
        proto::number(&mut track, 5, parent);
        proto::bytes(&mut track, 3, &about);
        proto::number(&mut track, 12, u64::from(rank.unwrap_or(row)));
        self.packets.track(self.file.buffer(), &track);
        self.tracks.processes.insert(row, (uuid, pid));
    }

    fn describe_thread(&mut self, key: ThreadKey, pids: &mut Pids) {
        let Some((parent, pid)) = self.tracks.processes.get(&key.0).copied() else { return };
        let name = self.scan.threads.get(&key).and_then(|thread| thread.name.clone());
        let uuid = self.tracks.next();
        let mut about = Vec::new();
        proto::number(&mut about, 1, u64::from(pid));
        proto::number(&mut about, 2, u64::from(pids.thread(key, pid, &self.scan)));
        proto::bytes(&mut about, 5, name.unwrap_or_else(|| format!("thread {}", key.1)).as_bytes());
        let mut track = Vec::new();
        proto::number(&mut track, 1, uuid);
        proto::number(&mut track, 5, parent);
        proto::bytes(&mut track, 4, &about);
        self.packets.track(self.file.buffer(), &track);
        self.tracks.threads.insert(key, uuid);
    }

    fn host(&mut self, name: &str) -> u64 {
        if let Some(uuid) = self.tracks.hosts.get(name) {
            return *uuid;
        }
        let uuid = self.tracks.next();
        let mut track = Vec::new();
        proto::number(&mut track, 1, uuid);
        proto::bytes(&mut track, 2, format!("host {name}").as_bytes());
        // Processes below it are in the order of their ranks.
        proto::number(&mut track, 11, EXPLICIT_ORDER);
        self.packets.track(self.file.buffer(), &track);
        self.tracks.hosts.insert(name.to_owned(), uuid);
        uuid
    }

    /// A track with a name, or a counter with a unit.
    fn named_track(&mut self, name: &str, parent: u64, unit: Option<&str>) -> u64 {
        let uuid = self.tracks.next();
        let mut track = Vec::new();
        proto::number(&mut track, 1, uuid);
        proto::bytes(&mut track, 2, name.as_bytes());
        if parent != 0 {
            proto::number(&mut track, 5, parent);
        }
        if let Some(unit) = unit {
            let mut counter = Vec::new();
            if !unit.is_empty() {
                proto::bytes(&mut counter, 6, unit.as_bytes());
            }
            proto::bytes(&mut track, 8, &counter);
        }
        self.packets.track(self.file.buffer(), &track);
        uuid
    }

    fn take(&mut self, tables: &Tables, event: &Event, extra: Option<&str>) -> Result<()> {
        let is_shown = self.scan.shows(event);
        if self.runs.is_none() {
            if event.kind == EventKind::Counter && is_shown {
                self.counter(tables, event)?;
            }
            if self.scan.shows_thread((event.process, event.thread)) {
                let traffic = self.traffic.entry(event.process).or_default();
                traffic.add(&self.bins, event, tables.name(event.name));
            }
        }
        if !is_shown || !self.scan.is_slice(tables, event) {
            return Ok(());
        }
        let interned = &mut self.packets.interned;
        match (&mut self.runs, event.duration_ns >= self.shortest_kept_ns) {
            (None, true) => {
                let slice = self.slices.keep(interned, tables, event, extra);
                self.flows.add(&self.scan, &mut self.slices, slice, event, tables.name(event.name));
            }
            (Some(runs), false) => {
                runs.add(&mut self.slices, interned, tables, event);
                self.merged += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// A number of the program's own.
    fn counter(&mut self, tables: &Tables, event: &Event) -> Result<()> {
        let key = (event.process, event.name);
        let track = match self.tracks.counters.get(&key) {
            Some(track) => *track,
            None => {
                let parent = self.tracks.processes.get(&event.process).map_or(0, |(uuid, _)| *uuid);
                let track = self.named_track(tables.name(event.name), parent, Some(""));
                self.tracks.counters.insert(key, track);
                track
            }
        };
        let value = event.value.filter(|value| value.is_finite()).unwrap_or(0.0);
        self.packets.counter(self.file.buffer(), moment(event.start_ns), track, value);
        self.file.flush()
    }

    fn write_traffic(&mut self) -> Result<()> {
        let mut traffic: Vec<_> = std::mem::take(&mut self.traffic).into_iter().collect();
        traffic.sort_unstable_by_key(|(process, _)| *process);
        for (process, traffic) in traffic {
            let Some((parent, _)) = self.tracks.processes.get(&process).copied() else { continue };
            for ((name, unit), values) in RATES.into_iter().zip(traffic.rates(&self.bins)) {
                if values.iter().all(|value| *value == 0.0) {
                    continue;
                }
                let track = self.named_track(name, parent, Some(unit));
                let mut last = None;
                for (bin, value) in values.into_iter().chain([0.0]).enumerate() {
                    if last != Some(value) {
                        let at = moment(self.bins.start_ns(bin));
                        self.packets.counter(self.file.buffer(), at, track, value);
                        last = Some(value);
                    }
                    self.file.flush()?;
                }
            }
        }
        Ok(())
    }

    fn write_slices(&mut self) -> Result<()> {
        self.flows.settle(&mut self.slices);
        let mut stays: Vec<(ThreadKey, Stay)> = Vec::with_capacity(self.slices.kept.len());
        let mut instants = Vec::new();
        for (slice, kept) in self.slices.kept.iter().enumerate() {
            if kept.is_instant {
                instants.push(slice);
                continue;
            }
            stays.push((kept.thread, Stay { start_ns: kept.start_ns, end_ns: kept.end_ns, slice }));
        }
        stays.sort_by_key(|(thread, _)| *thread);
        for group in stays.chunk_by(|a, b| a.0 == b.0) {
            let mut own: Vec<Stay> = group.iter().map(|(_, stay)| *stay).collect();
            self.write_thread(group[0].0, &mut own)?;
        }
        let slices = std::mem::take(&mut self.slices);
        for slice in instants {
            if let Some(track) = self.tracks.threads.get(&slices.kept[slice].thread).copied() {
                self.begin(&slices, slice, track);
                self.file.flush()?;
            }
        }
        self.slices = slices;
        Ok(())
    }

    fn write_thread(&mut self, key: ThreadKey, stays: &mut [Stay]) -> Result<()> {
        let Some(track) = self.tracks.threads.get(&key).copied() else { return Ok(()) };
        let mut lanes = vec![track];
        let mut result = Ok(());
        let slices = std::mem::take(&mut self.slices);
        lay_out(stays, |act| {
            let lane = match act {
                Act::Begin { lane, .. } | Act::End { lane, .. } => lane,
            };
            while lanes.len() <= lane {
                let name = format!("overlapping {}", lanes.len());
                let added = self.named_track(&name, track, None);
                lanes.push(added);
            }
            match act {
                Act::Begin { slice, .. } => self.begin(&slices, slice, lanes[lane]),
                Act::End { at_ns, .. } => {
                    self.packets.end(self.file.buffer(), moment(at_ns), lanes[lane]);
                }
            }
            if result.is_ok() {
                result = self.file.flush();
            }
        });
        self.slices = slices;
        result
    }

    fn begin(&mut self, slices: &Slices, slice: usize, track: u64) {
        let kept = &slices.kept[slice];
        let mut details = slices.details(kept).to_vec();
        if kept.flow != 0 {
            proto::fixed64(&mut details, if kept.ends_flow { 48 } else { 47 }, kept.flow);
        }
        let begin = proto::Slice {
            kind: if kept.is_instant { INSTANT } else { BEGIN },
            track,
            category: u64::from(kept.category),
            name: u64::from(kept.name),
        };
        self.packets.slice(self.file.buffer(), moment(kept.start_ns), &begin, &details);
    }
}

impl EventSink for PerfettoSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        for event in &batch.events {
            let extra = batch.extra(event);
            self.take(tables, event, extra)?;
        }
        self.packets.write_names(self.file.buffer());
        self.file.flush()
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        match &mut self.runs {
            None if self.shortest_kept_ns > 0 => {
                self.runs = Some(Runs::new(&self.slices, self.scan.longest_run_ns()));
                return Ok(());
            }
            None => {}
            Some(runs) => runs.finish(&mut self.slices, &mut self.packets.interned, tables),
        }
        self.write_slices()?;
        self.write_traffic()?;
        self.is_complete = true;
        self.file.finish()
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn output(&self) -> Output {
        let slices = flow::Slices { slices: self.slices.kept.len() as u64, merged: self.merged };
        Output { paths: vec![self.file.path().to_owned()], slices: Some(slices) }
    }
}

/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
const EXPLICIT_ORDER: u64 = 3;

/// Perfetto has no time before 1970.
fn moment(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

impl Tracks {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// Numbers of processes and threads that are unique over all hosts: Perfetto takes those with the same
/// number for the same.
struct Pids {
    taken: FxHashMap<u32, u32>,
    next: u32,
}

/// Numbers that no kernel gives: at most 2^22 processes run at a time.
const MADE_UP: u32 = 10_000_000;

impl Pids {
    fn new(scan: &TraceScan) -> Self {
        let mut taken = FxHashMap::default();
        for (row, process) in scan.processes.iter().enumerate() {
            taken.entry(process.pid).or_insert(u32::try_from(row).unwrap_or(u32::MAX));
        }
        Self { taken, next: MADE_UP }
    }

    fn made_up(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn of(&mut self, row: u32, pid: u32) -> u32 {
        // Number 0 is the idle process of the kernel in Perfetto.
        if pid != 0 && pid < MADE_UP && self.taken.get(&pid) == Some(&row) {
            pid
        } else {
            self.made_up()
        }
    }

    fn thread(&mut self, key: ThreadKey, pid: u32, scan: &TraceScan) -> u32 {
        let real = scan.processes.get(key.0 as usize).map_or(0, |process| process.pid);
        match key.1 {
            thread if thread == real => pid,
            0 => self.made_up(),
            thread if pid == real && thread < MADE_UP => thread,
            _ => self.made_up(),
        }
    }
}
