//! Checksums of files: of those that are there, and of those that would be, found by encoding them
//! into nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use crc32fast::Hasher;
use feedline_formats::{ByteSink, HEAD_BYTES, PIECE_BYTES, StreamError};
use feedline_store::{Object, StoreError};

use crate::manifest::FileSum;

/// Reads an object of `bytes` bytes; its CRC-32, or `None` if that was stopped. A read takes as
/// much as `buffer` holds.
pub(crate) fn crc32_of(
    object: &mut dyn Object,
    bytes: u64,
    buffer: &mut [u8],
    stop: &AtomicBool,
) -> Result<Option<u32>, StoreError> {
    let (mut hasher, mut offset) = (Hasher::new(), 0);
    while offset < bytes {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let count = buffer.len().min(usize::try_from(bytes - offset).unwrap_or(usize::MAX));
        object.read_exact_at(offset, &mut buffer[..count])?;
        hasher.update(&buffer[..count]);
        offset += count as u64;
    }
    Ok(Some(hasher.finalize()))
}

/// Takes a file, front to back, and keeps its size and CRC-32 only. A stop request ends it between
/// two pieces.
pub(crate) struct ChecksumSink<'a> {
    /// What can still be changed.
    head: Vec<u8>,
    /// The piece that is being filled.
    piece: &'a mut [u8],
    filled: usize,
    /// Hash of everything after the head.
    behind: Hasher,
    bytes: u64,
    stop: &'a AtomicBool,
}

impl<'a> ChecksumSink<'a> {
    /// Pieces are collected in `buffer`, which is not empty.
    pub(crate) fn new(buffer: &'a mut [u8], stop: &'a AtomicBool) -> Self {
        let head = Vec::with_capacity(HEAD_BYTES);
        // No more than stays in the L2 cache between the filling and the sum.
        let piece = buffer.len().min(PIECE_BYTES);
        let piece = &mut buffer[..piece];
        Self { head, piece, filled: 0, behind: Hasher::new(), bytes: 0, stop }
    }

    pub(crate) fn finish(mut self) -> FileSum {
        self.flush();
        let mut whole = Hasher::new();
        whole.update(&self.head);
        whole.combine(&self.behind);
        FileSum { bytes: self.bytes, crc32: whole.finalize() }
    }

    fn flush(&mut self) {
        let piece = &self.piece[..self.filled];
        let (head, behind) = piece.split_at(piece.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        self.behind.update(behind);
        self.bytes += self.filled as u64;
        self.filled = 0;
    }
}

impl ByteSink for ChecksumSink<'_> {
    fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("generation was stopped".into());
        }
        if self.filled == self.piece.len() {
            self.flush();
        }
        let start = self.filled;
        self.filled = self.piece.len().min(start + want);
        Ok(&mut self.piece[start..self.filled])
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError> {
        self.flush();
        let written = self.head.len();
        let range = usize::try_from(offset).ok().and_then(|start| self.head.get_mut(start..));
        match range.and_then(|tail| tail.get_mut(..bytes.len())) {
            Some(target) => target.copy_from_slice(bytes),
            None => return Err(format!("patch at byte {offset} of {written}").into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(len: usize, want: usize, patches: &[(u64, &[u8])]) {
        let stop = AtomicBool::new(false);
        let mut buffer = vec![0; 1 << 20];
        let mut sink = ChecksumSink::new(&mut buffer, &stop);
        let mut file = Vec::new();
        while file.len() < len {
            let space = sink.space(want.min(len - file.len())).unwrap();
            for byte in space {
                *byte = (file.len() / 7) as u8;
                file.push(*byte);
            }
        }
        for &(offset, bytes) in patches {
            sink.patch(offset, bytes).unwrap();
            ByteSink::patch(&mut file, offset, bytes).unwrap();
        }
        let expected = FileSum { bytes: len as u64, crc32: crc32fast::hash(&file) };
        assert_eq!(sink.finish(), expected);
    }

    #[test]
    fn the_sum_is_that_of_the_file() {
        for len in [0, 1, HEAD_BYTES, HEAD_BYTES + 1, PIECE_BYTES, 3 * PIECE_BYTES + 5] {
            for want in [1, 100, 1 << 20] {
                check(len, want, &[]);
            }
        }
    }

    #[test]
    fn a_changed_head_counts_as_it_ends() {
        check(10, 3, &[(2, b"xyz")]);
        check(HEAD_BYTES + 9, 1000, &[(4094, b"ab"), (0, b"c")]);
        check(2 * PIECE_BYTES, PIECE_BYTES, &[(0, &[1; HEAD_BYTES])]);
    }

    #[test]
    fn changes_behind_the_head_and_stops_are_refused() {
        let stop = AtomicBool::new(false);
        let mut buffer = vec![0; 1 << 20];
        let mut sink = ChecksumSink::new(&mut buffer, &stop);
        sink.space(2 * HEAD_BYTES).unwrap().fill(0);
        assert!(sink.patch(HEAD_BYTES as u64 - 1, b"ab").is_err());
        stop.store(true, Ordering::Relaxed);
        assert!(sink.space(1).is_err());
    }
}
