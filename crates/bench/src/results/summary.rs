//! The run's metrics, from what the ranks measured.
//!
//! DLIO's metrics keep DLIO's names and formulas; the strict ones are added to them. A value that
//! does not exist (no evaluation, too few steps) is `None` here and `null` in JSON, never NaN (Q29).

use crate::plan::Semantics;
use crate::results::metrics::{
    Split, StrictTally, mean_and_stdev, strict_throughput, weighted_by_steps,
};
use crate::results::outcome::{BlockOutcome, Direction, EpochOutcome, Outcome};
use crate::results::transfers::Transfers;

/// DLIO's numbers for training or evaluation, one value an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Accelerator utilization in percent, mean over the ranks.
    pub au_percent: Vec<Option<f64>>,
    /// Samples per second, summed over the ranks.
    pub throughput: Vec<Option<f64>>,
}

impl Series {
    /// Mean and standard deviation of the utilization.
    pub fn au(&self) -> Option<(f64, f64)> {
        mean_and_stdev(&self.au_percent.iter().copied().flatten().collect::<Vec<_>>())
    }

    /// Mean and standard deviation of the throughput.
    pub fn samples_per_s(&self) -> Option<(f64, f64)> {
        mean_and_stdev(&self.throughput.iter().copied().flatten().collect::<Vec<_>>())
    }
}

/// The strict numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strict {
    /// Utilization of the whole job: asked compute over wall time, all ranks and epochs.
    pub au_percent: Option<f64>,
    /// Utilization of the rank with the lowest one.
    pub au_worst_rank_percent: Option<f64>,
    /// Samples per second over all steps of all epochs.
    pub samples_per_s: Option<f64>,
    /// Bytes of samples per second over the same time.
    pub sample_bytes_per_s: Option<f64>,
    /// Compute time that was asked for in all steps of all ranks.
    pub asked_ns: u64,
    /// Where the time of all steps of all ranks went.
    pub split: Split,
    /// Steps of all epochs on one rank.
    pub steps: u64,
    /// Those of them that DLIO's metrics count.
    pub counted_steps: u64,
}

/// All metrics of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// DLIO's training numbers.
    pub train: Option<Series>,
    /// DLIO's evaluation numbers.
    pub eval: Option<Series>,
    /// Checkpoints that were saved.
    pub saves: Option<Transfers>,
    /// Checkpoints that were loaded.
    pub loads: Option<Transfers>,
    /// The strict numbers.
    pub strict: Strict,
    /// Seconds from the first epoch's begin until the first and the last rank's own work was done.
    pub rank_done_s: Option<(f64, f64)>,
    /// Share of the training files that each epoch found in the page cache.
    pub cached_share: Vec<Option<f64>>,
}

impl Summary {
    /// Works everything out.
    pub fn new(outcome: &Outcome) -> Self {
        let trained = outcome.plan.train.is_some() && !outcome.ranks.is_empty();
        Self {
            train: trained.then(|| train_series(outcome)),
            eval: (trained && outcome.plan.eval.is_some()).then(|| eval_series(outcome)),
            saves: Transfers::new(outcome, Direction::Save),
            loads: Transfers::new(outcome, Direction::Load),
            strict: strict(outcome),
            rank_done_s: rank_done_s(outcome),
            cached_share: epochs(outcome, cached_share),
        }
    }
}

/// One value an epoch, from all ranks' parts of that epoch.
fn epochs<T>(outcome: &Outcome, value: impl Fn(&[&EpochOutcome]) -> T) -> Vec<T> {
    let count = outcome.ranks.iter().map(|rank| rank.epochs.len()).min().unwrap_or(0);
    (0..count)
        .map(|i| value(&outcome.ranks.iter().map(|rank| &rank.epochs[i]).collect::<Vec<_>>()))
        .collect()
}

/// The mean over the ranks whose processes could tell.
fn cached_share(ranks: &[&EpochOutcome]) -> Option<f64> {
    let shares: Vec<f64> = ranks.iter().filter_map(|epoch| epoch.cached_share).collect();
    mean_and_stdev(&shares).map(|(mean, _)| mean)
}

fn train_series(outcome: &Outcome) -> Series {
    let batch = outcome.plan.train.as_ref().map_or(0, |phase| phase.dealing.batch);
    let semantics = outcome.plan.semantics;
    let au = |epoch: &EpochOutcome| {
        weighted_by_steps(
            epoch.blocks.iter().map(|b| (b.tally.steps, b.tally.au_percent(b.wall_ns()))),
        )
    };
    let throughput = |epoch: &EpochOutcome| {
        let rate = |b: &BlockOutcome| semantics.block_throughput(&b.tally, b.wall_ns(), batch);
        let rates: Vec<_> =
            epoch.blocks.iter().filter_map(|b| Some((b.tally.steps, rate(b)?))).collect();
        (!rates.is_empty()).then(|| weighted_by_steps(rates))
    };
    Series {
        au_percent: epochs(outcome, |ranks| {
            let sum: f64 = ranks.iter().map(|epoch| au(epoch)).sum();
            Some(sum / ranks.len() as f64)
        }),
        throughput: epochs(outcome, |ranks| {
            ranks.iter().map(|epoch| throughput(epoch)).sum::<Option<f64>>()
        }),
    }
}

fn eval_series(outcome: &Outcome) -> Series {
    let batch = outcome.plan.eval.as_ref().map_or(0, |phase| phase.dealing.batch);
    let au = |block: &BlockOutcome| block.tally.au_percent(block.wall_ns());
    let rate = |block: &BlockOutcome| block.tally.eval_throughput(block.wall_ns(), batch);
    if outcome.plan.semantics == Semantics::Dlio {
        // Q27: DLIO strings the ranks' lists together instead of adding them up.
        let blocks = || {
            let epochs = outcome.ranks.iter().flat_map(|rank| &rank.epochs);
            epochs.filter_map(|epoch| epoch.eval.as_ref())
        };
        let ranks = outcome.ranks.len() as f64;
        return Series {
            au_percent: blocks().map(|block| Some(au(block) / ranks)).collect(),
            throughput: blocks().map(|block| Some(rate(block))).collect(),
        };
    }
    let each = |combine: &dyn Fn(&[&BlockOutcome]) -> f64| {
        epochs(outcome, |ranks| {
            let blocks: Option<Vec<_>> = ranks.iter().map(|epoch| epoch.eval.as_ref()).collect();
            blocks.map(|blocks| combine(&blocks))
        })
        .into_iter()
        .filter(Option::is_some)
        .collect()
    };
    Series {
        au_percent: each(&|ranks| {
            ranks.iter().map(|block| au(block)).sum::<f64>() / ranks.len() as f64
        }),
        throughput: each(&|ranks| ranks.iter().map(|block| rate(block)).sum()),
    }
}

fn strict(outcome: &Outcome) -> Strict {
    let mut all = StrictTally::default();
    let mut totals = vec![StrictTally::default(); outcome.ranks.len()];
    let (mut samples, mut sample_bytes) = (0, 0);
    for (rank, total) in outcome.ranks.iter().zip(&mut totals) {
        for epoch in &rank.epochs {
            total.merge(&epoch.strict);
            samples += epoch.samples;
            sample_bytes += epoch.sample_bytes;
        }
        all.merge(total);
    }
    let samples_per_s = strict_throughput(&totals, samples);
    let mean_sample_bytes = sample_bytes as f64 / samples.max(1) as f64;
    Strict {
        au_percent: all.au_percent(),
        au_worst_rank_percent: totals.iter().filter_map(StrictTally::au_percent).reduce(f64::min),
        samples_per_s,
        sample_bytes_per_s: samples_per_s.map(|rate| rate * mean_sample_bytes),
        asked_ns: all.asked_ns,
        split: all.split,
        steps: totals.first().map_or(0, |total| total.steps),
        counted_steps: totals.first().map_or(0, |total| total.counted),
    }
}

fn rank_done_s(outcome: &Outcome) -> Option<(f64, f64)> {
    // Every rank's own clock: all of them begin the first epoch together, at a barrier.
    let done_s = |rank: &crate::results::outcome::RankOutcome| {
        let begin = rank.epochs.first()?.start.ns;
        Some(rank.done_ns.saturating_sub(begin) as f64 / 1e9)
    };
    let done = outcome.ranks.iter().filter_map(done_s);
    let first = done.clone().reduce(f64::min)?;
    Some((first, done.reduce(f64::max)?))
}
