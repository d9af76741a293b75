//! Strings, each once.

use rustc_hash::FxHashMap;

/// Strings, each once, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    numbers: FxHashMap<Box<str>, u32>,
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
