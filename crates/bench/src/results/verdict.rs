//! The answer in one word: were the accelerators fed, and if not, what starved them.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::results::metrics::Split;
use crate::results::summary::Summary;

/// Whom the accelerators waited for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Storage calls.
    Storage,
    /// Decoding, checking and preprocessing of bytes that were there.
    Decode,
    /// The framework itself: its interpreter, handing batches over, starting workers.
    Framework,
    /// Reader threads that were not running or were handing over.
    Workers,
    /// Other ranks.
    Peers,
}

impl Cause {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Decode => "decode",
            Self::Framework => "framework",
            Self::Workers => "workers",
            Self::Peers => "peers",
        }
    }
}

/// What the run says about the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The utilization reached the target.
    Fed {
        /// The utilization that was judged.
        au_percent: f64,
        /// The target.
        target_percent: f64,
    },
    /// It did not.
    Starved {
        /// The utilization that was judged.
        au_percent: f64,
        /// The target.
        target_percent: f64,
        /// What the accelerators waited for most.
        by: Cause,
        /// Its share of all step time.
        share_percent: f64,
    },
    /// The workload computes nothing: the run read as fast as it could.
    Unpaced,
    /// Too few steps count for a judgment.
    TooShort,
    /// Nothing was trained.
    NotTrained,
}

impl Verdict {
    /// Judges a run against `target` (a fraction), by DLIO's utilization where `basis` allows it.
    pub fn new(summary: &Summary, target: f64, basis: Basis) -> Self {
        let Some(train) = &summary.train else { return Self::NotTrained };
        let strict = &summary.strict;
        if strict.counted_steps == 0 {
            return Self::TooShort;
        }
        if strict.asked_ns == 0 {
            return Self::Unpaced;
        }
        let au_percent = match basis {
            Basis::Dlio => train.au().map_or(0.0, |(mean, _)| mean),
            Basis::Strict => strict.au_percent.unwrap_or(0.0),
        };
        let target_percent = 100.0 * target;
        if au_percent >= target_percent {
            return Self::Fed { au_percent, target_percent };
        }
        let (by, share_percent) = main_cause(&strict.split);
        Self::Starved { au_percent, target_percent, by, share_percent }
    }

    /// The word for it in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Fed { .. } => "fed",
            Self::Starved { .. } => "starved",
            Self::Unpaced => "unpaced",
            Self::TooShort => "too_short",
            Self::NotTrained => "not_trained",
        }
    }
}

fn main_cause(split: &Split) -> (Cause, f64) {
    let waits = [
        (Cause::Storage, split.storage_ns),
        (Cause::Decode, split.decode_ns),
        (Cause::Framework, split.framework_ns),
        (Cause::Workers, split.worker_ns),
        (Cause::Peers, split.peers_ns),
    ];
    let (cause, ns) = waits
        .into_iter()
        .fold((Cause::Storage, 0), |best, wait| if wait.1 > best.1 { wait } else { best });
    (cause, 100.0 * ns as f64 / split.total_ns().max(1) as f64)
}

/// Which utilization a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// DLIO's, which the target refers to.
    Dlio,
    /// The strict one: the steps that DLIO counts are no more than the batches that are read ahead,
    /// so all of them can come out of the step that it leaves out.
    Strict,
}

impl Basis {
    pub(crate) fn of(plan: &Plan) -> Self {
        let Some(phase) = &plan.train else { return Self::Dlio };
        let window = phase.window;
        let counted = window.expected.saturating_sub(window.skip_start + window.skip_end);
        if counted <= plan.reading.ahead() { Self::Strict } else { Self::Dlio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::summary::{Series, Strict};

    fn summary(au: f64, strict_au: f64, split: Split) -> Summary {
        Summary {
            train: Some(Series { au_percent: vec![Some(au)], throughput: vec![None] }),
            eval: None,
            saves: None,
            loads: None,
            strict: Strict {
                au_percent: Some(strict_au),
                asked_ns: split.compute_ns,
                split,
                steps: 10,
                counted_steps: 9,
                ..Strict::default()
            },
            rank_done_s: Some((60.0, 60.0)),
            cached_share: vec![Some(0.0)],
        }
    }

    const SPLIT: Split = Split {
        storage_ns: 30,
        decode_ns: 20,
        framework_ns: 0,
        worker_ns: 5,
        peers_ns: 5,
        compute_ns: 40,
        behind_ns: 0,
    };

    #[test]
    fn the_largest_wait_is_the_cause() {
        let check = |split: Split, by, share_percent| {
            let expected =
                Verdict::Starved { au_percent: 40.0, target_percent: 90.0, by, share_percent };
            assert_eq!(Verdict::new(&summary(40.0, 39.0, split), 0.9, Basis::Dlio), expected);
        };
        check(SPLIT, Cause::Storage, 30.0);
        check(Split { storage_ns: 5, decode_ns: 45, ..SPLIT }, Cause::Decode, 45.0);
        check(Split { storage_ns: 5, framework_ns: 25, ..SPLIT }, Cause::Framework, 25.0);
        check(Split { storage_ns: 5, worker_ns: 30, ..SPLIT }, Cause::Workers, 30.0);
        check(Split { storage_ns: 0, peers_ns: 35, ..SPLIT }, Cause::Peers, 35.0);
    }

    #[test]
    fn the_target_is_reached_at_the_target() {
        let fed = Verdict::Fed { au_percent: 90.0, target_percent: 90.0 };
        assert_eq!(Verdict::new(&summary(90.0, 20.0, SPLIT), 0.9, Basis::Dlio), fed);
    }

    #[test]
    fn a_run_that_lives_on_what_was_read_ahead_is_judged_strictly() {
        let verdict = Verdict::new(&summary(99.0, 20.0, SPLIT), 0.9, Basis::Strict);
        assert!(matches!(verdict, Verdict::Starved { au_percent: 20.0, .. }), "{verdict:?}");
    }

    #[test]
    fn runs_without_computation_or_steps_are_not_judged() {
        let idle = Split { compute_ns: 0, ..SPLIT };
        assert_eq!(Verdict::new(&summary(0.0, 0.0, idle), 0.9, Basis::Dlio), Verdict::Unpaced);
        let mut short = summary(0.0, 0.0, SPLIT);
        short.strict.counted_steps = 0;
        assert_eq!(Verdict::new(&short, 0.9, Basis::Dlio), Verdict::TooShort);
        short.train = None;
        assert_eq!(Verdict::new(&short, 0.9, Basis::Dlio), Verdict::NotTrained);
    }
}
