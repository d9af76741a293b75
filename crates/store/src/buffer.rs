//! Aligned memory for direct I/O, with its pages already mapped in.

use crate::{BLOCK_BYTES, os};

/// The size of Linux's huge pages on the machines we know.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Buffers of this length and above use huge pages, if the system has any. A device then gets a few
/// long runs of memory instead of single pages. Measured: direct reads of 1 MiB take between a half
/// and a fifth of the CPU time, and 16 concurrent ones are twice as fast.
const HUGE_FROM_BYTES: usize = 1 << 20;

/// A buffer that begins at a multiple of [`BLOCK_BYTES`].
///
/// Every page is touched on creation: a first touch in the middle of a transfer costs several times
/// the copy itself. Make few of them and reuse them.
#[derive(Debug)]
pub struct AlignedBuf {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// Allocates `len` bytes of unspecified content. From 1 MiB on, it may take up to 2 MiB more.
    pub fn new(len: usize) -> AlignedBuf {
        let huge = len >= HUGE_FROM_BYTES;
        let align = if huge { HUGE_PAGE_BYTES } else { BLOCK_BYTES };
        let room = len.next_multiple_of(align);
        // Zeroed memory comes from the system untouched, so huge pages can still be chosen.
        let mut memory = vec![0; room + align];
        // The vector never grows, so the address and with it `start` stay valid.
        let start = memory.as_ptr().align_offset(align).min(align);
        if huge {
            os::prefer_huge_pages(&mut memory[start..start + room]);
        }
        // Not zero: the system could keep sharing its zero page.
        memory[start..start + len].fill(0xA5);
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
        for len in [0, 1, 4096, (1 << 20) - 1, 1 << 20, (2 << 20) + 1] {
            let mut buf = AlignedBuf::new(len);
            assert_eq!(buf.len(), len);
            assert!(is_aligned(&buf));
            buf.fill(7);
        }
    }
}
