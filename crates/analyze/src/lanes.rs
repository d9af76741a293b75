//! What every thread did from moment to moment: self time by containment.
//!
//! Events of a thread nest; the innermost one is what the thread does. An event that goes on after the one around
//! it has ended is taken as inner until its own end, and counted, since such a trace has a fault.

use crate::row::Row;

/// The open events of a thread, the innermost last.
#[derive(Clone, Debug, Default)]
struct Stack {
    /// When they end, and what they are.
    open: Vec<(i64, u32)>,
    /// Up to when time was dealt out.
    at_ns: i64,
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    stacks: Vec<Stack>,
    /// Events that go on after the one around them.
    pub(crate) crossing: u64,
}

impl Lanes {
    /// As many threads as there are.
    pub(crate) fn new(lanes: usize) -> Self {
        Self { stacks: vec![Stack::default(); lanes], crossing: 0 }
    }

    /// Takes a row, in order. `slice` is told what the thread did, from when to when, up to the row.
    #[inline]
    pub(crate) fn enter(&mut self, row: &Row, slice: &mut impl FnMut(u32, u32, i64, i64)) {
        let stack = &mut self.stacks[row.lane as usize];
        stack.advance(row.lane, row.start_ns, slice);
        if row.end_ns > row.start_ns {
            if stack.open.last().is_some_and(|(end, _)| *end < row.end_ns) {
                self.crossing += 1;
            }
            stack.open.push((row.end_ns, row.event_type));
        }
    }

    /// Deals out what is left.
    pub(crate) fn finish(&mut self, slice: &mut impl FnMut(u32, u32, i64, i64)) {
        for (lane, stack) in (0..).zip(&mut self.stacks) {
            stack.advance(lane, i64::MAX, slice);
        }
    }
}

impl Stack {
    #[inline]
    fn advance(&mut self, lane: u32, to_ns: i64, slice: &mut impl FnMut(u32, u32, i64, i64)) {
        while let Some((end, event_type)) = self.open.last().copied() {
            let until = end.min(to_ns);
            if self.at_ns < until {
                slice(lane, event_type, self.at_ns, until);
                self.at_ns = until;
            }
            if end > to_ns {
                return;
            }
            self.open.pop();
        }
        self.at_ns = to_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(rows: &[(i64, i64, u32)]) -> (Vec<(u32, i64, i64)>, u64) {
        let mut lanes = Lanes::new(1);
        let mut found = Vec::new();
        let mut take =
            |_: u32, event_type: u32, from: i64, to: i64| found.push((event_type, from, to));
        for (start_ns, end_ns, event_type) in rows {
            let row = Row {
                start_ns: *start_ns,
                end_ns: *end_ns,
                event_type: *event_type,
                ..Row::default()
            };
            lanes.enter(&row, &mut take);
        }
        lanes.finish(&mut take);
        (found, lanes.crossing)
    }

    #[test]
    fn the_innermost_event_has_the_time() {
        let (found, crossing) = slices(&[(0, 100, 0), (10, 40, 1), (20, 30, 2), (50, 60, 3)]);
        let expected = [
            (0, 0, 10),
            (1, 10, 20),
            (2, 20, 30),
            (1, 30, 40),
            (0, 40, 50),
            (3, 50, 60),
            (0, 60, 100),
        ];
        assert_eq!((found.as_slice(), crossing), (&expected[..], 0));
    }

    #[test]
    fn crossing_events_are_counted_and_no_time_twice() {
        let (found, crossing) = slices(&[(0, 10, 0), (5, 20, 1), (30, 31, 2)]);
        assert_eq!((found, crossing), (vec![(0, 0, 5), (1, 5, 20), (2, 30, 31)], 1));
    }

    #[test]
    fn moments_take_no_time() {
        let (found, _) = slices(&[(0, 10, 0), (5, 5, 1)]);
        assert_eq!(found, vec![(0, 0, 5), (0, 5, 10)]);
    }
}
