//! Ranks that meet: who came last, who waited for that one, and what it cost.
//!
//! A rank that waits in a collective for one that was stalled is stalled too: from its own arrival to the
//! last one's, but no longer than the last one's own stall of that step. The rest of the collective is
//! communication.

use std::collections::BTreeMap;

use crate::analysis::{Straggler, Stragglers};
use crate::job::joined;
use crate::layer::{CAUSES, StallCause};
use crate::saturating::grow;
use crate::steps::{RankSteps, StepRecord};

/// Time that others waited for a rank's stalls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The rank that was late.
    pub(crate) rank: u32,
    /// The largest cause of its stalls in those steps, taken step by step.
    pub(crate) cause: StallCause,
    /// What others waited, added up.
    pub(crate) ns: u64,
}

/// Adds what ranks waited for others' stalls to theirs, and gives who is charged with how much, in the
/// order of ranks and causes; and the ledger of stragglers, which knows own time only.
pub(crate) fn settle(units: &mut [RankSteps]) -> (Stragglers, Vec<Charge>) {
    let mut ledger =
        Ledger { accounts: vec![Account::default(); units.len()], ..Ledger::default() };
    let mut charges: BTreeMap<(u32, StallCause), u64> = BTreeMap::new();
    for of_phase in joined::phases(units).into_values() {
        for together in joined::steps(units, &of_phase).into_values() {
            if together.len() > 1 {
                ledger.add(units, &together);
                charge(units, &together, &mut charges);
            }
        }
    }
    let charges = charges.into_iter().map(|((rank, cause), ns)| Charge { rank, cause, ns });
    (ledger.finish(units), charges.collect())
}

fn charge(
    units: &mut [RankSteps],
    together: &[(usize, usize)],
    charges: &mut BTreeMap<(u32, StallCause), u64>,
) {
    let arrival = |(unit, row): &(usize, usize)| units[*unit].steps[*row].meets_ns;
    let arrivals = together.iter().filter_map(|place| Some((arrival(place)?.0, *place)));
    let Some((last_ns, late)) = arrivals.rev().max_by_key(|(arrival_ns, _)| *arrival_ns) else {
        return;
    };
    let late_step = &units[late.0].steps[late.1];
    let (most, cause) = (late_step.stall_ns, late_step.main_cause());
    let Some(cause) = cause else { return };
    let mut sum = 0;
    for (unit, row) in together.iter().filter(|place| **place != late) {
        let step = &mut units[*unit].steps[*row];
        let Some((start_ns, end_ns)) = step.meets_ns else { continue };
        let wait_ns = end_ns.min(last_ns).saturating_sub(start_ns).max(0).cast_unsigned().min(most);
        grow(&mut step.stall_ns, wait_ns);
        grow(&mut step.parts_ns[StallCause::Peer as usize], wait_ns);
        if wait_ns > 0 {
            let until_ns = start_ns.saturating_add_unsigned(wait_ns);
            units[*unit].peer_stalls_ns.push((start_ns, until_ns));
        }
        grow(&mut sum, wait_ns);
    }
    if sum > 0 {
        *charges.entry((units[late.0].rank, cause)).or_default() += sum;
    }
}

/// What a rank did itself: until it met the others, or all of the step if it did not.
fn own_ns(step: &StepRecord) -> u64 {
    match step.meets_ns {
        Some((meets_ns, _)) => meets_ns.saturating_sub(step.start_ns).max(0).cast_unsigned(),
        None => step.duration_ns(),
    }
}

/// Ranks that were the slowest.
#[derive(Default)]
struct Ledger {
    steps: u64,
    lost_ns: u64,
    median_ns: u64,
    accounts: Vec<Account>,
}

#[derive(Clone, Default)]
struct Account {
    steps: u64,
    lost_ns: u64,
    /// By cause, and of computation: how much longer than the median rank.
    longer_ns: [i64; CAUSES + 1],
}

impl Ledger {
    fn add(&mut self, units: &[RankSteps], together: &[(usize, usize)]) {
        let step = |(unit, row): (usize, usize)| &units[unit].steps[row];
        let mut times: Vec<(u64, (usize, usize))> =
            together.iter().map(|place| (own_ns(step(*place)), *place)).collect();
        times.sort_unstable();
        // Of an even number of ranks the lower of the two in the middle: with two ranks, what one of them
        // waits for the other is lost.
        let (median_ns, median) = times[(times.len() - 1) / 2];
        let most_ns = times[times.len() - 1].0;
        let slowest =
            times.iter().find(|(ns, _)| *ns == most_ns).map_or(median, |(_, place)| *place);
        self.steps += 1;
        grow(&mut self.median_ns, median_ns);
        grow(&mut self.lost_ns, most_ns - median_ns);
        if most_ns == median_ns {
            return;
        }
        let account = &mut self.accounts[slowest.0];
        account.steps += 1;
        grow(&mut account.lost_ns, most_ns - median_ns);
        let (slow, usual) = (step(slowest), step(median));
        let pairs = slow.parts_ns.iter().zip(&usual.parts_ns);
        let pairs = pairs.chain([(&slow.compute_ns, &usual.compute_ns)]);
        for (sum, (slow, usual)) in account.longer_ns.iter_mut().zip(pairs) {
            *sum += slow.cast_signed() - usual.cast_signed();
        }
    }

    fn finish(self, units: &[RankSteps]) -> Stragglers {
        let steps = self.steps.max(1) as f64;
        let accounts = self.accounts.iter().zip(units).filter(|(account, _)| account.lost_ns > 0);
        let mut ranks: Vec<Straggler> = accounts
            .map(|(account, unit)| Straggler {
                rank: unit.rank,
                host: unit.host.clone(),
                slowest_steps: account.steps,
                slowest_share: account.steps as f64 / steps,
                lost_ns: account.lost_ns,
                because: account.because().to_owned(),
                ..Straggler::default()
            })
            .collect();
        ranks.sort_by_key(|rank| (std::cmp::Reverse(rank.lost_ns), rank.rank));
        Stragglers { lost_ns: self.lost_ns, median_ns: self.median_ns, ranks }
    }
}

impl Account {
    /// What it did longer: the largest, if that explains as much as all that has no name.
    fn because(&self) -> &'static str {
        let named: i64 = self.longer_ns.iter().sum();
        let other = self.lost_ns.cast_signed() - named;
        let most = self.longer_ns.iter().max().copied().unwrap_or(0);
        if most <= 0 || other > most {
            return "other";
        }
        let place = self.longer_ns.iter().position(|ns| *ns == most);
        place.and_then(|place| StallCause::ALL.get(place)).map_or("compute", |cause| cause.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::StallCause::{HandOff, Peer, Read};
    use crate::steps::sketch::Sketch;

    /// Two ranks: both compute for 50, rank 1 waits 100 for its batch in step 2, rank 0 never.
    fn late_peer() -> Vec<RankSteps> {
        let mut sketch = Sketch::new(1);
        let second = sketch.rank(1);
        for (lane, wait) in [(0, 0), (second, 100)] {
            sketch.step(lane, (1, 1), (0, 10), 60);
            sketch.tagged(lane, "comm/all_reduce", (60, 70), (1, 1));
            sketch.tagged(lane + 1, "dataloader/batch", (-20, 0), (1, 1));
            sketch.step(lane, (1, 2), (70, 80 + wait), 130 + wait);
            sketch.tagged(lane, "comm/all_reduce", (130 + wait, 240), (1, 2));
            sketch.tagged(lane + 1, "dataloader/batch", (0, 75 + wait), (1, 2));
            sketch.add(lane + 1, "POSIX/read", (0, 75 + wait));
        }
        sketch.run()
    }

    #[test]
    fn waiting_for_a_stalled_rank_is_a_stall_charged_to_that_rank() {
        let mut units = late_peer();
        let (stragglers, charges) = settle(&mut units);
        // Rank 0 comes at 130, rank 1 at 230: 100 of the 110 in the collective.
        let step = &units[0].steps[1];
        assert_eq!((step.stall_ns, step.communication_ns), (110, 110));
        assert_eq!([Read, HandOff, Peer].map(|cause| step.parts_ns[cause as usize]), [5, 5, 100]);
        assert_eq!(units[0].peer_stalls_ns, [(130, 230)]);
        assert_eq!(units[1].steps[1].stall_ns, 110);
        assert_eq!(charges, [Charge { rank: 1, cause: Read, ns: 100 }]);
        assert_eq!((stragglers.lost_ns, stragglers.median_ns), (100, 120));
        let expected = Straggler {
            rank: 1,
            host: "node1".to_owned(),
            slowest_steps: 1,
            slowest_share: 0.5,
            lost_ns: 100,
            because: "read".to_owned(),
            ..Straggler::default()
        };
        assert_eq!(stragglers.ranks, [expected]);
    }

    #[test]
    fn waiting_for_a_rank_that_computes_longer_is_no_stall() {
        let mut sketch = Sketch::new(1);
        let second = sketch.rank(1);
        for (lane, more) in [(0, 0), (second, 40)] {
            sketch.step(lane, (1, 1), (0, 10), 60 + more);
            sketch.tagged(lane, "comm/all_reduce", (60 + more, 110), (1, 1));
            sketch.tagged(lane + 1, "dataloader/batch", (-20, 8), (1, 1));
        }
        let mut units = sketch.run();
        let (stragglers, charges) = settle(&mut units);
        // The late one was stalled for 10 of the 40.
        assert_eq!(units[0].steps[0].parts_ns[Peer as usize], 10);
        assert_eq!(charges.iter().map(|charge| charge.ns).sum::<u64>(), 10);
        assert_eq!((stragglers.lost_ns, stragglers.ranks[0].because.as_str()), (40, "compute"));
    }
}
