//! Who is who: ranks, and the threads that work for them.
//!
//! A rank is a consumer of batches: a thread that fetches, or that computes if no thread fetches. A thread works
//! for the rank that its name says (`rank 3 reader 2`), else for the consumer in its own process, else for
//! that of the nearest process above it. Streams of a device, which profilers show as processes, work for the
//! rank that they say, or for the only one there is.

use std::collections::BTreeMap;

use feedline_trace::Process;

use crate::layer::StackLayer;
use crate::row::{Lane, NONE};

/// What a thread is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ThreadRole {
    /// It takes batches and computes.
    Rank,
    /// It brings batches, or parts of them.
    Worker,
    /// It copies batches into pinned memory.
    PinMemory,
    /// It writes or reads checkpoints.
    Checkpoint,
    /// A program that only started the others.
    Launcher,
    /// None of these.
    #[default]
    Other,
}

impl ThreadRole {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Worker => "worker",
            Self::PinMemory => "pin-memory",
            Self::Checkpoint => "checkpoint",
            Self::Launcher => "launcher",
            Self::Other => "other",
        }
    }
}

/// A rank, and who works for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Its number in the job: said by the trace, or counted.
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) process: u32,
    /// The lane that consumes, or [`NONE`]: without steps, every process that reads or writes is a unit.
    pub(crate) consumer: u32,
    /// Lanes that bring batches, in the order of their numbers or starts.
    pub(crate) workers: Vec<u32>,
    /// Whether it is a program without an interpreter, whose own time in a sample is decoding.
    pub(crate) is_native: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roster {
    /// Ranks, in the order of their numbers.
    pub(crate) units: Vec<Rank>,
    /// By lane: its unit, or [`NONE`].
    pub(crate) unit_of: Vec<u32>,
    /// By lane: what it is for.
    pub(crate) role_of: Vec<ThreadRole>,
}

impl Roster {
    /// Finds out from names, layers and the tree of processes.
    pub(crate) fn new(lanes: &[Lane], processes: &[Process]) -> Self {
        let consumers = consumers(lanes);
        let mut units = Vec::new();
        for lane in consumers {
            let of = &lanes[lane as usize];
            let process = processes.get(of.process as usize);
            let said = named_rank(of).or_else(|| process.and_then(|process| process.rank));
            units.push((said, lane));
        }
        let mut units = number(units, lanes, processes);
        if units.is_empty() {
            units = processes_alone(lanes, processes);
        }
        let mut roster = Self {
            units,
            unit_of: vec![NONE; lanes.len()],
            role_of: vec![ThreadRole::Other; lanes.len()],
        };
        roster.assign(lanes, processes);
        roster
    }

    fn assign(&mut self, lanes: &[Lane], processes: &[Process]) {
        let (mut by_rank, mut consumers) = (BTreeMap::new(), BTreeMap::new());
        let mut by_process: BTreeMap<u32, u32> = BTreeMap::new();
        for (index, unit) in self.units.iter().enumerate() {
            by_rank.insert((unit.process, unit.rank), index as u32);
            by_process.entry(unit.process).or_insert(index as u32);
            consumers.insert(unit.consumer, index as u32);
        }
        for (number, lane) in lanes.iter().enumerate() {
            let named =
                named_rank(lane).and_then(|rank| by_rank.get(&(lane.process, rank)).copied());
            let own = consumers.get(&(number as u32)).copied();
            let unit = own
                .or(named)
                .or_else(|| nearest(lane.process, processes, &by_process))
                .or_else(|| self.of_device(lane, processes));
            self.unit_of[number] = unit.unwrap_or(NONE);
            let is_consumer =
                unit.is_some_and(|unit| self.units[unit as usize].consumer == number as u32);
            self.role_of[number] = if is_consumer { ThreadRole::Rank } else { role(lane) };
            if let Some(unit) = unit.filter(|_| self.role_of[number] == ThreadRole::Worker) {
                self.units[unit as usize].workers.push(number as u32);
            }
        }
        for unit in &mut self.units {
            // Rows of processes are in the order of their files; workers take turns in that of their starts.
            unit.workers.sort_by_key(|lane| {
                let lane = &lanes[*lane as usize];
                let process = processes.get(lane.process as usize);
                let begun = process.map(|process| (process.start_ns, process.pid));
                (named_worker(lane), begun, lane.thread)
            });
        }
    }

    /// The unit of a device's stream.
    fn of_device(&self, lane: &Lane, processes: &[Process]) -> Option<u32> {
        let is_device = [StackLayer::Compute, StackLayer::Device]
            .iter()
            .any(|layer| lane.events[*layer as usize] > 0);
        let said = processes.get(lane.process as usize).and_then(|process| process.rank);
        let found = match said {
            Some(rank) => self.units.iter().position(|unit| unit.rank == rank),
            None => (self.units.len() == 1).then_some(0),
        };
        found.filter(|_| is_device).map(|unit| unit as u32)
    }
}

/// Lanes that fetch; if there are none, the one of every process that computes most: helpers of a framework
/// compute too.
fn consumers(lanes: &[Lane]) -> Vec<u32> {
    let with = |layer: StackLayer| -> Vec<u32> {
        let rows = lanes.iter().zip(0..);
        rows.filter(|(lane, _)| lane.events[layer as usize] > 0).map(|(_, row)| row).collect()
    };
    let fetching = with(StackLayer::Fetch);
    if !fetching.is_empty() {
        return fetching;
    }
    let mut busiest: BTreeMap<u32, u32> = BTreeMap::new();
    let computes = |lane: u32| lanes[lane as usize].events[StackLayer::Compute as usize];
    for lane in with(StackLayer::Compute) {
        let best = busiest.entry(lanes[lane as usize].process).or_insert(lane);
        if computes(lane) > computes(*best) {
            *best = lane;
        }
    }
    busiest.into_values().collect()
}

/// Without consumers: every process that makes calls on files or objects.
fn processes_alone(lanes: &[Lane], processes: &[Process]) -> Vec<Rank> {
    let io = [StackLayer::Storage, StackLayer::ObjectStore];
    let with_calls = lanes.iter().filter(|lane| io.iter().any(|at| lane.events[*at as usize] > 0));
    let mut rows: Vec<u32> = with_calls.map(|lane| lane.process).collect();
    rows.sort_unstable();
    rows.dedup();
    rows.sort_by_key(|row| processes.get(*row as usize).map(|process| process.start_ns));
    let unit = |(rank, process): (u32, u32)| Rank {
        rank,
        host: processes.get(process as usize).map(|it| it.host.clone()).unwrap_or_default(),
        process,
        consumer: NONE,
        ..Rank::default()
    };
    (0..).zip(rows).map(unit).collect()
}

/// Numbers ranks as the trace says, and those of which it says nothing after all others.
fn number(mut found: Vec<(Option<u32>, u32)>, lanes: &[Lane], processes: &[Process]) -> Vec<Rank> {
    found.sort_by_key(|(said, lane)| {
        let of = &lanes[*lane as usize];
        let start_ns = processes.get(of.process as usize).map(|process| process.start_ns);
        (said.is_none(), *said, start_ns, of.process, *lane)
    });
    let mut units: Vec<Rank> = Vec::new();
    let mut next =
        found.iter().filter_map(|(said, _)| *said).max().map_or(0, |last| last.wrapping_add(1));
    let mut last = None;
    for (said, lane) in found {
        let of = &lanes[lane as usize];
        // Those that say the same are adjacent.
        let is_taken = said.is_some() && said == last;
        last = said;
        let rank = said.filter(|_| !is_taken).unwrap_or_else(|| {
            next = next.wrapping_add(1);
            next.wrapping_sub(1)
        });
        let process = processes.get(of.process as usize);
        units.push(Rank {
            rank,
            host: process.map(|process| process.host.clone()).unwrap_or_default(),
            process: of.process,
            consumer: lane,
            workers: Vec::new(),
            is_native: process.is_some_and(is_native),
        });
    }
    units
}

fn is_native(process: &Process) -> bool {
    process.program.rsplit('/').next().is_some_and(|name| name.starts_with("feedline"))
}

/// The unit of the nearest process, from this one upwards.
fn nearest(process: u32, processes: &[Process], units: &BTreeMap<u32, u32>) -> Option<u32> {
    let mut at = Some(process);
    // A tree of processes is never deeper than there are processes; a damaged one may be a circle.
    for _ in 0..=processes.len() {
        let here = at?;
        if let Some(unit) = units.get(&here) {
            return Some(*unit);
        }
        at = processes.get(here as usize)?.parent;
    }
    None
}

/// `rank 3 reader 2` works for rank 3.
fn named_rank(lane: &Lane) -> Option<u32> {
    let rest = lane.name.as_deref()?.strip_prefix("rank ")?;
    rest.split(' ').next()?.parse().ok()
}

/// `rank 3 reader 2` is worker 2.
pub(crate) fn named_worker(lane: &Lane) -> Option<u32> {
    lane.name.as_deref()?.split(' ').nth(3)?.parse().ok()
}

fn role(lane: &Lane) -> ThreadRole {
    let has = |layers: &[StackLayer]| layers.iter().any(|layer| lane.events[*layer as usize] > 0);
    let name = lane.name.as_deref().unwrap_or("").to_ascii_lowercase();
    if name.contains("pin") && name.contains("mem") {
        ThreadRole::PinMemory
    } else if name.contains("saver") || name.contains("checkpoint") {
        ThreadRole::Checkpoint
    } else if has(&[
        StackLayer::Batch,
        StackLayer::Sample,
        StackLayer::Decode,
        StackLayer::Transform,
        StackLayer::Collate,
    ]) {
        ThreadRole::Worker
    } else if has(&[StackLayer::Checkpoint]) {
        ThreadRole::Checkpoint
    } else if has(&[StackLayer::Storage, StackLayer::ObjectStore]) {
        ThreadRole::Other
    } else if has(&[StackLayer::Process]) {
        ThreadRole::Launcher
    } else {
        ThreadRole::Other
    }
}
