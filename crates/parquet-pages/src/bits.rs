//! Numbers that take as many bits as they need.

/// Reads a number in groups of seven bits from `at` on, and moves `at` past it. `None` if the bytes end
/// before the number does, or if it has more than ten groups.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The most bytes that [`varint`] reads.
pub(crate) const VARINT_BYTES: usize = 10;

/// A number whose sign is its lowest bit.
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// Eight bytes from `at` on; zeros where there are no more.
#[inline]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().unwrap_or_default()),
        None => {
            let mut word = [0; 8];
            let rest = bytes.get(at..).unwrap_or_default();
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

/// Appends numbers of `width` bits each, lowest bit first, up to the next whole byte.
pub(crate) fn pack(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64>, width: u32) {
    let mut bits = 0_u128;
    let mut held = 0;
    for number in numbers {
        bits |= u128::from(number) << held;
        held += width;
        if held >= 64 {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= 64;
            held -= 64;
        }
    }
    let rest = (bits as u64).to_le_bytes();
    out.extend(rest.iter().take(held.div_ceil(8) as usize));
}

/// Unpacks numbers of `width` bits each, as many as `out` has places.
#[inline]
pub(crate) fn unpack<T>(
    bytes: &[u8],
    width: u32,
    out: &mut [T],
    mut take: impl FnMut(&mut T, u64),
) {
    let width = width as usize;
    let mask = if width == 64 { u64::MAX } else { (1_u64 << width) - 1 };
    if width > 0 && width <= 8 {
        // Eight numbers are in one word.
        for (eight, packed) in out.chunks_mut(8).zip(bytes.chunks(width)) {
            let mut word = word(packed, 0);
            for place in eight {
                take(place, word & mask);
                word >>= width;
            }
        }
        return;
    }
    for (index, place) in out.iter_mut().enumerate() {
        let bit = index * width;
        let (at, shift) = (bit / 8, bit % 8);
        let mut number = word(bytes, at) >> shift;
        if shift + width > 64 {
            number |= u64::from(bytes.get(at + 8).copied().unwrap_or(0)) << (64 - shift);
        }
        take(place, number & mask);
    }
}
