//! Memory that a reader brings along and that is used again for every sample.

use std::ops::{Deref, DerefMut};

/// What direct I/O wants addresses to be a multiple of.
const ALIGN_BYTES: usize = 4096;

/// The buffers of one reader. First touch of fresh memory costs several times a copy, so nothing
/// that is needed for every sample is allocated anew.
#[derive(Debug)]
pub struct Scratch {
    /// Room for one piece of a file, aligned for direct I/O.
    pub piece: Piece,
    /// For formats that must see a whole file, page or chunk at once. Keeps its size.
    pub whole: Vec<u8>,
    /// For what comes out of a decoder. Keeps its size.
    pub decoded: Vec<u8>,
}

impl Scratch {
    /// Buffers for pieces of up to `piece_bytes`.
    pub fn new(piece_bytes: usize) -> Scratch {
        Scratch { piece: Piece::new(piece_bytes), whole: Vec::new(), decoded: Vec::new() }
    }
}

/// A buffer whose address is a multiple of 4096.
#[derive(Debug)]
pub struct Piece {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Piece {
    pub(crate) fn new(len: usize) -> Piece {
        let memory = vec![0; len + ALIGN_BYTES];
        let start = memory.as_ptr().align_offset(ALIGN_BYTES).min(ALIGN_BYTES);
        Piece { memory, start, len }
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Piece {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_aligned_and_has_its_length() {
        for len in [0, 1, 4096, 100_000] {
            let mut scratch = Scratch::new(len);
            assert_eq!(scratch.piece.len(), len);
            assert_eq!(scratch.piece.as_ptr().addr() % ALIGN_BYTES, 0);
            scratch.piece.fill(7);
        }
    }
}
