//! The fetch that a consumer is in, and times that are known ahead.

use std::collections::VecDeque;

use crate::interval::Times;

/// The fetch that is going on: the time of it in which the rank did not compute is a stall.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) start_ns: i64,
    /// The largest number if that is not known yet.
    pub(crate) end_ns: i64,
    /// Counts up, so that what lanes added up for another window is told apart.
    pub(crate) number: u64,
    /// Computation in it.
    covers: Times,
}

impl Default for Window {
    fn default() -> Self {
        Self { start_ns: i64::MAX, end_ns: i64::MAX, number: 0, covers: Times::default() }
    }
}

impl Window {
    /// A fetch begins; the rank computes until `busy_until_ns`.
    pub(crate) fn open(&mut self, start_ns: i64, end_ns: i64, busy_until_ns: i64) {
        self.number += 1;
        (self.start_ns, self.end_ns) = (start_ns, end_ns);
        self.covers = Times::default();
        self.cover(start_ns, busy_until_ns);
    }

    /// Nothing is a stall until it is opened again.
    pub(crate) fn close(&mut self) {
        (self.start_ns, self.end_ns) = (i64::MAX, i64::MAX);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.start_ns != i64::MAX
    }

    /// The rank does something else meanwhile. Comes in the order of starts.
    pub(crate) fn cover(&mut self, start_ns: i64, end_ns: i64) {
        if self.is_open() {
            self.covers.push(start_ns.max(self.start_ns), end_ns.min(self.end_ns));
        }
    }

    /// The stalled part of an interval.
    pub(crate) fn inside_ns(&self, from_ns: i64, to_ns: i64) -> u64 {
        let (from, to) = (from_ns.max(self.start_ns), to_ns.min(self.end_ns));
        if from >= to {
            return 0;
        }
        let covered = |part: &(i64, i64)| measure(part.0.max(from), part.1.min(to));
        measure(from, to) - self.covers.parts().iter().map(covered).sum::<u64>()
    }

    /// What is stalled, as intervals.
    pub(crate) fn stalls(&self) -> Times {
        Times::from_intervals([(self.start_ns, self.end_ns)]).difference(&self.covers)
    }
}

/// How long an interval is; nothing if it ends before it begins.
pub(crate) fn measure(from_ns: i64, to_ns: i64) -> u64 {
    if from_ns < to_ns { to_ns.abs_diff(from_ns) } else { 0 }
}

/// A union of intervals that come in the order of their starts, asked for piece by piece from front to
/// back. Holds what has not been asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upcoming {
    parts: VecDeque<(i64, i64)>,
}

impl Upcoming {
    pub(crate) fn push(&mut self, start_ns: i64, end_ns: i64) {
        if start_ns >= end_ns {
            return;
        }
        match self.parts.back_mut() {
            Some((_, last)) if *last >= start_ns => *last = end_ns.max(*last),
            _ => self.parts.push_back((start_ns, end_ns)),
        }
    }

    /// How much of it lies in an interval. All before the interval's end is forgotten.
    pub(crate) fn take_ns(&mut self, from_ns: i64, to_ns: i64) -> u64 {
        let mut sum = 0;
        while let Some((start, end)) = self.parts.front_mut().filter(|part| part.0 < to_ns) {
            sum += measure((*start).max(from_ns), (*end).min(to_ns));
            if *end > to_ns {
                *start = to_ns;
                break;
            }
            self.parts.pop_front();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computation_is_cut_out_of_a_fetch() {
        let mut window = Window::default();
        window.cover(0, 100);
        assert_eq!(window.inside_ns(0, 100), 0);
        window.open(10, 50, 15);
        window.cover(20, 30);
        window.cover(45, 90);
        assert_eq!(window.inside_ns(0, 100), 5 + 15);
        assert_eq!(window.inside_ns(12, 22), 5);
        assert_eq!(window.stalls().parts(), [(15, 20), (30, 45)]);
        window.close();
        assert_eq!(window.inside_ns(0, 100), 0);
    }

    #[test]
    fn what_overruns_a_step_is_kept_for_the_next() {
        let mut ahead = Upcoming::default();
        for (start, end) in [(0, 10), (5, 12), (20, 50), (60, 60), (70, 80)] {
            ahead.push(start, end);
        }
        assert_eq!(ahead.take_ns(2, 30), 10 + 10);
        assert_eq!(ahead.take_ns(30, 75), 20 + 5);
        assert_eq!(ahead.take_ns(75, 100), 5);
        assert!(ahead.parts.is_empty());
    }
}
