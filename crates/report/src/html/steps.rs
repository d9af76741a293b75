//! The steps of a page: those that are embedded one by one, and all of them put together by number.

use std::collections::BTreeMap;

use feedline_analyze::analysis::{Phase, Step};
use feedline_analyze::layer::CAUSES;
use serde_json::{Value, json};

/// Of the steps that are embedded, this part is those with the longest stalls.
const WORST_PART: usize = 4;
/// Columns of the waterfall.
const MOST_COLUMNS: usize = 4_000;

/// At most `most` steps, in their order: those that stalled longest, and an even sample of the others.
pub(super) fn chosen(steps: &[Step], most: usize) -> (Vec<&Step>, usize) {
    if steps.len() <= most {
        return (steps.iter().collect(), 0);
    }
    let worst = most / WORST_PART;
    let mut by_stall: Vec<usize> = (0..steps.len()).collect();
    by_stall.sort_by_key(|&place| (std::cmp::Reverse(steps[place].stall_ns), place));
    let (first, others) = by_stall.split_at(worst);
    let mut others = others.to_vec();
    others.sort_unstable();
    let target = most - worst;
    let sample = (0..target).map(|turn| others[turn * others.len() / target]);
    let mut places: Vec<usize> = first.iter().copied().chain(sample).collect();
    places.sort_unstable();
    (places.into_iter().map(|place| &steps[place]).collect(), worst)
}

/// Steps as columns, times in microseconds.
pub(super) fn columns(steps: &[&Step], worst: usize, all: u64) -> Value {
    json!({
        "all": all,
        "worst": worst,
        "rank": column(steps, |step| step.rank),
        "phase": column(steps, |step| step.phase as u8),
        "epoch": column(steps, |step| step.epoch),
        "block": column(steps, |step| step.block),
        "step": column(steps, |step| step.step),
        "start": column(steps, |step| us(step.start_ns)),
        "duration": column(steps, |step| us(step.duration_ns)),
        "fetch": column(steps, |step| us(step.fetch_ns)),
        "stall": column(steps, |step| us(step.stall_ns)),
        "compute": column(steps, |step| us(step.compute_ns)),
        "communication": column(steps, |step| us(step.communication_ns)),
        "meets": column(steps, |step| step.meets_at_ns.map(us)),
        "worker": column(steps, |step| step.worker),
        "service": column(steps, |step| us(step.service_ns)),
        "samples": column(steps, |step| step.samples),
        "confidence": column(steps, |step| step.confidence as u8),
        "parts": column(steps, |step| sparse(&step.parts_ns)),
    })
}

/// Steps of one number, of all ranks, added up.
#[derive(Clone)]
struct Column {
    phase: u8,
    epoch: u32,
    step: u32,
    /// The last step of those that were joined.
    until: (u32, u32),
    start_ns: u64,
    end_ns: u64,
    steps: u64,
    duration_ns: u64,
    stall_ns: u64,
    compute_ns: u64,
    communication_ns: u64,
    parts_ns: [u64; CAUSES],
    /// The rank that stalled longest, and how long.
    worst: (u64, u32),
}

impl From<&Step> for Column {
    fn from(step: &Step) -> Self {
        Self {
            phase: step.phase as u8,
            epoch: step.epoch,
            step: step.step,
            until: (step.epoch, step.step),
            start_ns: step.start_ns,
            end_ns: step.start_ns.saturating_add(step.duration_ns),
            steps: 1,
            duration_ns: step.duration_ns,
            stall_ns: step.stall_ns,
            compute_ns: step.compute_ns,
            communication_ns: step.communication_ns,
            parts_ns: std::array::from_fn(|cause| step.parts_ns.get(cause).copied().unwrap_or(0)),
            worst: (step.stall_ns, step.rank),
        }
    }
}

impl Column {
    /// Adds another one, except which step is the last and which rank stalled longest.
    fn add(&mut self, other: &Self) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.steps += other.steps;
        self.duration_ns += other.duration_ns;
        self.stall_ns += other.stall_ns;
        self.compute_ns += other.compute_ns;
        self.communication_ns += other.communication_ns;
        self.parts_ns.iter_mut().zip(&other.parts_ns).for_each(|(sum, part)| *sum += part);
    }

    /// Adds a step of the same number. Of ranks that stalled equally long, the first counts.
    fn add_step(&mut self, step: &Self) {
        self.add(step);
        if step.worst.0 > self.worst.0 {
            self.worst = step.worst;
        }
    }

    /// Adds the column after it.
    fn join(&mut self, next: &Self) {
        self.add(next);
        self.until = next.until;
        self.worst = self.worst.max(next.worst);
    }
}

/// The steps of all ranks by number, as columns: sums over ranks, in microseconds. Neighbors are joined
/// if there are more than a page should hold.
pub(super) fn waterfall(steps: &[Step]) -> Value {
    let mut groups: BTreeMap<(Phase, u32, u32, u32), Column> = BTreeMap::new();
    for step in steps {
        let key = (step.phase, step.epoch, step.block, step.step);
        let column = Column::from(step);
        groups.entry(key).and_modify(|known| known.add_step(&column)).or_insert(column);
    }
    let mut all: Vec<Column> = groups.into_values().collect();
    all.sort_by_key(|column| column.start_ns);
    let factor = all.len().div_ceil(MOST_COLUMNS).max(1);
    let joined: Vec<Column> = all
        .chunks(factor)
        .map(|part| {
            let mut column = part[0].clone();
            part[1..].iter().for_each(|other| column.join(other));
            column
        })
        .collect();
    json!({
        "joined": factor,
        "phase": column(&joined, |column| column.phase),
        "epoch": column(&joined, |column| column.epoch),
        "step": column(&joined, |column| column.step),
        "until": column(&joined, |column| vec![column.until.0, column.until.1]),
        "start": column(&joined, |column| us(column.start_ns)),
        "end": column(&joined, |column| us(column.end_ns)),
        "steps": column(&joined, |column| column.steps),
        "duration": column(&joined, |column| us(column.duration_ns)),
        "stall": column(&joined, |column| us(column.stall_ns)),
        "compute": column(&joined, |column| us(column.compute_ns)),
        "communication": column(&joined, |column| us(column.communication_ns)),
        "parts": column(&joined, |column| sparse(&column.parts_ns)),
        "worst": column(&joined, |column| column.worst.1),
    })
}

/// Numbers of causes and their microseconds in turn, of those that have any.
pub(super) fn sparse(parts_ns: &[u64]) -> Vec<u64> {
    let some = parts_ns.iter().enumerate().filter(|(_, ns)| **ns > 0);
    some.flat_map(|(cause, ns)| [cause as u64, us(*ns)]).collect()
}

/// Whole microseconds.
pub(super) fn us(ns: u64) -> u64 {
    ns.saturating_add(500) / 1_000
}

fn column<R, T: Into<Value>>(rows: &[R], value: impl Fn(&R) -> T) -> Value {
    rows.iter().map(|row| value(row).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rank: u32, number: u32, stall_ns: u64) -> Step {
        let mut parts_ns = vec![0; CAUSES];
        parts_ns[1] = stall_ns;
        let start_ns = u64::from(number) * 10_000;
        Step {
            rank,
            step: number,
            start_ns,
            duration_ns: 8_000,
            stall_ns,
            parts_ns,
            ..Step::default()
        }
    }

    #[test]
    fn all_steps_are_embedded_if_they_fit() {
        let steps = [step(0, 1, 5), step(0, 2, 0)];
        let (chosen, worst) = chosen(&steps, 2);
        assert_eq!((chosen.len(), worst), (2, 0));
    }

    #[test]
    fn the_worst_steps_and_every_so_many_of_the_others_are_embedded() {
        // 16 steps, of which 8 fit: the two worst, 4 and 11, and six of the other 14.
        let steps: Vec<Step> = (0..16)
            .map(|number| {
                step(
                    0,
                    number,
                    match number {
                        4 => 90,
                        11 => 80,
                        _ => 1,
                    },
                )
            })
            .collect();
        let (chosen, worst) = chosen(&steps, 8);
        let numbers: Vec<u32> = chosen.iter().map(|step| step.step).collect();
        assert_eq!(worst, 2);
        // Others are 0 1 2 3 5 6 7 8 9 10 12 13 14 15; taken are their places 0 2 4 7 9 11.
        assert_eq!(numbers, [0, 2, 4, 5, 8, 10, 11, 13]);
    }

    #[test]
    fn the_waterfall_adds_ranks_up_and_names_the_worst() {
        let steps = [step(0, 1, 2_000), step(1, 1, 4_000), step(0, 2, 0)];
        let made = waterfall(&steps);
        assert_eq!(made["step"], json!([1, 2]));
        assert_eq!(made["steps"], json!([2, 1]));
        assert_eq!(made["duration"], json!([16, 8]));
        assert_eq!(made["stall"], json!([6, 0]));
        assert_eq!(made["parts"], json!([[1, 6], []]));
        assert_eq!(made["worst"], json!([1, 0]));
        assert_eq!(made["joined"], 1);
    }

    #[test]
    fn neighbors_are_joined_when_there_are_too_many() {
        let steps: Vec<Step> = (0..8_001).map(|number| step(0, number, 1_000)).collect();
        let made = waterfall(&steps);
        assert_eq!(made["joined"], 3);
        assert_eq!(made["steps"].as_array().unwrap().len(), 2_667);
        assert_eq!(made["stall"][0], 3);
        assert_eq!(made["until"][0], json!([0, 2]));
    }
}
