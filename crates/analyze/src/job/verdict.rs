//! The answer: were the accelerators fed.

use std::collections::BTreeMap;

use crate::analysis::{Answer, Confidence, Epoch, Phase, StallVerdict};
use crate::job::{joined, stall_by_cause};
use crate::resample::{Draws, blocks, quantile};
use crate::saturating::{Total, grow};
use crate::steps::{RankSteps, StepRecord};
use crate::summary::ratio;

/// From which share of stalled time on a training is moderately input-bound, and input-bound.
pub(crate) const BANDS: [f64; 2] = [0.05, 0.2];
/// Fewer steps than these are not judged.
pub(crate) const STEPS_MIN: u64 = 20;
/// How often steps are drawn again.
const DRAWS: usize = 1000;
const SEED: u64 = 0x666c_6f77;

/// Judges training. Bytes read are left to who counts calls.
pub(crate) fn verdict(units: &[RankSteps], epochs: &[Epoch]) -> StallVerdict {
    let steps: Vec<&StepRecord> = units.iter().flat_map(RankSteps::training).collect();
    let count = steps.len() as u64;
    if count == 0 {
        let text = "the trace has no training steps".to_owned();
        return StallVerdict { text, ..StallVerdict::default() };
    }
    let step_ns: u64 = steps.iter().map(|step| step.duration_ns()).total();
    let mut stalls: Vec<u64> = steps.iter().map(|step| step.stall_ns).collect();
    let stall_ns: u64 = stalls.iter().copied().total();
    stalls.sort_unstable();
    let is_stalled = |step: &&&StepRecord| step.stall_ns.saturating_mul(10) > step.duration_ns();
    let stalled = steps.iter().filter(is_stalled).count();
    let stall_share = ratio(stall_ns, step_ns).unwrap_or(0.0);
    let answer = match stall_share {
        _ if count < STEPS_MIN => Answer::TooFewSteps,
        share if share < BANDS[0] => Answer::NotInputBound,
        share if share <= BANDS[1] => Answer::ModeratelyInputBound,
        _ => Answer::InputBound,
    };
    StallVerdict {
        answer,
        text: sentence(answer, stall_share, units),
        steps: count,
        step_ns,
        stall_ns,
        stall_share,
        stall_share_interval: interval(units),
        stalled_steps_share: stalled as f64 / count as f64,
        stall_p95_ns: quantile(&stalls, 950).unwrap_or(0),
        confidence: confidence(&steps),
        au_percent: au(epochs),
        samples_per_second: samples_per_second(epochs),
        read_bytes_per_second: None,
    }
}

fn sentence(answer: Answer, stall_share: f64, units: &[RankSteps]) -> String {
    let percent = 100.0 * stall_share;
    let most = stall_by_cause(units).first().map_or_else(String::new, |most| {
        format!(", {:.0} % of that for {}", 100.0 * most.share, most.cause.name())
    });
    match answer {
        Answer::NotInputBound => format!("not input-bound: {percent:.1} % of step time is stalled"),
        Answer::ModeratelyInputBound => {
            format!("moderately input-bound: {percent:.1} % of step time is stalled{most}")
        }
        Answer::InputBound => format!("input-bound: {percent:.1} % of step time is stalled{most}"),
        Answer::TooFewSteps => {
            format!("fewer than {STEPS_MIN} steps: {percent:.1} % of their time is stalled{most}")
        }
        Answer::NoSteps => "the trace has no training steps".to_owned(),
    }
}

/// How sure the split is of the largest part of stalled time, or of steps if nothing stalled.
fn confidence(steps: &[&StepRecord]) -> Confidence {
    let mut weights: BTreeMap<Confidence, (u64, u64)> = BTreeMap::new();
    for step in steps {
        let weight = weights.entry(step.confidence).or_default();
        grow(&mut weight.0, step.stall_ns);
        weight.1 += 1;
    }
    let most = weights.into_iter().max_by_key(|(_, weight)| *weight);
    most.map_or(Confidence::Low, |(confidence, _)| confidence)
}

/// The 95 % interval of the stalled share: blocks of steps of the job, drawn again.
fn interval(units: &[RankSteps]) -> Option<[f64; 2]> {
    let mut series: Vec<(u64, u64)> = Vec::new();
    for (key, of_phase) in joined::phases(units) {
        if key.0 != Phase::Train {
            continue;
        }
        for together in joined::steps(units, &of_phase).into_values() {
            let steps = together.iter().map(|(unit, row)| &units[*unit].steps[*row]);
            let sums = steps.fold((0_u64, 0_u64), |(stall, all), step| {
                (stall.saturating_add(step.stall_ns), all.saturating_add(step.duration_ns()))
            });
            series.push(sums);
        }
    }
    if (series.len() as u64) < STEPS_MIN {
        return None;
    }
    let mut sums = vec![(0_u128, 0_u128)];
    for (stall, all) in &series {
        let last = sums[sums.len() - 1];
        sums.push((last.0 + u128::from(*stall), last.1 + u128::from(*all)));
    }
    let mut draws = Draws::new(SEED);
    let mut shares: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut stall, mut all) = (0, 0);
            for (start, length) in blocks(series.len(), &mut draws) {
                stall += sums[start + length].0 - sums[start].0;
                all += sums[start + length].1 - sums[start].1;
            }
            let narrow = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
            ratio(narrow(stall), narrow(all)).unwrap_or(0.0)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    Some([quantile(&shares, 25)?, quantile(&shares, 975)?])
}

fn au(epochs: &[Epoch]) -> Option<f64> {
    let training = epochs.iter().filter(|epoch| epoch.phase == Phase::Train);
    let values: Vec<f64> = training.filter_map(|epoch| epoch.au_percent).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn samples_per_second(epochs: &[Epoch]) -> Option<f64> {
    let training = epochs.iter().filter(|epoch| epoch.phase == Phase::Train);
    let samples = training.clone().map(|epoch| epoch.samples).total();
    let ns = training.map(|epoch| epoch.duration_ns).total();
    (samples > 0 && ns > 0).then(|| samples as f64 / (ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::StallCause;
    use crate::steps::sketch::Sketch;

    /// `count` steps of 1000 with a fetch of `wait`; every tenth one of five times that.
    fn steps(count: u32, wait: i64) -> Vec<RankSteps> {
        let mut sketch = Sketch::new(1);
        let mut at = 0;
        for step in 1..=count {
            let wait = if step % 10 == 0 { wait * 5 } else { wait };
            sketch.step(0, (1, step), (at, at + wait), at + 1000);
            sketch.tagged(1, "dataloader/batch", (at + 1, at + wait), (1, step));
            at += 1000;
        }
        sketch.run()
    }

    #[test]
    fn bands_are_of_the_stalled_share() {
        let answer = |count, wait| verdict(&steps(count, wait), &[]).answer;
        assert_eq!(answer(0, 1), Answer::NoSteps);
        assert_eq!(answer(19, 50), Answer::TooFewSteps);
        // The share is 1.4 permille of the wait.
        assert_eq!(answer(100, 35), Answer::NotInputBound);
        assert_eq!(answer(100, 36), Answer::ModeratelyInputBound);
        assert_eq!(answer(100, 142), Answer::ModeratelyInputBound);
        assert_eq!(answer(100, 143), Answer::InputBound);
    }

    #[test]
    fn a_verdict_says_what_it_rests_on() {
        let units = steps(100, 50);
        let verdict = verdict(&units, &[]);
        // 90 steps of 50 and 10 of 250.
        assert_eq!((verdict.steps, verdict.step_ns, verdict.stall_ns), (100, 100_000, 7000));
        assert_eq!(verdict.stall_share, 0.07);
        assert_eq!((verdict.stalled_steps_share, verdict.stall_p95_ns), (0.1, 250));
        assert_eq!(verdict.confidence, Confidence::High);
        let [low, high] = verdict.stall_share_interval.unwrap();
        assert!(0.05 < low && low < 0.07 && 0.07 < high && high < 0.1, "{low} {high}");
        let text = "moderately input-bound: 7.0 % of step time is stalled, 99 % of that for decode";
        assert_eq!(verdict.text, text);
        // Every batch is begun 1 late, the first one by a worker that was not there.
        let causes: Vec<_> = stall_by_cause(&units).iter().map(|t| (t.cause, t.ns)).collect();
        assert_eq!(
            causes,
            [(StallCause::Decode, 6900), (StallCause::Prefetch, 99), (StallCause::StartUp, 1)]
        );
    }

    #[test]
    fn a_series_that_does_not_vary_has_no_spread() {
        let mut sketch = Sketch::new(1);
        for step in 1..=40 {
            let at = i64::from(step) * 100;
            sketch.step(0, (1, step), (at, at + 25), at + 100);
        }
        assert_eq!(verdict(&sketch.run(), &[]).stall_share_interval, Some([0.25, 0.25]));
    }
}
