//! Parquet's mixture of repeated values and values packed into bits, for levels and indices.
//!
//! Given out as runs, because a damaged file can announce billions of equal values in a few bytes:
//! work follows the bytes there are, never the numbers they claim.

/// Runs of values of a fixed number of bits.
pub(super) struct Hybrid<'a> {
    bytes: &'a [u8],
    /// At most 32.
    width: u32,
    run: Run<'a>,
}

enum Run<'a> {
    Equal {
        value: u32,
        left: u64,
    },
    Packed {
        bytes: &'a [u8],
        /// The next value.
        at: u64,
        end: u64,
    },
}

impl<'a> Hybrid<'a> {
    /// `None` if values cannot be so wide.
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Option<Hybrid<'a>> {
        (width <= 32).then_some(Hybrid { bytes, width, run: Run::Equal { value: 0, left: 0 } })
    }

    /// The same value for ever, where nothing is stored.
    pub(super) fn constant(value: u32) -> Hybrid<'static> {
        Hybrid { bytes: &[], width: 0, run: Run::Equal { value, left: u64::MAX } }
    }

    /// The next value and how often it comes now, `most` times at most; `None` if there is none.
    pub(super) fn next(&mut self, most: u64) -> Option<(u32, u64)> {
        loop {
            match &mut self.run {
                Run::Equal { value, left } if *left > 0 => {
                    let count = most.min(*left);
                    *left -= count;
                    return Some((*value, count));
                }
                Run::Packed { bytes, at, end } if *at < *end => {
                    let value = packed(bytes, *at, self.width);
                    *at += 1;
                    return Some((value, 1));
                }
                _ => self.run = self.next_run()?,
            }
        }
    }

    fn next_run(&mut self) -> Option<Run<'a>> {
        let header = self.varint()?;
        let count = header >> 1;
        if header & 1 == 0 {
            let (value, rest) = self.bytes.split_at_checked(self.width.div_ceil(8) as usize)?;
            self.bytes = rest;
            let mut word = [0; 4];
            word[..value.len()].copy_from_slice(value);
            return Some(Run::Equal { value: u32::from_le_bytes(word), left: count });
        }
        let values = count.checked_mul(8)?;
        if self.width == 0 {
            return Some(Run::Equal { value: 0, left: values });
        }
        // Writers may leave out what is unused of the last group.
        let len = count.checked_mul(self.width.into())?.min(self.bytes.len() as u64);
        let (bytes, rest) = self.bytes.split_at(len as usize);
        self.bytes = rest;
        let end = values.min(len * 8 / u64::from(self.width));
        Some(Run::Packed { bytes, at: 0, end })
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Value number `at`, least significant bits first; the caller knows that it is there.
fn packed(bytes: &[u8], at: u64, width: u32) -> u32 {
    let bit = at * u64::from(width);
    let from = (bit / 8) as usize;
    let mut word = [0; 8];
    let part = &bytes[from..bytes.len().min(from + 8)];
    word[..part.len()].copy_from_slice(part);
    let mask = (1u64 << width) - 1;
    ((u64::from_le_bytes(word) >> (bit % 8)) & mask) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], width: u32) -> Vec<(u32, u64)> {
        let mut hybrid = Hybrid::new(bytes, width).unwrap();
        std::iter::from_fn(|| hybrid.next(1000)).collect()
    }

    #[test]
    fn runs_and_packed_values_follow_each_other() {
        // The example of the format's specification: 0 to 7 in three bits, after four times a 5.
        let bytes = [0x08, 5, 0x03, 0x88, 0xc6, 0xfa];
        let mut expected = vec![(5, 4)];
        expected.extend((0..8).map(|value| (value, 1)));
        assert_eq!(all(&bytes, 3), expected);
        assert_eq!(all(&[0x08, 1, 2], 9), [(0x201, 4)]);
        assert_eq!(all(&[0x04, 1, 2, 3, 0xff], 32), [(0xff03_0201, 2)]);
    }

    #[test]
    fn values_without_bits_are_zeros() {
        assert_eq!(all(&[0x05, 0x06], 0), [(0, 16), (0, 3)]);
        let mut constant = Hybrid::constant(7);
        assert_eq!(constant.next(u64::MAX - 1), Some((7, u64::MAX - 1)));
    }

    #[test]
    fn what_is_missing_is_not_there() {
        assert_eq!(all(&[], 1), []);
        assert_eq!(all(&[0x08], 1), []);
        assert_eq!(all(&[0x03, 0xff], 3), [(7, 1), (7, 1)]);
        assert_eq!(all(&[0xff; 20], 1), []);
        assert!(Hybrid::new(&[], 33).is_none());
        // A run of length zero is passed over.
        assert_eq!(all(&[0x00, 1, 0x02, 1], 1), [(1, 1)]);
    }

    #[test]
    fn the_widest_values_are_whole() {
        let values = [u32::MAX, 0, 0x1234_5678, 1];
        let mut bytes = vec![0x03];
        bytes.extend(values.iter().chain(&values).flat_map(|value| value.to_le_bytes()));
        let found: Vec<u32> = all(&bytes, 32).into_iter().map(|(value, _)| value).collect();
        assert_eq!(found, [values, values].concat());
    }
}
