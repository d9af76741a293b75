//! The part of a source that is in memory, and the way from one part to the next.
//!
//! A read goes up to the next multiple of the piece size, so that the reads of a long stream are
//! aligned; bytes that are in memory already are never read again.

use crate::npy_header::PREFIX_BYTES;
use crate::{DecodeError, Source};

/// A source seen through the caller's buffer.
pub(crate) struct Window<'a> {
    source: &'a mut dyn Source,
    scratch: &'a mut [u8],
    /// Where in the file the filled part of `scratch` comes from.
    start: u64,
    filled: usize,
    piece: u64,
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
    pub(crate) fn new(
        source: &'a mut dyn Source,
        scratch: &'a mut [u8],
    ) -> Result<Self, DecodeError> {
        let len = source.len().map_err(|source| DecodeError::Size { source })?;
        let piece = source.piece_bytes().min(scratch.len()).max(1) as u64;
        Ok(Window { source, scratch, start: 0, filled: 0, piece, len, pulled: 0 })
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
    pub(crate) fn check_end(&self, end: u64) -> Result<(), DecodeError> {
        if end <= self.len {
            return Ok(());
        }
        Err(DecodeError::Truncated { offset: self.len, needed: end, found: self.len })
    }

    /// The `len` bytes at `offset`.
    pub(crate) fn exactly(&mut self, offset: u64, len: u64) -> Result<&[u8], DecodeError> {
        let bytes = self.at_least(offset, len, u64::MAX)?;
        Ok(&bytes[..len as usize])
    }

    /// As many of the first bytes of an npy header at `offset` as the file has.
    pub(crate) fn prefix(&mut self, offset: u64) -> Result<&[u8], DecodeError> {
        self.exactly(offset, self.len.saturating_sub(offset).min(PREFIX_BYTES as u64))
    }

    /// The bytes from `offset` on: at least `least` of them, none at or behind `limit` beyond that.
    ///
    /// What is in memory is used first; otherwise one read fetches the rest of the piece.
    pub(crate) fn at_least(
        &mut self,
        offset: u64,
        least: u64,
        limit: u64,
    ) -> Result<&[u8], DecodeError> {
        let end = offset.saturating_add(least);
        self.check_end(end)?;
        let in_memory = self.start..=self.start + self.filled as u64;
        if !in_memory.contains(&offset) || !in_memory.contains(&end) || self.filled == 0 {
            let piece_end = (offset / self.piece + 1).saturating_mul(self.piece);
            let read_end = piece_end.min(limit).min(self.len).max(end);
            self.load(offset, read_end - offset)?;
        }
        let from = (offset - self.start) as usize;
        let to = (limit.max(end) - self.start).min(self.filled as u64) as usize;
        Ok(&self.scratch[from..to])
    }

    /// Reads the bytes at `offset` past the buffer, with one read.
    pub(crate) fn read_into(&mut self, offset: u64, into: &mut [u8]) -> Result<(), DecodeError> {
        let wanted = into.len() as u64;
        self.check_end(offset.saturating_add(wanted))?;
        self.source.read_exact_at(offset, into).map_err(|source| DecodeError::Source {
            offset,
            wanted,
            source,
        })?;
        self.pulled += wanted;
        Ok(())
    }

    /// Reads `len` bytes at `offset` in place of what was in memory.
    pub(crate) fn load(&mut self, offset: u64, len: u64) -> Result<&[u8], DecodeError> {
        let capacity = self.capacity();
        if len > capacity {
            return Err(DecodeError::Scratch { offset, needed: len, found: capacity });
        }
        self.filled = 0;
        let target = &mut self.scratch[..len as usize];
        self.source.read_exact_at(offset, target).map_err(|source| DecodeError::Source {
            offset,
            wanted: len,
            source,
        })?;
        self.start = offset;
        self.filled = len as usize;
        self.pulled += len;
        Ok(&self.scratch[..self.filled])
    }
}
