//! Ways of damaging a file of events.

use std::ops::Range;

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Numbers that lengths, counts and places go wrong at.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x1_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    u64::MAX,
];
/// Changes of one input, at most.
const CHANGES_MAX: u64 = 4;
/// Bytes at the beginning of a column that are damaged more often than others: what a page says of itself, and
/// the lengths with which values begin.
const HEAD: u64 = 48;

/// A file whose checksums nobody looks at.
pub(crate) struct Subject {
    bytes: Vec<u8>,
    /// Where the columns are.
    columns: Range<usize>,
    /// Where each of them begins: with what its first page says of itself.
    starts: Vec<usize>,
}

impl Subject {
    pub(crate) fn new(whole: &[u8], key: &[u8]) -> Subject {
        let mut bytes = whole.to_vec();
        let at = bytes.windows(key.len()).position(|window| window == key);
        // Another key of the same length: nothing else moves.
        bytes[at.expect("a file with checksums")] ^= 0x20;
        let length: [u8; 4] =
            bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four bytes");
        let footer = u32::from_le_bytes(length) as usize + 8;
        let columns = 4..bytes.len() - footer;
        let reader = SerializedFileReader::new(Bytes::from(whole.to_vec())).expect("Parquet");
        let groups = reader.metadata().row_groups().iter();
        let starts = groups.flat_map(|group| group.columns()).map(|column| column.byte_range().0);
        Subject { bytes, columns, starts: starts.map(|start| start as usize).collect() }
    }
}

/// Draws changes, the same in every run.
pub(crate) struct Mutator {
    random: StdRng,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Mutator {
        Mutator { random: StdRng::seed_from_u64(seed) }
    }

    /// The subject with something wrong in it: mostly in its columns, whose number of bytes stays the same so
    /// that what follows is found; now and then anywhere.
    pub(crate) fn damaged(&mut self, subject: &Subject) -> Vec<u8> {
        let mut bytes = subject.bytes.clone();
        let anywhere = 0..bytes.len();
        for _ in 0..=self.below(CHANGES_MAX) {
            let place = if self.below(8) == 0 { &anywhere } else { &subject.columns };
            let at = match self.below(3) {
                0 => {
                    let start = subject.starts[self.below(subject.starts.len() as u64) as usize];
                    (start + self.below(HEAD) as usize).min(subject.columns.end - 1)
                }
                _ => place.start + self.below(place.len() as u64) as usize,
            };
            self.change(&mut bytes, at, place.end);
        }
        if self.below(4) == 0 {
            self.slice(&mut bytes, subject);
        }
        if self.below(20) == 0 {
            bytes.truncate(self.below(subject.bytes.len() as u64) as usize);
        }
        bytes
    }

    /// Numbers at the beginning of a column become longer, at the cost of its end.
    fn slice(&mut self, bytes: &mut [u8], subject: &Subject) {
        let column = self.below(subject.starts.len() as u64) as usize;
        let start = subject.starts[column];
        let end = subject.starts.get(column + 1).copied().unwrap_or(subject.columns.end);
        let at = start + self.below(HEAD) as usize;
        let by = 1 + self.below(4) as usize;
        if at + by < end {
            bytes.copy_within(at..end - by, at + by);
            let with = [0xFF, 0xFE, 0x80, 0x8F][self.below(4) as usize];
            bytes[at..at + by].fill(with);
        }
    }

    /// The file with one bit of a column turned.
    pub(crate) fn flipped(&mut self, whole: &[u8], subject: &Subject) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        let at = subject.columns.start + self.below(subject.columns.len() as u64) as usize;
        bytes[at] ^= 1 << self.below(8);
        bytes
    }

    fn change(&mut self, bytes: &mut [u8], at: usize, end: usize) {
        match self.below(8) {
            0..3 => bytes[at] ^= 1 << self.below(8),
            3 => bytes[at] = self.below(256) as u8,
            4 => {
                let number = NUMBERS[self.below(NUMBERS.len() as u64) as usize].to_le_bytes();
                let width = [1, 2, 4, 8][self.below(4) as usize].min(end - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            5 => {
                // A run of bytes that numbers in groups of seven bits do not end in.
                let until = end.min(at + 1 + self.below(12) as usize);
                bytes[at..until].fill(0xFF);
            }
            6 => {
                let until = end.min(at + 1 + self.below(200) as usize);
                bytes[at..until].fill(0);
            }
            _ => {
                let from = self.below(end as u64) as usize;
                let count = (self.below(64) as usize).min(end - from).min(end - at);
                bytes.copy_within(from..from + count, at);
            }
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.random_range(0..bound)
    }
}
