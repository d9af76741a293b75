//! Sample bytes from a seed: the same on every machine, at any place, without what comes before.
//!
//! A file's bytes are cut into blocks, each with its own eight lanes of xorshift128+, started from
//! the seed, the file and the block. Eight lanes because compilers vectorize them even for the
//! oldest x86-64: 15 GB/s per core there for integers, 6 to 11 for floats, where xoshiro256++ gives 5
//! to 10 and wyrand 7. Not for secrets and not for statistics, but no compressor finds anything.

use feedline_numbers::splitmix::mix;

use crate::Element;

const LANES: usize = 8;
const ROW_BYTES: usize = 8 * LANES;
/// Starting a block costs as much as 600 bytes of it; a fill that begins inside a block passes over
/// half of it on average. Both are small change at this size.
const BLOCK_BYTES: u64 = 16 * 1024;

/// The samples of one file: integers over their whole range, floats in [0, 1), booleans 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Two keys, so that two files share a block only if they agree in both.
    keys: [u64; 2],
}

impl Content {
    /// The content of file number `file` of the data set that `seed` names.
    pub fn new(seed: u64, file: u64) -> Content {
        let key = mix(seed).wrapping_add(mix(file ^ 0x5EED_F11E_0000_0000));
        Content { keys: [mix(key ^ 1), mix(key ^ 2)] }
    }

    /// Fills `out` with the bytes that are at `offset` of the file's samples.
    ///
    /// Any offset will do; pieces joined are the same bytes as the whole.
    pub fn fill(&self, element: Element, offset: u64, out: &mut [u8]) {
        match element {
            Element::Bool => self.fill_rows(offset, out, booleans),
            Element::Float16 => self.fill_rows(offset, out, halves),
            Element::Float32 | Element::Complex64 => self.fill_rows(offset, out, singles),
            Element::Float64 | Element::Complex128 => self.fill_rows(offset, out, doubles),
            Element::Int8 | Element::Int16 | Element::Int32 | Element::Int64 => {
                self.fill_rows(offset, out, integers)
            }
            Element::UInt8 | Element::UInt16 | Element::UInt32 | Element::UInt64 => {
                self.fill_rows(offset, out, integers)
            }
        }
    }

    fn fill_rows(
        &self,
        mut offset: u64,
        mut out: &mut [u8],
        shape: impl Fn([u64; LANES]) -> [u8; ROW_BYTES],
    ) {
        while !out.is_empty() {
            let place = offset % BLOCK_BYTES;
            let part = usize::min(out.len(), (BLOCK_BYTES - place) as usize);
            let (now, later) = out.split_at_mut(part);
            let mut lanes = Lanes::new(self.keys, offset / BLOCK_BYTES);
            fill_in_block(&mut lanes, place as usize, now, &shape);
            offset += part as u64;
            out = later;
        }
    }
}

/// Fills `out` from `place` of the block that `lanes` was started for.
fn fill_in_block(
    lanes: &mut Lanes,
    place: usize,
    mut out: &mut [u8],
    shape: &impl Fn([u64; LANES]) -> [u8; ROW_BYTES],
) {
    for _ in 0..place / ROW_BYTES {
        lanes.next();
    }
    let inside = place % ROW_BYTES;
    if inside > 0 {
        let part = usize::min(out.len(), ROW_BYTES - inside);
        let (now, later) = out.split_at_mut(part);
        now.copy_from_slice(&shape(lanes.next())[inside..inside + part]);
        out = later;
    }
    let (rows, rest) = out.as_chunks_mut::<ROW_BYTES>();
    for row in rows {
        *row = shape(lanes.next());
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&shape(lanes.next())[..rest.len()]);
    }
}

/// Eight generators side by side.
struct Lanes {
    older: [u64; LANES],
    newer: [u64; LANES],
}

impl Lanes {
    fn new(keys: [u64; 2], block: u64) -> Lanes {
        let start = |key: u64| {
            let first = block.wrapping_mul(LANES as u64);
            std::array::from_fn(|lane| mix(key.wrapping_add(first + lane as u64)))
        };
        // A generator that starts at zero stays there; one bit set rules that out.
        Lanes { older: start(keys[0]), newer: start(keys[1]).map(|word: u64| word | 1) }
    }

    #[inline(always)]
    fn next(&mut self) -> [u64; LANES] {
        std::array::from_fn(|lane| {
            let (mut x, y) = (self.older[lane], self.newer[lane]);
            x ^= x << 23;
            let next = x ^ y ^ (x >> 17) ^ (y >> 26);
            self.older[lane] = y;
            self.newer[lane] = next;
            next.wrapping_add(y)
        })
    }
}

#[inline(always)]
fn integers(row: [u64; LANES]) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(row) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

#[inline(always)]
fn booleans(row: [u64; LANES]) -> [u8; ROW_BYTES] {
    integers(row.map(|word| word & 0x0101_0101_0101_0101))
}

/// Multiples of 2^-11. Half the exponent's bias is undone by scaling before the bits are cut: the
/// smallest non-zero value is a normal number both as a half and, scaled, as a single.
#[inline(always)]
fn halves(row: [u64; LANES]) -> [u8; ROW_BYTES] {
    let scale = f32::from_bits((127 - 123) << 23);
    let mut bytes = integers(row);
    for chunk in bytes.as_chunks_mut::<2>().0 {
        let steps = i32::from(u16::from_le_bytes(*chunk) >> 5);
        *chunk = (((steps as f32 * scale).to_bits() >> 13) as u16).to_le_bytes();
    }
    bytes
}

/// Multiples of 2^-23: random digits after "1.", less one. Two to a word, and the two halves apart:
/// in this shape it is vectorized, twice as fast as number by number.
#[inline(always)]
fn singles(row: [u64; LANES]) -> [u8; ROW_BYTES] {
    let above_one = |word: u64| (word >> 9) & 0x007F_FFFF_007F_FFFF | 0x3F80_0000_3F80_0000;
    let row = row.map(above_one);
    let low = row.map(|word| f32::from_bits(word as u32) - 1.0);
    let high = row.map(|word| f32::from_bits((word >> 32) as u32) - 1.0);
    integers(std::array::from_fn(|lane| {
        u64::from(low[lane].to_bits()) | u64::from(high[lane].to_bits()) << 32
    }))
}

/// Multiples of 2^-52, made like the singles.
#[inline(always)]
fn doubles(row: [u64; LANES]) -> [u8; ROW_BYTES] {
    let mut bytes = integers(row);
    for chunk in bytes.as_chunks_mut::<8>().0 {
        let digits = u64::from_le_bytes(*chunk) >> 12;
        *chunk = (f64::from_bits(0x3FF0_0000_0000_0000 | digits) - 1.0).to_le_bytes();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn bytes(content: &Content, element: Element, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0xAA; len];
        content.fill(element, offset, &mut out);
        out
    }

    #[test]
    fn pieces_joined_are_the_whole() {
        let content = Content::new(10, 3);
        for element in Element::ALL {
            let whole = bytes(&content, element, 0, 40_000);
            for (offset, len) in
                [(0, 1), (1, 63), (63, 130), (16_383, 2), (16_384, 64), (5, 39_995)]
            {
                let piece = bytes(&content, element, offset as u64, len);
                assert_eq!(piece, whole[offset..offset + len], "{element:?} {offset} {len}");
            }
        }
    }

    #[test]
    fn files_seeds_and_blocks_differ() {
        let mut seen = HashSet::new();
        for (seed, file) in [(1, 0), (1, 1), (0, 1), (0, 0), (u64::MAX, 7)] {
            for block in 0..50 {
                let content = Content::new(seed, file);
                let start = bytes(&content, Element::UInt8, block * BLOCK_BYTES, 16);
                assert!(seen.insert(start), "seed {seed} file {file} block {block}");
            }
        }
    }

    #[test]
    fn every_byte_value_is_equally_likely() {
        let len = 1 << 20;
        let mut counts = [0f64; 256];
        for byte in bytes(&Content::new(42, 0), Element::UInt8, 0, len) {
            counts[usize::from(byte)] += 1.0;
        }
        let mean = len as f64 / 256.0;
        let chi_square: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        assert!((170.0..350.0).contains(&chi_square), "chi-square {chi_square} of 255 degrees");
    }

    #[test]
    fn floats_fill_the_unit_interval() {
        let len = 1 << 16;
        let content = Content::new(7, 7);
        let singles = bytes(&content, Element::Float32, 0, len);
        let doubles = bytes(&content, Element::Float64, 0, len);
        let halves = bytes(&content, Element::Float16, 0, len);
        check_unit(singles.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))));
        check_unit(doubles.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)));
        check_unit(halves.as_chunks().0.iter().map(|&b| half_to_f64(u16::from_le_bytes(b))));
    }

    #[test]
    fn booleans_are_zero_or_one() {
        let out = bytes(&Content::new(7, 7), Element::Bool, 0, 1 << 16);
        let ones = out.iter().filter(|&&byte| byte == 1).count();
        assert_eq!(out.iter().filter(|&&byte| byte > 1).count(), 0);
        assert!((32_000..33_600).contains(&ones), "{ones}");
    }

    #[test]
    fn golden_bytes_never_change() {
        let content = Content::new(10, 0);
        let at = |element, offset| bytes(&content, element, offset, 8);
        assert_eq!(at(Element::UInt8, 0), GOLDEN[0]);
        assert_eq!(at(Element::UInt8, 64), GOLDEN[1]);
        assert_eq!(at(Element::Int64, 1 << 40), GOLDEN[2]);
        assert_eq!(at(Element::Float16, 0), GOLDEN[3]);
        assert_eq!(at(Element::Float32, 0), GOLDEN[4]);
        assert_eq!(at(Element::Float64, 0), GOLDEN[5]);
        assert_eq!(at(Element::Bool, 0), GOLDEN[6]);
        assert_eq!(bytes(&Content::new(11, 1), Element::UInt8, 0, 8), GOLDEN[7]);
    }

    /// Computed by a second implementation, in Python.
    const GOLDEN: [[u8; 8]; 8] = [
        [132, 167, 174, 104, 145, 10, 166, 149],
        [20, 11, 116, 39, 141, 201, 82, 72],
        [36, 91, 248, 116, 136, 189, 138, 31],
        [60, 57, 138, 54, 64, 41, 173, 56],
        [76, 93, 209, 62, 10, 166, 21, 63],
        [212, 21, 45, 82, 193, 180, 226, 63],
        [0, 1, 0, 0, 1, 0, 0, 1],
        [87, 197, 110, 83, 41, 157, 57, 224],
    ];

    fn check_unit(values: impl Iterator<Item = f64>) {
        let values: Vec<f64> = values.collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((0.49..0.51).contains(&mean), "mean {mean}");
    }

    /// Only for values in [0, 1) that are zero or normal, as all of ours are.
    fn half_to_f64(bits: u16) -> f64 {
        let (exponent, digits) = (i32::from(bits >> 10), f64::from(bits & 0x3FF));
        assert!(bits == 0 || exponent > 0, "{bits:#06x} is not normal");
        if bits == 0 { 0.0 } else { (1.0 + digits / 1024.0) * 2f64.powi(exponent - 15) }
    }
}
