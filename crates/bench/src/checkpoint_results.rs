//! What `summary.json` says of checkpoints beside DLIO's keys.

use serde_json::{Value, json};

use crate::metrics::mean_and_stdev;
use crate::outcome::{Outcome, SavingTally};
use crate::summary::Summary;
use crate::transfers::{Transfer, Transfers};

/// Everything about saves and loads; null if there were none.
pub(crate) fn object(outcome: &Outcome, summary: &Summary) -> Option<Value> {
    let all = || summary.saves.iter().chain(&summary.loads);
    all().next()?;
    let sum = |value: fn(&Transfers) -> u64| all().map(value).sum::<u64>();
    let ranks = || outcome.ranks.iter().map(|rank| &rank.saving);
    let most = |value: fn(&SavingTally) -> u64| ranks().map(value).max().unwrap_or(0);
    // Without training nothing is lost.
    let trains = summary.train.is_some();
    Some(json!({
        "saves": summary.saves.as_ref().map_or(0, |saves| saves.each.len()),
        "loads": summary.loads.as_ref().map_or(0, |loads| loads.each.len()),
        "bytes": sum(|all| all.each.iter().map(|one| one.bytes).sum()),
        "requests": sum(|all| all.requests),
        "retries": sum(|all| all.retries),
        "save": summary.saves.as_ref().map(transfers),
        "load": summary.loads.as_ref().map(transfers),
        "step_slowdown_while_saving": slowdown(ranks()),
        "steps_while_saving": most(|tally| tally.steps_while_saving),
        "drain_seconds": most(|tally| tally.drain_ns) as f64 / 1e9,
        "unsaved_steps_max": trains.then(|| most(|tally| tally.unsaved_steps)),
        "unsaved_seconds_max": trains.then(|| most(|tally| tally.unsaved_ns) as f64 / 1e9),
        "pool_bytes_per_rank": most(|tally| tally.pool_bytes),
    }))
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

fn transfers(all: &Transfers) -> Value {
    let spread = |value: fn(&Transfer) -> f64| {
        let values: Vec<f64> = all.each.iter().map(value).collect();
        let (mean, stdev) = mean_and_stdev(&values).unwrap_or((0.0, 0.0));
        json!({
            "mean": mean,
            "stdev": stdev,
            "min": values.iter().copied().reduce(f64::min),
            "max": values.iter().copied().reduce(f64::max),
        })
    };
    let file = |share| all.file_rate(share).map(|rate| rate / 1e6);
    json!({
        "duration_seconds": spread(|one| one.seconds),
        "rank0_seconds": spread(|one| one.rank0_seconds),
        "pause_seconds": spread(|one| one.pause_seconds),
        "background_seconds": spread(|one| one.background_seconds),
        "commit_seconds": spread(|one| one.commit_seconds),
        "MB_per_second": all.bytes_per_s().map(|rate| rate / 1e6),
        "moved_bytes": all.each.iter().map(|one| one.moved_bytes).sum::<u64>(),
        "amplification": all.amplification(),
        "publish_percentage": all.publish_share.map(|share| 100.0 * share),
        "file_MB_per_second": {
            "min": file(0.0),
            "p10": file(0.1),
            "p50": file(0.5),
            "p90": file(0.9),
            "max": file(1.0),
        },
        "files": all.file_rates.len(),
    })
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
