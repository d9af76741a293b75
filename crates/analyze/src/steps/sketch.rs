//! Small traces drawn by hand, for tests.

use feedline_trace::EventKind;

use crate::layer::EventType;
use crate::roster::{Rank, Roster, ThreadRole};
use crate::row::{Lane, NONE, Row};
use crate::steps::{RankSteps, Steps};

/// A trace in the making. Lane 0 of a rank consumes, the others are workers.
#[derive(Default)]
pub(crate) struct Sketch {
    pub(crate) roster: Roster,
    pub(crate) lanes: Vec<Lane>,
    event_types: Vec<EventType>,
    rows: Vec<Row>,
}

impl Sketch {
    /// A trace of one rank with `workers` workers, a program without an interpreter.
    pub(crate) fn new(workers: u32) -> Self {
        let mut sketch = Self::default();
        sketch.rank(workers);
        sketch
    }

    /// Another rank: gives the number of its consumer's lane.
    pub(crate) fn rank(&mut self, workers: u32) -> u32 {
        let (consumer, unit) = (self.lanes.len() as u32, self.roster.units.len() as u32);
        let workers: Vec<u32> = (consumer + 1..=consumer + workers).collect();
        for _ in 0..=workers.len() {
            self.lanes.push(Lane { process: unit, ..Lane::default() });
            self.roster.unit_of.push(unit);
            self.roster.role_of.push(ThreadRole::Worker);
        }
        self.roster.units.push(Rank {
            rank: unit,
            host: format!("node{unit}"),
            process: unit,
            consumer,
            workers,
            is_native: true,
        });
        consumer
    }

    /// A thread of the last rank that is not a worker.
    pub(crate) fn other(&mut self, name: &str) -> u32 {
        let process = self.roster.units.len() as u32 - 1;
        self.lanes.push(Lane { process, name: Some(name.to_owned()), ..Lane::default() });
        self.roster.unit_of.push(process);
        self.roster.role_of.push(ThreadRole::Other);
        self.lanes.len() as u32 - 1
    }

    /// The first rank is a program with an interpreter.
    pub(crate) fn interpreted(mut self) -> Self {
        self.roster.units[0].is_native = false;
        self
    }

    /// Something without epoch and step: `category/name`.
    pub(crate) fn add(&mut self, lane: u32, name: &str, times: (i64, i64)) -> &mut Self {
        self.tagged(lane, name, times, (NONE, NONE))
    }

    /// Something of an epoch and a step.
    pub(crate) fn tagged(
        &mut self,
        lane: u32,
        name: &str,
        (start_ns, end_ns): (i64, i64),
        (epoch, step): (u32, u32),
    ) -> &mut Self {
        let (category, name) = name.split_once('/').expect("a category and a name");
        let kind = if category == "POSIX" { EventKind::Call } else { EventKind::Span };
        let event_type = EventType::new(kind, category, name);
        let known = self.event_types.iter().position(|known| *known == event_type);
        let number = known.unwrap_or_else(|| {
            self.event_types.push(event_type.clone());
            self.event_types.len() - 1
        });
        self.lanes[lane as usize].events[event_type.layer as usize] += 1;
        let event_type = number as u32;
        let count = 1;
        self.rows.push(Row {
            start_ns,
            end_ns,
            lane,
            event_type,
            epoch,
            step,
            kind,
            count,
            ..Row::default()
        });
        self
    }

    /// Bytes of event_type was added last.
    pub(crate) fn bytes(&mut self, bytes: u64) -> &mut Self {
        self.rows.last_mut().expect("something was added").bytes = bytes;
        self
    }

    /// A step of a rank: fetch, computation, and the batch of a worker.
    pub(crate) fn step(&mut self, lane: u32, at: (u32, u32), fetch: (i64, i64), until: i64) {
        self.tagged(lane, "dataloader/fetch.iter", fetch, at);
        self.tagged(lane, "compute/compute", (fetch.1, until), at);
    }

    pub(crate) fn run(&mut self) -> Vec<RankSteps> {
        self.rows.sort_by(Row::order);
        let mut steps = Steps::new(&self.roster, &self.lanes, &self.event_types);
        self.rows.iter().for_each(|row| steps.row(row));
        steps.finish()
    }

    pub(crate) fn run_one(&mut self) -> RankSteps {
        self.run().remove(0)
    }
}
