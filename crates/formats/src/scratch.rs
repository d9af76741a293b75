//! Memory that a reader brings along and that is used again for every sample.

use std::ops::{Deref, DerefMut};

use crate::framework::Buffered;
use crate::{DecodeError, Decoded};

/// What direct I/O wants addresses to be a multiple of.
const ALIGN_BYTES: usize = 4096;

/// The buffers of one reader. First touch of fresh memory costs several times a copy, so nothing
/// that is needed for every sample is allocated again.
pub struct Scratch {
    /// Room for one piece of a file, aligned for direct I/O.
    pub piece: AlignedBuffer,
    /// For formats that must see a whole file, page or chunk at once. Keeps its size.
    pub whole: Vec<u8>,
    /// For what comes out of a decoder. Keeps its size.
    pub decoded: Vec<u8>,
    /// The buffer of a file that is read as Python reads it.
    pub(crate) buffered: Buffered,
    /// A file, or a part of it, that the framework's calls have brought. Keeps its size.
    pub(crate) file: Vec<u8>,
    make: fn(usize) -> AlignedBuffer,
}

impl Scratch {
    /// Buffers for pieces of up to `piece_bytes`, out of plain memory.
    pub fn new(piece_bytes: usize) -> Scratch {
        Scratch::with_memory(piece_bytes, AlignedBuffer::plain)
    }

    /// Buffers for pieces of up to `piece_bytes`, out of memory that `make` brings.
    pub fn with_memory(piece_bytes: usize, make: fn(usize) -> AlignedBuffer) -> Scratch {
        Scratch {
            piece: make(piece_bytes),
            whole: Vec::new(),
            decoded: Vec::new(),
            buffered: Buffered::default(),
            file: Vec::new(),
            make,
        }
    }

    /// A buffer for a file that is read front to back beside others.
    pub(crate) fn another(&self, len: usize) -> AlignedBuffer {
        (self.make)(len)
    }
}

/// The first `len` bytes of a buffer that only grows, and to no more than it must.
pub(crate) fn grow(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.reserve_exact(len - buffer.len());
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// As [`grow`], for a length that a file announces: it is an error if there is not as much memory
/// for `what`, a part of a file of `format`.
pub(crate) fn try_grow<'b>(
    buffer: &'b mut Vec<u8>,
    len: u64,
    (format, what): (&'static str, &'static str),
) -> Decoded<&'b mut [u8]> {
    let limit = isize::MAX as u64;
    let too_much = || DecodeError::TooMuch { format, what, offset: 0, needed: len, limit };
    let room = usize::try_from(len).map_err(|_| too_much())?;
    if buffer.len() < room {
        buffer.try_reserve_exact(room - buffer.len()).map_err(|_| too_much())?;
    }
    Ok(grow(buffer, room))
}

/// A buffer whose address is a multiple of 4096, wherever its memory comes from.
pub struct AlignedBuffer {
    memory: Box<dyn DerefMut<Target = [u8]> + Send>,
}

impl AlignedBuffer {
    /// This memory, which the caller has aligned.
    pub fn of(memory: impl DerefMut<Target = [u8]> + Send + 'static) -> AlignedBuffer {
        AlignedBuffer { memory: Box::new(memory) }
    }

    /// Plain memory.
    pub fn plain(len: usize) -> AlignedBuffer {
        let memory = vec![0; len + ALIGN_BYTES];
        let start = memory.as_ptr().align_offset(ALIGN_BYTES).min(ALIGN_BYTES);
        AlignedBuffer::of(Plain { memory, start, len })
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

/// The aligned part of a vector.
struct Plain {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Deref for Plain {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Plain {
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
