//! Findings: what costs time and what to do about it, the most expensive first.
//!
//! Findings are ordered by the stalled time that they explain, not by the order of the rules. A rule applies
//! only if the trace has the data that it needs, and states its threshold. No rule assumes site-specific numbers.

mod causes;
mod job;
mod loader;
mod patterns;

use crate::analysis::{Analysis, Answer, Coverage, Finding};
use crate::layer::StallCause;
use crate::saturating::Total;
use crate::wording::{percent, seconds};

/// Stalls below this share of step time are negligible.
const FED_SHARE: f64 = 0.05;

/// Declares the thresholds: fields with their defaults, and the names that set them.
macro_rules! thresholds {
    ($($(#[$doc:meta])* $field:ident: $kind:ident = $default:expr, $name:literal;)*) => {
        /// When each rule applies. Shares are fractions of one.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Thresholds {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Thresholds {
            /// The names that `--threshold NAME=VALUE` accepts.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// Sets a threshold by its name. False if the name is unknown, or the value negative or not finite.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                if !value.is_finite() || value < 0.0 {
                    return false;
                }
                match name {
                    $($name => self.$field = value as $kind,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

thresholds! {
    /// Least share of the step time of all ranks that a cause must stall.
    cause_share: f64 = 0.01, "cause-share";
    /// Least share of step time spent waiting for stalled ranks.
    straggler_share: f64 = 0.01, "straggler-share";
    /// Least share of the run time of all ranks spent waiting for checkpoints.
    checkpoint_share: f64 = 0.02, "checkpoint-share";
    /// Reads are small if their mean size is below this.
    small_read_bytes: u64 = 256 << 10, "small-read-bytes";
    /// Least share of opens, closes and stats in all calls.
    metadata_calls_share: f64 = 0.3, "metadata-calls-share";
    /// Bytes read, divided by what one pass per epoch would read.
    reread_factor: f64 = 1.2, "reread-factor";
    /// Least share of reads that do not begin where the previous one ended.
    random_share: f64 = 0.5, "random-share";
    /// How many times slower than the median a file or folder must be.
    slow_target_factor: f64 = 3.0, "slow-target-factor";
    /// Coefficient of variation of bytes or samples over ranks.
    imbalance: f64 = 0.1, "imbalance";
    /// How many times longer than later epochs the first one must stall.
    cold_factor: f64 = 2.0, "cold-factor";
}

/// All findings of a trace, the most expensive first.
pub(crate) fn findings(analysis: &Analysis, thresholds: &Thresholds) -> Vec<Finding> {
    let context = RuleContext { analysis, thresholds };
    let mut found = Vec::new();
    if analysis.health.coverage != Coverage::CallsOnly {
        found.extend(causes::findings(&context));
        found.extend(loader::findings(&context));
        found.extend(job::findings(&context));
    }
    found.extend(patterns::findings(&context));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.explains_ns));
    if analysis.verdict.answer == Answer::NotInputBound {
        // Only findings that cost more than negligible stalls come before it.
        let heavy = found.iter().take_while(|finding| finding.severity >= FED_SHARE).count();
        found.insert(heavy, job::not_input_bound(&context));
    }
    found
}

/// What rules look at: the analysis so far, and the thresholds.
pub(crate) struct RuleContext<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) thresholds: &'a Thresholds,
}

impl RuleContext<'_> {
    /// Stalled time of some causes together.
    pub(crate) fn stalled_ns(&self, causes: &[StallCause]) -> u64 {
        let all = self.analysis.stall.iter().filter(|time| causes.contains(&time.cause));
        all.map(|time| time.ns).total()
    }

    /// A time as a share of the step time of all ranks, or of the run time if there are no steps.
    pub(crate) fn severity(&self, ns: u64) -> f64 {
        let steps = self.analysis.verdict.step_ns;
        let whole = if steps > 0 { steps } else { self.analysis.trace.run_ns };
        ns as f64 / whole.max(1) as f64
    }

    /// Mean share of their lives that workers spend on batches, over ranks that have workers.
    pub(crate) fn busy_share(&self) -> f64 {
        let ranks = self.analysis.ranks.iter().filter(|rank| rank.workers > 0);
        let (count, sum) =
            ranks.fold((0.0, 0.0), |(n, sum), it| (n + 1.0, sum + it.workers_busy_share));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Evidence about the loader: workers, batches in flight, and how busy the workers were.
    pub(crate) fn worker_rows(&self) -> Vec<[String; 2]> {
        let what_if = &self.analysis.what_if;
        let mut rows = vec![row("workers per rank", what_if.workers.to_string())];
        if what_if.outstanding > 0 {
            let most = what_if.outstanding.to_string();
            rows.push(row("batches in flight per rank, at most", most));
        }
        rows.push(row("workers busy", percent(self.busy_share())));
        rows
    }

    /// A finding with the fields that all rules fill in the same way.
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

/// A row of evidence with a time and its share of something.
pub(crate) fn time_row(name: &str, ns: u64, share: f64) -> [String; 2] {
    row(name, format!("{} ({})", seconds(ns), percent(share)))
}
