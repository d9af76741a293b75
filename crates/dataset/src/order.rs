//! Which sample stands at which place of an epoch.
//!
//! Places are numbered through the whole job; [`Dealing`](crate::Dealing) says which rank reads which.
//! An order maps a place to a sample in constant memory, the same on every rank.

use crate::Permutation;

/// The samples of a data set: `files * per_file`, numbered file by file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSpace {
    /// Files that take part.
    pub files: u64,
    /// Samples in each of them.
    pub per_file: u64,
}

impl SampleSpace {
    /// All samples.
    pub fn len(&self) -> u64 {
        self.files * self.per_file
    }

    /// True when there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One sample: a file and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleId {
    /// Number of the file in the sorted list.
    pub file: u64,
    /// Number of the sample in that file.
    pub index: u64,
}

/// How the places of an epoch map to samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// In the order of the files.
    None,
    /// Files in random order, the samples of a file one after the other.
    Files,
    /// One random order of all samples.
    Samples,
    /// The samples of each block of `len` in one random order, the same in all blocks.
    Blocks {
        /// Samples in a block, 1 or more.
        len: u64,
    },
}

/// The order of one epoch.
#[derive(Clone, Debug)]
pub struct EpochOrder {
    space: SampleSpace,
    permutation: Option<Permutation>,
    shuffle: Shuffle,
}

impl EpochOrder {
    /// The order that `shuffle` gives for `seed`.
    pub fn new(space: SampleSpace, shuffle: Shuffle, seed: u64) -> Self {
        let permutation = match shuffle {
            Shuffle::None => None,
            Shuffle::Files => Some(Permutation::new(space.files, seed)),
            Shuffle::Samples => Some(Permutation::new(space.len(), seed)),
            Shuffle::Blocks { len } => Some(Permutation::new(len, seed)),
        };
        Self { space, permutation, shuffle }
    }

    /// The samples that are ordered.
    pub fn space(&self) -> SampleSpace {
        self.space
    }

    /// The sample at `place` of the epoch.
    ///
    /// # Panics
    /// When `place` is not below the number of samples.
    pub fn sample(&self, place: u64) -> SampleId {
        assert!(place < self.space.len(), "place {place} of an epoch of {}", self.space.len());
        let per_file = self.space.per_file;
        let at = |sample: u64| SampleId { file: sample / per_file, index: sample % per_file };
        match (&self.permutation, self.shuffle) {
            (Some(files), Shuffle::Files) => {
                SampleId { file: files.at(place / per_file), index: place % per_file }
            }
            (Some(block), Shuffle::Blocks { len }) => {
                at(place - place % len + block.at(place % len))
            }
            (Some(samples), _) => at(samples.at(place)),
            (None, _) => at(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SampleSpace = SampleSpace { files: 5, per_file: 3 };

    fn epoch(shuffle: Shuffle, seed: u64) -> Vec<(u64, u64)> {
        let order = EpochOrder::new(SPACE, shuffle, seed);
        (0..SPACE.len()).map(|place| order.sample(place)).map(|s| (s.file, s.index)).collect()
    }

    #[test]
    fn without_shuffling_samples_come_file_by_file() {
        assert_eq!(epoch(Shuffle::None, 1)[..4], [(0, 0), (0, 1), (0, 2), (1, 0)]);
    }

    #[test]
    fn shuffled_files_keep_their_samples_together() {
        let order = epoch(Shuffle::Files, 1);
        for samples in order.chunks(3) {
            let file = samples[0].0;
            assert_eq!(samples, [(file, 0), (file, 1), (file, 2)]);
        }
        assert_ne!(order, epoch(Shuffle::None, 1));
    }

    #[test]
    fn shuffled_blocks_keep_their_samples() {
        let order = epoch(Shuffle::Blocks { len: 5 }, 1);
        assert_ne!(order, epoch(Shuffle::None, 1));
        let number = |&(file, index): &(u64, u64)| file * 3 + index;
        for (block, samples) in (0..).zip(order.chunks(5)) {
            let mut samples: Vec<u64> = samples.iter().map(number).collect();
            samples.sort_unstable();
            assert_eq!(samples, (block * 5..block * 5 + 5).collect::<Vec<_>>());
        }
    }

    #[test]
    fn q8_shuffled_samples_are_a_permutation_of_all_and_change_with_the_seed() {
        let mut order = epoch(Shuffle::Samples, 1);
        assert_ne!(order, epoch(Shuffle::None, 1));
        assert_ne!(order, epoch(Shuffle::Samples, 2));
        order.sort_unstable();
        assert_eq!(order, epoch(Shuffle::None, 1));
    }
}
