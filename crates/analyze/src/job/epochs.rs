//! Epochs of all ranks, with the utilization and the throughput that the benchmark would report.
//!
//! DLIO's formulas: of a block, C is the computation of the steps that count and T is the block's time
//! without those that do not; AU is C / T, and two steps are taken off the throughput whatever counts. A
//! rank's epoch is the mean of its blocks, weighted with their steps; AU is the mean over ranks and
//! throughput the sum.

use crate::analysis::{Epoch, Phase};
use crate::job::joined::{self, PhaseKey};
use crate::job::mean;
use crate::layer::CAUSES;
use crate::saturating::grow;
use crate::steps::{BlockRecord, PhaseRecord, RankSteps, StepRecord};

/// Steps at the beginning and at the end of a block that DLIO leaves out by default.
pub(crate) const EXCLUDED_STEPS: [u32; 2] = [1, 0];

/// All epochs in the order of their beginnings; moments since `origin_ns`.
pub(crate) fn epochs(units: &[RankSteps], excluded_steps: [u32; 2], origin_ns: i64) -> Vec<Epoch> {
    let joined = joined::phases(units);
    let mut epochs: Vec<Epoch> = joined
        .iter()
        .map(|(key, of_phase)| epoch(units, *key, of_phase, (excluded_steps, origin_ns)))
        .collect();
    epochs.sort_by_key(|epoch| (epoch.start_ns, epoch.phase, epoch.epoch));
    epochs
}

fn epoch(
    units: &[RankSteps],
    (phase, number, _): PhaseKey,
    of_phase: &[(usize, usize)],
    (excluded_steps, origin_ns): ([u32; 2], i64),
) -> Epoch {
    let phases: Vec<(&RankSteps, &PhaseRecord)> =
        of_phase.iter().map(|(unit, row)| (&units[*unit], &units[*unit].phases[*row])).collect();
    let start_ns = phases.iter().map(|(_, phase)| phase.start_ns).min().unwrap_or(origin_ns);
    let end_ns = phases.iter().map(|(_, phase)| phase.end_ns).max().unwrap_or(start_ns);
    let firsts: Vec<u64> = phases.iter().filter_map(|(_, phase)| phase.first_batch_ns).collect();
    let since = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns).max(0).cast_unsigned();
    let mut epoch = Epoch {
        phase,
        epoch: number,
        start_ns: since(origin_ns, start_ns),
        duration_ns: since(start_ns, end_ns),
        parts_ns: vec![0; CAUSES],
        first_batch_ns: mean(firsts.into_iter()).unwrap_or(0),
        excluded_steps,
        ..Epoch::default()
    };
    let (mut au, mut throughput, mut ranks) = (0.0, Some(0.0), 0);
    for (unit, phase) in phases {
        grow(&mut epoch.bytes_read, phase.bytes_read);
        let steps = &unit.steps[phase.steps.clone()];
        steps.iter().for_each(|step| add(&mut epoch, step));
        let Some(of_rank) = of_rank(unit, phase, excluded_steps) else { continue };
        ranks += 1;
        au += of_rank.0;
        throughput = throughput.zip(of_rank.1).map(|(sum, of_rank)| sum + of_rank);
    }
    if ranks > 0 {
        epoch.au_percent = Some(au / f64::from(ranks));
        epoch.samples_per_second = throughput;
    }
    epoch
}

fn add(epoch: &mut Epoch, step: &StepRecord) {
    epoch.steps += 1;
    grow(&mut epoch.step_ns, step.duration_ns());
    grow(&mut epoch.stall_ns, step.stall_ns);
    grow(&mut epoch.compute_ns, step.compute_ns);
    epoch.samples += u64::from(step.samples);
    epoch.parts_ns.iter_mut().zip(step.parts_ns).for_each(|(sum, ns)| grow(sum, ns));
}

/// Utilization in percent and samples per second of a rank's epoch; none without computation or time.
fn of_rank(
    unit: &RankSteps,
    phase: &PhaseRecord,
    excluded_steps: [u32; 2],
) -> Option<(f64, Option<f64>)> {
    let steps = &unit.steps[phase.steps.clone()];
    if steps.iter().all(|step| step.compute_ns == 0) {
        return None;
    }
    // The mean, rounded: the last batch of an epoch may be cut short, and where samples come in a row, which
    // batch one belongs to is not exact.
    let samples: u64 = steps.iter().map(|step| u64::from(step.samples)).sum();
    let count = steps.len() as u64;
    let batch = (2 * samples + count) / (2 * count);
    let (mut au, mut throughput, mut weight) = (0.0, 0.0, 0);
    for block in unit.blocks.iter().filter(|block| is_part(block, phase)) {
        let count = block.steps.len();
        let window = Window { excluded_steps, expected: steps.len() };
        let (block_au, per_second) = of_block(&unit.steps[block.steps.clone()], block, window)?;
        au += block_au * count as f64;
        throughput += per_second * batch as f64 * count as f64;
        weight += count;
    }
    let weight = (weight > 0).then_some(weight as f64)?;
    Some((au / weight, (batch > 0).then_some(throughput / weight)))
}

fn is_part(block: &BlockRecord, phase: &PhaseRecord) -> bool {
    let all = &phase.steps;
    !block.steps.is_empty() && all.start <= block.steps.start && block.steps.end <= all.end
}

#[derive(Clone, Copy)]
struct Window {
    excluded_steps: [u32; 2],
    /// Steps of the epoch: DLIO counts from its end even in a block.
    expected: usize,
}

/// Utilization in percent and batches a second of a block.
fn of_block(steps: &[StepRecord], block: &BlockRecord, window: Window) -> Option<(f64, f64)> {
    let [first, last] = window.excluded_steps.map(|count| count as usize);
    let (mut compute_ns, mut excluded_ns) = (0, 0);
    for (number, step) in steps.iter().enumerate() {
        if number >= first && number + last < window.expected {
            grow(&mut compute_ns, step.compute_ns);
        } else {
            grow(&mut excluded_ns, step.process_ns);
        }
    }
    let wall_ns = block.end_ns.saturating_sub(block.start_ns).max(0).cast_unsigned();
    let seconds = |ns: u64| ns as f64 / 1e9;
    if block.phase == Phase::Evaluate {
        let au = 100.0 * seconds(compute_ns) / seconds(wall_ns.checked_sub(excluded_ns)?.max(1));
        return Some((au, steps.len() as f64 / seconds(wall_ns.max(1))));
    }
    let counted_ns = wall_ns.checked_sub(excluded_ns).filter(|ns| *ns > 0)?;
    let au = if compute_ns == 0 { 0.0 } else { 100.0 * seconds(compute_ns) / seconds(counted_ns) };
    Some((au, (steps.len() as f64 - 2.0) / seconds(counted_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::sketch::Sketch;

    const S: i64 = 1_000_000_000;

    /// Steps of fetch and computation in seconds, in a block from 0 to `wall`.
    fn rank(sketch: &mut Sketch, lane: u32, steps: &[(i64, i64)], wall: i64) {
        sketch.tagged(lane, "pipeline/train", (0, wall * S), (1, u32::MAX));
        sketch.tagged(lane, "pipeline/epoch.block", (0, wall * S), (1, u32::MAX));
        let mut at = 0;
        for (step, (load, compute)) in (1..).zip(steps) {
            let fetch = (at, at + load * S);
            sketch.step(lane, (1, step), fetch, fetch.1 + compute * S);
            sketch.tagged(lane + 1, "dataloader/batch", fetch, (1, step));
            for sample in 0..8 {
                let at = fetch.0 + sample * (fetch.1 - fetch.0) / 8;
                sketch.add(lane + 1, "data/item", (at, at + 1));
            }
            at = fetch.1 + compute * S;
        }
    }

    #[test]
    fn utilization_and_throughput_are_the_benchmarks() {
        // The first step (4 s) is left out: AU = 3 / (10 - 4); throughput = (4 - 2) * 8 / 6.
        let mut sketch = Sketch::new(1);
        rank(&mut sketch, 0, &[(3, 1), (1, 1), (1, 1), (1, 1)], 10);
        let units = sketch.run();
        let [epoch] = &epochs(&units, EXCLUDED_STEPS, -5)[..] else { panic!("one epoch") };
        assert_eq!(epoch.au_percent, Some(50.0));
        assert_eq!(epoch.samples_per_second, Some(2.0 / 6.0 * 8.0 * 4.0 / 4.0));
        assert_eq!((epoch.steps, epoch.samples, epoch.start_ns), (4, 32, 5));
        assert_eq!((epoch.stall_ns, epoch.compute_ns), (6_000_000_000, 4_000_000_000));
        assert_eq!(epoch.first_batch_ns, 3_000_000_000);
        // Also without the last two: AU = 1 / (10 - 4 - 2 - 2).
        let [epoch] = &epochs(&units, [1, 2], 0)[..] else { panic!("one epoch") };
        assert_eq!(epoch.au_percent, Some(50.0));
        // Nothing left out: 4 / 10.
        let [epoch] = &epochs(&units, [0, 0], 0)[..] else { panic!("one epoch") };
        assert_eq!(epoch.au_percent, Some(40.0));
    }

    #[test]
    fn ranks_utilizations_are_averaged_and_their_samples_added() {
        let mut sketch = Sketch::new(1);
        let second = sketch.rank(1);
        rank(&mut sketch, 0, &[(1, 1), (1, 1), (1, 1)], 6);
        rank(&mut sketch, second, &[(1, 1), (3, 1), (3, 1)], 10);
        let [epoch] = &epochs(&sketch.run(), EXCLUDED_STEPS, 0)[..] else { panic!("one epoch") };
        // 2 / (6 - 2) and 2 / (10 - 2); (3 - 2) * 8 / 4 and (3 - 2) * 8 / 8.
        assert_eq!(epoch.au_percent, Some((50.0 + 25.0) / 2.0));
        assert_eq!(epoch.samples_per_second, Some(3.0));
        assert_eq!(epoch.duration_ns, 10_000_000_000);
    }

    #[test]
    fn blocks_weigh_by_their_steps() {
        let mut sketch = Sketch::new(1);
        sketch.tagged(0, "pipeline/train", (0, 100 * S), (1, u32::MAX));
        sketch.tagged(0, "pipeline/epoch.block", (0, 8 * S), (1, u32::MAX));
        sketch.tagged(0, "pipeline/epoch.block", (20 * S, 24 * S), (1, u32::MAX));
        for (step, at) in [(1, 0), (2, 2), (3, 4), (4, 20), (5, 22)] {
            sketch.step(0, (1, step), (at * S, (at + 1) * S), (at + 2) * S);
        }
        let [epoch] = &epochs(&sketch.run(), EXCLUDED_STEPS, 0)[..] else { panic!("one epoch") };
        // Blocks of 3 and 2 steps: 2 / (8 - 2) and 1 / (4 - 2).
        let expected = (100.0 * 2.0 / 6.0 * 3.0 + 50.0 * 2.0) / 5.0;
        assert_eq!(epoch.au_percent, Some(expected));
        assert_eq!(epoch.samples_per_second, None);
    }
}
