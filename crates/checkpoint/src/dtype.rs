//! The element types that a checkpoint's tensors can have.

use feedline_formats::{Content, Element};

/// The type of one element of a tensor, little-endian where it has several bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Signed byte.
    Int8,
    /// Unsigned byte.
    UInt8,
    /// IEEE half precision.
    Float16,
    /// The upper half of a single.
    BFloat16,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
}

impl DType {
    /// Every type there is.
    pub const ALL: [DType; 6] = [
        DType::Int8,
        DType::UInt8,
        DType::Float16,
        DType::BFloat16,
        DType::Float32,
        DType::Float64,
    ];

    /// Bytes of one element.
    pub const fn size_bytes(self) -> u64 {
        match self {
            DType::Int8 | DType::UInt8 => 1,
            DType::Float16 | DType::BFloat16 => 2,
            DType::Float32 => 4,
            DType::Float64 => 8,
        }
    }

    /// Fills `out` with random elements, from `offset` bytes into the tensor on: integers over their
    /// whole range, floats in [0, 1), brain floats in [0.5, 1).
    pub fn fill_random(self, content: &Content, offset: u64, out: &mut [u8]) {
        let element = match self {
            DType::Int8 | DType::UInt8 | DType::BFloat16 => Element::UInt8,
            DType::Float16 => Element::Float16,
            DType::Float32 => Element::Float32,
            DType::Float64 => Element::Float64,
        };
        content.fill(element, offset, out);
        if self == DType::BFloat16 {
            // 0x3F00 to 0x3F7F: the sign and all but the last bits of the exponent stand in the second
            // byte. A chunk may begin at either.
            for (place, byte) in (offset..).zip(out) {
                *byte = if place % 2 == 0 { *byte & 0x7F } else { 0x3F };
            }
        }
    }

    /// Fills `out` with ones, from `offset` bytes into the tensor on.
    pub fn fill_ones(self, offset: u64, out: &mut [u8]) {
        let one: &[u8] = match self {
            DType::Int8 | DType::UInt8 => &[1],
            DType::Float16 => &[0x00, 0x3C],
            DType::BFloat16 => &[0x80, 0x3F],
            DType::Float32 => &[0, 0, 0x80, 0x3F],
            DType::Float64 => &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F],
        };
        for (place, byte) in (offset..).zip(out) {
            *byte = one[(place % one.len() as u64) as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_ones_wherever_they_begin() {
        let mut out = [0; 24];
        DType::Float64.fill_ones(0, &mut out);
        assert_eq!(out[8..16], 1f64.to_le_bytes());
        DType::Float32.fill_ones(3, &mut out[..5]);
        assert_eq!(out[1..5], 1f32.to_le_bytes());
        DType::BFloat16.fill_ones(0, &mut out[..2]);
        assert_eq!(out[..2], [0x80, 0x3F]);
    }

    #[test]
    fn brain_floats_lie_between_a_half_and_one() {
        let content = Content::new(1, 2);
        let (mut whole, mut later) = ([0; 64], [0; 61]);
        DType::BFloat16.fill_random(&content, 0, &mut whole);
        DType::BFloat16.fill_random(&content, 3, &mut later);
        assert_eq!(whole[3..], later);
        for pair in whole.as_chunks::<2>().0 {
            let value = f32::from_bits(u32::from(u16::from_le_bytes(*pair)) << 16);
            assert!((0.5..1.0).contains(&value), "{value}");
        }
    }
}
