//! PyTorch's `DataLoader`, reproduced: batch k goes to worker k mod W, W x ceil(prefetch / W)
//! batches are outstanding, delivery is in order, every epoch starts cold.
//!
//! Workers that stream files of their own (an `IterableDataset`, as WebDataset is one) make batches of
//! their own; they take turns, and when one has ended the others go on. A shuffle buffer is then the
//! worker's. Workers are threads. Without workers the consumer reads, one sample after the other, when it asks
//! for a batch. tf.data over a generator a thread (what DLIO makes of formats other than TFRecord) is
//! the same machine with another deal: each thread walks through a block of its own. Memory is bounded
//! by the outstanding batches' bookkeeping and one buffer a worker: the bytes of a sample are read,
//! checked and dropped, as the readers that this emulates do.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use feedline_clock::{Clock, Monitor};
use feedline_dataset::{DataSet, SampleId, SampleIndex, ShuffleBuffer};
use feedline_store::{BatchTimes, Meter};

use crate::Sharding;
use crate::batch::{Batches, Delivered, Wait};
use crate::cost::{FrameworkCost, Gauge};
use crate::dealing::FileRow;
use crate::epoch::Epoch;
use crate::error::{LoadError, Result};
use crate::interpreter::{Receiver, Role};
use crate::readers::{LentReaders, Readers};
use crate::share::EpochShare;
use crate::spans::Turn;
use crate::turns::Turns;
use crate::watched::Watched;
use crate::worker::{Batch, Preprocess, Worker};

/// Batches that PyTorch lets a worker prefetch when the workload does not say.
const DEFAULT_PREFETCH_FACTOR: u64 = 2;

/// What the workload says about the loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchConfig {
    /// Worker threads; 0 reads in the consumer.
    pub workers: u32,
    /// Batches to have in flight, rounded up to a multiple of the workers; 0 means two a worker.
    pub prefetch: u64,
    /// Which batches a worker reads.
    pub deal: BatchAssignment,
    /// Samples in the shuffle buffer of each worker, if it streams files.
    pub shuffle: Option<u64>,
}

/// Which batches a worker reads. Batch k is worker k mod W's; the deal says what is in it. Workers that
/// stream files of their own read those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchAssignment {
    /// The samples behind those of batch k - 1, as PyTorch deals.
    InTurn,
    /// The samples behind those of the same worker's last batch, as tf.data deals: every worker has
    /// a block of the epoch to itself.
    InBlocks,
}

impl BatchAssignment {
    /// Where in the share the samples of batch `k` stand, counted in batches.
    fn position(self, k: u64, batches: u64, workers: u64) -> u64 {
        match self {
            Self::InTurn => k,
            Self::InBlocks => {
                let (worker, turn) = (k % workers, k / workers);
                let (each, more) = (batches / workers, batches % workers);
                worker * each + worker.min(more) + turn
            }
        }
    }
}

impl TorchConfig {
    /// Batches that may be in flight or ready at any time.
    pub fn outstanding(&self) -> u64 {
        let workers = u64::from(self.workers);
        match (workers, self.prefetch, self.deal) {
            (0, ..) => 0,
            // Each generator has a batch under way, and the prefetch stands behind them.
            (_, prefetch, BatchAssignment::InBlocks) => workers + prefetch,
            (_, 0, BatchAssignment::InTurn) => workers * DEFAULT_PREFETCH_FACTOR,
            (_, prefetch, BatchAssignment::InTurn) => workers * prefetch.div_ceil(workers),
        }
    }
}

/// A loader that lives as long as the run; its workers' buffers are reused in every epoch.
pub struct TorchLoader {
    config: TorchConfig,
    clock: Clock,
    readers: Arc<Readers>,
    gauge: Arc<Gauge>,
}

impl TorchLoader {
    /// A loader over `data`. `preprocess` is asked once for every worker (its number is passed).
    pub fn new(
        clock: &Clock,
        data: &DataSet,
        config: TorchConfig,
        mut preprocess: impl FnMut(u32) -> Preprocess,
    ) -> Self {
        let role = if config.workers == 0 { Role::Consumer } else { Role::BatchWorker };
        let gauge = Arc::default();
        let mut workers: Vec<_> = (0..config.workers.max(1))
            .map(|number| Worker::new(clock, data.clone(), role, preprocess(number)))
            .collect();
        workers.iter_mut().for_each(|worker| worker.gauge_with(&gauge));
        let readers = Readers::new(workers, Vec::new(), Receiver::new(clock, &data.stop));
        Self { config, clock: clock.clone(), readers, gauge }
    }

    /// Burns what the framework costs, too.
    pub fn with_cost(self, cost: &Arc<FrameworkCost>) -> Self {
        self.readers.set_cost(cost);
        self
    }

    /// Starts an epoch. The one before must have been dropped: its workers are this one's, too.
    pub fn epoch(&mut self, share: EpochShare) -> Epoch {
        let Some(readers) = LentReaders::take(&self.readers) else {
            return Epoch::refused(LoadError::EpochRunning);
        };
        let (clock, dealt) = (self.clock.clone(), Dealt::new(share.in_order(), self.config));
        if self.config.workers == 0 {
            let source = Supply::Inline { held: Held::new(&dealt, 0) };
            return Epoch::new(TorchEpoch { clock, next: 0, source, dealt, readers });
        }
        let watched = readers.workers().map(|worker| Watched::new(worker.progress())).collect();
        let must_start = readers.receiver().begin_epoch();
        if must_start {
            readers.workers().for_each(|mut worker| worker.restart());
        }
        let queue = Queue { is_open: !must_start, ..Queue::new(self.config.outstanding()) };
        let queue = Arc::new(Monitor::new(&clock, queue));
        // Made before the first worker: whatever happens from here on closes the queue.
        let source = Supply::Workers { queue: Arc::clone(&queue), watched };
        let mut epoch = TorchEpoch { clock, next: 0, source, dealt, readers };
        epoch.start_workers(&queue);
        Epoch::new(epoch)
    }

    /// The most bytes that finished batches held in memory, where that is emulated.
    pub fn held_bytes_max(&self) -> u64 {
        self.gauge.most()
    }

    /// What the workers asked of the store since the loader was made; `None` while an epoch has them.
    pub fn meter(&mut self) -> Option<Meter> {
        self.readers.meter()
    }
}

/// An epoch's share and how its batches are dealt.
#[derive(Clone)]
struct Dealt {
    share: EpochShare,
    config: TorchConfig,
    /// How the batches of workers that make their own follow on one another.
    turns: Option<Arc<Turns>>,
    /// The files of each of these workers, and their samples.
    rows: Arc<[(FileRow, SampleIndex)]>,
}

impl Dealt {
    fn new(share: EpochShare, config: TorchConfig) -> Self {
        let (dealing, rank) = (&share.dealing, share.rank);
        let workers = match dealing.sharding {
            Sharding::WorkerFiles { workers } => workers,
            _ => 0,
        };
        let row = |worker| {
            let row = dealing.row(rank, worker);
            (row, row.index(&dealing.index))
        };
        let rows = (0..workers).map(row).collect();
        let turns = dealing.worker_batches(rank).map(Arc::new);
        Self { share, config, turns, rows }
    }

    fn workers(&self) -> u64 {
        u64::from(self.config.workers.max(1))
    }

    /// Who reads batch `k`, and how many it has read before.
    fn owner(&self, k: u64) -> (u64, u64) {
        match &self.turns {
            Some(turns) => turns.at(k),
            None => (k % self.workers(), k / self.workers()),
        }
    }

    /// The batches of one worker, in order.
    fn batches_of(&self, worker: u64) -> impl Iterator<Item = u64> + use<> {
        let (batches, workers) = (self.share.batches, self.workers());
        let turns = self.turns.clone();
        let number = move |turn: u64| match &turns {
            Some(turns) => (turn < turns.len(worker)).then(|| turns.number(worker, turn)),
            None => Some(turn * workers + worker),
        };
        (0..).map_while(number).take_while(move |&k| k < batches)
    }

    fn turn(&self, k: u64) -> Turn<'_> {
        let is_settled = self.config.shuffle.is_none();
        Turn { epoch: self.share.epoch, batch: k, is_settled, index: self.share.order.index() }
    }

    /// Which samples of its worker, or of the whole rank, batch `k` consists of.
    fn numbers(&self, k: u64) -> Range<u64> {
        let (dealing, rank) = (&self.share.dealing, self.share.rank);
        let (position, samples) = match &self.turns {
            Some(turns) => {
                let (worker, turn) = turns.at(k);
                (turn, self.rows[worker as usize].1.len())
            }
            None => {
                let deal = self.config.deal;
                (deal.position(k, self.share.batches, self.workers()), dealing.samples(rank))
            }
        };
        let first = position * dealing.batch;
        first..(first + dealing.batch).min(samples)
    }

    fn sample(&self, worker: u64, n: u64) -> SampleId {
        match self.rows.get(worker as usize) {
            Some((row, index)) => self.share.record(*row, index.sample(n)),
            None => self.share.sample(n),
        }
    }

    /// Reads batch `k` on its worker, which holds back what a shuffle buffer holds back.
    fn read(&self, worker: &mut Worker, held: &mut Option<Held>, k: u64) -> Result<Batch> {
        let ((owner, _), numbers) = (self.owner(k), self.numbers(k));
        let wanted = numbers.end - numbers.start;
        let read = held.as_ref().map_or(numbers.clone(), |held| held.to_read(&numbers));
        let count = read.end - read.start;
        let batch = worker.read_batch(self.turn(k), count, read.map(|n| self.sample(owner, n)))?;
        Ok(match held {
            None => batch,
            Some(held) => {
                Batch { samples: wanted, sample_bytes: held.pass(worker.sizes(), wanted), ..batch }
            }
        })
    }
}

/// What a worker that streams files holds back to shuffle it.
struct Held {
    sizes: ShuffleBuffer<u64>,
    /// Samples that the buffer keeps while there are more to read.
    kept: u64,
    /// Samples that were read so far, and all of the worker.
    read: u64,
    all: u64,
}

impl Held {
    /// Of `worker`, if there is a buffer.
    fn new(dealt: &Dealt, worker: u64) -> Option<Self> {
        let (share, size) = (&dealt.share, dealt.config.shuffle?);
        let seed = share.seed.wrapping_add(share.rank * dealt.workers() + worker);
        Some(Self {
            sizes: ShuffleBuffer::new(size as usize, seed),
            kept: size.max(1) - 1,
            read: 0,
            all: share.dealing.worker_samples(share.rank, worker),
        })
    }

    /// What must be read before the buffer gives the samples out that go by these numbers.
    fn to_read(&self, given: &Range<u64>) -> Range<u64> {
        self.read..(given.end + self.kept).min(self.all)
    }

    /// Takes in samples of these sizes and gives `wanted` out; their bytes.
    fn pass(&mut self, sizes: &[u64], wanted: u64) -> u64 {
        self.read += sizes.len() as u64;
        let mut given: Vec<u64> = sizes.iter().filter_map(|&size| self.sizes.pass(size)).collect();
        while (given.len() as u64) < wanted {
            given.extend(self.sizes.drain_one());
        }
        given.iter().sum()
    }
}

/// An epoch whose batches are dealt to workers. Dropping it closes the queue first: only then do the
/// threads end for which dropping `readers` waits.
struct TorchEpoch {
    clock: Clock,
    next: u64,
    source: Supply,
    dealt: Dealt,
    readers: LentReaders,
}

enum Supply {
    /// The consumer reads.
    Inline { held: Option<Held> },
    /// Worker threads read.
    Workers { queue: Arc<Monitor<Queue>>, watched: Vec<Watched> },
}

impl TorchEpoch {
    fn start_workers(&mut self, queue: &Arc<Monitor<Queue>>) {
        for number in 0..self.readers.worker_count() {
            let (shared, dealt) = (Arc::clone(queue), self.dealt.clone());
            let started = self.readers.spawn(&self.clock, ("reader", number), move |readers| {
                readers.worker(number).read_batches(&shared, &dealt, number as u64);
            });
            if let Err(error) = started {
                return queue.update(|queue| queue.put(number as u64, Err(error)));
            }
        }
    }
}

impl Batches for TorchEpoch {
    fn next_batch(&mut self) -> Result<Option<Delivered>> {
        let share = &self.dealt.share;
        if self.next >= share.batches {
            return Ok(None);
        }
        let k = self.next;
        self.next += 1;
        let begin = self.clock.now();
        match &mut self.source {
            Supply::Inline { held } => {
                let read = self.dealt.read(&mut self.readers.worker(0), held, k)?;
                let total_ns = self.clock.now() - begin;
                Ok(Some(read.deliver(Wait::split(total_ns, read.spent))))
            }
            Supply::Workers { queue, watched } => {
                let mut receiver = self.readers.receiver();
                let mut framework_ns = 0;
                if queue.with(|queue| !queue.is_open) {
                    framework_ns = receiver.start(share.epoch, watched.len() as u64);
                    queue.update(|queue| queue.is_open = true);
                }
                let begin = begin + framework_ns;
                // What the worker did before the consumer came is not part of the wait.
                let spent = spent_on(watched, self.dealt.owner(k), begin);
                let (read, later) = queue.wait_for(|queue| queue.take(k));
                let end = self.clock.now();
                let mut read = read?;
                let (place, size) = ((share.epoch, k), (read.samples, read.sample_bytes));
                framework_ns += receiver.receive(place, size, read.held.take());
                // Only now is a worker told to read another one.
                queue.update(|queue| queue.taken += 1);
                let behind = later.map_or(0, |ready| end.saturating_sub(ready.max(begin)));
                let work = match read.ready_ns <= begin {
                    true => BatchTimes::default(),
                    false => read.spent.since(&spent),
                };
                let mut wait = Wait::split(end - begin, work);
                wait.behind_ns = behind.min(end - begin);
                wait.framework_ns += framework_ns;
                Ok(Some(read.deliver(wait)))
            }
        }
    }
}

impl Worker {
    /// Reads its batches as the queue lets it, until the last, a failure or the queue's end.
    fn read_batches(&mut self, queue: &Monitor<Queue>, dealt: &Dealt, number: u64) {
        let mut held = Held::new(dealt, number);
        for k in dealt.batches_of(number) {
            if !queue.wait_for(|queue| queue.may_start(k)) {
                return;
            }
            // A panic must reach the consumer, which would wait for ever otherwise.
            let finished = catch_unwind(AssertUnwindSafe(|| dealt.read(self, &mut held, k)))
                .unwrap_or(Err(LoadError::Panicked { batch: k }));
            let failed = finished.is_err();
            queue.update(|queue| queue.put(k, finished));
            if failed {
                return;
            }
        }
    }
}

/// What its batch number `turn` has cost a worker up to `now`; nothing if it is not the one at work.
fn spent_on(workers: &[Watched], (worker, turn): (u64, u64), now: u64) -> BatchTimes {
    let spent = workers[worker as usize].snapshot(now);
    if spent.batch_no == turn + 1 { spent } else { BatchTimes::default() }
}

impl Drop for TorchEpoch {
    fn drop(&mut self) {
        if let Supply::Workers { queue, .. } = &self.source {
            queue.update(|queue| queue.closed = true);
        }
    }
}

/// Batches that workers have finished and the consumer has not taken.
struct Queue {
    taken: u64,
    /// Whether the workers have been started.
    is_open: bool,
    closed: bool,
    slots: Vec<Option<Result<Batch>>>,
}

impl Queue {
    fn new(outstanding: u64) -> Self {
        let slots = (0..outstanding).map(|_| None).collect();
        Self { taken: 0, is_open: true, closed: false, slots }
    }

    fn slot(&self, k: u64) -> usize {
        (k % self.slots.len() as u64) as usize
    }

    /// Whether a worker may begin batch `k`: yes, not any more, or not yet.
    fn may_start(&self, k: u64) -> Option<bool> {
        if self.closed {
            return Some(false);
        }
        (self.is_open && k < self.taken + self.slots.len() as u64).then_some(true)
    }

    fn put(&mut self, k: u64, batch: Result<Batch>) {
        let slot = self.slot(k);
        self.slots[slot] = Some(batch);
    }

    /// Batch `k` if it is ready, and since when the first batch after it has been.
    fn take(&mut self, k: u64) -> Option<(Result<Batch>, Option<u64>)> {
        let slot = self.slot(k);
        let batch = self.slots[slot].take()?;
        let later = self.slots.iter().flatten().flatten().map(|other| other.ready_ns).min();
        Some((batch, later))
    }
}
