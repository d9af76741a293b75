//! What an earlier generation left, and how much of it can stay.

use std::sync::{Mutex, PoisonError};

use crate::names::FileNames as _;
use feedline_formats::CompanionPlace;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::generate::Generator;
use crate::manifest::Totals;
use crate::manifest_reader::ManifestReader;
use crate::manifest_scan::ManifestScan;

/// Threads that look whether files are there: it is the answers of the file system that take time.
const THREADS: usize = 8;

/// What is known of the files that are there.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExistingFiles {
    /// Nothing, or they are of another recipe: everything is made from scratch.
    Unknown,
    /// A generation of the same recipe was cut short. A file that is there is a complete one of
    /// this set, or, if it `replaces` another set, a complete one of that.
    Unfinished {
        /// Whether files of another set had the names of this one.
        replaces: bool,
    },
    /// All were made, and these still have their size.
    Finished(Kept),
}

/// Files that stay: one bit each, so that a million of them takes 125 kB.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    bits: Vec<u64>,
    /// How many they are, without companions.
    pub(crate) totals: Totals,
}

impl Kept {
    fn add(&mut self, index: u64, bytes: u64) {
        let (word, bit) = place(index);
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.totals.add(bytes);
        }
    }

    /// Takes a file of `bytes` out again.
    fn remove(&mut self, index: u64, bytes: u64) {
        if self.has(index) {
            let (word, bit) = place(index);
            self.bits[word] &= !bit;
            self.totals.files -= 1;
            self.totals.bytes -= bytes;
        }
    }

    /// Every file that is in it.
    fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        let of_word = |(word, bits): (usize, &u64)| {
            let (first, bits) = (64 * word as u64, *bits);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        };
        self.bits.iter().enumerate().flat_map(of_word)
    }

    fn has(&self, index: u64) -> bool {
        let (word, bit) = place(index);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn place(index: u64) -> (usize, u64) {
    ((index / 64) as usize, 1 << (index % 64))
}

impl ExistingFiles {
    /// Whether file `index` stays as it is.
    pub(crate) fn keeps(&self, index: u64) -> bool {
        matches!(self, Self::Finished(kept) if kept.has(index))
    }

    /// Files that stay for certain.
    pub(crate) fn kept(&self) -> Totals {
        match self {
            Self::Finished(kept) => kept.totals,
            _ => Totals::default(),
        }
    }
}

impl Generator<'_> {
    /// Looks at the manifest and, if it is one of this recipe, at every file. Reads no content and
    /// changes nothing.
    pub fn look_back(&self) -> Result<ExistingFiles> {
        let Some(reader) = ManifestReader::open(self.store)? else {
            return Ok(ExistingFiles::Unknown);
        };
        // Files that have their size, and files one of whose companions has not.
        let found = Mutex::new((Kept::default(), Kept::default()));
        let recipe = self.spec.recipe();
        let scan = ManifestScan { clock: self.clock, threads: THREADS, stop: self.stop };
        let head = scan.run(
            reader,
            |head| head.recipe.as_ref() == Some(&recipe),
            || (),
            |(), entry| {
                let own = self.index_of(&entry.name);
                let Some(index) = own.or_else(|| self.companion_of(&entry.name)) else {
                    return Ok(());
                };
                let whole = self.store.size(&entry.name)? == Some(entry.sum.bytes);
                let (kept, spoilt) = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
                match own {
                    Some(_) if whole => kept.add(index, entry.sum.bytes),
                    None if !whole => spoilt.add(index, 0),
                    _ => {}
                }
                Ok(())
            },
        )?;
        if head.recipe.as_ref() != Some(&recipe) {
            return Ok(ExistingFiles::Unknown);
        }
        let (mut kept, spoilt) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        for index in spoilt.indices() {
            let size = self.store.size(&self.key(index))?.unwrap_or(0);
            kept.remove(index, size);
        }
        Ok(match head.complete {
            true => ExistingFiles::Finished(kept),
            false => ExistingFiles::Unfinished { replaces: head.replaces },
        })
    }

    /// The place in the list of all files of the data file `key`, if it is one.
    pub(crate) fn index_of(&self, key: &str) -> Option<u64> {
        let (train, eval) = (&self.spec.train, &self.spec.eval);
        let after_train = |number| train.total + number;
        train.number_of_key(key).or_else(|| eval.number_of_key(key).map(after_train))
    }

    /// The place in the list of all files of the data file that `key` goes with, if it is a companion.
    pub(crate) fn companion_of(&self, key: &str) -> Option<u64> {
        self.spec.format.companions().iter().find_map(|companion| {
            let data = key.strip_suffix(companion.suffix)?;
            match companion.place {
                CompanionPlace::Beside => self.index_of(data),
                CompanionPlace::IndexFolder => {
                    let (folder, name) = data.strip_prefix("index/")?.split_once('/')?;
                    let (train, eval) = (&self.spec.train, &self.spec.eval);
                    let mut rules = [(train, 0), (eval, train.total)].into_iter();
                    let (rule, first) = rules.find(|(rule, _)| rule.folder == folder)?;
                    let (number, total) = rule.number_of(name)?;
                    (total == rule.total).then_some(first + number)
                }
            }
        })
    }

    pub(crate) fn key(&self, index: u64) -> String {
        let train = self.spec.train.total;
        let mut key = String::new();
        match index.checked_sub(train) {
            None => self.spec.train.write_key(index, &mut key),
            Some(number) => self.spec.eval.write_key(number, &mut key),
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_kept_once() {
        let mut kept = Kept::default();
        for (index, bytes) in [(0, 10), (63, 20), (64, 30), (1_000, 40), (63, 20)] {
            kept.add(index, bytes);
        }
        assert_eq!(kept.totals, Totals { files: 4, bytes: 100 });
        let found: Vec<_> = (0..2_000).filter(|&index| kept.has(index)).collect();
        assert_eq!(found, [0, 63, 64, 1_000]);
    }
}
