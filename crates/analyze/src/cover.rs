//! How long things went on, and how much of that while something else did, from rows in order.
//!
//! A [`Cover`] is a union that grows as rows come: overlapping ones make one interval. A [`Backdrop`] is a
//! union that others are compared with, so it is kept, with running sums, as long as the run.

/// A union that grows, in the order of starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cover {
    /// The interval that may still grow.
    open: Option<(i64, i64)>,
    /// How much of the backdrop there was before it.
    backdrop_before_ns: u64,
    measure_ns: u64,
    overlap_ns: u64,
}

/// A union that others are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backdrop {
    /// Start, end, and the measure of all before; the last one may still grow.
    parts: Vec<(i64, i64, u64)>,
}

impl Backdrop {
    /// Takes an interval that begins no earlier than any before it.
    pub(crate) fn add(&mut self, start_ns: i64, end_ns: i64) {
        if start_ns >= end_ns {
            return;
        }
        match self.parts.last_mut() {
            Some((_, end, _)) if *end >= start_ns => *end = end_ns.max(*end),
            Some((start, end, before)) => {
                let sum = *before + end.abs_diff(*start);
                self.parts.push((start_ns, end_ns, sum));
            }
            None => self.parts.push((start_ns, end_ns, 0)),
        }
    }

    /// How much of it there is before a moment. True if all intervals that begin before are known.
    pub(crate) fn before_ns(&self, at_ns: i64) -> u64 {
        // What is asked for is nearly always at the end.
        let recent = self.parts.iter().rev().take(4).position(|(start, ..)| *start < at_ns);
        let found = match recent {
            Some(back) => Some(self.parts.len() - 1 - back),
            None => self.parts.partition_point(|(start, ..)| *start < at_ns).checked_sub(1),
        };
        found.map_or(0, |index| {
            let (start, end, before) = self.parts[index];
            before + end.min(at_ns).abs_diff(start)
        })
    }

    /// How long it is in all.
    pub(crate) fn measure_ns(&self) -> u64 {
        self.parts.last().map_or(0, |(start, end, before)| before + end.abs_diff(*start))
    }

    pub(crate) fn intervals(&self) -> impl Iterator<Item = (i64, i64)> {
        self.parts.iter().map(|(start, end, _)| (*start, *end))
    }
}

impl Cover {
    /// Takes an interval that begins no earlier than any before it, and whose backdrop is known up to there.
    #[inline]
    pub(crate) fn add(&mut self, start_ns: i64, end_ns: i64, backdrop: &Backdrop) {
        match &mut self.open {
            Some((_, end)) if *end >= start_ns => *end = end_ns.max(*end),
            _ => {
                self.close(backdrop);
                if start_ns < end_ns {
                    self.open = Some((start_ns, end_ns));
                    self.backdrop_before_ns = backdrop.before_ns(start_ns);
                }
            }
        }
    }

    /// Nothing more overlaps with what came.
    pub(crate) fn close(&mut self, backdrop: &Backdrop) {
        if let Some((start, end)) = self.open.take() {
            self.measure_ns += end.abs_diff(start);
            self.overlap_ns += backdrop.before_ns(end) - self.backdrop_before_ns;
        }
    }

    /// How long it is in all, after it was closed.
    pub(crate) fn measure_ns(&self) -> u64 {
        self.measure_ns
    }

    /// How much of it was in front of the backdrop, after it was closed.
    pub(crate) fn overlap_ns(&self) -> u64 {
        self.overlap_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Times;

    #[test]
    fn overlap_is_of_intervals_not_of_sums() {
        let mut compute = Backdrop::default();
        let mut io = Cover::default();
        // |io 0-10|  |compute 10-20|: ten each, none of them together.
        io.add(0, 10, &compute);
        compute.add(10, 20);
        // |io 15-30| overlaps with five, twice.
        io.add(15, 30, &compute);
        io.add(16, 18, &compute);
        io.close(&compute);
        assert_eq!((io.measure_ns(), io.overlap_ns(), compute.measure_ns()), (25, 5, 10));
    }

    #[test]
    fn random_intervals_give_what_sets_give() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            ((state >> 33) % below).cast_signed()
        };
        for _ in 0..300 {
            let mut rows = Vec::new();
            for _ in 0..60 {
                let start = next(500);
                rows.push((start, start + next(30), next(2) == 0));
            }
            rows.sort_unstable();
            let (mut compute, mut io) = (Backdrop::default(), Cover::default());
            for (start, end, is_compute) in &rows {
                if *is_compute {
                    compute.add(*start, *end);
                }
                if !is_compute {
                    io.add(*start, *end, &compute);
                }
            }
            io.close(&compute);
            let set = |kind: bool| {
                Times::from_intervals(
                    rows.iter().filter(|row| row.2 == kind).map(|row| (row.0, row.1)),
                )
            };
            assert_eq!(io.measure_ns(), set(false).measure_ns());
            assert_eq!(io.overlap_ns(), set(false).intersection(&set(true)).measure_ns());
            assert_eq!(compute.measure_ns(), set(true).measure_ns());
        }
    }
}
