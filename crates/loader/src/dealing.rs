//! Which places of an epoch each rank reads, and how they make batches.
//!
//! Pure arithmetic, in constant memory if all files have the same number of samples: a place is a number
//! below that of all samples, an [`EpochOrder`] says which sample is there.

use feedline_dataset::{EpochOrder, SampleIndex, SampleSpace};

use crate::turns::Turns;

/// How the places of an epoch are dealt to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// Place p goes to rank p mod R, as PyTorch's `DistributedSampler` deals.
    Strided,
    /// Rank r has the r-th of R blocks of equal length.
    Blocked,
    /// Rank r has the r-th of R blocks of whole batches, as DLIO deals. Places that fill no further
    /// step of all ranks are left out.
    WholeSteps,
    /// File f goes to rank f mod R, as tf.data's `shard` deals; readers take turns record by record.
    Files,
    /// File f goes to rank f mod R, and the n-th file of a rank to its worker n mod W, which makes
    /// batches of its own, as WebDataset's `split_by_node` and `split_by_worker` deal.
    WorkerFiles {
        /// W, 1 or more.
        workers: u64,
    },
    /// Every rank reads all files and takes every R-th record.
    Records,
}

/// What becomes of places that cannot be dealt to all ranks evenly, where places are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// The order is repeated from its start until it comes out even.
    Pad,
    /// They are left out.
    Cut,
}

/// What becomes of samples that do not fill a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBatch {
    /// They are a batch of their own.
    Keep,
    /// They are left out.
    Drop,
}

/// How an epoch is dealt to ranks and cut into batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealing {
    /// The samples that take part, by the places of their files in the epoch.
    pub index: SampleIndex,
    /// How many ranks there are.
    pub ranks: u64,
    /// Samples in a full batch of one rank.
    pub batch: u64,
    /// Who gets which places.
    pub sharding: Sharding,
    /// What becomes of places that do not come out even.
    pub remainder: Remainder,
    /// What becomes of samples that do not fill a batch.
    pub last_batch: LastBatch,
}

/// What the ranks read in an epoch, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochTally {
    /// Samples in all batches.
    pub read: u64,
    /// Of those, how many were read before in the same epoch.
    pub repeated: u64,
    /// Samples that are in no batch.
    pub left_out: u64,
}

/// Every `step`-th file of an epoch, from the place `first` on: those of a rank, or of one of its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRow {
    first: u64,
    step: u64,
}

impl FileRow {
    /// The place in the epoch of file `number` of the row.
    pub(crate) fn place(&self, number: u64) -> u64 {
        self.first + number * self.step
    }

    /// The samples of the row's files in an epoch of these files.
    pub(crate) fn index(&self, all: &SampleIndex) -> SampleIndex {
        let files = all.files().saturating_sub(self.first).div_ceil(self.step);
        match all {
            SampleIndex::Uniform(space) => {
                SampleIndex::Uniform(SampleSpace { files, per_file: space.per_file })
            }
            SampleIndex::Counted(_) => SampleIndex::from_counts(
                (0..files).map(|number| all.samples_of(self.place(number))),
            ),
        }
    }

    /// The row's n-th of `rows` parts, to which its files are dealt in turn.
    pub(crate) fn part(&self, n: u64, rows: u64) -> Self {
        Self { first: self.place(n), step: self.step * rows }
    }

    /// The samples of all files of the row.
    fn samples(&self, all: &SampleIndex) -> u64 {
        self.index(all).len()
    }
}

impl Dealing {
    /// The same rules for an epoch in this order. Where files are dealt that have different numbers of
    /// samples, it depends on their order how many samples, batches and steps there are.
    pub fn in_order(&self, order: &EpochOrder) -> Self {
        Self { index: order.places().clone(), ..self.clone() }
    }

    /// Samples that are dealt to a rank.
    pub fn samples(&self, rank: u64) -> u64 {
        let (all, ranks) = (self.index.len(), self.ranks);
        match self.sharding {
            Sharding::Strided | Sharding::Blocked => match self.remainder {
                Remainder::Pad => all.div_ceil(ranks),
                Remainder::Cut => all / ranks,
            },
            Sharding::WholeSteps => all / (ranks * self.batch) * self.batch,
            Sharding::Files | Sharding::WorkerFiles { .. } => {
                FileRow { first: rank, step: ranks }.samples(&self.index)
            }
            Sharding::Records => all.saturating_sub(rank).div_ceil(ranks),
        }
    }

    /// Batches that a rank can make of its samples.
    pub fn batches(&self, rank: u64) -> u64 {
        match self.worker_batches(rank) {
            Some(turns) => turns.total(),
            None => self.cut(self.samples(rank)),
        }
    }

    /// Steps of an epoch: every rank has a part in each of them, so the rank with the fewest batches
    /// decides. If all files have the same number of samples, that is the last one.
    pub fn steps(&self) -> u64 {
        let last = self.ranks - 1;
        match self.index {
            SampleIndex::Uniform(_) => self.batches(last),
            SampleIndex::Counted(_) => {
                (0..=last).map(|rank| self.batches(rank)).min().unwrap_or_default()
            }
        }
    }

    /// Samples in the first `batches` batches of a rank.
    pub fn read(&self, rank: u64, batches: u64) -> u64 {
        match (self.worker_batches(rank), self.sharding) {
            (Some(turns), Sharding::WorkerFiles { workers }) => {
                let most = |worker| self.worker_samples(rank, worker);
                let taken = |worker| turns.taken(worker, batches) * self.batch;
                (0..workers).map(|worker| taken(worker).min(most(worker))).sum()
            }
            _ => (batches * self.batch).min(self.samples(rank)),
        }
    }

    /// What all ranks read in an epoch of `steps` steps.
    pub fn tally(&self, steps: u64) -> EpochTally {
        let all = self.index.len();
        let read = (0..self.ranks).map(|rank| self.read(rank, steps)).sum();
        let distinct = match self.sharding {
            Sharding::Strided => all.min(read),
            Sharding::Blocked => self.distinct_of_blocks(self.read(0, steps)),
            _ => read,
        };
        EpochTally { read, repeated: read - distinct, left_out: all - distinct }
    }

    /// The place of a rank's n-th sample, where places are dealt.
    pub fn place(&self, rank: u64, n: u64) -> u64 {
        let place = match self.sharding {
            Sharding::Strided => n * self.ranks + rank,
            _ => rank * self.samples(rank) + n,
        };
        place % self.index.len()
    }

    /// The files of a rank, or of one of its workers, where files are dealt.
    pub(crate) fn row(&self, rank: u64, worker: u64) -> FileRow {
        let row = FileRow { first: rank, step: self.ranks };
        match self.sharding {
            Sharding::WorkerFiles { workers } => row.part(worker, workers),
            Sharding::Records => FileRow { first: 0, step: 1 },
            _ => row,
        }
    }

    /// How the batches of a rank's workers follow on one another, if each makes its own.
    pub(crate) fn worker_batches(&self, rank: u64) -> Option<Turns> {
        let Sharding::WorkerFiles { workers } = self.sharding else { return None };
        let batches = |worker| self.cut(self.worker_samples(rank, worker));
        Some(Turns::new((0..workers).map(batches).collect()))
    }

    /// Samples in the files of one worker.
    pub(crate) fn worker_samples(&self, rank: u64, worker: u64) -> u64 {
        match self.sharding {
            Sharding::WorkerFiles { .. } => self.row(rank, worker).samples(&self.index),
            _ => self.samples(rank),
        }
    }

    /// Batches that `samples` samples fill, with or without a short last one.
    fn cut(&self, samples: u64) -> u64 {
        match self.last_batch {
            LastBatch::Keep => samples.div_ceil(self.batch),
            LastBatch::Drop => samples / self.batch,
        }
    }

    /// Distinct places at the beginning of all blocks, `each` of every block. Blocks that reach beyond
    /// the last place go on at the first one.
    fn distinct_of_blocks(&self, each: u64) -> u64 {
        let (all, block) = (self.index.len(), self.samples(0));
        if each == 0 || block == 0 {
            return 0;
        }
        let dealt = self.ranks * block;
        if each == block {
            return all.min(dealt);
        }
        let within = |end: u64| end / block * each + (end % block).min(each);
        let again = (all..dealt).filter(|place| place % block < each);
        within(all.min(dealt)) + again.filter(|place| (place - all) % block >= each).count() as u64
    }
}
