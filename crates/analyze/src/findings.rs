//! What costs time, and what to do about it, the most expensive first.
//!
//! A finding says which stalled seconds it explains; that is its rank, not the order of rules. A rule speaks
//! only if what it rests on is in the trace, and says its threshold. No rule knows a site's figures.

mod causes;
mod job;
mod loader;
mod patterns;

use crate::analysis::{Analysis, Answer, Confidence, Coverage, Finding};
use crate::layer::Cause;
use crate::saturating::Total;
use crate::wording::{percent, seconds};

/// Stalls below this share of step time are none to speak of.
const FED_SHARE: f64 = 0.05;

/// From when on rules speak. Shares are fractions of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A cause, by its share of the step time of all ranks.
    pub cause_share: f64,
    /// Waiting for stalled ranks, by its share of the step time.
    pub straggler_share: f64,
    /// Standing still for checkpoints, by its share of the run time of all ranks.
    pub checkpoint_share: f64,
    /// Reads are small if their mean is below this.
    pub small_read_bytes: u64,
    /// Opens, closes and stats by all calls.
    pub metadata_calls_share: f64,
    /// Bytes read by what one pass an epoch would read.
    pub reread_factor: f64,
    /// Reads that do not begin where the last one ended.
    pub random_share: f64,
    /// How many times slower than the median a file or folder is.
    pub slow_target_factor: f64,
    /// Spread of bytes or samples over ranks: standard deviation by mean.
    pub imbalance: f64,
    /// How many times the stall of later epochs the first one has.
    pub cold_factor: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            cause_share: 0.01,
            straggler_share: 0.01,
            checkpoint_share: 0.02,
            small_read_bytes: 256 << 10,
            metadata_calls_share: 0.3,
            reread_factor: 1.2,
            random_share: 0.5,
            slow_target_factor: 3.0,
            imbalance: 0.1,
            cold_factor: 2.0,
        }
    }
}

impl Thresholds {
    /// Their names, for `--threshold NAME=VALUE`.
    pub const NAMES: [&'static str; 10] = [
        "cause-share",
        "straggler-share",
        "checkpoint-share",
        "small-read-bytes",
        "metadata-calls-share",
        "reread-factor",
        "random-share",
        "slow-target-factor",
        "imbalance",
        "cold-factor",
    ];

    /// Sets one by its name; false if there is none of that name, or no such value.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        if !value.is_finite() || value < 0.0 {
            return false;
        }
        let place = match name {
            "cause-share" => &mut self.cause_share,
            "straggler-share" => &mut self.straggler_share,
            "checkpoint-share" => &mut self.checkpoint_share,
            "small-read-bytes" => {
                self.small_read_bytes = value as u64;
                return true;
            }
            "metadata-calls-share" => &mut self.metadata_calls_share,
            "reread-factor" => &mut self.reread_factor,
            "random-share" => &mut self.random_share,
            "slow-target-factor" => &mut self.slow_target_factor,
            "imbalance" => &mut self.imbalance,
            "cold-factor" => &mut self.cold_factor,
            _ => return false,
        };
        *place = value;
        true
    }
}

/// All findings of a trace, the most expensive first.
pub(crate) fn findings(analysis: &Analysis, thresholds: &Thresholds) -> Vec<Finding> {
    let case = Case { analysis, thresholds };
    let mut found = Vec::new();
    if analysis.health.coverage != Coverage::CallsOnly {
        found.extend(causes::findings(&case));
        loader::add(&case, &mut found);
        found.extend(job::findings(&case));
    }
    found.extend(patterns::findings(&case));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.explains_ns));
    if analysis.verdict.answer == Answer::NotInputBound {
        // Only what costs more than such stalls comes first.
        let heavy = found.iter().take_while(|finding| finding.severity >= FED_SHARE).count();
        found.insert(heavy, job::not_input_bound(&case));
    }
    found
}

/// What rules look at.
pub(crate) struct Case<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) thresholds: &'a Thresholds,
}

impl Case<'_> {
    /// Stalled time of causes.
    pub(crate) fn stalled_ns(&self, causes: &[Cause]) -> u64 {
        let all = self.analysis.stall.iter().filter(|time| causes.contains(&time.cause));
        all.map(|time| time.ns).total()
    }

    /// A time by the step time of all ranks; by the run time if there are no steps.
    pub(crate) fn severity(&self, ns: u64) -> f64 {
        let steps = self.analysis.verdict.step_ns;
        let whole = if steps > 0 { steps } else { self.analysis.trace.run_ns };
        ns as f64 / whole.max(1) as f64
    }

    /// A finding with what all of them have.
    pub(crate) fn finding(&self, code: &str, title: String, explains_ns: u64) -> Finding {
        Finding {
            code: code.to_owned(),
            title,
            explains_ns,
            severity: self.severity(explains_ns),
            confidence: self.analysis.verdict.confidence,
            ..Finding::default()
        }
    }
}

/// A row of evidence.
pub(crate) fn row(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.to_owned(), value.into()]
}

/// A row that says how much time something is, and of what.
pub(crate) fn time_row(name: &str, ns: u64, share: f64) -> [String; 2] {
    row(name, format!("{} ({})", seconds(ns), percent(share)))
}

/// The lesser of how sure two things are.
pub(crate) fn at_most(confidence: Confidence, limit: Confidence) -> Confidence {
    confidence.min(limit)
}
