//! Ways of damaging a file.

use feedline_formats::Companion;

use crate::subjects::Subject;

/// Numbers that lengths, counts and offsets go wrong at.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x1_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFF0,
    u64::MAX,
];
/// Changes of one input, at most.
const CHANGES_MAX: u64 = 6;

/// Draws changes, the same in every run.
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Mutator {
        Mutator { state: seed }
    }

    /// The subject's files with something wrong in at least one of them.
    pub(crate) fn damaged(&mut self, subject: &Subject) -> (Vec<u8>, Vec<(Companion, Vec<u8>)>) {
        let mut data = subject.data.clone();
        let mut companions = subject.companions.clone();
        for _ in 0..self.below(CHANGES_MAX) + 1 {
            let choices = 1 + companions.len() as u64;
            match self.below(choices) {
                0 => self.change(&mut data),
                number => self.change(&mut companions[number as usize - 1].1),
            }
        }
        (data, companions)
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let len = bytes.len() as u64;
        if len == 0 {
            bytes.push(self.below(256) as u8);
            return;
        }
        // Headers are at the front, directories at the end; the middle is mostly samples.
        let at = match self.below(4) {
            0 => self.below(len.min(64)),
            1 => len - 1 - self.below(len.min(128)),
            _ => self.below(len),
        } as usize;
        match self.below(10) {
            0..3 => bytes[at] ^= 1 << self.below(8),
            3 => bytes[at] = self.below(256) as u8,
            4..6 => {
                let number = NUMBERS[self.below(NUMBERS.len() as u64) as usize];
                let width = [1, 2, 4, 8][self.below(4) as usize];
                let big = self.below(4) == 0;
                let plain = number.to_le_bytes();
                let turned = number.to_be_bytes();
                let value = if big { &turned[8 - width..] } else { &plain[..width] };
                let room = width.min(bytes.len() - at);
                bytes[at..at + room].copy_from_slice(&value[..room]);
            }
            6 => bytes.truncate(at),
            7 => {
                let more = (0..self.below(40)).map(|_| self.below(256) as u8).collect::<Vec<_>>();
                let _ = bytes.splice(at..at, more);
            }
            8 => {
                let end = at + self.below(64).min(len - at as u64) as usize;
                bytes.drain(at..end);
            }
            _ => {
                let from = self.below(len) as usize;
                let count = self.below(64) as usize;
                let count = count.min(bytes.len() - from).min(bytes.len() - at);
                bytes.copy_within(from..from + count, at);
            }
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        feedline_numbers::splitmix::next(&mut self.state) % bound
    }
}
