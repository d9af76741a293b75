//! What one shard knows of a trace, and how shards become one.
//!
//! A shard takes the rows of some ranks, and of all that works for them; everything else (how long the run
//! was, who took part) every shard knows. Numbers are whole, so shards add up to what one would have found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::access::Pattern;
use crate::analysis::{Allocation, Problem, RoleCount, Strip, TraceFacts};
use crate::cover::Cover;
use crate::layer::{EventType, LAYERS, StackLayer};
use crate::load::{AnalyzeError, LoadProgress, Trace};
use crate::roster::{Roster, ThreadRole};
use crate::row::NONE;
use crate::saturating::grow;
use crate::steps::{RankSteps, StepRecord, Steps};
use crate::sweep::{GROUPS, Sweep, Swept, title};
use crate::tally::{CounterTally, Counts, FileTally, FunctionTally, Moment, RankTally, TimeGrid};

/// The version of the file.
pub const VERSION: u32 = 1;
/// What the file says it is.
pub const FORMAT: &str = "feedline-shard";

/// Which part of a trace: `index` of `of`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// Which one.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// All of a trace.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Whether a unit is in it; what belongs to no unit is in the first one.
    pub fn has(self, unit: u32) -> bool {
        let turn = if unit == NONE { 0 } else { unit % self.of.max(1) };
        turn == self.index.saturating_sub(1)
    }
}

/// Time of a layer of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Covered {
    pub(crate) ns: u64,
    /// Part of it in which the rank computed.
    pub(crate) overlap_ns: u64,
}

impl From<&Cover> for Covered {
    fn from(cover: &Cover) -> Self {
        Self { ns: cover.measure_ns(), overlap_ns: cover.overlap_ns() }
    }
}

/// What is known of a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankPart {
    pub(crate) rank: u32,
    pub(crate) title: String,
    pub(crate) host: String,
    pub(crate) is_rank: bool,
    pub(crate) workers: u32,
    pub(crate) counts: RankTally,
    pub(crate) layers: [Covered; LAYERS],
    pub(crate) groups: [Covered; GROUPS],
    pub(crate) compute_ns: u64,
    /// Computation by bucket of time.
    pub(crate) compute_ns_at: Vec<u64>,
    pub(crate) life_ns: u64,
    pub(crate) workers_busy_ns: u64,
    pub(crate) workers_life_ns: u64,
    pub(crate) steps: RankSteps,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunctionPart {
    pub(crate) kind: String,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) layer: StackLayer,
    pub(crate) class: Option<String>,
    pub(crate) counts: FunctionTally,
    pub(crate) self_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePart {
    pub(crate) counts: FileTally,
    /// Ranks that touched it.
    pub(crate) ranks: Vec<u32>,
}

/// What a shard knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartialAnalysis {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// Which parts these are.
    pub shards: Vec<Shard>,
    pub(crate) facts: TraceFacts,
    pub(crate) allocation: Allocation,
    pub(crate) problems: Vec<Problem>,
    pub(crate) bucket_ns: u64,
    pub(crate) buckets: usize,
    pub(crate) functions: Vec<FunctionPart>,
    pub(crate) files: BTreeMap<String, FilePart>,
    /// By place in the roster.
    pub(crate) units: BTreeMap<u32, RankPart>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) counters: BTreeMap<String, CounterTally>,
    pub(crate) errors: Vec<u64>,
    pub(crate) read_sizes: Vec<u64>,
    pub(crate) write_sizes: Vec<u64>,
    pub(crate) read_latencies: Vec<u64>,
    pub(crate) read_size_by_latency: Vec<u64>,
    pub(crate) reads: Pattern,
    pub(crate) writes: Pattern,
    pub(crate) crossing: u64,
    /// By place among all strips.
    pub(crate) strips: BTreeMap<u32, Strip>,
}

/// Why shards do not go together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages show what fields mean")]
#[non_exhaustive]
pub enum MergeError {
    /// They are of different traces.
    #[error("shards of different traces: {} and {}", .first.join(" "), .second.join(" "))]
    Traces { first: Vec<String>, second: Vec<String> },
    /// One part is there twice.
    #[error("shard {}/{} is given twice", .0.index, .0.of)]
    Twice(Shard),
    /// They were cut in different ways.
    #[error("cannot merge shards of {first} parts with shards of {second} parts")]
    Cuts { first: u32, second: u32 },
    /// A part was not given.
    #[error("shard {}/{} is missing", .0.index, .0.of)]
    Missing(Shard),
    /// No parts were given.
    #[error("no shards")]
    None,
}

impl PartialAnalysis {
    /// Reads a trace, or the part of it that is in a shard.
    pub fn read(
        trace: &Trace,
        inputs: Vec<String>,
        shard: Shard,
        progress: &dyn LoadProgress,
    ) -> Result<Self, AnalyzeError> {
        let roster = Roster::new(&trace.lanes, &trace.tables.processes);
        let grid = TimeGrid::new(trace, &roster);
        let mut sweep = Sweep::new(trace, &roster, &grid);
        let mut steps = Steps::new(&roster, &trace.lanes, &trace.event_types);
        let is_selected = |lane: u32| shard.has(roster.unit_of[lane as usize]);
        trace.set_aside(steps_bytes(trace) / u64::from(shard.of.max(1)));
        let counts = trace.stream(progress, &is_selected, &|| Counts::new(&grid), &mut |rows| {
            sweep.take(rows);
            rows.iter().for_each(|row| steps.row(row));
        })?;
        let whole = PartialBuilder { trace, roster: &roster, grid: &grid, inputs };
        Ok(whole.partial(shard, counts, sweep.finish(), steps.finish()))
    }

    /// Joins all shards of a trace.
    pub fn join(mut parts: Vec<Self>) -> Result<Self, MergeError> {
        parts.sort_by_key(|part| part.shards.first().copied());
        let mut parts = parts.into_iter();
        let mut whole = parts.next().ok_or(MergeError::None)?;
        for part in parts {
            whole.merge(part)?;
        }
        let of = whole.shards.first().map_or(1, |shard| shard.of);
        for index in 1..=of {
            let shard = Shard { index, of };
            if !whole.shards.contains(&shard) {
                return Err(MergeError::Missing(shard));
            }
        }
        Ok(whole)
    }

    fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        // The same trace may be known by other paths elsewhere.
        let key = |part: &Self| {
            let facts = &part.facts;
            (facts.source.clone(), facts.events, facts.start_ns, facts.run_ns, part.bucket_ns)
        };
        if key(self) != key(&other) || self.functions.len() != other.functions.len() {
            let (first, second) = (self.facts.inputs.clone(), other.facts.inputs);
            return Err(MergeError::Traces { first, second });
        }
        for shard in other.shards {
            let first = self.shards.first().map_or(shard.of, |first| first.of);
            if first != shard.of {
                return Err(MergeError::Cuts { first, second: shard.of });
            }
            if self.shards.contains(&shard) {
                return Err(MergeError::Twice(shard));
            }
            self.shards.push(shard);
        }
        self.merge_functions(other.functions);
        for (path, theirs) in other.files {
            match self.files.get_mut(&path) {
                Some(ours) => {
                    ours.counts.merge(&theirs.counts);
                    ours.ranks.extend(theirs.ranks);
                    ours.ranks.sort_unstable();
                    ours.ranks.dedup();
                }
                None => {
                    self.files.insert(path, theirs);
                }
            }
        }
        self.units.extend(other.units);
        self.strips.extend(other.strips);
        for (ours, theirs) in self.moments.iter_mut().zip(&other.moments) {
            ours.merge(theirs);
        }
        for (name, theirs) in other.counters {
            self.counters.entry(name).or_default().merge(theirs);
        }
        let pairs = [
            (&mut self.errors, &other.errors),
            (&mut self.read_sizes, &other.read_sizes),
            (&mut self.write_sizes, &other.write_sizes),
            (&mut self.read_latencies, &other.read_latencies),
            (&mut self.read_size_by_latency, &other.read_size_by_latency),
        ];
        for (ours, theirs) in pairs {
            ours.iter_mut().zip(theirs).for_each(|(our, their)| grow(our, *their));
        }
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.crossing += other.crossing;
        Ok(())
    }

    /// Every shard has all kinds of events, in the same order.
    fn merge_functions(&mut self, others: Vec<FunctionPart>) {
        for (ours, theirs) in self.functions.iter_mut().zip(others) {
            ours.counts.merge(&theirs.counts);
            grow(&mut ours.self_ns, theirs.self_ns);
        }
    }
}

/// Memory that steps will take, so that rows leave it to them: one per fetch or, in traces without
/// fetches, one per computation.
fn steps_bytes(trace: &Trace) -> u64 {
    let events = |layer: StackLayer| -> u64 {
        trace.lanes.iter().map(|lane| lane.events[layer as usize]).sum()
    };
    let steps = match events(StackLayer::Fetch) {
        0 => events(StackLayer::Compute),
        fetches => fetches,
    };
    // Beside its record a step has times when the rank was stalled and when batches were ready.
    steps * (size_of::<StepRecord>() as u64 + 64)
}

/// What a partial is made of.
struct PartialBuilder<'a> {
    trace: &'a Trace,
    roster: &'a Roster,
    grid: &'a TimeGrid,
    inputs: Vec<String>,
}

impl PartialBuilder<'_> {
    fn partial(
        self,
        shard: Shard,
        counts: Counts,
        mut swept: Swept,
        steps: Vec<RankSteps>,
    ) -> PartialAnalysis {
        let trace = self.trace;
        let functions = trace.event_types.iter().zip(&counts.functions).zip(&swept.self_ns);
        let functions = functions.map(|((what, counts), self_ns)| FunctionPart {
            kind: what.kind.name().to_owned(),
            category: what.category.clone(),
            name: what.name.clone(),
            layer: what.layer,
            class: what.class.map(|class| class.name().to_owned()),
            counts: counts.clone(),
            self_ns: *self_ns,
        });
        let strips = (0..).zip(std::mem::take(&mut swept.strips));
        let strips = strips.filter(|(place, _)| {
            let unit = self.unit_of_strip(*place);
            shard.has(unit)
        });
        let counters = counts.counters.iter().map(|(what, tally)| {
            let EventType { category, name, .. } = &trace.event_types[*what as usize];
            (format!("{category}/{name}"), tally.clone())
        });
        PartialAnalysis {
            format: FORMAT.to_owned(),
            version: VERSION,
            shards: vec![shard],
            facts: TraceFacts {
                inputs: self.inputs.clone(),
                source: trace.source.to_owned(),
                events: trace.events,
                start_ns: trace.start_ns,
                run_ns: trace.end_ns.abs_diff(trace.start_ns),
            },
            allocation: allocation(trace, self.roster),
            problems: trace.problems.clone(),
            bucket_ns: self.grid.bucket_ns,
            buckets: self.grid.buckets,
            functions: functions.collect(),
            files: self.files(&counts),
            units: self.units(shard, &counts, &swept, steps),
            counters: counters.collect(),
            strips: strips.collect(),
            moments: counts.moments,
            errors: counts.errors,
            read_sizes: counts.read_sizes.to_vec(),
            write_sizes: counts.write_sizes.to_vec(),
            read_latencies: counts.read_latencies.to_vec(),
            read_size_by_latency: counts.read_size_by_latency,
            reads: swept.reads,
            writes: swept.writes,
            crossing: swept.crossing,
        }
    }

    /// Strips go through the units, each consumer first.
    fn unit_of_strip(&self, place: u32) -> u32 {
        let mut left = place as usize;
        for (number, unit) in (0..).zip(&self.roster.units) {
            let own = unit.workers.len() + usize::from(unit.consumer != NONE);
            if left < own {
                return number;
            }
            left -= own;
        }
        NONE
    }

    /// The same path may have several rows.
    fn files(&self, counts: &Counts) -> BTreeMap<String, FilePart> {
        let mut files: BTreeMap<String, FilePart> = BTreeMap::new();
        let mut others: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (file, unit) in &counts.others {
            others.entry(*file).or_default().push(*unit);
        }
        let rank = |unit: &u32| self.roster.units.get(*unit as usize).map(|unit| unit.rank);
        for (row, tally) in (0..).zip(&counts.files).filter(|(_, tally)| tally.calls() > 0) {
            let mut units = others.remove(&row).unwrap_or_default();
            units.extend((0..64).filter(|unit| tally.units >> unit & 1 == 1));
            let ranks = units.iter().filter_map(rank);
            let path = self.trace.tables.file(row).to_owned();
            let part = files
                .entry(path)
                .or_insert_with(|| FilePart { counts: FileTally::default(), ranks: Vec::new() });
            part.counts.merge(tally);
            part.ranks.extend(ranks);
            part.ranks.sort_unstable();
            part.ranks.dedup();
        }
        files
    }

    fn units(
        &self,
        shard: Shard,
        counts: &Counts,
        swept: &Swept,
        steps: Vec<RankSteps>,
    ) -> BTreeMap<u32, RankPart> {
        let mut parts = BTreeMap::new();
        let all = (0_u32..).zip(&self.roster.units).zip(steps);
        for ((number, unit), steps) in all.filter(|((number, _), _)| shard.has(*number)) {
            let at = number as usize;
            let (cover, workers_ns) = (&swept.units[at], swept.workers_ns[at]);
            let mut compute_ns_at = vec![0; self.grid.buckets];
            for (start, end) in cover.compute.intervals() {
                self.grid.spread(start, end, |bucket, ns| compute_ns_at[bucket] += ns);
            }
            let lane =
                if unit.consumer == NONE { self.first_lane(unit.process) } else { unit.consumer };
            let part = RankPart {
                rank: unit.rank,
                title: title(self.trace, lane),
                host: unit.host.clone(),
                is_rank: unit.consumer != NONE,
                workers: unit.workers.len() as u32,
                counts: counts.units[at].clone(),
                layers: std::array::from_fn(|layer| Covered::from(&cover.layers[layer])),
                groups: std::array::from_fn(|group| Covered::from(&cover.groups[group])),
                compute_ns: cover.compute.measure_ns(),
                compute_ns_at,
                life_ns: cover.first_ns.map_or(0, |first| cover.last_ns.abs_diff(first)),
                workers_busy_ns: workers_ns.0,
                workers_life_ns: workers_ns.1,
                steps,
            };
            parts.insert(number, part);
        }
        parts
    }

    fn first_lane(&self, process: u32) -> u32 {
        let found = self.trace.lanes.iter().position(|lane| lane.process == process);
        found.map_or(NONE, |lane| lane as u32)
    }
}

fn allocation(trace: &Trace, roster: &Roster) -> Allocation {
    let mut hosts: Vec<String> =
        trace.tables.processes.iter().map(|process| process.host.clone()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    // A process has the role of its most telling thread.
    let mut roles: BTreeMap<u32, ThreadRole> = BTreeMap::new();
    for (lane, role) in trace.lanes.iter().zip(&roster.role_of) {
        roles.entry(lane.process).and_modify(|known| *known = *role.min(known)).or_insert(*role);
    }
    let with = |layers: &[StackLayer]| {
        let has = |events: &[u64; LAYERS]| layers.iter().any(|layer| events[*layer as usize] > 0);
        trace.lanes.iter().filter(|lane| has(&lane.events)).count() as u64
    };
    let busy = trace.lanes.iter().zip(&roster.role_of);
    let busy = busy.filter(|(lane, _)| lane.events.iter().sum::<u64>() > 0).map(|(_, role)| *role);
    Allocation {
        hosts,
        ranks: roster.units.iter().filter(|unit| unit.consumer != NONE).count() as u64,
        processes: counted(roles.into_values()),
        threads: counted(busy),
        compute_threads: with(&[StackLayer::Compute]),
        io_threads: with(&[StackLayer::Storage, StackLayer::ObjectStore]),
    }
}

fn counted(roles: impl Iterator<Item = ThreadRole>) -> Vec<RoleCount> {
    let mut counts: BTreeMap<ThreadRole, u64> = BTreeMap::new();
    roles.for_each(|role| *counts.entry(role).or_default() += 1);
    let row = |(role, count): (ThreadRole, u64)| RoleCount { role: role.name().to_owned(), count };
    counts.into_iter().map(row).collect()
}
