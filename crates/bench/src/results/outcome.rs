//! What a run found out.

use std::ops::Range;

use feedline_dataset::Generated;
use feedline_ranks::Geometry;
use feedline_store::{Capabilities, Meter, Op, OpMeter};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::results::host::Host;
use crate::results::metrics::{BlockTally, StrictTally};
use crate::results::moment::Moment;
use crate::results::step_log::StepFile;
use crate::train::page_cache::CachePolicy;

/// Everything that a run measured.
pub struct Outcome {
    /// What was to be done.
    pub plan: Plan,
    /// Where the data set is, as the user knows it.
    pub data: String,
    /// What the store of the data set can do.
    pub capabilities: Capabilities,
    /// Which rank was where.
    pub geometry: Geometry,
    /// The machines.
    pub hosts: Vec<Host>,
    /// When it began.
    pub start: Moment,
    /// When it ended.
    pub end: Moment,
    /// The data generation, if there was one.
    pub generated: Option<Generated>,
    /// Every rank's part, in rank order; empty if nothing was trained.
    pub ranks: Vec<RankOutcome>,
    /// What happened to the page cache before each epoch.
    pub cache: CachePolicy,
    /// The seed that shuffles were drawn from.
    pub seed: u64,
    /// Things the user should know.
    pub warnings: Vec<String>,
    /// True if the run was stopped before its end.
    pub interrupted: bool,
}

impl Outcome {
    /// The machine of a rank.
    pub(crate) fn host_of(&self, rank: usize) -> &Host {
        &self.hosts[self.geometry.node_of_ranks()[rank] as usize]
    }

    /// What the training readers of all ranks asked of the store.
    pub(crate) fn meter(&self) -> Meter {
        let mut total = Meter::default();
        self.ranks.iter().for_each(|rank| total.merge(&rank.meter));
        total
    }

    /// Seconds of all training steps, waits included, on rank 0.
    pub fn training_s(&self) -> f64 {
        let epochs = self.ranks.first().map_or(&[][..], |rank| &rank.epochs);
        epochs.iter().map(|epoch| epoch.strict.split.total_ns()).sum::<u64>() as f64 / 1e9
    }

    /// `count` in each second of training.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        let seconds = self.training_s();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }

    /// The same in the few numbers that a person wants to see.
    pub fn storage_counts(&self) -> StorageCounts {
        let meter = self.meter();
        let (read, open) = (meter.op(Op::Read), meter.op(Op::Open));
        let of = |meter: &OpMeter, q| {
            let ns = meter.latency_ns.value_at_quantile(q);
            (meter.calls > 0).then(|| ns as f64 / 1e9)
        };
        StorageCounts {
            reads: read.calls,
            read_bytes: read.bytes,
            asked: read.asked.quantile(0.0).map(|least| AskedRange {
                least,
                median: read.asked.quantile(0.5).unwrap_or(least),
                most: read.asked.quantile(1.0).unwrap_or(least),
            }),
            p50_s: of(read, 0.5),
            p99_s: of(read, 0.99),
            opens: open.calls,
            open_p50_s: of(open, 0.5),
            open_p99_s: of(open, 0.99),
            requests: Op::ALL.iter().map(|&op| meter.op(op).requests).sum(),
            retries: Op::ALL.iter().map(|&op| meter.op(op).retries).sum(),
        }
    }
}

/// Sizes that read calls asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedRange {
    /// The smallest.
    pub least: u64,
    /// The one that half of the calls did not exceed.
    pub median: u64,
    /// The largest.
    pub most: u64,
}

/// What the training readers asked of the store, all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCounts {
    /// Read calls.
    pub reads: u64,
    /// Bytes that they moved.
    pub read_bytes: u64,
    /// Bytes that they asked for, if there were any.
    pub asked: Option<AskedRange>,
    /// Time that half of the reads did not exceed, in seconds.
    pub p50_s: Option<f64>,
    /// Time that 99 % of the reads did not exceed, in seconds.
    pub p99_s: Option<f64>,
    /// Open calls.
    pub opens: u64,
    /// Time that half of them did not exceed, in seconds.
    pub open_p50_s: Option<f64>,
    /// Time that 99 % of them did not exceed, in seconds.
    pub open_p99_s: Option<f64>,
    /// Requests that all calls sent over a network; 0 for file systems.
    pub requests: u64,
    /// Those that repeated one which had gone wrong.
    pub retries: u64,
}

/// One rank's part of a run.
pub struct RankOutcome {
    /// Its epochs, in order.
    pub epochs: Vec<EpochOutcome>,
    /// What its training readers asked of the store.
    pub meter: Meter,
    /// When its own part of its last training step was done, before it waited for others.
    pub done_ns: u64,
    /// How its checkpoints got along with training.
    pub saving: SavingTally,
    pub(crate) steps: StepFile,
}

/// How a rank's checkpoints got along with its training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavingTally {
    /// Steps during which a save was going on, the first of an epoch left out.
    pub steps_while_saving: u64,
    /// Time of those.
    pub while_saving_ns: u64,
    /// Steps during which none was, the first of an epoch left out.
    pub steps_alone: u64,
    /// Time of those.
    pub alone_ns: u64,
    /// Time that training waited at its end for saves that were going on.
    pub drain_ns: u64,
    /// The most steps that were ever done and not in a published checkpoint.
    pub unsaved_steps: u64,
    /// The most time for which that was so.
    pub unsaved_ns: u64,
    /// Bytes of its buffers.
    pub pool_bytes: u64,
}

/// One epoch of one rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EpochOutcome {
    /// The epoch, from 1.
    pub number: u32,
    /// When it began.
    pub start: Moment,
    /// When its training, epoch checkpoint included, ended.
    pub train_end: Moment,
    /// When all of it ended.
    pub end: Moment,
    /// Its training blocks, divided by checkpoints.
    pub blocks: Vec<BlockOutcome>,
    /// Its evaluation.
    pub eval: Option<BlockOutcome>,
    /// Its checkpoints.
    pub checkpoints: Vec<CheckpointOutcome>,
    /// All training steps, for the strict metrics.
    pub strict: StrictTally,
    /// Samples that its training batches held.
    pub samples: u64,
    /// Bytes of those.
    pub sample_bytes: u64,
    /// Share of the training files that was in the page cache when the readers of this rank's process
    /// opened them.
    pub cached_share: Option<f64>,
    /// `/proc/meminfo` when it began.
    pub meminfo: Vec<(String, String)>,
}

/// A run of steps between two checkpoints, or an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockOutcome {
    /// Its number in the epoch, from 1.
    pub number: u32,
    /// When it began.
    pub start: Moment,
    /// When it ended.
    pub end: Moment,
    /// What DLIO's formulas need.
    pub tally: BlockTally,
    /// Its steps in the rank's log.
    pub(crate) steps: Range<u64>,
}

impl BlockOutcome {
    /// How long it took.
    pub fn wall_ns(&self) -> u64 {
        self.end.ns - self.start.ns
    }
}

/// Which way a checkpoint goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// To the storage.
    Save,
    /// From there.
    Load,
}

/// One rank's part of saving or loading a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointOutcome {
    /// Whether it was saved or loaded.
    pub direction: Direction,
    /// Its number among those of the epoch in that direction, from 1.
    pub number: u32,
    /// When it began.
    pub start: Moment,
    /// When this rank's own part was done.
    pub end: Moment,
    /// Bytes of this rank's tensors.
    pub bytes: u64,
    /// Bytes of all ranks' tensors.
    pub bytes_of_all: u64,
    /// Bytes that its calls wrote or read.
    pub moved_bytes: u64,
    /// Bytes and time of each of its files.
    pub files: Vec<(u64, u64)>,
    /// Time in calls that make a file safe and give it its name, added up over its streams.
    pub publish_ns: u64,
    /// Time in which the checkpoint as a whole was given its name, when all ranks had written.
    pub commit_ns: u64,
    /// How long training paused.
    pub pause_ns: u64,
    /// Time from there to the end of this rank's part, in the background of training.
    pub background_ns: u64,
    /// Requests that this sent over a network.
    pub requests: u64,
    /// Those that repeated one which had gone wrong.
    pub retries: u64,
}
