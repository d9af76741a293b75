//! The sizes of rows, as they come out of pages and as they are asked for.
//!
//! Neighbors of equal size are one entry, so the usual column of samples takes one whatever its
//! length is.

/// Rows of equal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    bytes: u64,
    rows: u64,
}

/// Collects the sizes of the rows of a row group, from one of them on.
#[derive(Debug)]
pub(super) struct Rows {
    runs: Vec<Run>,
    /// As many entries are kept; rows after them must be decoded again.
    most: usize,
    /// Rows whose size does not matter.
    skip: u64,
    ended: u64,
    /// Size so far of the row that has begun.
    open: Option<u64>,
    full: bool,
}

impl Rows {
    /// Collects from row `skip` on, into the memory of an earlier cursor.
    pub(super) fn new(skip: u64, most: usize, cursor: Cursor) -> Rows {
        let mut runs = cursor.runs;
        runs.clear();
        Rows { runs, most, skip, ended: 0, open: None, full: false }
    }

    /// Rows that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.ended + u64::from(self.open.is_some())
    }

    /// Begins `rows` rows, at least one, each with `bytes` bytes; the last may grow.
    pub(super) fn begin(&mut self, bytes: u64, rows: u64) {
        if let Some(open) = self.open.replace(bytes) {
            self.end(open, 1);
        }
        self.end(bytes, rows - 1);
    }

    /// Adds to the row that has begun; `false` if none has.
    #[must_use]
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let Some(open) = &mut self.open else { return false };
        *open = open.saturating_add(bytes);
        true
    }

    /// Adds `count` values or gaps of the same repetition level; `None` if they go on with a row and
    /// none has begun.
    pub(super) fn add(&mut self, level: u32, bytes: u64, count: u64) -> Option<()> {
        if level == 0 {
            self.begin(bytes, count);
            return Some(());
        }
        self.grow(bytes.saturating_mul(count)).then_some(())
    }

    /// The sizes, to be asked for from the first row that mattered.
    pub(super) fn finish(mut self, group: usize, first_row: u64) -> Cursor {
        if let Some(open) = self.open.take() {
            self.end(open, 1);
        }
        Cursor { group, next_row: first_row.saturating_add(self.skip), runs: self.runs, head: 0 }
    }

    fn end(&mut self, bytes: u64, rows: u64) {
        let before = self.ended;
        self.ended = before.saturating_add(rows);
        let rows = self.ended - before.max(self.skip.min(self.ended));
        if rows == 0 || self.full {
            return;
        }
        let kept = self.runs.len();
        match self.runs.last_mut() {
            Some(run) if run.bytes == bytes => run.rows = run.rows.saturating_add(rows),
            _ if kept < self.most => self.runs.push(Run { bytes, rows }),
            _ => self.full = true,
        }
    }
}

/// Sizes of decoded rows that have not been asked for.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    group: usize,
    next_row: u64,
    runs: Vec<Run>,
    head: usize,
}

impl Cursor {
    /// The size of a row, if it has been decoded and is not before one that was asked for.
    pub(super) fn take(&mut self, group: usize, row: u64) -> Option<u64> {
        if group != self.group {
            return None;
        }
        let mut ahead = row.checked_sub(self.next_row)?;
        loop {
            let run = self.runs.get_mut(self.head)?;
            if ahead < run.rows {
                run.rows -= ahead + 1;
                self.next_row = row + 1;
                return Some(run.bytes);
            }
            ahead -= run.rows;
            self.next_row += run.rows;
            run.rows = 0;
            self.head += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(skip: u64, most: usize) -> Rows {
        Rows::new(skip, most, Cursor::default())
    }

    #[test]
    fn rows_are_found_in_order() {
        let mut rows = rows(2, 10);
        rows.begin(5, 4);
        rows.begin(5, 1);
        assert!(rows.grow(2));
        rows.begin(0, 2);
        assert_eq!(rows.begun(), 7);
        let mut cursor = rows.finish(3, 100);
        assert_eq!(cursor.take(0, 102), None);
        assert_eq!(cursor.take(3, 101), None);
        assert_eq!(cursor.take(3, 102), Some(5));
        assert_eq!(cursor.take(3, 102), None);
        assert_eq!(cursor.take(3, 104), Some(7));
        assert_eq!(cursor.take(3, 103), None);
        assert_eq!(cursor.take(3, 105), Some(0));
        assert_eq!(cursor.take(3, 106), Some(0));
        assert_eq!(cursor.take(3, 107), None);
    }

    #[test]
    fn the_number_of_entries_has_a_bound() {
        let mut rows = rows(0, 2);
        for bytes in 0..10 {
            rows.begin(bytes, 1);
        }
        assert_eq!(rows.begun(), 10);
        let mut cursor = rows.finish(0, 0);
        assert_eq!([0, 1, 2].map(|row| cursor.take(0, row)), [Some(0), Some(1), None]);
        assert_eq!(cursor.runs.len(), 2);
    }

    #[test]
    fn a_row_cannot_grow_before_it_begins_nor_without_end() {
        let mut rows = rows(0, 2);
        assert!(!rows.grow(1));
        rows.begin(u64::MAX, u64::MAX);
        rows.begin(1, u64::MAX);
        assert!(rows.grow(u64::MAX));
        assert_eq!(rows.finish(0, 0).take(0, 0), Some(u64::MAX));
    }
}
