//! Steps and phases of different ranks that belong together.

use std::collections::BTreeMap;

use crate::analysis::Phase;
use crate::steps::RankSteps;

/// An epoch's training or evaluation; the last number tells apart those that come again.
pub(crate) type PhaseKey = (Phase, u32, u32);

/// Which phases of ranks belong together: rows of units, and of their phases.
pub(crate) fn phases(units: &[RankSteps]) -> BTreeMap<PhaseKey, Vec<(usize, usize)>> {
    let mut joined: BTreeMap<PhaseKey, Vec<(usize, usize)>> = BTreeMap::new();
    for (unit, steps) in units.iter().enumerate() {
        let mut seen: BTreeMap<(Phase, u32), u32> = BTreeMap::new();
        for (number, phase) in steps.phases.iter().enumerate() {
            let again = seen.entry((phase.phase, phase.epoch)).or_default();
            let key = (phase.phase, phase.epoch, *again);
            *again += 1;
            joined.entry(key).or_default().push((unit, number));
        }
    }
    joined
}

/// Which steps of a phase belong together: rows of units, and of their steps.
pub(crate) fn steps(
    units: &[RankSteps],
    of_phase: &[(usize, usize)],
) -> BTreeMap<u32, Vec<(usize, usize)>> {
    let mut joined: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (unit, phase) in of_phase {
        let rows = units[*unit].phases[*phase].steps.clone();
        for row in rows {
            joined.entry(units[*unit].steps[row].step).or_default().push((*unit, row));
        }
    }
    joined
}
