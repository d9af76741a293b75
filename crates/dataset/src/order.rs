//! Which sample is at which position of an epoch.
//!
//! Places are numbered through the whole job; the loader's `Dealing` says which rank reads which.
//! An order maps a place to a sample in constant memory, the same on every rank.

use std::sync::Arc;

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

/// Which sample of which file has which number, file by file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleIndex {
    /// Every file has the same number of samples: no memory per file.
    Uniform(SampleSpace),
    /// Files differ: for each file, the number of samples up to its end (8 bytes per file).
    Counted(Arc<[u64]>),
}

impl SampleIndex {
    /// The index of files with these numbers of samples.
    pub fn from_counts(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut end = 0;
        let ends: Arc<[u64]> = counts
            .into_iter()
            .map(|count| {
                end += count;
                end
            })
            .collect();
        let (files, per_file) = (ends.len() as u64, ends.first().copied().unwrap_or(0));
        match ends.iter().zip(1..).all(|(&end, number)| end == number * per_file) {
            true => Self::Uniform(SampleSpace { files, per_file }),
            false => Self::Counted(ends),
        }
    }

    /// Files, those without samples included.
    pub fn files(&self) -> u64 {
        match self {
            Self::Uniform(space) => space.files,
            Self::Counted(ends) => ends.len() as u64,
        }
    }

    /// Samples of all files.
    pub fn len(&self) -> u64 {
        match self {
            Self::Uniform(space) => space.len(),
            Self::Counted(ends) => ends.last().copied().unwrap_or(0),
        }
    }

    /// True when there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples of one file.
    pub fn samples_of(&self, file: u64) -> u64 {
        match self {
            Self::Uniform(space) => space.per_file,
            Self::Counted(ends) => ends[file as usize] - start_of(ends, file as usize),
        }
    }

    /// The number of a sample, which [`sample`](SampleIndex::sample) maps back to it.
    pub fn number(&self, sample: SampleId) -> u64 {
        let start = match self {
            Self::Uniform(space) => sample.file.saturating_mul(space.per_file),
            Self::Counted(ends) => start_of(ends, sample.file as usize),
        };
        start.saturating_add(sample.index)
    }

    /// The sample with this number, which is below [`len`](SampleIndex::len).
    pub fn sample(&self, number: u64) -> SampleId {
        match self {
            Self::Uniform(SampleSpace { per_file, .. }) => {
                SampleId { file: number / per_file, index: number % per_file }
            }
            Self::Counted(ends) => {
                let file = ends.partition_point(|&end| end <= number);
                SampleId { file: file as u64, index: number - start_of(ends, file) }
            }
        }
    }
}

impl From<SampleSpace> for SampleIndex {
    fn from(space: SampleSpace) -> Self {
        Self::Uniform(space)
    }
}

fn start_of(ends: &[u64], file: usize) -> u64 {
    file.checked_sub(1).map_or(0, |before| ends[before])
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
    index: SampleIndex,
    permutation: Option<Permutation>,
    shuffle: Shuffle,
    /// The samples of the files in the order in which the files are read.
    places: SampleIndex,
}

impl EpochOrder {
    /// The order that `shuffle` gives for `seed`.
    pub fn new(index: impl Into<SampleIndex>, shuffle: Shuffle, seed: u64) -> Self {
        let index = index.into();
        let permutation = match shuffle {
            Shuffle::None => None,
            Shuffle::Files => Some(Permutation::new(index.files(), seed)),
            Shuffle::Samples => Some(Permutation::new(index.len(), seed)),
            Shuffle::Blocks { len } => Some(Permutation::new(len, seed)),
        };
        let places = match (&index, &permutation, shuffle) {
            (SampleIndex::Counted(_), Some(files), Shuffle::Files) => {
                let count = |place| index.samples_of(files.at(place));
                SampleIndex::from_counts((0..index.files()).map(count))
            }
            _ => index.clone(),
        };
        Self { index, permutation, shuffle, places }
    }

    /// The samples that are ordered.
    pub fn index(&self) -> &SampleIndex {
        &self.index
    }

    /// How many samples the file in each place of the epoch has. With shuffled files, the n-th file
    /// here is the n-th that is read.
    pub fn places(&self) -> &SampleIndex {
        &self.places
    }

    /// The sample at `place` of the epoch.
    ///
    /// # Panics
    /// When `place` is not below the number of samples.
    pub fn sample(&self, place: u64) -> SampleId {
        assert!(place < self.index.len(), "place {place} of an epoch of {}", self.index.len());
        let at = |sample: u64| self.index.sample(sample);
        match (&self.permutation, self.shuffle) {
            (Some(files), Shuffle::Files) => {
                let SampleId { file, index } = self.places.sample(place);
                SampleId { file: files.at(file), index }
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

    /// Every sample once, on one rank and dealt to three.
    #[test]
    fn files_of_unequal_sample_counts_are_read_completely() {
        let counts = [3, 0, 1, 7, 2];
        let index = SampleIndex::from_counts(counts);
        assert_eq!((index.files(), index.len(), index.samples_of(3)), (5, 13, 7));
        assert!((0..13).all(|number| index.number(index.sample(number)) == number));
        let all: Vec<SampleId> = (0..5)
            .flat_map(|file| (0..counts[file as usize]).map(move |index| SampleId { file, index }))
            .collect();
        for shuffle in [Shuffle::None, Shuffle::Files, Shuffle::Samples] {
            let order = EpochOrder::new(index.clone(), shuffle, 1);
            let read: Vec<SampleId> = (0..index.len()).map(|place| order.sample(place)).collect();
            assert_eq!(read == all, shuffle == Shuffle::None);
            let mut runs: Vec<u64> = read.iter().map(|sample| sample.file).collect();
            runs.dedup();
            if shuffle == Shuffle::Files {
                assert_eq!(runs.len(), 4, "the samples of a file stay together: {read:?}");
            }
            let of_rank = |rank| (rank..index.len()).step_by(3).map(|place| order.sample(place));
            let mut dealt: Vec<SampleId> = (0..3).flat_map(of_rank).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, all, "{shuffle:?}");
        }
    }

    #[test]
    fn equal_counts_need_no_list() {
        let uniform = SampleIndex::from_counts([3; 5]);
        assert_eq!(uniform, SPACE.into());
        assert!(SampleIndex::from_counts([]).is_empty());
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
