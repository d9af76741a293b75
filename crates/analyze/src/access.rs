//! Where in files threads read and write: on from where they were, further on, or back.
//!
//! A call is compared with the last one of the same kind by the same thread on the same file since it was
//! opened. What is remembered is bounded by the files that are open.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::row::{NONE, Row};
use crate::saturating::grow_each;

/// Counts of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pattern {
    /// Began where the last one ended.
    pub(crate) consecutive: u64,
    /// Began further on.
    pub(crate) forward: u64,
    /// Began before.
    pub(crate) backward: u64,
    /// The first one.
    pub(crate) first: u64,
    /// Where it began is not known.
    pub(crate) unplaced: u64,
}

impl Pattern {
    pub(crate) fn merge(&mut self, other: &Self) {
        grow_each!(self, other; consecutive, forward, backward, first, unplaced);
    }
}

/// Where threads are in files, for one kind of call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// What came of it.
    pub(crate) pattern: Pattern,
    /// By lane: the file of the last call, and where that ended.
    last: Vec<(u32, u64)>,
    /// Other files of a lane.
    others: FxHashMap<(u32, u32), u64>,
}

impl Places {
    /// As many threads as there are.
    pub(crate) fn new(lanes: usize) -> Self {
        Self { last: vec![(NONE, 0); lanes], ..Self::default() }
    }

    /// A call that moved bytes.
    #[inline]
    pub(crate) fn take(&mut self, row: &Row) {
        if row.offset < 0 || row.file == NONE {
            self.pattern.unplaced += 1;
            return;
        }
        let start = row.offset.cast_unsigned();
        let end = start.saturating_add(row.bytes);
        let last = &mut self.last[row.lane as usize];
        let before = if last.0 == row.file {
            Some(last.1)
        } else {
            if last.0 != NONE {
                self.others.insert((row.lane, last.0), last.1);
            }
            self.others.remove(&(row.lane, row.file))
        };
        *last = (row.file, end);
        match before {
            None => self.pattern.first += 1,
            Some(at) if at == start => self.pattern.consecutive += 1,
            Some(at) if at < start => self.pattern.forward += 1,
            Some(_) => self.pattern.backward += 1,
        }
    }

    /// The thread closed a file.
    #[inline]
    pub(crate) fn close(&mut self, lane: u32, file: u32) {
        let last = &mut self.last[lane as usize];
        if last.0 == file {
            *last = (NONE, 0);
        } else if !self.others.is_empty() {
            self.others.remove(&(lane, file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_compared_with_the_one_before_on_the_same_file() {
        let mut places = Places::new(2);
        let mut read = |lane, file, offset, bytes| {
            places.take(&Row { lane, file, offset, bytes, ..Row::default() });
        };
        read(0, 0, 0, 10);
        read(0, 0, 10, 10);
        read(0, 1, 500, 10);
        read(0, 0, 20, 10);
        read(0, 0, 40, 10);
        read(0, 0, 0, 10);
        read(1, 0, 10, 10);
        read(1, 0, -1, 10);
        places.close(0, 1);
        let expected = Pattern { consecutive: 2, forward: 1, backward: 1, first: 3, unplaced: 1 };
        assert_eq!(places.pattern, expected);
        assert!(places.others.is_empty());
        places.take(&Row { lane: 0, file: 1, offset: 510, bytes: 10, ..Row::default() });
        assert_eq!(places.pattern.first, 4);
    }
}
