//! The arithmetic of every reported number. Pure: steps and clock readings come in.
//!
//! [`BlockTally`] keeps what DLIO's formulas need of a block, [`StrictTally`] what the strict ones
//! need of an epoch; both take one step at a time and stay the same size.

use feedline_loader::Wait;
use serde::{Deserialize, Serialize};

/// One training or evaluation step of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Waiting for the batch, and for what.
    pub wait: Wait,
    /// Measured time of the emulated computation.
    pub compute_ns: u64,
    /// The time that it was asked to take.
    pub asked_ns: u64,
    /// From the request for the batch to the end of the computation.
    pub proc_ns: u64,
    /// Waiting for the other ranks after that.
    pub peers_ns: u64,
}

impl Step {
    /// From the request for the batch to the moment all ranks were done.
    pub fn wall_ns(&self) -> u64 {
        self.proc_ns + self.peers_ns
    }
}

/// Which steps of a block or an epoch count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Steps left out at the start.
    pub skip_start: u64,
    /// Steps left out at the end.
    pub skip_end: u64,
    /// Steps that an epoch is expected to have.
    pub expected: u64,
}

impl Window {
    /// Whether the step with that number (from 0) counts.
    fn counts(&self, number: u64) -> bool {
        number >= self.skip_start && number + self.skip_end < self.expected
    }
}

/// What DLIO's formulas need of one block of steps on one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockTally {
    /// Steps of the block.
    pub steps: u64,
    compute_ns: u64,
    /// Load and compute time of the steps that do not count, whether before or after the others.
    excluded_ns: u64,
    counted: u64,
    mean_s: f64,
    square_s: f64,
}

impl BlockTally {
    /// Adds a step. The window starts over with each block, as in DLIO.
    pub fn add(&mut self, step: &Step, window: &Window) {
        if window.counts(self.steps) {
            self.compute_ns += step.compute_ns;
            self.counted += 1;
            // Welford's update: mean and spread of the counted compute times in one pass.
            let seconds = seconds(step.compute_ns);
            let delta = seconds - self.mean_s;
            self.mean_s += delta / self.counted as f64;
            self.square_s += delta * (seconds - self.mean_s);
        } else {
            self.excluded_ns += step.proc_ns;
        }
        self.steps += 1;
    }

    /// Accelerator utilization in percent by DLIO's formula, for a block that lasted `wall_ns`.
    pub fn au_percent(&self, wall_ns: u64) -> f64 {
        if self.compute_ns == 0 {
            return 0.0;
        }
        100.0 * seconds(self.compute_ns) / self.counted_s(wall_ns)
    }

    /// Samples per second by DLIO's formula: two steps are taken off whatever the window is (Q26).
    pub fn throughput(&self, wall_ns: u64, batch: u64) -> f64 {
        (self.steps as f64 - 2.0) * batch as f64 / self.counted_s(wall_ns)
    }

    /// Samples per second of an evaluation by DLIO's formula: every step, the whole time.
    pub fn eval_throughput(&self, wall_ns: u64, batch: u64) -> f64 {
        self.steps as f64 * batch as f64 / seconds(wall_ns)
    }

    /// Mean and population standard deviation of the counted compute times, in seconds; `None` if
    /// none counts.
    pub fn compute_s(&self) -> Option<(f64, f64)> {
        (self.counted > 0).then(|| (self.mean_s, (self.square_s / self.counted as f64).sqrt()))
    }

    fn counted_s(&self, wall_ns: u64) -> f64 {
        (wall_ns as f64 - self.excluded_ns as f64) / 1e9
    }
}

/// DLIO's combination of a rank's blocks: the mean weighted with their steps; none counts as 0.
pub(crate) fn weighted_by_steps(blocks: impl IntoIterator<Item = (u64, f64)>) -> f64 {
    let (mut sum, mut steps) = (0.0, 0);
    for (weight, value) in blocks {
        if weight > 0 {
            sum += value * weight as f64;
            steps += weight;
        }
    }
    if steps == 0 { 0.0 } else { sum / steps as f64 }
}

/// What the strict formulas need of one epoch on one rank. They leave no step out: a pipeline that
/// fills during the first step would otherwise lend its batches to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrictTally {
    /// Steps.
    pub steps: u64,
    /// Steps inside DLIO's window, to know whether its metrics rest on anything.
    pub counted: u64,
    /// Compute time that was asked for.
    pub asked_ns: u64,
    /// Where the time went.
    pub split: Split,
}

impl StrictTally {
    /// Adds a step.
    pub fn add(&mut self, step: &Step, window: &Window) {
        self.counted += u64::from(window.counts(self.steps));
        self.steps += 1;
        self.asked_ns += step.asked_ns;
        self.split.add(step);
    }

    /// Adds another epoch.
    pub fn merge(&mut self, other: &StrictTally) {
        self.steps += other.steps;
        self.counted += other.counted;
        self.asked_ns += other.asked_ns;
        self.split.merge(&other.split);
    }

    /// Asked compute time over wall time, in percent.
    pub fn au_percent(&self) -> Option<f64> {
        let wall_ns = self.split.total_ns();
        (wall_ns > 0).then(|| 100.0 * self.asked_ns as f64 / wall_ns as f64)
    }
}

/// Samples per second of all ranks: the total over the slowest rank's time.
pub(crate) fn strict_throughput(ranks: &[StrictTally], samples: u64) -> Option<f64> {
    let slowest = ranks.iter().map(|rank| rank.split.total_ns()).max().unwrap_or(0);
    (slowest > 0).then(|| samples as f64 / seconds(slowest))
}

/// Where step time went. The parts add up to the wall time of the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Waiting for a batch whose worker was inside a storage call.
    pub storage_ns: u64,
    /// Waiting for a batch whose worker was decoding or preprocessing.
    pub decode_ns: u64,
    /// Waiting for the framework itself: its interpreter, handing over, starting workers.
    pub framework_ns: u64,
    /// Waiting for a batch whose worker did nothing of that.
    pub worker_ns: u64,
    /// Waiting for other ranks.
    pub peers_ns: u64,
    /// Emulated computation.
    pub compute_ns: u64,
    /// Part of the waits during which a later batch lay ready.
    pub behind_ns: u64,
}

impl Split {
    /// Adds a step. Time between batch and computation is the worker's: there is nothing else.
    pub fn add(&mut self, step: &Step) {
        let handling = step.proc_ns.saturating_sub(step.wait.total_ns() + step.compute_ns);
        self.storage_ns += step.wait.storage_ns;
        self.decode_ns += step.wait.decode_ns;
        self.framework_ns += step.wait.framework_ns;
        self.worker_ns += step.wait.worker_ns + handling;
        self.peers_ns += step.peers_ns;
        self.compute_ns += step.compute_ns;
        self.behind_ns += step.wait.behind_ns;
    }

    /// Adds another split's times.
    pub fn merge(&mut self, other: &Split) {
        self.storage_ns += other.storage_ns;
        self.decode_ns += other.decode_ns;
        self.framework_ns += other.framework_ns;
        self.worker_ns += other.worker_ns;
        self.peers_ns += other.peers_ns;
        self.compute_ns += other.compute_ns;
        self.behind_ns += other.behind_ns;
    }

    /// All of it.
    pub fn total_ns(&self) -> u64 {
        let wait_ns = self.storage_ns + self.decode_ns + self.framework_ns + self.worker_ns;
        wait_ns + self.peers_ns + self.compute_ns
    }
}

/// Mean and population standard deviation; `None` for nothing.
pub(crate) fn mean_and_stdev(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Some((mean, variance.sqrt()))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of `load` + `compute` seconds, asked for exactly that, `peers` at the barrier.
    fn step(load: f64, compute: f64, peers: f64) -> Step {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        Step {
            wait: Wait { storage_ns: ns(load), ..Wait::default() },
            compute_ns: ns(compute),
            asked_ns: ns(compute),
            proc_ns: ns(load) + ns(compute),
            peers_ns: ns(peers),
        }
    }

    fn block(steps: &[Step], window: Window) -> BlockTally {
        let mut tally = BlockTally::default();
        steps.iter().for_each(|step| tally.add(step, &window));
        tally
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn dlio_formulas_leave_out_the_first_step_and_two_steps_of_samples() {
        // Steps of 3 + 1, then 1 + 1 three times: wall 10 s. The first (4 s) is left out:
        // AU = 3 / (10 - 4) = 50 %; throughput = (4 - 2) * 8 / 6 = 2.666...
        let steps =
            [step(3.0, 1.0, 0.0), step(1.0, 1.0, 0.0), step(1.0, 1.0, 0.0), step(1.0, 1.0, 0.0)];
        let tally = block(&steps, Window { skip_start: 1, skip_end: 0, expected: 4 });
        assert_eq!(tally.au_percent(10 * S), 50.0);
        assert_eq!(tally.throughput(10 * S, 8), 16.0 / 6.0);
        assert_eq!(tally.compute_s(), Some((1.0, 0.0)));
    }

    #[test]
    fn steps_left_out_at_the_end_leave_both_sides_of_the_fraction() {
        // 5 steps of 1 + 1; the first and the last two are left out: AU = 2 / (10 - 6) = 50 %.
        let steps = [step(1.0, 1.0, 0.0); 5];
        let tally = block(&steps, Window { skip_start: 1, skip_end: 2, expected: 5 });
        assert_eq!(tally.au_percent(10 * S), 50.0);
        assert_eq!(tally.throughput(10 * S, 1), 3.0 / 4.0);
    }

    #[test]
    fn barrier_time_is_in_the_denominator_only() {
        // 2 steps of 0 + 1 with 1 s at the barrier: wall 4, first step's load + compute out:
        // AU = 1 / (4 - 1).
        let tally =
            block(&[step(0.0, 1.0, 1.0); 2], Window { skip_start: 1, skip_end: 0, expected: 2 });
        assert_eq!(tally.au_percent(4 * S), 100.0 / 3.0);
    }

    #[test]
    fn a_block_without_computation_has_no_utilization() {
        let tally =
            block(&[step(1.0, 0.0, 0.0)], Window { skip_start: 0, skip_end: 0, expected: 1 });
        assert_eq!(tally.au_percent(S), 0.0);
        assert_eq!(tally.eval_throughput(2 * S, 4), 2.0);
    }

    #[test]
    fn the_spread_of_compute_times_is_the_populations() {
        // 1, 3 and 5 seconds: mean 3, variance (4 + 0 + 4) / 3.
        let steps = [step(0.0, 1.0, 0.0), step(0.0, 3.0, 0.0), step(0.0, 5.0, 0.0)];
        let tally = block(&steps, Window { skip_start: 0, skip_end: 0, expected: 3 });
        let (mean, stdev) = tally.compute_s().unwrap();
        assert_eq!(mean, 3.0);
        assert!((stdev - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_stdev(&[1.0, 3.0, 5.0]), Some((3.0, (8.0f64 / 3.0).sqrt())));
        assert_eq!(mean_and_stdev(&[]), None);
    }

    #[test]
    fn blocks_weigh_by_their_steps_and_empty_ones_not_at_all() {
        assert_eq!(weighted_by_steps([(3, 90.0), (1, 50.0), (0, f64::NAN)]), 80.0);
        assert_eq!(weighted_by_steps([(0, f64::NAN)]), 0.0);
    }

    #[test]
    fn strict_utilization_counts_what_was_asked_not_what_was_slept() {
        // Asked 1 s, slept 1.25 s, waited 0.75 s at the barrier: 1 / 2 and not 1.25 / 2.
        let slow = Step { compute_ns: S * 5 / 4, proc_ns: S * 5 / 4, ..step(0.0, 1.0, 0.75) };
        let mut tally = StrictTally::default();
        let window = Window { skip_start: 1, skip_end: 0, expected: 3 };
        (0..3).for_each(|_| tally.add(&slow, &window));
        assert_eq!((tally.steps, tally.counted), (3, 2));
        assert_eq!(tally.au_percent(), Some(50.0));
        // Two ranks, steps of 8, 8 and 7 samples each, the slower one took 6 s: 46 / 6.
        let mut faster = StrictTally::default();
        (0..3).for_each(|_| faster.add(&step(0.0, 1.0, 0.5), &window));
        assert_eq!(strict_throughput(&[tally, faster], 46), Some(46.0 / 6.0));
        assert_eq!(StrictTally::default().au_percent(), None);
        assert_eq!(strict_throughput(&[], 7), None);
    }

    #[test]
    fn the_split_adds_up_to_the_steps_wall_time() {
        let mut split = Split::default();
        let step = Step {
            wait: Wait {
                storage_ns: 10,
                decode_ns: 20,
                framework_ns: 40,
                worker_ns: 5,
                behind_ns: 7,
            },
            compute_ns: 100,
            asked_ns: 100,
            proc_ns: 177,
            peers_ns: 30,
        };
        split.add(&step);
        let expected = Split {
            storage_ns: 10,
            decode_ns: 20,
            framework_ns: 40,
            worker_ns: 7,
            peers_ns: 30,
            compute_ns: 100,
            behind_ns: 7,
        };
        assert_eq!(split, expected);
        assert_eq!(split.total_ns(), step.wall_ns());
    }
}
