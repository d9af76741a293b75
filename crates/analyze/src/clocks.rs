//! Clocks of machines that disagree: found by collectives, which end at one moment for all ranks.
//!
//! The offset of a machine is the median difference between the ends of its collectives and those of the
//! machine with the lowest rank. Steps are moved by it, so that ranks can be compared step by step; what is
//! counted by time of day (timelines, the run's length) is not, and the report says so.

use std::collections::{BTreeMap, HashMap};

use crate::analysis::{Phase, Problem};
use crate::steps::RankSteps;
use crate::wording::seconds;

/// Differences below this are how long it takes to leave a collective.
const LEAST_NS: u64 = 10_000_000;
/// Fewer common collectives tell nothing.
const LEAST_STEPS: usize = 3;

/// The clock of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) host: String,
    /// How far it is ahead.
    pub(crate) ahead_ns: i64,
    /// Half of the collectives are off by no more than this after it was moved.
    pub(crate) residual_ns: u64,
}

type Key = (Phase, u32, u32);

/// Ends of the collectives of a machine: the earliest of its ranks.
fn ends(units: &[&RankSteps], host: &str) -> HashMap<Key, i64> {
    let mut ends: HashMap<Key, i64> = HashMap::new();
    for unit in units.iter().filter(|unit| unit.host == host) {
        for step in &unit.steps {
            if let Some((_, end_ns)) = step.meets_ns {
                let key = (step.phase, step.epoch, step.step);
                ends.entry(key).and_modify(|end| *end = end_ns.min(*end)).or_insert(end_ns);
            }
        }
    }
    ends
}

fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

/// Machines whose clocks are off, by the clock of the first unit's machine.
pub(crate) fn offsets(units: &[&RankSteps]) -> Vec<Offset> {
    let Some(first) = units.first() else { return Vec::new() };
    let reference = ends(units, &first.host);
    let mut hosts: Vec<&str> = units.iter().map(|unit| unit.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut found = Vec::new();
    for host in hosts.into_iter().filter(|host| *host != first.host) {
        let own = ends(units, host);
        let mut differences: Vec<i64> =
            own.iter().filter_map(|(key, end_ns)| Some(end_ns - reference.get(key)?)).collect();
        if differences.len() < LEAST_STEPS {
            continue;
        }
        let ahead_ns = median(&mut differences);
        let mut rest: Vec<i64> = differences.iter().map(|it| (it - ahead_ns).abs()).collect();
        let residual_ns = median(&mut rest).unsigned_abs();
        if ahead_ns.unsigned_abs() > LEAST_NS.max(5 * residual_ns) {
            found.push(Offset { host: host.to_owned(), ahead_ns, residual_ns });
        }
    }
    found
}

/// Moves the steps of machines whose clocks are off.
pub(crate) fn align<'a>(units: impl Iterator<Item = &'a mut RankSteps>, offsets: &[Offset]) {
    let by_host: BTreeMap<&str, i64> =
        offsets.iter().map(|offset| (offset.host.as_str(), offset.ahead_ns)).collect();
    for unit in units {
        if let Some(ahead_ns) = by_host.get(unit.host.as_str()) {
            unit.shift(-ahead_ns);
        }
    }
}

/// What the report says about them.
pub(crate) fn problem(offsets: &[Offset]) -> Option<Problem> {
    let worst = offsets.iter().max_by_key(|offset| offset.ahead_ns.unsigned_abs())?;
    let place = |offset: &Offset| {
        let word = if offset.ahead_ns > 0 { "ahead" } else { "behind" };
        let (by, rest) = (seconds(offset.ahead_ns.unsigned_abs()), seconds(offset.residual_ns));
        format!("{}: {by} {word}, {rest} left", offset.host)
    };
    Some(Problem {
        code: "clock-skew".to_owned(),
        count: offsets.len() as u64,
        text: format!(
            "clocks of machines differ by up to {}: steps were aligned by their collectives; the run \
             time and everything by time of day are as the clocks say",
            seconds(worst.ahead_ns.unsigned_abs())
        ),
        places: offsets.iter().take(5).map(place).collect(),
        limits_claims: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::StepRecord;

    fn unit(host: &str, ends: &[i64]) -> RankSteps {
        let step = |(number, end_ns): (u32, &i64)| StepRecord {
            step: number,
            start_ns: end_ns - 100,
            end_ns: *end_ns,
            meets_ns: Some((end_ns - 10, *end_ns)),
            ..StepRecord::default()
        };
        RankSteps {
            host: host.to_owned(),
            steps: (1..).zip(ends).map(step).collect(),
            ..RankSteps::default()
        }
    }

    #[test]
    fn collectives_show_how_far_clocks_are_off() {
        let second = 1_000_000_000;
        let a = unit("a", &[1_000, 2_000, 3_000, 4_000]);
        let mut b = unit("b", &[1_002 + second, 2_001 + second, 3_003 + second, 4_002 + second]);
        let c = unit("c", &[1_100, 2_100, 3_100, 4_100]);
        let found = offsets(&[&a, &b, &c]);
        let expected = Offset { host: "b".to_owned(), ahead_ns: second + 2, residual_ns: 0 };
        assert_eq!(found, [expected]);
        align([&mut b].into_iter(), &found);
        assert_eq!(b.steps[0].meets_ns, Some((990, 1_000)));
        assert_eq!((b.steps[2].start_ns, b.steps[2].end_ns), (2_901, 3_001));
        let problem = problem(&found).unwrap();
        assert_eq!(problem.places, ["b: 1.00 s ahead, 0 s left"]);
        assert!(problem.limits_claims);
    }

    #[test]
    fn a_few_collectives_tell_nothing() {
        let (a, b) = (unit("a", &[0, 1]), unit("b", &[5_000_000_000, 5_000_000_001]));
        assert_eq!(offsets(&[&a, &b]), []);
        assert_eq!(problem(&[]), None);
    }
}
