//! The one table of every key a workload file may hold.
//!
//! Whether a key is known, what stands in the reference page and which key a misspelt one is
//! nearest to all follow from this table. A test holds it against the resolver: a key that is
//! marked as used is read, and its default is that of the typed section.

use crate::keyword::Keyword;
use crate::nearest::nearest;
use crate::schema_keys::KEYS;

/// One key of a workload file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Dotted path below `workload`.
    pub path: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// The value of a key that is left out, as YAML; empty when nothing stands for it.
    pub default: &'static str,
    /// One sentence on what it does.
    pub help: &'static str,
    /// Whether it does anything.
    pub effect: Effect,
}

/// What the value of a key looks like.
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
    /// One of a few words.
    Choice(fn() -> Vec<&'static str>),
    /// A list of whole numbers.
    WholeList,
    /// A text or a list of texts.
    TextList,
    /// A number of seconds or a distribution.
    Time,
    /// A mapping with keys of its own.
    Map,
}

/// Whether a key does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does.
    Used,
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// It is an older spelling of another key.
    Alias(&'static str),
}

/// The keys of a distribution.
pub(crate) const TIME_KEYS: &[&str] =
    &["type", "mean", "stdev", "min", "max", "shape", "scale", "lam"];

/// Every key in the order of the reference page.
pub fn keys() -> &'static [Key] {
    KEYS
}

/// The key with this path.
pub fn find_key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether a path is a key or leads to one.
pub(crate) fn is_known(path: &str) -> bool {
    KEYS.iter().any(|key| key.path == path || is_below(key.path, path)) || is_time_key(path)
}

/// Whether known keys stand below the path.
pub(crate) fn has_keys_below(path: &str) -> bool {
    KEYS.iter().any(|key| is_below(key.path, path))
        || find_key(path).is_some_and(|key| matches!(key.kind, Kind::Time))
}

/// The known path nearest to an unknown one: in the same section first, then the same name
/// elsewhere, then any like it.
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

/// The step of a path directly below a section.
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
    /// The kind in the words of the reference page.
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
            Self::TextList => "text or list of texts".to_owned(),
            Self::Time => "seconds or distribution".to_owned(),
            Self::Map => "mapping".to_owned(),
        }
    }
}

/// The words of a keyword enumeration as a function, for the table.
pub(crate) const fn choice<K: Keyword>() -> Kind {
    Kind::Choice(K::words)
}

/// A key that does something.
pub(crate) const fn used(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key { path, kind, default, help, effect: Effect::Used }
}

/// A key that is accepted and changes nothing.
pub(crate) const fn idle(
    path: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
    reason: &'static str,
) -> Key {
    Key { path, kind, default, help, effect: Effect::NoEffect(reason) }
}

/// An older spelling.
pub(crate) const fn alias(path: &'static str, target: &'static str, help: &'static str) -> Key {
    Key { path, kind: Kind::Text, default: "", help, effect: Effect::Alias(target) }
}
