//! The part of a source that is in memory, and the way from one part to the next.
//!
//! A read brings a piece; where the source has blocks it goes up to a multiple of the piece size, so
//! that the reads of a long stream are aligned. Bytes that are in memory are never read again.

use std::ops::Range;

use crate::npy_header::PREFIX_BYTES;
use crate::{ByteSource, DecodeError, Decoded};

/// Fills `into` with the bytes at `offset` of a source, with one read.
pub(crate) fn fetch(source: &mut dyn ByteSource, offset: u64, into: &mut [u8]) -> Decoded<()> {
    let wanted = into.len() as u64;
    let read = source.read_exact_at(offset, into);
    read.map_err(|source| DecodeError::Source { offset, wanted, source })
}

/// A source seen through the caller's buffer.
pub(crate) struct Window<'a> {
    source: &'a mut dyn ByteSource,
    scratch: &'a mut [u8],
    /// Where in the file the filled part of `scratch` comes from.
    start: u64,
    filled: usize,
    piece: u64,
    /// Reads are widened to multiples of this, so that none goes around a corner.
    block: u64,
    len: u64,
    pulled: u64,
}

/// Which bytes of the file a buffer holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    start: u64,
    filled: usize,
}

impl<'a> Window<'a> {
    /// Looks at `source` in pieces of the size that it likes and that fits into `scratch`.
    pub(crate) fn new(source: &'a mut dyn ByteSource, scratch: &'a mut [u8]) -> Decoded<Self> {
        let len = source.len().map_err(|source| DecodeError::Size { source })?;
        Ok(Window::with_len(source, scratch, len))
    }

    /// The same, for a source whose size is known.
    pub(crate) fn with_len(
        source: &'a mut dyn ByteSource,
        scratch: &'a mut [u8],
        len: u64,
    ) -> Self {
        let piece = source.piece_bytes().min(scratch.len()).max(1) as u64;
        let block = source.block_bytes().max(1) as u64;
        Window { source, scratch, start: 0, filled: 0, piece, block, len, pulled: 0 }
    }

    /// Goes on with what an earlier window left in the same buffer.
    pub(crate) fn resume(self, held: Held) -> Self {
        assert!(held.filled <= self.scratch.len(), "a buffer keeps its size");
        Window { start: held.start, filled: held.filled, ..self }
    }

    /// What is in the buffer now.
    pub(crate) fn held(&self) -> Held {
        Held { start: self.start, filled: self.filled }
    }

    /// Whether the source is to be asked for exactly what is needed.
    pub(crate) fn is_exact(&self) -> bool {
        self.source.is_exact()
    }

    /// Size of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes read from the source so far.
    pub(crate) fn pulled(&self) -> u64 {
        self.pulled
    }

    /// The largest piece this window reads unless it is asked for more at once.
    pub(crate) fn piece(&self) -> u64 {
        self.piece
    }

    /// The most that can be in memory at once.
    pub(crate) fn capacity(&self) -> u64 {
        self.scratch.len() as u64
    }

    /// Refuses a file that ends before `end`.
    pub(crate) fn check_end(&self, end: u64) -> Decoded<()> {
        if end <= self.len {
            return Ok(());
        }
        Err(DecodeError::truncated(end, self.len))
    }

    /// The `len` bytes at `offset`.
    pub(crate) fn exactly(&mut self, offset: u64, len: u64) -> Decoded<&[u8]> {
        let bytes = self.at_least(offset, len, u64::MAX)?;
        Ok(&bytes[..len as usize])
    }

    /// As many of the first bytes of an npy header at `offset` as the file has.
    pub(crate) fn prefix(&mut self, offset: u64) -> Decoded<&[u8]> {
        self.exactly(offset, self.len.saturating_sub(offset).min(PREFIX_BYTES as u64))
    }

    /// The bytes from `offset` on: at least `least` of them, none at or after `limit` beyond that.
    ///
    /// What is in memory is used first; otherwise one read fetches the rest of the piece.
    pub(crate) fn at_least(&mut self, offset: u64, least: u64, limit: u64) -> Decoded<&[u8]> {
        let end = offset.saturating_add(least);
        self.check_end(end)?;
        let in_memory = self.start..=self.start + self.filled as u64;
        if !in_memory.contains(&offset) || !in_memory.contains(&end) || self.filled == 0 {
            let read_end = self.piece_end(offset, limit).max(end);
            self.load(offset, read_end - offset)?;
        }
        let from = (offset - self.start) as usize;
        let to = (limit.max(end) - self.start).min(self.filled as u64) as usize;
        Ok(&self.scratch[from..to])
    }

    /// Shows the bytes of a range to `visit`, in pieces.
    #[inline]
    pub(crate) fn stream(
        &mut self,
        range: Range<u64>,
        mut visit: impl FnMut(&[u8]) -> Decoded<()>,
    ) -> Decoded<()> {
        let mut at = range.start;
        while at < range.end {
            let piece = self.at_least(at, 1, range.end)?;
            visit(piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Reads the bytes at `offset` past the buffer, with one read.
    pub(crate) fn read_into(&mut self, offset: u64, into: &mut [u8]) -> Decoded<()> {
        let wanted = into.len() as u64;
        self.check_end(offset.saturating_add(wanted))?;
        fetch(self.source, offset, into)?;
        self.pulled += wanted;
        Ok(())
    }

    /// Where a read that begins at `offset` and need not go to `limit` ends: a piece further, or where
    /// blocks count at the next multiple of the piece, or a little after it if that saves a read.
    fn piece_end(&self, offset: u64, limit: u64) -> u64 {
        let limit = limit.min(self.len);
        let most = self.capacity().saturating_sub(2 * self.block);
        let rest = limit.saturating_sub(offset);
        if self.block > 1 && rest <= (self.piece + 2 * self.block).min(most) {
            return limit;
        }
        // Without blocks nothing is gained by multiples, and a sample may take one read fewer.
        let from = if self.block > 1 { offset / self.piece * self.piece } else { offset };
        from.saturating_add(self.piece).min(limit)
    }

    /// Reads `len` bytes at `offset`, and what is left of their blocks if there is room, in place of
    /// what was in memory.
    fn load(&mut self, offset: u64, len: u64) -> Decoded<()> {
        let capacity = self.capacity();
        if len > capacity {
            return Err(DecodeError::Scratch { offset, needed: len, found: capacity });
        }
        let (mut start, mut end) = (offset, offset + len);
        let blocks = start - start % self.block..end.next_multiple_of(self.block).min(self.len);
        if blocks.end - blocks.start <= capacity {
            (start, end) = (blocks.start, blocks.end);
        }
        self.filled = 0;
        let target = &mut self.scratch[..(end - start) as usize];
        self.source.read_exact_at(start, target).map_err(|source| DecodeError::Source {
            offset,
            wanted: len,
            source,
        })?;
        self.start = start;
        self.filled = (end - start) as usize;
        self.pulled += end - start;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamError;

    /// A file of 100 000 bytes that wants reads in blocks of 4096.
    struct Blocks {
        reads: Vec<(u64, usize)>,
    }

    impl ByteSource for Blocks {
        fn len(&mut self) -> Result<u64, StreamError> {
            Ok(100_000)
        }

        fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
            self.reads.push((offset, buf.len()));
            (offset..).zip(buf).for_each(|(at, byte)| *byte = (at % 251) as u8);
            Ok(())
        }

        fn piece_bytes(&self) -> usize {
            8192
        }

        fn block_bytes(&self) -> usize {
            4096
        }
    }

    #[test]
    fn reads_are_widened_to_blocks_and_bytes_are_those_asked_for() {
        let mut source = Blocks { reads: Vec::new() };
        let mut scratch = vec![0; 8192 + 4 * 4096];
        let mut window = Window::new(&mut source, &mut scratch).unwrap();
        let mut at = 5000;
        while at < 30_000 {
            let part = window.at_least(at, 1, 30_000).unwrap();
            assert_eq!(part[0], (at % 251) as u8);
            assert!(at + part.len() as u64 <= 30_000);
            at += part.len() as u64;
        }
        // From the block of byte 5000 to a multiple of the piece; the last two pieces in one.
        assert_eq!(source.reads, [(4096, 4096), (8192, 8192), (16_384, 16_384)]);
    }

    #[test]
    fn the_last_block_ends_with_the_file() {
        let mut source = Blocks { reads: Vec::new() };
        let mut scratch = vec![0; 8192 + 4 * 4096];
        let mut window = Window::new(&mut source, &mut scratch).unwrap();
        assert_eq!(window.exactly(99_990, 10).unwrap().len(), 10);
        assert_eq!(source.reads, [(98_304, 100_000 - 98_304)]);
    }
}
