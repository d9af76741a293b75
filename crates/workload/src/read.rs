//! Reads single keys as their types; errors name the key, the place, what was expected and found.
//!
//! A key that is absent or null leaves its default alone.

use feedline_formats::Element;
use std::ops::RangeInclusive;

use crate::element;
use crate::error::{Place, Result, WorkloadError};
use crate::keyword::Keyword;
use crate::node::{Node, Value};

/// The sections of a workload, after alternative spellings were replaced.
pub(crate) struct Sections {
    pub(crate) root: Node,
    pub(crate) label: String,
}

/// The result of reading one key into its slot.
pub(crate) type Read = Result<()>;

impl Sections {
    /// The node of a key that is set and not null.
    pub(crate) fn get(&self, path: &str) -> Option<&Node> {
        self.root.get(path).filter(|node| node.value != Value::Null)
    }

    pub(crate) fn place(&self, node: &Node) -> Place {
        Place { origin: self.label.clone(), line: node.line }
    }

    pub(crate) fn wrong(&self, path: &str, node: &Node, expected: &str) -> WorkloadError {
        WorkloadError::WrongValue {
            place: self.place(node),
            key: path.to_owned(),
            expected: expected.to_owned(),
            found: node.describe(),
        }
    }

    pub(crate) fn bool(&self, path: &str, slot: &mut bool) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        *slot = match node.value {
            Value::Bool(value) => value,
            Value::Int(0) => false,
            Value::Int(1) => true,
            _ => return Err(self.wrong(path, node, "true or false")),
        };
        Ok(())
    }

    /// A boolean that may be left out.
    pub(crate) fn optional_bool(&self, path: &str, slot: &mut Option<bool>) -> Read {
        match self.get(path) {
            None => Ok(()),
            Some(_) => self.bool(path, slot.insert(false)),
        }
    }

    /// A whole number in a range.
    pub(crate) fn whole<T: TryFrom<i64>>(
        &self,
        path: &str,
        range: RangeInclusive<i64>,
        slot: &mut T,
    ) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        let expected = || range_words(&range);
        let value = whole_number(node).filter(|value| range.contains(value));
        let value = value.ok_or_else(|| self.wrong(path, node, &expected()))?;
        *slot = T::try_from(value).map_err(|_| self.wrong(path, node, &expected()))?;
        Ok(())
    }

    /// A whole number greater than zero.
    pub(crate) fn positive<T: TryFrom<i64>>(&self, path: &str, slot: &mut T) -> Read {
        self.whole(path, 1..=i64::MAX, slot)
    }

    /// A whole number greater than zero that may be left out.
    pub(crate) fn optional_positive(&self, path: &str, slot: &mut Option<u64>) -> Read {
        match self.get(path) {
            None => Ok(()),
            Some(_) => self.positive(path, slot.insert(1)),
        }
    }

    /// A whole number, zero included.
    pub(crate) fn count<T: TryFrom<i64>>(&self, path: &str, slot: &mut T) -> Read {
        self.whole(path, 0..=i64::MAX, slot)
    }

    /// A whole number; values below `least` mean "not set".
    pub(crate) fn optional<T: TryFrom<i64>>(
        &self,
        path: &str,
        least: i64,
        slot: &mut Option<T>,
    ) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        let value = whole_number(node).ok_or_else(|| self.wrong(path, node, "a whole number"))?;
        *slot = match value >= least {
            true => {
                Some(T::try_from(value).map_err(|_| self.wrong(path, node, "a smaller number"))?)
            }
            false => None,
        };
        Ok(())
    }

    /// A finite number that is not negative.
    pub(crate) fn number(&self, path: &str, slot: &mut f64) -> Read {
        self.bounded(path, 0.0..=f64::MAX, "a number >= 0", slot)
    }

    /// A finite number in a range.
    pub(crate) fn bounded(
        &self,
        path: &str,
        range: RangeInclusive<f64>,
        expected: &str,
        slot: &mut f64,
    ) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        *slot = number(node)
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.wrong(path, node, expected))?;
        Ok(())
    }

    pub(crate) fn text(&self, path: &str, slot: &mut String) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        *slot = match &node.value {
            Value::Str(text) => text.clone(),
            Value::Int(value) => value.to_string(),
            _ => return Err(self.wrong(path, node, "text")),
        };
        Ok(())
    }

    pub(crate) fn optional_text(&self, path: &str, slot: &mut Option<String>) -> Read {
        if self.get(path).is_some() {
            self.text(path, slot.insert(String::new()))?;
        }
        Ok(())
    }

    /// A path without its trailing slashes, except for the root itself.
    pub(crate) fn folder(&self, path: &str, slot: &mut String) -> Read {
        self.text(path, slot)?;
        // `s3://` is an incomplete URL, not a folder called `s3:`.
        if slot.ends_with("://") {
            return Ok(());
        }
        let stripped = slot.trim_end_matches('/');
        if stripped.is_empty() && !slot.is_empty() {
            *slot = "/".to_owned();
        } else {
            slot.truncate(stripped.len());
        }
        Ok(())
    }

    pub(crate) fn keyword<K: Keyword>(&self, path: &str, slot: &mut K) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        // YAML 1.1 reads an unquoted `off` as false, but the key expects the word.
        let found = match &node.value {
            Value::Bool(true) => K::from_word("true"),
            Value::Bool(false) => K::from_word("off").or_else(|| K::from_word("false")),
            Value::Str(text) => K::from_word(text),
            _ => None,
        };
        *slot = found.ok_or_else(|| self.wrong(path, node, &one_of(&K::words())))?;
        Ok(())
    }

    /// An element type, in any of NumPy's spellings.
    pub(crate) fn element_type(&self, path: &str, slot: &mut Element) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        let found = node.as_str().and_then(element::parse);
        let expected = || format!("a NumPy type, one of {}", element::names().join(", "));
        *slot = found.ok_or_else(|| self.wrong(path, node, &expected()))?;
        Ok(())
    }

    /// A list of whole numbers of at least `least`.
    pub(crate) fn whole_list(&self, path: &str, least: i64, slot: &mut Vec<u64>) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        let expected = match least {
            1 => "a list of whole numbers > 0",
            _ => "a list of whole numbers >= 0",
        };
        let Value::List(items) = &node.value else {
            return Err(self.wrong(path, node, expected));
        };
        let read = |item: &Node| {
            let value = whole_number(item).filter(|value| *value >= least);
            value.and_then(|value| u64::try_from(value).ok())
        };
        *slot = items
            .iter()
            .map(|item| read(item).ok_or_else(|| self.wrong(path, item, expected)))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// A text or a list of texts.
    pub(crate) fn text_list(&self, path: &str, slot: &mut Vec<String>) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        let wrong = |item: &Node| self.wrong(path, item, "text or a list of texts");
        *slot = match &node.value {
            Value::Str(text) => vec![text.clone()],
            Value::List(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item)))
                .collect::<Result<_, _>>()?,
            _ => return Err(wrong(node)),
        };
        Ok(())
    }
}

/// Lists words as `one of `a`, `b`, `c``.
pub(crate) fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("one of {}", words.join(", "))
}

/// The finite number in a node.
pub(crate) fn number(node: &Node) -> Option<f64> {
    match node.value {
        // Every count of a workload is far below 2^53, where the conversion is exact.
        Value::Int(value) => Some(value as f64),
        Value::Float(value) if value.is_finite() => Some(value),
        _ => None,
    }
}

/// The whole number in a node, which may be written as `1e6`.
fn whole_number(node: &Node) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match node.value {
        Value::Int(value) => Some(value),
        Value::Float(value) if value.fract() == 0.0 && value.abs() <= EXACT => Some(value as i64),
        _ => None,
    }
}

fn range_words(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (1, i64::MAX) => "a whole number > 0".to_owned(),
        (0, i64::MAX) => "a whole number >= 0".to_owned(),
        (least, most) => format!("a whole number from {least} to {most}"),
    }
}
