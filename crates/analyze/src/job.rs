//! The whole job, from the steps of its ranks: who waited for whom, epochs, checkpoints, the verdict.
//!
//! Ranks of one step are found by phase, epoch and step. [`meeting::settle`] comes first: it adds what
//! ranks waited for others to their stalls, which all others count.

pub(crate) mod checkpoints;
pub(crate) mod epochs;
pub(crate) mod meeting;
pub(crate) mod verdict;

pub(crate) mod joined;

use crate::analysis::CauseTime;
use crate::layer::{CAUSES, StallCause};
use crate::saturating::Total;
use crate::steps::{NsByCause, RankSteps};

/// Stalled time of the training steps of all ranks by cause, largest first; only causes that have any.
pub(crate) fn stall_by_cause(units: &[RankSteps]) -> Vec<CauseTime> {
    let mut parts: NsByCause = [0; CAUSES];
    for step in units.iter().flat_map(RankSteps::training) {
        parts.iter_mut().zip(step.parts_ns).for_each(|(sum, ns)| *sum += ns);
    }
    let all: u64 = parts.iter().copied().total();
    let times = StallCause::ALL.into_iter().map(|cause| (cause, parts[cause as usize]));
    let mut times: Vec<CauseTime> = times
        .filter(|(_, ns)| *ns > 0)
        .map(|(cause, ns)| CauseTime { cause, ns, share: ns as f64 / all as f64 })
        .collect();
    times.sort_by_key(|time| (std::cmp::Reverse(time.ns), time.cause));
    times
}

/// The mean of whole numbers, rounded down; nothing of nothing.
fn mean(values: impl ExactSizeIterator<Item = u64>) -> Option<u64> {
    let count = values.len() as u64;
    let sum: u128 = values.map(u128::from).sum();
    (count > 0).then(|| (sum / u128::from(count)) as u64)
}
