//! Slices of one thread on tracks where they nest.
//!
//! A track is a stack: a slice lies within the one below it or begins after its end. Calls of a thread
//! do; requests that run at the same time, or threads without numbers, do not, and what overlaps goes to
//! another lane.

/// A slice's place in time, and which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) slice: usize,
}

/// What happens on a track, in the order in which it must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Begin { lane: usize, slice: usize },
    End { lane: usize, at_ns: i64 },
}

/// Lanes beyond this are not looked through: what fits nowhere is put on the last one.
const MOST_LANES: usize = 64;

/// Puts the stays of a thread on lanes; the last argument hears of every act.
pub(crate) fn lay_out(stays: &mut [Stay], mut act: impl FnMut(Act)) {
    stays.sort_by_key(|stay| (stay.start_ns, std::cmp::Reverse(stay.end_ns), stay.slice));
    let mut lanes: Vec<Vec<i64>> = vec![Vec::new()];
    for stay in stays.iter() {
        let mut lane = 0;
        loop {
            let stack = &mut lanes[lane];
            while stack.last().is_some_and(|end_ns| *end_ns <= stay.start_ns) {
                let at_ns = stack.pop().unwrap_or(stay.start_ns);
                act(Act::End { lane, at_ns });
            }
            if stack.last().is_none_or(|end_ns| stay.end_ns <= *end_ns) || lane + 1 == MOST_LANES {
                break;
            }
            lane += 1;
            if lane == lanes.len() {
                lanes.push(Vec::new());
            }
        }
        let inside = lanes[lane].last().copied().unwrap_or(i64::MAX);
        lanes[lane].push(stay.end_ns.min(inside));
        act(Act::Begin { lane, slice: stay.slice });
    }
    for (lane, stack) in lanes.iter().enumerate() {
        for end_ns in stack.iter().rev() {
            act(Act::End { lane, at_ns: *end_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stays: &[(i64, i64)], expected: &str) {
        let mut stays: Vec<_> = stays
            .iter()
            .enumerate()
            .map(|(slice, (start_ns, end_ns))| Stay { start_ns: *start_ns, end_ns: *end_ns, slice })
            .collect();
        let mut acts = Vec::new();
        lay_out(&mut stays, |act| {
            acts.push(match act {
                Act::Begin { lane, slice } => format!("{lane}+{slice}"),
                Act::End { lane, at_ns } => format!("{lane}-{at_ns}"),
            });
        });
        assert_eq!(acts.join(" "), expected);
    }

    #[test]
    fn calls_nest_and_what_overlaps_goes_to_another_lane() {
        check(&[(2, 4), (0, 10), (5, 10)], "0+1 0+0 0-4 0+2 0-10 0-10");
        check(&[(0, 5), (3, 8), (6, 7)], "0+0 1+1 0-5 0+2 0-7 1-8");
        check(&[(0, 5), (5, 5), (5, 9), (9, 9)], "0+0 0-5 0+2 0+1 0-5 0-9 0+3 0-9");
        check(&[(0, 4), (0, 4)], "0+0 0+1 0-4 0-4");
    }
}
