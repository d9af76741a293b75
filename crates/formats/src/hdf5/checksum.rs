//! The checksums of HDF5: lookup3 over metadata, Fletcher-32 over chunks.

use super::fields::FORMAT;
use crate::{DecodeError, Decoded};

/// Bob Jenkins' lookup3 (`hashlittle`) with 0 to begin with.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xDEAD_BEEF_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    // The last 1 to 12 bytes are mixed in another way, so they never go into the loop.
    let full = bytes.len().saturating_sub(1) / 12 * 12;
    let (front, tail) = bytes.split_at(full);
    for block in front.as_chunks::<12>().0 {
        add(&mut state, block);
        mix(&mut state);
    }
    if tail.is_empty() {
        return state[2];
    }
    let mut last = [0; 12];
    last[..tail.len()].copy_from_slice(tail);
    add(&mut state, &last);
    finish(state)
}

fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, turn: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(turn);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    let step = |x: &mut u32, y: u32, turn: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    c
}

/// Compares the last four bytes of a block of metadata with the checksum of the others.
pub(super) fn check_block(block: &[u8], offset: u64, what: &'static str) -> Decoded<()> {
    let Some((covered, stored)) = block.split_last_chunk::<4>() else {
        return Err(super::fields::wrong(offset, what, format!("{} bytes", block.len())));
    };
    compare(u32::from_le_bytes(*stored), lookup3(covered), offset, what)
}

fn compare(expected: u32, found: u32, offset: u64, what: &'static str) -> Decoded<()> {
    if expected == found {
        return Ok(());
    }
    Err(DecodeError::Checksum { format: FORMAT, what, offset, expected, found })
}

/// Compares the last four bytes of a chunk with the checksum of the others.
pub(super) fn check_chunk(chunk: &[u8], offset: u64) -> Decoded<()> {
    let what = "chunk";
    let Some((covered, stored)) = chunk.split_last_chunk::<4>() else {
        return Err(super::fields::wrong(offset, "a chunk with a checksum", chunk.len()));
    };
    let found = fletcher32(covered);
    // Before HDF5 1.6.3 the bytes of either half were written the other way round.
    let [a, b, c, d] = *stored;
    if found == u32::from_le_bytes([b, a, d, c]) {
        return Ok(());
    }
    compare(u32::from_le_bytes(*stored), found, offset, what)
}

/// HDF5's Fletcher-32: words of two bytes, high byte first, an odd byte at the end is a high one.
pub(super) fn fletcher32(bytes: &[u8]) -> u32 {
    let fold = |sum: u32| (sum & 0xFFFF) + (sum >> 16);
    let (mut low, mut high) = (0_u32, 0_u32);
    let (words, odd) = bytes.as_chunks::<2>();
    // 360 words are the most that cannot overflow the second sum.
    for block in words.chunks(360) {
        for word in block {
            low += u32::from(u16::from_be_bytes(*word));
            high += low;
        }
        (low, high) = (fold(low), fold(high));
    }
    if let [byte] = odd {
        low += u32::from(*byte) << 8;
        high += low;
        (low, high) = (fold(low), fold(high));
    }
    fold(high) << 16 | fold(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of Jenkins' own self-test.
    #[test]
    fn lookup3_is_jenkins_own() {
        assert_eq!(lookup3(b""), 0xDEAD_BEEF);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn fletcher32_adds_words_and_the_sums_of_words() {
        assert_eq!(fletcher32(b""), 0);
        assert_eq!(fletcher32(&[1, 2]), 0x0102_0102);
        assert_eq!(fletcher32(&[1, 2, 3]), 0x0504_0402);
        assert_eq!(fletcher32(&[0xFF; 2000]), 0xFFFF_FFFF);
    }
}
