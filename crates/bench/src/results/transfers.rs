//! The numbers of saved and loaded checkpoints, from what every rank measured.

use crate::plan::Semantics;
use crate::results::metrics::mean_and_stdev;
use crate::results::outcome::{CheckpointOutcome, Direction, Outcome, RankOutcome};

const GIB: f64 = (1u64 << 30) as f64;

/// Checkpoints in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfers {
    /// Every checkpoint, in order.
    pub each: Vec<Transfer>,
    /// Rates of all files of all ranks in bytes per second, sorted.
    pub file_rates: Vec<f64>,
    /// Share of the time of all files that went into making them safe and giving them their names.
    pub publish_share: Option<f64>,
    /// Requests that were sent over a network.
    pub requests: u64,
    /// Those that repeated one which had gone wrong.
    pub retries: u64,
    /// Whose time DLIO's keys report.
    pub semantics: Semantics,
}

/// One checkpoint, all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// When it began, on rank 0's clock.
    pub begin_ns: u64,
    /// Bytes of the tensors.
    pub bytes: u64,
    /// Bytes that calls wrote or read.
    pub moved_bytes: u64,
    /// From the begin until the slowest rank was done and the checkpoint had its name.
    pub seconds: f64,
    /// From the begin until rank 0 was done with its own part.
    pub rank0_seconds: f64,
    /// How long the rank that waited longest paused.
    pub pause_seconds: f64,
    /// Time in the background of the rank with the most.
    pub background_seconds: f64,
    /// Time for giving the whole its name.
    pub commit_seconds: f64,
}

impl Transfers {
    /// Totals of all saves or of all loads; `None` without any.
    pub(crate) fn new(outcome: &Outcome, direction: Direction) -> Option<Self> {
        let of_rank = |rank: &RankOutcome| -> Vec<CheckpointOutcome> {
            let all = rank.epochs.iter().flat_map(|epoch| &epoch.checkpoints);
            all.filter(|one| one.direction == direction).cloned().collect()
        };
        let ranks: Vec<_> = outcome.ranks.iter().map(of_rank).collect();
        let count = ranks.iter().map(Vec::len).min().unwrap_or(0);
        if count == 0 {
            return None;
        }
        let of_all = |number: usize| {
            Transfer::new(&ranks.iter().map(|rank| &rank[number]).collect::<Vec<_>>())
        };
        let all = || ranks.iter().flatten();
        let files = || all().flat_map(|one| &one.files);
        let mut file_rates: Vec<f64> = files()
            .filter(|(_, ns)| *ns > 0)
            .map(|&(bytes, ns)| bytes as f64 * 1e9 / ns as f64)
            .collect();
        file_rates.sort_by(f64::total_cmp);
        let files_ns: u64 = files().map(|(_, ns)| ns).sum();
        let publish_ns: u64 = all().map(|one| one.publish_ns).sum();
        Some(Self {
            each: (0..count).map(of_all).collect(),
            file_rates,
            publish_share: (files_ns > 0).then(|| publish_ns as f64 / files_ns as f64),
            requests: all().map(|one| one.requests).sum(),
            retries: all().map(|one| one.retries).sum(),
            semantics: outcome.plan.semantics,
        })
    }

    /// What DLIO's keys report: the time of rank 0 as DLIO does, or that of the whole.
    fn reported(&self, one: &Transfer) -> f64 {
        match self.semantics {
            Semantics::Feedline => one.seconds,
            Semantics::Dlio => one.rank0_seconds,
        }
    }

    /// Mean and standard deviation of the seconds.
    pub fn seconds(&self) -> (f64, f64) {
        let seconds: Vec<_> = self.each.iter().map(|one| self.reported(one)).collect();
        mean_and_stdev(&seconds).unwrap_or((0.0, 0.0))
    }

    /// Mean and standard deviation of GiB a second; a checkpoint that took no time has none.
    pub fn gib_per_s(&self) -> (f64, f64) {
        let timed = self.each.iter().filter(|one| self.reported(one) > 0.0);
        let rates: Vec<_> = timed.map(|one| one.bytes as f64 / GIB / self.reported(one)).collect();
        mean_and_stdev(&rates).unwrap_or((0.0, 0.0))
    }

    /// GiB of the last checkpoint.
    pub fn size_gib(&self) -> f64 {
        self.each.last().map_or(0.0, |one| one.bytes as f64 / GIB)
    }

    /// Bytes of all tensors by the seconds in which any checkpoint was moved: what was really sustained,
    /// which the mean of rates is not. Asynchronous saves may overlap.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let mut spans: Vec<(f64, f64)> = self.each.iter().map(Transfer::span).collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut seconds, mut covered) = (0.0, 0.0);
        for (begin, end) in spans {
            seconds += (end - f64::max(begin, covered)).max(0.0);
            covered = f64::max(covered, end);
        }
        let bytes: u64 = self.each.iter().map(|one| one.bytes).sum();
        (seconds > 0.0).then(|| bytes as f64 / seconds)
    }

    /// Bytes that calls moved for each byte of a tensor.
    pub fn amplification(&self) -> Option<f64> {
        let sum = |value: fn(&Transfer) -> u64| self.each.iter().map(value).sum::<u64>();
        let bytes = sum(|one| one.bytes);
        (bytes > 0).then(|| sum(|one| one.moved_bytes) as f64 / bytes as f64)
    }

    /// The rate that this share of the files did not exceed.
    pub fn file_rate(&self, share: f64) -> Option<f64> {
        let last = self.file_rates.len().checked_sub(1)?;
        // The nearest rank: the smallest value with at least that share at or below it.
        let place = (share * self.file_rates.len() as f64).ceil() as usize;
        Some(self.file_rates[place.saturating_sub(1).min(last)])
    }
}

impl Transfer {
    /// Seconds at which it began and ended.
    fn span(&self) -> (f64, f64) {
        let begin = self.begin_ns as f64 / 1e9;
        (begin, begin + self.seconds)
    }

    fn new(ranks: &[&CheckpointOutcome]) -> Self {
        let most = |value: &dyn Fn(&CheckpointOutcome) -> f64| {
            ranks.iter().map(|one| value(one)).fold(0.0, f64::max)
        };
        let own = |one: &CheckpointOutcome| one.end.seconds_since(&one.start);
        let commit_seconds = most(&|one| one.commit_ns as f64 / 1e9);
        Self {
            begin_ns: ranks.first().map_or(0, |one| one.start.ns),
            bytes: ranks.iter().map(|one| one.bytes).sum(),
            moved_bytes: ranks.iter().map(|one| one.moved_bytes).sum(),
            seconds: most(&own) + commit_seconds,
            rank0_seconds: ranks.first().map_or(0.0, |one| own(one)),
            pause_seconds: most(&|one| one.pause_ns as f64 / 1e9),
            background_seconds: most(&|one| one.background_ns as f64 / 1e9),
            commit_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(each: Vec<Transfer>, file_rates: Vec<f64>) -> Transfers {
        Transfers {
            each,
            file_rates,
            publish_share: None,
            requests: 0,
            retries: 0,
            semantics: Semantics::Feedline,
        }
    }

    fn one(gib: u64, seconds: f64, rank0_seconds: f64) -> Transfer {
        let bytes = gib << 30;
        Transfer {
            bytes,
            moved_bytes: bytes * 5 / 4,
            seconds,
            rank0_seconds,
            ..Transfer::default()
        }
    }

    #[test]
    fn a_cached_load_lifts_the_mean_of_rates_and_not_what_was_sustained() {
        let mut all = transfers(vec![one(8, 4.0, 2.0), one(8, 1.0, 1.0)], Vec::new());
        assert_eq!(all.seconds(), (2.5, 1.5));
        assert_eq!(all.gib_per_s(), (5.0, 3.0));
        all.each[1].begin_ns = 10_000_000_000;
        assert_eq!(all.bytes_per_s(), Some(16.0 * GIB / 5.0));
        // From 0 to 4 s and from 3.5 to 4.5 s.
        all.each[1].begin_ns = 3_500_000_000;
        assert_eq!(all.bytes_per_s(), Some(16.0 * GIB / 4.5));
        assert_eq!(all.amplification(), Some(1.25));
        assert_eq!(all.size_gib(), 8.0);
        all.semantics = Semantics::Dlio;
        assert_eq!(all.seconds(), (1.5, 0.5));
        assert_eq!(all.gib_per_s(), (6.0, 2.0));
    }

    #[test]
    fn percentiles_of_files_are_values_that_occur() {
        let all = transfers(Vec::new(), vec![1.0, 2.0, 3.0, 4.0]);
        let found = [0.0, 0.25, 0.26, 0.5, 0.9, 1.0].map(|share| all.file_rate(share));
        assert_eq!(found, [1.0, 1.0, 2.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!(transfers(Vec::new(), Vec::new()).file_rate(0.5), None);
    }
}
