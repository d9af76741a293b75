//! The ranks of this process, each on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use feedline_clock::Clock;
use feedline_ranks::{Member, Ranks, Team};

use crate::error::{BenchError, Result};
use crate::results::outcome::RankOutcome;
use crate::results::step_log::StepLog;
use crate::spans;

/// Works on every rank of this process. The error of the rank that failed first is the run's error.
pub(crate) fn on_ranks(
    (clock, stop): (&Clock, &AtomicBool),
    team: &Team,
    work: &(impl Fn(&Member) -> Result<RankOutcome> + Sync),
) -> Result<Vec<RankOutcome>> {
    let ranks = team.members(clock);
    let results = Mutex::new(Vec::new());
    clock.scope(|scope| {
        for rank in &ranks {
            let store = |result| {
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push((rank.rank(), result));
            };
            let name = format!("rank {}", rank.rank());
            let started = scope.spawn(name.clone(), move || store(one_rank(rank, stop, work)));
            if let Err(source) = started {
                rank.abort("cannot start its thread");
                store(Err(BenchError::NoThread { name, source }));
                break;
            }
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(rank, _)| *rank);
    let own_failure = |result: &Result<RankOutcome>| matches!(result, Err(error) if !matches!(error, BenchError::Aborted(_)));
    if let Some(place) = results.iter().position(|(_, result)| own_failure(result)) {
        return Err(results.swap_remove(place).1.err().expect("found as a failure"));
    }
    results.into_iter().map(|(_, result)| result).collect()
}

pub(crate) fn step_log(out: &Path) -> Result<StepLog> {
    StepLog::create(out)
        .map_err(|source| BenchError::Output { file: out.display().to_string(), source })
}

fn one_rank(
    rank: &Member,
    stop: &AtomicBool,
    work: &impl Fn(&Member) -> Result<RankOutcome>,
) -> Result<RankOutcome> {
    let _span = spans::ROOT.begin();
    // A rank that panics must end the others too, which would wait for it at the next barrier.
    let result = catch_unwind(AssertUnwindSafe(|| work(rank)));
    let result = result.unwrap_or(Err(BenchError::RankPanicked { rank: rank.rank() }));
    if let Err(error) = &result {
        rank.abort(&error.to_string());
        // Readers, sleeps and evaluations of the other ranks have no meeting to hear of it in.
        stop.store(true, Ordering::Relaxed);
    }
    result
}
