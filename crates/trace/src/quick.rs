//! A fast hash for tables that are looked into once an event.
//!
//! Not for keys of an adversary: whoever writes a trace can make its own conversion slow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with that hash.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// The hash of rustc: a rotation, an exclusive or and a multiplication a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        // The map takes its place from the low bits, which a multiplication mixes least.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            self.add(rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }
}

/// Strings, each once, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    numbers: QuickMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Words {
    /// The number of a string, and whether it is new.
    pub(crate) fn number(&mut self, text: &str) -> (u32, bool) {
        if let Some(number) = self.numbers.get(text) {
            return (*number, false);
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        (number, true)
    }

    /// The strings in the order of their numbers.
    pub(crate) fn texts(&self) -> &[Box<str>] {
        &self.texts
    }
}
