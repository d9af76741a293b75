//! The schema: one table of every key of a workload file.
//!
//! It decides whether a key is known, fills the reference page and suggests corrections for misspelled
//! keys. Its rows are declared with the fields of the typed sections. A test compares it with the
//! resolver: every key marked as used is read, and its default is that of the typed section.

use std::sync::LazyLock;

use crate::element;
use crate::keyword::Keyword;
use crate::nearest::nearest;
use crate::sections::storage::StorageType;
use crate::sections::workload::Workload;

/// One key of a workload file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Dotted path below `workload`.
    pub path: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// The default as YAML; empty if there is none or if it depends on other keys.
    pub default: &'static str,
    /// What it does, for the reference page.
    pub help: &'static str,
    /// Whether Feedline uses it.
    pub effect: Effect,
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// Text.
    Text,
    /// One of a fixed set of words, which the function lists.
    Choice(fn() -> Vec<&'static str>),
    /// A list of whole numbers.
    WholeList,
    /// A string or a list of strings.
    TextList,
    /// A number of seconds, or a mapping that describes a distribution.
    Time,
    /// A mapping with keys of its own.
    Map,
}

/// Whether a key has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The key has an effect.
    Used,
    /// The key is accepted and ignored, for this reason.
    NoEffect(&'static str),
    /// The key is an alternative spelling of this one.
    Alias(&'static str),
}

/// The parameters of a distribution.
pub(crate) const TIME_KEYS: &[&str] =
    &["type", "mean", "stdev", "min", "max", "shape", "scale", "lam"];

/// The reason for keys that DLIO ignores as well.
pub(crate) const DLIO_IGNORES: &str = "DLIO parses it and never uses it";

/// The type of a key whose value is an element type.
pub(crate) const ELEMENT: Kind = Kind::Choice(element::names);

/// The type of `storage.storage_type`: the storage types, and `parallel_fs`, which is read as
/// `local_fs`.
pub(crate) const STORAGE: Kind = Kind::Choice(|| {
    let mut words = StorageType::words();
    words.insert(1, "parallel_fs");
    words
});

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(Workload::rows);

/// Every key in the order of the reference page.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// The key with this path.
pub fn find_key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether a path is a key or a parent of one.
pub(crate) fn is_known(path: &str) -> bool {
    KEYS.iter().any(|key| key.path == path || is_below(key.path, path)) || is_time_key(path)
}

/// Whether the path is the parent of known keys.
pub(crate) fn has_keys_below(path: &str) -> bool {
    KEYS.iter().any(|key| is_below(key.path, path))
        || find_key(path).is_some_and(|key| matches!(key.kind, Kind::Time))
}

/// The known path most similar to an unknown one: in the same section first, then the same name in
/// another section, then any similar path.
pub(crate) fn nearest_path(path: &str) -> Option<String> {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(key) = find_key(section)
        && matches!(key.kind, Kind::Time)
    {
        let found = nearest(name, TIME_KEYS.iter().copied())?;
        return Some(format!("{section}.{found}"));
    }
    let candidates = || KEYS.iter().filter(|key| !matches!(key.effect, Effect::Alias(_)));
    let siblings = candidates().filter_map(|key| sibling(key.path, section));
    if let Some(found) = nearest(name, siblings) {
        return Some(if section.is_empty() {
            found.to_owned()
        } else {
            format!("{section}.{found}")
        });
    }
    let same_name = candidates().find(|key| key.path.rsplit('.').next() == Some(name));
    same_name
        .map(|key| key.path)
        .or_else(|| nearest(path, candidates().map(|key| key.path)))
        .map(str::to_owned)
}

/// The part of a path directly below a section.
fn sibling<'a>(path: &'a str, section: &str) -> Option<&'a str> {
    let rest = match section {
        "" => path,
        section => path.strip_prefix(section)?.strip_prefix('.')?,
    };
    rest.split('.').next()
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

fn is_time_key(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(parent, last)| {
        TIME_KEYS.contains(&last)
            && find_key(parent).is_some_and(|key| matches!(key.kind, Kind::Time))
    })
}

impl Kind {
    /// The type, as the reference page names it.
    pub fn describe(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Whole => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Choice(words) => {
                words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Self::WholeList => "list of whole numbers".to_owned(),
            Self::TextList => "text or list of text".to_owned(),
            Self::Time => "seconds or distribution".to_owned(),
            Self::Map => "mapping".to_owned(),
        }
    }
}

/// The type of a key whose value is a word of `K`.
pub(crate) const fn choice<K: Keyword>() -> Kind {
    Kind::Choice(K::words)
}

/// A key that has an effect.
pub(crate) const fn used(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key { path, kind, default, help, effect: Effect::Used }
}

/// A key that is accepted and ignored.
pub(crate) const fn idle(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
    reason: &'static str,
) -> Key {
    Key { path, kind, default, help, effect: Effect::NoEffect(reason) }
}

/// An alternative spelling.
pub(crate) const fn alias(path: &'static str, target: &'static str, help: &'static str) -> Key {
    Key { path, kind: Kind::Text, default: "", help, effect: Effect::Alias(target) }
}
