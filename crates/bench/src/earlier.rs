//! What an earlier generation left, and how much of it can stay.

use std::sync::Mutex;

use feedline_loader::FileNames as _;
use feedline_store::{Kind, Store, StoreError};

use crate::error::BenchError;
use crate::generate::Generator;
use crate::manifest::Totals;
use crate::manifest_reader::ManifestReader;
use crate::walk::Walk;

/// Threads that look whether files are there: it is the answers of the file system that take time.
const THREADS: usize = 8;

/// What is known of the files that are there.
pub(crate) enum Earlier {
    /// Nothing, or they are of another recipe: everything is made anew.
    Unknown,
    /// A generation of the same recipe was cut short. A file that is there is a complete one of
    /// this set, or, if it `replaces` another set, a complete one of that.
    Unfinished { replaces: bool },
    /// All were made, and these still have their size.
    Finished(Kept),
}

/// Files that stay: one bit each, so that a million of them takes 125 kB.
#[derive(Default)]
pub(crate) struct Kept {
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

    fn has(&self, index: u64) -> bool {
        let (word, bit) = place(index);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn place(index: u64) -> (usize, u64) {
    ((index / 64) as usize, 1 << (index % 64))
}

impl Earlier {
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
    pub(crate) fn look_back(&self) -> Result<Earlier, BenchError> {
        let Some(reader) = ManifestReader::open(self.store)? else { return Ok(Earlier::Unknown) };
        let kept = Mutex::new(Kept::default());
        let walk = Walk { clock: self.clock, threads: THREADS, stop: self.stop };
        let head = walk.run(
            reader,
            |head| head.recipe.as_ref() == Some(&self.recipe),
            || (),
            |(), entry| {
                let Some(index) = self.index_of(&entry.name) else { return Ok(()) };
                if size_of(self.store, &entry.name)? == Some(entry.sum.bytes) {
                    kept.lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .add(index, entry.sum.bytes);
                }
                Ok(())
            },
        )?;
        if head.recipe.as_ref() != Some(&self.recipe) {
            return Ok(Earlier::Unknown);
        }
        Ok(match head.complete {
            true => Earlier::Finished(
                kept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner),
            ),
            false => Earlier::Unfinished { replaces: head.replaces },
        })
    }

    /// The place in the list of all files of the data file `key`, if it is one.
    pub(crate) fn index_of(&self, key: &str) -> Option<u64> {
        let (train, eval) = (&self.plan.train_files, &self.plan.eval_files);
        let after_train = |number| train.total + number;
        train.number_of_key(key).or_else(|| eval.number_of_key(key).map(after_train))
    }

    pub(crate) fn key(&self, index: u64) -> String {
        let train = self.plan.train_files.total;
        let mut key = String::new();
        match index.checked_sub(train) {
            None => self.plan.train_files.write_key(index, &mut key),
            Some(number) => self.plan.eval_files.write_key(number, &mut key),
        }
        key
    }
}

/// The size of a file, if there is one.
pub(crate) fn size_of(store: &dyn Store, key: &str) -> Result<Option<u64>, StoreError> {
    if store.kind(key)? != Some(Kind::File) {
        return Ok(None);
    }
    store.open(key)?.len().map(Some)
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
