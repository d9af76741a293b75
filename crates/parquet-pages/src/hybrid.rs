//! Parquet's mixture of repeated values and values packed into bits, for levels and indices.
//!
//! Given out as runs, because a damaged file can announce billions of equal values in a few bytes:
//! work follows the bytes there are, never the numbers they claim.

use crate::bits::{varint, word};

/// The runs of values of a fixed number of bits.
pub(crate) struct Runs<'a> {
    bytes: &'a [u8],
    /// At most 32.
    width: u32,
}

pub(crate) enum Run<'a> {
    Equal { value: u32, count: u64 },
    Packed { bytes: &'a [u8], count: u64 },
}

impl<'a> Runs<'a> {
    /// `None` if values cannot be so wide.
    pub(crate) fn new(bytes: &'a [u8], width: u32) -> Option<Runs<'a>> {
        (width <= 32).then_some(Runs { bytes, width })
    }

    /// The next run; `None` if the bytes end before it does.
    pub(crate) fn next(&mut self) -> Option<Run<'a>> {
        let mut at = 0;
        let header = varint(self.bytes, &mut at)?;
        let bytes = &self.bytes[at..];
        let count = header >> 1;
        if header & 1 == 0 {
            let (value, rest) = bytes.split_at_checked(self.width.div_ceil(8) as usize)?;
            self.bytes = rest;
            return Some(Run::Equal { value: word(value, 0) as u32, count });
        }
        let values = count.checked_mul(8)?;
        if self.width == 0 {
            self.bytes = bytes;
            return Some(Run::Equal { value: 0, count: values });
        }
        // Writers may leave out what is unused of the last group.
        let len = count.checked_mul(self.width.into())?.min(bytes.len() as u64);
        let (bytes, rest) = bytes.split_at(len as usize);
        self.bytes = rest;
        Some(Run::Packed { bytes, count: values.min(len * 8 / u64::from(self.width)) })
    }
}

/// The same, as values and how often each comes.
pub struct Hybrid<'a> {
    runs: Runs<'a>,
    run: Run<'a>,
    /// Values of the run that were given out.
    at: u64,
}

impl<'a> Hybrid<'a> {
    /// `None` if values cannot be so wide: 32 bits is the most.
    pub fn new(bytes: &'a [u8], width: u32) -> Option<Hybrid<'a>> {
        let runs = Runs::new(bytes, width)?;
        Some(Hybrid { runs, run: Run::Equal { value: 0, count: 0 }, at: 0 })
    }

    /// The same value for ever, where nothing is stored.
    pub fn constant(value: u32) -> Hybrid<'static> {
        let runs = Runs { bytes: &[], width: 0 };
        Hybrid { runs, run: Run::Equal { value, count: u64::MAX }, at: 0 }
    }

    /// The next value and how often it comes now, `most` times at most; `None` if there is none.
    pub fn next(&mut self, most: u64) -> Option<(u32, u64)> {
        loop {
            match self.run {
                Run::Equal { value, count } if self.at < count => {
                    let times = most.min(count - self.at);
                    self.at += times;
                    return Some((value, times));
                }
                Run::Packed { bytes, count } if self.at < count => {
                    let bit = self.at * u64::from(self.runs.width);
                    let mask = (1_u64 << self.runs.width) - 1;
                    let value = (word(bytes, (bit / 8) as usize) >> (bit % 8)) & mask;
                    self.at += 1;
                    return Some((value as u32, 1));
                }
                _ => (self.run, self.at) = (self.runs.next()?, 0),
            }
        }
    }
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
