//! Sets of time: sorted, disjoint, half open intervals of nanoseconds, and what they measure.
//!
//! Summed durations count concurrent calls twice; a union does not. Sets of two shards that cover
//! different times are joined by concatenation. Nothing here reads a clock or a file.

/// A set of moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Sorted, disjoint, none empty, no two that touch.
    parts: Vec<(i64, i64)>,
}

impl Times {
    /// The union of intervals in any order. Empty ones, and those that end before they begin, are skipped.
    pub fn from_intervals(intervals: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut all: Vec<_> = intervals.into_iter().filter(|(start, end)| start < end).collect();
        all.sort_unstable();
        let mut times = Self::default();
        for (start, end) in all {
            times.push(start, end);
        }
        times
    }

    /// Adds an interval that begins no earlier than any before it.
    pub fn push(&mut self, start: i64, end: i64) {
        if start >= end {
            return;
        }
        match self.parts.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(*last),
            _ => self.parts.push((start, end)),
        }
    }

    /// The intervals.
    pub fn parts(&self) -> &[(i64, i64)] {
        &self.parts
    }

    /// How long it is in all.
    pub fn measure_ns(&self) -> u64 {
        self.parts.iter().map(|(start, end)| end.abs_diff(*start)).sum()
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from_intervals(self.parts.iter().chain(&other.parts).copied())
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.parts.iter().peekable(), other.parts.iter().peekable());
        let mut both = Self::default();
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            both.push(a.0.max(b.0), a.1.min(b.1));
            if a.1 < b.1 {
                ours.next()
            } else {
                theirs.next()
            };
        }
        both
    }

    /// What is in this one and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        let mut theirs = other.parts.iter().peekable();
        for (start, end) in &self.parts {
            let mut from = *start;
            while let Some((hole, until)) = theirs.peek().filter(|hole| hole.0 < *end) {
                rest.push(from, *hole);
                from = from.max(*until);
                if *until > *end {
                    break;
                }
                theirs.next();
            }
            rest.push(from, *end);
        }
        rest
    }
}
