//! What the last screen shows of a run.
//!
//! Not the [`Outcome`] itself, because that holds the ranks' step logs and cannot be made by hand:
//! the screen is a function of these values alone.

use feedline_bench::{Generated, Outcome, Plan, Report, Summary, results};
use serde_json::Value;

/// Everything that the last screen shows.
#[derive(Clone)]
pub struct Shown<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// The metrics.
    pub summary: &'a Summary,
    /// The verdict and what goes with it.
    pub report: &'a Report,
    /// The data generation, if there was one.
    pub generated: Option<Generated>,
    /// What the training readers asked of the store.
    pub storage: StorageCounts,
    /// Checkpoints that were saved.
    pub checkpoints: u64,
    /// Things that the run found worth saying.
    pub warnings: &'a [String],
    /// True if the run was stopped before its end.
    pub interrupted: bool,
    /// Where the result files are.
    pub out_folder: &'a str,
}

/// What the training readers asked of the store, all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageCounts {
    /// Read calls.
    pub reads: u64,
    /// Bytes that they moved.
    pub read_bytes: u64,
    /// Time that half of the reads did not exceed, in seconds.
    pub p50_s: Option<f64>,
    /// Time that 99 % of the reads did not exceed, in seconds.
    pub p99_s: Option<f64>,
    /// Open calls.
    pub opens: u64,
}

impl<'a> Shown<'a> {
    /// Picks the values out of a run's results.
    pub fn new(
        outcome: &'a Outcome,
        summary: &'a Summary,
        report: &'a Report,
        out_folder: &'a str,
    ) -> Self {
        let json = results::summary_json(outcome, summary, report);
        let saves = outcome
            .ranks
            .first()
            .map_or(0, |rank| rank.epochs.iter().map(|epoch| epoch.checkpoints.len() as u64).sum());
        Self {
            plan: &outcome.plan,
            summary,
            report,
            generated: outcome.generated,
            storage: StorageCounts::from_json(&json["feedline"]["storage"]),
            checkpoints: saves,
            warnings: &outcome.warnings,
            interrupted: outcome.interrupted,
            out_folder,
        }
    }

    /// True if there are training numbers.
    pub(crate) fn trained(&self) -> bool {
        self.summary.train.is_some()
    }
}

impl StorageCounts {
    /// From the object `feedline.storage` of `summary.json`; operations without calls are not in it.
    fn from_json(storage: &Value) -> Self {
        let (read, open) = (&storage["read"], &storage["open"]);
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let seconds = |quantile: &str| read["latency_us"][quantile].as_f64().map(|us| us / 1e6);
        Self {
            reads: number(&read["calls"]),
            read_bytes: number(&read["bytes"]),
            p50_s: seconds("p50"),
            p99_s: seconds("p99"),
            opens: number(&open["calls"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_come_from_the_summary_file() {
        let storage = json!({
            "open": {"calls": 168},
            "read": {"calls": 4200, "bytes": 24_600_000_000u64, "latency_us": {"p50": 1200.0, "p99": 8400.0}},
        });
        let expected = StorageCounts {
            reads: 4200,
            read_bytes: 24_600_000_000,
            p50_s: Some(0.0012),
            p99_s: Some(0.0084),
            opens: 168,
        };
        assert_eq!(StorageCounts::from_json(&storage), expected);
        assert_eq!(StorageCounts::from_json(&json!({})), StorageCounts::default());
    }
}
