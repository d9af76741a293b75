//! What would be if there were more workers, or faster storage: the measured times of every batch and step,
//! played again through the loader's queue.
//!
//! The model must first make of the measured times the run that was measured; if its mean step is off by
//! more than a tenth, there are no predictions. A batch's time in its worker is taken as it was, whatever
//! the number of workers, unless the trace shows that storage was slower the more of them were at work.

mod replay;

use crate::analysis::{Phase, Prediction, WhatIf};
use crate::job::joined;
use crate::layer::StallCause;
use crate::resample::{Draws, blocks, quantile};
use crate::saturating::Total;
use crate::steps::{RankSteps, StepRecord};
use replay::{Change, Deal, Outcome, PhaseRun, RankRun, ReplayStep, Scale, replay};

/// The model may be off by at most one part in this many.
const TOLERANCE: u64 = 10;
/// The most workers that are tried, as a multiple of the observed ones.
const MOST_WORKERS: u32 = 4;
/// How many times as many batches under way are as good as any number.
const DEEP: u32 = 8;
/// Stalls below this share count as fed.
const FED: f64 = 0.05;
/// The most steps of all ranks that are replayed; later ones are left out.
const STEPS_MAX: usize = 50_000;
/// How often a case is played with batches drawn again: between these, as it has fewer steps.
const REPLAYS: [usize; 2] = [20, 100];
const REPLAYED_STEPS: usize = 1_000_000;
const SEED: u64 = 0x7768_6174;
/// From so much longer storage time by so much more concurrency on, storage is shared.
const SATURATED: f64 = 0.5;
const SATURATED_STEPS_MIN: usize = 20;
/// Concurrency that varies by less tells nothing.
const EVEN: f64 = 0.25;

/// Plays training again, as it was and with changes.
pub(crate) fn what_if(units: &[RankSteps]) -> WhatIf {
    let runs = runs(units);
    let Some(shape) = Shape::new(&runs) else {
        return refused("the trace has no training steps");
    };
    let mut answer = WhatIf {
        workers: shape.workers,
        outstanding: shape.outstanding,
        observed_step_ns: shape.observed_step_ns,
        ..WhatIf::default()
    };
    if shape.unknown * 10 > shape.steps {
        answer.refused =
            Some("the trace does not show which worker produced most batches".to_owned());
        return answer;
    }
    let model = Model { runs, shape, storage: storage(units) };
    answer.modelled_step_ns = model.play(Change::default()).step_ns();
    answer.refused = refusal(answer.observed_step_ns, answer.modelled_step_ns);
    if answer.refused.is_none() {
        answer.cases = model.cases();
        let most = model.shape.workers.max(1).saturating_mul(MOST_WORKERS);
        answer.saved_by_workers_ns = model.saved_ns(model.with_workers(most), units);
        let deep = Change { prefetch: DEEP, ..Change::default() };
        answer.saved_by_prefetch_ns = model.saved_ns(deep, units);
    }
    answer
}

fn refused(why: &str) -> WhatIf {
    WhatIf { refused: Some(why.to_owned()), ..WhatIf::default() }
}

fn refusal(observed_ns: u64, modelled_ns: u64) -> Option<String> {
    let off_ns = observed_ns.abs_diff(modelled_ns);
    (off_ns.saturating_mul(TOLERANCE) > observed_ns).then(|| {
        let percent = 100.0 * off_ns as f64 / observed_ns.max(1) as f64;
        let way = if modelled_ns < observed_ns { "short" } else { "long" };
        format!("the loader model predicts the observed steps {percent:.0} % too {way}")
    })
}

/// What all runs have in common.
#[derive(Clone, Copy, Debug)]
struct Shape {
    workers: u32,
    outstanding: u32,
    steps: usize,
    /// Steps for which the worker of the batch is unknown.
    unknown: usize,
    observed_step_ns: u64,
}

impl Shape {
    fn new(runs: &[PhaseRun]) -> Option<Self> {
        let ranks = || runs.iter().flat_map(|run| &run.ranks);
        let steps = || ranks().flat_map(|rank| &rank.steps);
        let count = steps().count();
        let observed_ns: u64 = steps().map(|step| step.observed_ns).total();
        (count > 0).then(|| Self {
            workers: ranks().map(|rank| rank.workers).max().unwrap_or(0),
            outstanding: ranks().map(|rank| rank.outstanding).max().unwrap_or(0),
            steps: count,
            unknown: steps().filter(|step| step.service_ns == 0).count(),
            observed_step_ns: observed_ns / count as u64,
        })
    }
}

struct Model {
    runs: Vec<PhaseRun>,
    shape: Shape,
    storage: Storage,
}

/// What more workers would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// Calls take as long as before.
    Free,
    /// Calls take longer the more there are.
    Shared,
    /// Unknown: as many workers were always busy, most of the time in storage.
    Untold,
}

impl Model {
    fn play(&self, change: Change) -> Outcome {
        let mut sum = Outcome::default();
        for run in &self.runs {
            let order: Vec<usize> = (0..run.steps()).collect();
            sum.add(replay(run, change, &order));
        }
        sum
    }

    fn cases(&self) -> Vec<Prediction> {
        let workers = self.shape.workers.max(1);
        let mut cases = Vec::new();
        let mut more = vec![workers.saturating_mul(2)];
        if workers > 1 {
            more.insert(0, (workers.saturating_mul(3)).div_ceil(2));
        }
        if self.shape.workers == 0 {
            more.insert(0, 1);
        }
        for count in more {
            cases.push(self.case(&self.workers_text(count), self.with_workers(count)));
        }
        if let Some(enough) = self.enough() {
            let text = format!("{}, the fewest without stalls", self.workers_text(enough));
            cases.push(self.case(&text, self.with_workers(enough)));
        }
        let scaled = |scale| Change { scale, ..Change::default() };
        if self.shape.workers > 0 {
            let change = Change { prefetch: 2, ..Change::default() };
            let under_way = self.shape.outstanding.saturating_mul(2);
            cases.push(self.case(&format!("prefetch {under_way}"), change));
        }
        cases.push(self.case("storage 2x", scaled(Scale::Storage(2))));
        cases.push(self.case("storage 4x", scaled(Scale::Storage(4))));
        cases.push(self.case("decode 2x", scaled(Scale::Decode(2))));
        cases.push(self.case("packed files", scaled(Scale::NoOpen)));
        cases
    }

    /// Stalled time that a change saves, of all steps: those that are not played are as those that are.
    fn saved_ns(&self, change: Change, units: &[RankSteps]) -> u64 {
        let (before, after) = (self.play(Change::default()), self.play(change));
        let saved = u128::from(before.stall_ns().saturating_sub(after.stall_ns()));
        let all = units.iter().flat_map(RankSteps::training).count() as u128;
        u64::try_from(saved * all / (self.shape.steps.max(1) as u128)).unwrap_or(u64::MAX)
    }

    fn workers_text(&self, count: u32) -> String {
        let storage = match self.storage {
            Storage::Shared => " on the same saturated storage",
            Storage::Untold => ", if storage can deliver more",
            Storage::Free => "",
        };
        format!("workers {count}{storage}")
    }

    fn with_workers(&self, count: u32) -> Change {
        let before = self.shape.workers.max(1);
        let scale = match self.storage {
            Storage::Shared => Scale::Shared { workers: count, before },
            Storage::Untold | Storage::Free => Scale::AsIs,
        };
        Change { workers: Some(count), scale, ..Change::default() }
    }

    /// The fewest workers with which stalls are small, if four times as many would do.
    fn enough(&self) -> Option<u32> {
        let is_fed = |count: u32| self.play(self.with_workers(count)).stall_share() < FED;
        let (mut least, mut most) = (1, self.shape.workers.max(1).saturating_mul(MOST_WORKERS));
        if !is_fed(most) {
            return None;
        }
        while least < most {
            let middle = least + (most - least) / 2;
            if is_fed(middle) {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        Some(least).filter(|count| *count != self.shape.workers)
    }

    fn case(&self, change: &str, how: Change) -> Prediction {
        let outcome = self.play(how);
        let count = (REPLAYED_STEPS / self.shape.steps).clamp(REPLAYS[0], REPLAYS[1]);
        let mut draws = Draws::new(SEED);
        let mut times: Vec<u64> = (0..count)
            .map(|_| {
                let mut sum = Outcome::default();
                for run in self.runs.iter().filter(|run| run.steps() > 0) {
                    let drawn = blocks(run.steps(), &mut draws);
                    let order: Vec<usize> = drawn
                        .into_iter()
                        .flat_map(|(start, length)| start..start + length)
                        .collect();
                    sum.add(replay(run, how, &order));
                }
                sum.step_ns()
            })
            .collect();
        times.sort_unstable();
        let step_ns = outcome.step_ns();
        let edge = |permille| quantile(&times, permille).unwrap_or(step_ns);
        Prediction {
            change: change.to_owned(),
            step_ns,
            step_interval_ns: [edge(50).min(step_ns), edge(950).max(step_ns)],
            stall_share: outcome.stall_share(),
        }
    }
}

/// What was measured, epoch by epoch.
fn runs(units: &[RankSteps]) -> Vec<PhaseRun> {
    let mut runs = Vec::new();
    let mut left = STEPS_MAX;
    for (key, of_phase) in joined::phases(units) {
        if key.0 != Phase::Train {
            continue;
        }
        let steps = |(unit, phase): &(usize, usize)| -> &[StepRecord] {
            &units[*unit].steps[units[*unit].phases[*phase].steps.clone()]
        };
        let count = of_phase.iter().map(|place| steps(place).len()).min().unwrap_or(0);
        let count = count.min(left / of_phase.len());
        if count == 0 {
            continue;
        }
        left -= count * of_phase.len();
        let together: Vec<&[StepRecord]> =
            of_phase.iter().map(|place| &steps(place)[..count]).collect();
        let meets = together.len() > 1
            && together.iter().all(|rank| rank.iter().all(|step| step.meets_ns.is_some()));
        let ranks = of_phase.iter().zip(&together).map(|((unit, phase), steps)| {
            let phase = &units[*unit].phases[*phase];
            RankRun {
                workers: phase.workers,
                outstanding: phase.outstanding.max(1),
                deal: deal(steps, phase.workers as usize),
                firsts_ns: firsts(steps, phase.workers as usize),
                steps: (0..count)
                    .map(|k| replay_step(meets.then_some(&together), steps, k))
                    .collect(),
            }
        });
        let ranks = ranks.collect();
        runs.push(PhaseRun { ranks, meets });
    }
    runs
}

/// Whether workers take turns, or any idle worker takes the next batch.
fn deal(steps: &[StepRecord], workers: usize) -> Deal {
    let pairs = steps.iter().zip(steps.iter().skip(workers));
    let (same, all) = pairs.fold((0, 0), |(same, all), (before, after)| {
        (same + u64::from(before.worker == after.worker), all + 1)
    });
    if same * 10 >= all * 9 { Deal::InTurn } else { Deal::ToTheFree }
}

/// When workers began their first batches, since the first fetch began.
fn firsts(steps: &[StepRecord], workers: usize) -> Vec<i64> {
    let Some(first) = steps.first() else { return Vec::new() };
    let begun = steps.iter().take(workers).map(|step| match step.service_ns {
        0 => 0,
        _ => step.service_start_ns.saturating_sub(first.start_ns),
    });
    begun.collect()
}

/// Step `k` as it is replayed; `together` are the steps of all ranks if they meet in every step.
fn replay_step(
    together: Option<&Vec<&[StepRecord]>>,
    steps: &[StepRecord],
    k: usize,
) -> ReplayStep {
    let step = &steps[k];
    let since = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns).max(0).cast_unsigned();
    let part =
        |causes: &[StallCause]| causes.iter().map(|c| step.service_parts_ns[*c as usize]).sum();
    let ready_ns = step.service_start_ns.saturating_add_unsigned(step.service_ns);
    let arrival = |step: &StepRecord| step.meets_ns.map_or(step.end_ns, |(start_ns, _)| start_ns);
    let (own_until_ns, last_ns) = match together {
        Some(ranks) => (arrival(step), ranks.iter().map(|rank| arrival(&rank[k])).max()),
        None => (step.end_ns, None),
    };
    ReplayStep {
        service_ns: step.service_ns,
        open_ns: part(&[StallCause::Open]),
        storage_ns: part(&[StallCause::Open, StallCause::Read, StallCause::ObjectStore]),
        decode_ns: part(&[StallCause::Decode]),
        hand_off_ns: since(ready_ns.max(step.start_ns), step.fetch_end_ns),
        own_ns: since(step.fetch_end_ns, own_until_ns),
        after_ns: last_ns.map_or(0, |last_ns| since(last_ns, step.end_ns)),
        gap_ns: steps.get(k + 1).map_or(0, |next| since(step.end_ns, next.start_ns)),
        observed_ns: step.duration_ns(),
    }
}

/// Whether storage took longer the more workers were at work: by how many percent, for a percent more.
fn storage(units: &[RankSteps]) -> Storage {
    let points: Vec<(f64, f64)> = units
        .iter()
        .flat_map(RankSteps::training)
        .filter(|step| step.service_ns > 0 && step.concurrency > 0)
        .map(|step| {
            let causes = [StallCause::Open, StallCause::Read, StallCause::ObjectStore];
            let storage: u64 = causes.iter().map(|c| step.service_parts_ns[*c as usize]).sum();
            (f64::from(step.concurrency), storage as f64)
        })
        .collect();
    if points.len() < SATURATED_STEPS_MIN {
        return Storage::Free;
    }
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (at_work, took) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - at_work).powi(2)).sum();
    let common: f64 = points.iter().map(|point| (point.0 - at_work) * (point.1 - took)).sum();
    if took > 0.0 && spread > 0.0 && common / spread * at_work / took >= SATURATED {
        return Storage::Shared;
    }
    let service: u64 = units.iter().flat_map(RankSteps::training).map(|it| it.service_ns).total();
    let is_even = (spread / count).sqrt() < EVEN * at_work;
    let is_heavy = took * count > 0.5 * service as f64;
    if is_even && is_heavy { Storage::Untold } else { Storage::Free }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::sketch::Sketch;

    /// Steps of a loader of 2 workers with 4 batches under way: service 10, of which 6 is reading, and
    /// computation 3, worked out by hand.
    const PLAYED: [((i64, i64), (i64, i64)); 6] = [
        // Work on the batch, fetch.
        ((0, 10), (0, 10)),
        ((0, 10), (13, 13)),
        ((10, 20), (16, 20)),
        ((10, 20), (23, 23)),
        ((20, 30), (26, 30)),
        ((20, 30), (33, 33)),
    ];

    fn draw(sketch: &mut Sketch, lane: u32) {
        for (k, (work, fetch)) in (0..).zip(PLAYED) {
            let (work, fetch) = ((work.0 * 10, work.1 * 10), (fetch.0 * 10, fetch.1 * 10));
            sketch.step(lane, (1, k + 1), fetch, fetch.1 + 30);
            sketch.tagged(lane + 1 + k % 2, "dataloader/batch", work, (1, k + 1));
            sketch.add(lane + 1 + k % 2, "POSIX/open", (work.0, work.0 + 20));
            sketch.add(lane + 1 + k % 2, "POSIX/read", (work.0 + 20, work.0 + 60));
        }
    }

    fn case<'a>(answer: &'a WhatIf, change: &str) -> &'a Prediction {
        let found = answer.cases.iter().find(|case| case.change == change);
        found.unwrap_or_else(|| panic!("{change} in {:?}", answer.cases))
    }

    #[test]
    fn the_model_makes_the_run_that_was_measured() {
        let mut sketch = Sketch::new(2);
        draw(&mut sketch, 0);
        let answer = what_if(&sketch.run());
        assert_eq!(answer.refused, None);
        // There is room for four, but never more than three are begun and not taken.
        assert_eq!((answer.workers, answer.outstanding), (2, 3));
        // 360 in six steps.
        assert_eq!((answer.observed_step_ns, answer.modelled_step_ns), (60, 60));
        // With four workers only the first fetch waits: 100, and six computations of 30.
        let four = case(&answer, "workers 4");
        assert_eq!((four.step_ns, four.stall_share), (280 / 6, 100.0 / 280.0));
        // Batches of 70: fetches end at 70, 100, 140, 170, 210 and 240.
        let storage = case(&answer, "storage 2x");
        assert_eq!((storage.step_ns, storage.stall_share), (270 / 6, 90.0 / 270.0));
        // Batches of 80: fetches end at 80, 110, 160, 190, 240 and 270.
        let packed = case(&answer, "packed files");
        assert_eq!(packed.step_ns, 300 / 6);
        assert_eq!(case(&answer, "prefetch 6").step_ns, 60);
    }

    #[test]
    fn ranks_that_meet_wait_for_the_last() {
        let mut sketch = Sketch::new(1);
        let second = sketch.rank(1);
        // Rank 0 computes for 10, rank 1 for 40; batches take 5 and are always there.
        for (lane, compute) in [(0, 10), (second, 40)] {
            for step in 1..=3 {
                let at = i64::from(step) * 47;
                sketch.step(lane, (1, step), (at, at + 2), at + 2 + compute);
                sketch.tagged(lane, "comm/all_reduce", (at + 2 + compute, at + 47), (1, step));
                sketch.tagged(lane + 1, "dataloader/batch", (at - 40, at - 35), (1, step));
            }
        }
        let answer = what_if(&sketch.run());
        assert_eq!((answer.observed_step_ns, answer.modelled_step_ns), (47, 47));
        // Both are stalled for 2, and the first one for another 2 while the late one is.
        assert_eq!(case(&answer, "decode 2x").stall_share, 6.0 / 94.0);
    }

    #[test]
    fn a_run_that_the_model_does_not_make_has_no_predictions() {
        let mut sketch = Sketch::new(1);
        for step in 1..=10 {
            let at = i64::from(step) * 100;
            sketch.step(0, (1, step), (at, at + 80), at + 100);
            // The batch is begun only long after there was room for it.
            sketch.tagged(1, "dataloader/batch", (at + 70, at + 80), (1, step));
        }
        let answer = what_if(&sketch.run());
        assert!(answer.cases.is_empty());
        let text = "the loader model predicts the observed steps 72 % too short";
        assert_eq!(answer.refused.as_deref(), Some(text));
        let nothing = what_if(&[]);
        assert_eq!(nothing.refused.as_deref(), Some("the trace has no training steps"));
    }

    #[test]
    fn without_a_producer_there_is_nothing_to_play() {
        let mut sketch = Sketch::new(0);
        sketch.step(0, (1, 1), (0, 10), 20);
        let answer = what_if(&sketch.run());
        let text = "the trace does not show which worker produced most batches";
        assert_eq!(answer.refused.as_deref(), Some(text));
    }

    #[test]
    fn storage_that_slows_down_with_more_workers_is_shared() {
        let unit = |slower: u64| {
            let step = |k: u64| {
                let mut step =
                    StepRecord { concurrency: 1 + (k % 4) as u32, ..StepRecord::default() };
                step.service_ns = 100;
                step.service_parts_ns[StallCause::Read as usize] = 20 + slower * (k % 4);
                step
            };
            RankSteps { steps: (0..40).map(step).collect(), ..RankSteps::default() }
        };
        // From 20 to 80 as workers go from 1 to 4: in proportion. From 20 to 26: hardly.
        assert_eq!(storage(&[unit(20)]), Storage::Shared);
        assert_eq!(storage(&[unit(2)]), Storage::Free);
        // As many at all times, and nothing but reading: that may be all the storage gives, or not.
        let even = |k: u64| {
            let mut step = StepRecord { concurrency: 4, service_ns: 100, ..StepRecord::default() };
            step.service_parts_ns[StallCause::Read as usize] = 80 + k % 3;
            step
        };
        let busy = RankSteps { steps: (0..40).map(even).collect(), ..RankSteps::default() };
        assert_eq!(storage(&[busy]), Storage::Untold);
    }
}
