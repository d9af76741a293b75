//! Memory that direct I/O accepts and whose pages are there already.

use crate::BLOCK_BYTES;

/// A buffer that begins at a multiple of [`BLOCK_BYTES`].
///
/// Every page is touched when it is made: a first touch in the middle of a transfer costs several
/// times the copy itself. Make few and use them again.
#[derive(Debug)]
pub struct AlignedBuf {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// A buffer of `len` bytes of unspecified content.
    pub fn new(len: usize) -> AlignedBuf {
        // Not zero: zeroed memory comes from the system untouched.
        let memory = vec![0xA5; len + BLOCK_BYTES];
        // The vector never grows, so the address and with it `start` stay valid.
        let start = memory.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        AlignedBuf { memory, start, len }
    }
}

impl std::ops::Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Whether direct I/O accepts memory at that address.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(BLOCK_BYTES) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_as_long_as_asked_for() {
        for len in [0, 1, 4096, 1 << 20] {
            let mut buf = AlignedBuf::new(len);
            assert_eq!(buf.len(), len);
            assert!(is_aligned(&buf));
            buf.fill(7);
        }
    }
}
