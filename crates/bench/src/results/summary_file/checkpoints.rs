//! What is below `feedline.checkpoints`: saves and loads beside DLIO's keys.
#![expect(missing_docs, reason = "each field is a key; `feedline explain` has the text")]

use serde::{Deserialize, Serialize};

use crate::results::metrics::mean_and_stdev;
use crate::results::outcome::{Outcome, SavingTally};
use crate::results::summary::Summary;
use crate::results::transfers::{Transfer, Transfers};

/// All saves and loads of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckpointsSummary {
    pub saves: usize,
    pub loads: usize,
    pub bytes: u64,
    pub requests: u64,
    pub retries: u64,
    pub save: Option<TransferSummary>,
    pub load: Option<TransferSummary>,
    pub step_slowdown_while_saving: Option<f64>,
    pub steps_while_saving: u64,
    pub drain_seconds: f64,
    pub unsaved_steps_max: Option<u64>,
    pub unsaved_seconds_max: Option<f64>,
    pub pool_bytes_per_rank: u64,
}

/// Checkpoints in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferSummary {
    pub duration_seconds: Spread,
    pub rank0_seconds: Spread,
    pub pause_seconds: Spread,
    pub background_seconds: Spread,
    pub commit_seconds: Spread,
    #[serde(rename = "MB_per_second")]
    pub mb_per_second: Option<f64>,
    pub moved_bytes: u64,
    pub amplification: Option<f64>,
    pub publish_percentage: Option<f64>,
    #[serde(rename = "file_MB_per_second")]
    pub file_mb_per_second: FileRates,
    pub files: usize,
}

/// One number of every checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    pub stdev: f64,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// Rates of single files in 10^6 bytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileRates {
    pub min: Option<f64>,
    pub p10: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub max: Option<f64>,
}

impl CheckpointsSummary {
    /// `None` if nothing was saved or loaded.
    pub(super) fn new(outcome: &Outcome, summary: &Summary) -> Option<Self> {
        let all = || summary.saves.iter().chain(&summary.loads);
        all().next()?;
        let sum = |value: fn(&Transfers) -> u64| all().map(value).sum::<u64>();
        let ranks = || outcome.ranks.iter().map(|rank| &rank.saving);
        let most = |value: fn(&SavingTally) -> u64| ranks().map(value).max().unwrap_or(0);
        // Without training nothing is lost.
        let trains = summary.train.is_some();
        Some(Self {
            saves: summary.saves.as_ref().map_or(0, |saves| saves.each.len()),
            loads: summary.loads.as_ref().map_or(0, |loads| loads.each.len()),
            bytes: sum(|all| all.each.iter().map(|one| one.bytes).sum()),
            requests: sum(|all| all.requests),
            retries: sum(|all| all.retries),
            save: summary.saves.as_ref().map(TransferSummary::new),
            load: summary.loads.as_ref().map(TransferSummary::new),
            step_slowdown_while_saving: slowdown(ranks()),
            steps_while_saving: most(|tally| tally.steps_while_saving),
            drain_seconds: most(|tally| tally.drain_ns) as f64 / 1e9,
            unsaved_steps_max: trains.then(|| most(|tally| tally.unsaved_steps)),
            unsaved_seconds_max: trains.then(|| most(|tally| tally.unsaved_ns) as f64 / 1e9),
            pool_bytes_per_rank: most(|tally| tally.pool_bytes),
        })
    }
}

/// The mean time of steps during a save, as a multiple of that of the others, all ranks together.
fn slowdown<'a>(ranks: impl Iterator<Item = &'a SavingTally>) -> Option<f64> {
    let mut all = SavingTally::default();
    for rank in ranks {
        all.steps_while_saving += rank.steps_while_saving;
        all.while_saving_ns += rank.while_saving_ns;
        all.steps_alone += rank.steps_alone;
        all.alone_ns += rank.alone_ns;
    }
    if all.steps_while_saving == 0 || all.alone_ns == 0 {
        return None;
    }
    let during = all.while_saving_ns as f64 / all.steps_while_saving as f64;
    Some(during / (all.alone_ns as f64 / all.steps_alone as f64))
}

impl TransferSummary {
    fn new(all: &Transfers) -> Self {
        let spread = |value: fn(&Transfer) -> f64| Spread::new(all.each.iter().map(value));
        let file = |share| all.file_rate(share).map(|rate| rate / 1e6);
        Self {
            duration_seconds: spread(|one| one.seconds),
            rank0_seconds: spread(|one| one.rank0_seconds),
            pause_seconds: spread(|one| one.pause_seconds),
            background_seconds: spread(|one| one.background_seconds),
            commit_seconds: spread(|one| one.commit_seconds),
            mb_per_second: all.bytes_per_s().map(|rate| rate / 1e6),
            moved_bytes: all.each.iter().map(|one| one.moved_bytes).sum(),
            amplification: all.amplification(),
            publish_percentage: all.publish_share.map(|share| 100.0 * share),
            file_mb_per_second: FileRates {
                min: file(0.0),
                p10: file(0.1),
                p50: file(0.5),
                p90: file(0.9),
                max: file(1.0),
            },
            files: all.file_rates.len(),
        }
    }
}

impl Spread {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let (mean, stdev) = mean_and_stdev(&values).unwrap_or((0.0, 0.0));
        let min = values.iter().copied().reduce(f64::min);
        Self { mean, stdev, min, max: values.into_iter().reduce(f64::max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_compares_means() {
        let tally = SavingTally {
            steps_while_saving: 2,
            while_saving_ns: 30,
            steps_alone: 5,
            alone_ns: 50,
            ..SavingTally::default()
        };
        // 15 ns against 10.
        assert_eq!(slowdown([&tally].into_iter()), Some(1.5));
        assert_eq!(slowdown([&SavingTally::default()].into_iter()), None);
    }
}
