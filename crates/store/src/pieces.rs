//! How a range of an object is cut into reads.

use crate::{Result, StoreError};

/// One read of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    /// Where the read begins, at a block.
    pub(crate) start: u64,
    /// How much it reads, whole blocks.
    pub(crate) len: usize,
    /// First byte of it that was asked for.
    pub(crate) asked_from: u64,
    /// How many were asked for.
    pub(crate) asked: u64,
}

impl Piece {
    /// How many of the bytes asked for are there once the first `done` bytes were read.
    pub(crate) fn found(&self, done: usize) -> u64 {
        (self.start + done as u64).saturating_sub(self.asked_from).min(self.asked)
    }
}

/// The reads of the bytes from `next` to `end`, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces {
    pub(crate) next: u64,
    pub(crate) end: u64,
    /// What a read begins at and ends at a multiple of; 1 if it need not.
    pub(crate) block: u64,
    /// Longest read, a multiple of `block`.
    pub(crate) longest: usize,
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.next >= self.end {
            return None;
        }
        let asked_from = self.next;
        let start = asked_from - asked_from % self.block;
        let whole = (self.end - start).checked_next_multiple_of(self.block).unwrap_or(u64::MAX);
        let len = whole.min(self.longest as u64);
        self.next = start.saturating_add(len).min(self.end);
        Some(Piece { start, len: len as usize, asked_from, asked: self.next - asked_from })
    }
}

/// Pieces, each with the memory that its bytes go to, unless they are discarded.
pub(crate) struct Portions<'b> {
    pieces: Pieces,
    memory: Option<&'b mut [u8]>,
}

impl<'b> Portions<'b> {
    /// Cuts the memory like the pieces of the object called `name`, if it has room for all of them.
    pub(crate) fn new(
        pieces: Pieces,
        memory: Option<&'b mut [u8]>,
        name: impl FnOnce() -> String,
    ) -> Result<Portions<'b>> {
        let room = memory.as_ref().map_or(u64::MAX, |memory| memory.len() as u64);
        let bound = pieces.next.saturating_add(room);
        if pieces.end > bound {
            return Err(StoreError::TooLong { path: name(), bound, found: pieces.end });
        }
        Ok(Portions { pieces, memory })
    }
}

impl<'b> Iterator for Portions<'b> {
    type Item = (Piece, Option<&'b mut [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.pieces.next()?;
        let memory = self.memory.as_mut();
        Some((piece, memory.and_then(|memory| memory.split_off_mut(..piece.asked as usize))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(range: std::ops::Range<u64>, block: u64, expected: &[(u64, usize, u64, u64)]) {
        let pieces = Pieces { next: range.start, end: range.end, block, longest: 8192 };
        let found: Vec<_> =
            pieces.map(|piece| (piece.start, piece.len, piece.asked_from, piece.asked)).collect();
        assert_eq!(found, expected, "{range:?} in blocks of {block}");
    }

    #[test]
    fn a_range_is_cut_where_it_begins() {
        check(5..5, 1, &[]);
        check(5..6, 1, &[(5, 1, 5, 1)]);
        check(5..8197, 1, &[(5, 8192, 5, 8192)]);
        check(5..8198, 1, &[(5, 8192, 5, 8192), (8197, 1, 8197, 1)]);
    }

    #[test]
    fn a_range_of_whole_blocks_counts_what_was_asked_for() {
        check(0..8192, 4096, &[(0, 8192, 0, 8192)]);
        check(5..6, 4096, &[(0, 4096, 5, 1)]);
        check(4095..4097, 4096, &[(0, 8192, 4095, 2)]);
        check(5000..20_000, 4096, &[(4096, 8192, 5000, 7288), (12_288, 8192, 12_288, 7712)]);
    }

    #[test]
    fn a_read_that_stops_early_has_found_some() {
        let piece = Piece { start: 4096, len: 8192, asked_from: 5000, asked: 5000 };
        let found = [0, 904, 905, 4096, 5904, 8192].map(|done| piece.found(done));
        assert_eq!(found, [0, 0, 1, 3192, 5000, 5000]);
    }
}
