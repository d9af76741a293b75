//! From numbers to the bytes of a page.

use crate::bits::{pack, zigzag};

/// Appends a number in groups of seven bits.
pub fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The bits that a number needs: none for zero.
pub fn width_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Appends runs of equal numbers, and packed numbers between them.
pub fn hybrid<T: Copy + Eq + Into<u64>>(out: &mut Vec<u8>, numbers: &[T], width: u32) {
    let mut literals = 0;
    let mut at = 0;
    while at < numbers.len() {
        let value = numbers[at];
        let run = numbers[at..].iter().take_while(|other| **other == value).count();
        // Packed numbers come in groups of eight, which the run fills up.
        let fill = (at - literals).wrapping_neg() % 8;
        if run >= fill + 16 {
            pack_groups(out, &numbers[literals..at + fill], width);
            varint(out, ((run - fill) as u64) << 1);
            let bytes = value.into().to_le_bytes();
            out.extend(bytes.iter().take(width.div_ceil(8) as usize));
            literals = at + run;
        }
        at += run;
    }
    pack_groups(out, &numbers[literals..], width);
}

fn pack_groups<T: Copy + Into<u64>>(out: &mut Vec<u8>, numbers: &[T], width: u32) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint(out, (groups as u64) << 1 | 1);
    let end = out.len() + groups * width as usize;
    pack(out, numbers.iter().map(|number| (*number).into()), width);
    out.resize(end, 0);
}

const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;

/// Appends the differences between neighbors, in as many bits as the largest of 32 needs.
pub fn deltas(out: &mut Vec<u8>, numbers: &[i64]) {
    varint(out, BLOCK as u64);
    varint(out, (BLOCK / MINIBLOCK) as u64);
    varint(out, numbers.len() as u64);
    let Some((first, rest)) = numbers.split_first() else { return varint(out, 0) };
    varint(out, zigzag(*first));
    let mut before = *first;
    let mut differences = [0_i64; BLOCK];
    for block in rest.chunks(BLOCK) {
        for (difference, number) in differences.iter_mut().zip(block) {
            *difference = number.wrapping_sub(before);
            before = *number;
        }
        let used = &differences[..block.len()];
        let least = used.iter().copied().min().unwrap_or(0);
        varint(out, zigzag(least));
        let widths = out.len();
        out.extend([0; BLOCK / MINIBLOCK]);
        for (index, miniblock) in used.chunks(MINIBLOCK).enumerate() {
            let above = |difference: &i64| difference.wrapping_sub(least).cast_unsigned();
            let width = width_of(miniblock.iter().map(above).fold(0, |all, one| all | one));
            // At most 64.
            out[widths + index] = width as u8;
            let end = out.len() + MINIBLOCK * width as usize / 8;
            pack(out, miniblock.iter().map(above), width);
            out.resize(end, 0);
        }
    }
}

/// Appends all lowest bytes, then all second bytes, and so on.
pub fn byte_streams(out: &mut Vec<u8>, numbers: &[i64], bytes: usize) {
    for byte in 0..bytes {
        out.extend(numbers.iter().map(|number| (number >> (8 * byte)) as u8));
    }
}

/// Appends whole numbers of four or eight bytes each.
pub fn plain(out: &mut Vec<u8>, numbers: &[i64], bytes: usize) {
    if bytes == 8 {
        out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    } else {
        out.extend(numbers.iter().flat_map(|number| (*number as i32).to_le_bytes()));
    }
}

/// Appends texts, each after its length.
pub fn plain_texts<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        // Texts of 4 GiB are beyond the format.
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text.as_bytes());
    }
}

/// Appends one bit per number: whether it is not zero.
pub fn plain_bits(out: &mut Vec<u8>, numbers: &[i64]) {
    pack(out, numbers.iter().map(|number| u64::from(*number != 0)), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn runs_and_packed_numbers_take_turns() {
        // Eight numbers of three bits are the example of Parquet's own description.
        let packed = bytes(|out| hybrid(out, &[0_u8, 1, 2, 3, 4, 5, 6, 7], 3));
        assert_eq!(packed, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(bytes(|out| hybrid(out, &[5_u32; 100], 3)), [200, 1, 5]);
        // Three numbers, then a run which gives five of its own to fill the group.
        let mut mixed = vec![1_u8, 0, 1];
        mixed.extend([0; 30]);
        assert_eq!(bytes(|out| hybrid(out, &mixed, 1)), [0b11, 0b101, 50, 0]);
        assert!(bytes(|out| hybrid::<u8>(out, &[], 1)).is_empty());
    }

    #[test]
    fn deltas_are_those_of_the_description() {
        // 1, 2, 3, 4, 5: all differences are 1, so no bits are needed for them.
        let row = bytes(|out| deltas(out, &[1, 2, 3, 4, 5]));
        assert_eq!(row, [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        let mixed = bytes(|out| deltas(out, &[7, 5, 3, 1, 2, 3, 4, 5]));
        assert_eq!(mixed, [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_widest_difference_fits() {
        let far = bytes(|out| deltas(out, &[i64::MIN, i64::MAX, i64::MIN]));
        // Differences wrap: -1 and 1.
        assert_eq!(far[5 + 9..][..5], [1, 2, 0, 0, 0]);
    }
}
