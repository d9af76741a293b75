//! What reading a trace met: what was read, and what had to be left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A place in the input that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The line of its text, counted from 1; in JSON of one line, the record.
    pub line: u64,
    /// What is wrong there.
    pub reason: &'static str,
}

/// What reading met. Nothing here stops a conversion, and nothing is left out without being counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Files that were read.
    pub files: u64,
    /// Events that came out.
    pub events: u64,
    /// Lines, or records, that were no event and were left out.
    pub bad_lines: u64,
    /// How many there are of every reason.
    pub bad_reasons: BTreeMap<&'static str, u64>,
    /// Where the first of them are.
    pub first_bad: Vec<Damage>,
    /// Files, or gzip members of them, that end too early or are damaged.
    pub damaged_files: u64,
    /// The first of these files.
    pub first_damaged: Vec<PathBuf>,
    /// Lines of DFTracer that are no metadata, as its own tools count them.
    pub records: u64,
    /// Lines that are not UTF-8; what is not, was replaced.
    pub not_utf8: u64,
    /// Events whose file is known by its hash only.
    pub unnamed_files: u64,
    /// Ends without a beginning, and beginnings without an end.
    pub unpaired: u64,
    /// Records of kinds that have no place in a trace of ours.
    pub left_out: u64,
}

/// How many places are named; the rest is only counted.
const NAMED: usize = 10;

impl ReadStats {
    pub(crate) fn bad(&mut self, damage: impl FnOnce() -> Damage) {
        let damage = damage();
        self.bad_lines += 1;
        *self.bad_reasons.entry(damage.reason).or_default() += 1;
        if self.first_bad.len() < NAMED {
            self.first_bad.push(damage);
        }
    }

    /// Records that are too long to be looked at.
    pub(crate) fn too_long(&mut self, records: u64) {
        if records > 0 {
            self.bad_lines += records;
            *self.bad_reasons.entry("is too long").or_default() += records;
        }
    }

    pub(crate) fn damaged(&mut self, path: &Path) {
        if self.first_damaged.len() < NAMED
            && self.first_damaged.last().is_none_or(|last| last != path)
        {
            self.first_damaged.push(path.to_owned());
        }
    }
}
