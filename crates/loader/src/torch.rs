//! PyTorch's `DataLoader`, reproduced: batch k goes to worker k mod W, W x ceil(prefetch / W)
//! batches are outstanding, delivery is in order, every epoch starts cold.
//!
//! Workers are threads. Without workers the consumer reads, one sample after the other, when it asks
//! for a batch. tf.data over a generator a thread (what DLIO makes of formats other than TFRecord) is
//! the same machine with another deal: each thread walks through a block of its own. Memory is bounded
//! by the outstanding batches' bookkeeping and one buffer a worker: the bytes of a sample are read,
//! checked and dropped, as the readers that this emulates do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use feedline_clock::{Clock, Monitor};
use feedline_store::{Meter, Spent};

use crate::batch::{Batches, Delivered, Wait};
use crate::data_set::{DataSet, LoadError, Preprocess};
use crate::share::EpochShare;
use crate::spans::Turn;
use crate::watched::Watched;
use crate::worker::{self, Batch, Places, Worker};

/// Batches that PyTorch lets a worker prefetch when the workload does not say.
const DEFAULT_PREFETCH_FACTOR: u64 = 2;

/// What the workload says about the loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchConfig {
    /// Worker threads; 0 reads in the consumer.
    pub workers: u32,
    /// Batches to have in flight, rounded up to a multiple of the workers; 0 means two a worker.
    pub prefetch: u64,
    /// Samples in a batch.
    pub batch: u64,
    /// Which batches a worker reads.
    pub deal: Deal,
}

/// Which batches a worker reads. Batch k is always worker k mod W's; the deal says what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// The samples behind those of batch k - 1, as PyTorch deals.
    InTurn,
    /// The samples behind those of the same worker's last batch, as tf.data deals: every worker has
    /// a block of the epoch to itself.
    InBlocks,
}

impl Deal {
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
            (_, prefetch, Deal::InBlocks) => workers + prefetch,
            (_, 0, Deal::InTurn) => workers * DEFAULT_PREFETCH_FACTOR,
            (_, prefetch, Deal::InTurn) => workers * prefetch.div_ceil(workers),
        }
    }
}

/// A loader that lives as long as the run; its workers' buffers are reused in every epoch.
pub struct TorchLoader {
    config: TorchConfig,
    clock: Clock,
    workers: Vec<Worker>,
}

impl TorchLoader {
    /// A loader over `data`. `preprocess` is asked once for every worker (its number is passed).
    pub fn new(
        clock: &Clock,
        data: &DataSet,
        config: TorchConfig,
        mut preprocess: impl FnMut(u32) -> Preprocess,
    ) -> Self {
        let workers = (0..config.workers.max(1))
            .map(|number| Worker::new(clock, data.clone(), preprocess(number)))
            .collect();
        Self { config, clock: clock.clone(), workers }
    }

    /// Starts an epoch, hands its batches to `consume`, and stops the workers when that returns.
    pub fn epoch<R>(
        &mut self,
        share: EpochShare<'_>,
        consume: impl FnOnce(&mut dyn Batches) -> R,
    ) -> R {
        let dealt = Dealt { share, config: self.config };
        if self.config.workers == 0 {
            let source = Supply::Inline { worker: &mut self.workers[0], dealt };
            let result = consume(&mut TorchBatches { clock: &self.clock, next: 0, source, share });
            self.workers[0].end_epoch();
            return result;
        }
        let watched: Vec<_> = self.workers.iter().map(|w| Watched::new(w.progress())).collect();
        let queue = Monitor::new(&self.clock, Queue::new(self.config.outstanding()));
        let result = self.clock.scope(|scope| {
            let count = self.workers.len();
            // Made before the first worker: whatever happens from here on closes the queue.
            let source = Supply::Workers { queue: &queue, workers: &watched };
            let mut batches = TorchBatches { clock: &self.clock, next: 0, source, share };
            for (number, worker) in self.workers.iter_mut().enumerate() {
                let queue = &queue;
                let mine = (number as u64..share.batches).step_by(count);
                let started = scope.spawn(format!("reader {number}"), move || {
                    worker.read_batches(queue, dealt, mine);
                });
                if let Err(source) = started {
                    let error = LoadError::NoThread { reader: number, source };
                    queue.update(|queue| queue.put(number as u64, Err(error)));
                    break;
                }
            }
            consume(&mut batches)
        });
        self.workers.iter_mut().for_each(Worker::end_epoch);
        result
    }

    /// What the workers asked of the store since the loader was made.
    pub fn meter(&mut self) -> Meter {
        worker::meter_of(&mut self.workers)
    }
}

/// An epoch's share and how its batches are dealt.
#[derive(Clone, Copy)]
struct Dealt<'a> {
    share: EpochShare<'a>,
    config: TorchConfig,
}

impl<'a> Dealt<'a> {
    fn turn(&self, k: u64) -> Turn {
        let per_file = self.share.order.space().per_file;
        Turn { epoch: self.share.epoch, batch: k, is_settled: true, per_file }
    }

    fn places(&self, k: u64) -> Places<'a> {
        let (batch, workers) = (self.config.batch, u64::from(self.config.workers.max(1)));
        let position = self.config.deal.position(k, self.share.batches, workers);
        let first = self.share.first_place + position * batch;
        Places { order: self.share.order, first, count: batch }
    }
}

/// The batches of one epoch, in order.
struct TorchBatches<'a, 'env> {
    clock: &'a Clock,
    next: u64,
    source: Supply<'a, 'env>,
    share: EpochShare<'env>,
}

enum Supply<'a, 'env> {
    Inline { worker: &'a mut Worker, dealt: Dealt<'env> },
    Workers { queue: &'a Monitor<Queue>, workers: &'a [Watched] },
}

impl Batches for TorchBatches<'_, '_> {
    fn next_batch(&mut self) -> Result<Option<Delivered>, LoadError> {
        if self.next >= self.share.batches {
            return Ok(None);
        }
        let k = self.next;
        self.next += 1;
        let begin = self.clock.now();
        match &mut self.source {
            Supply::Inline { worker, dealt } => {
                let read = worker.read_batch(dealt.turn(k), dealt.places(k))?;
                let total_ns = self.clock.now() - begin;
                Ok(Some(read.deliver(Wait::split(total_ns, read.storage_ns, read.busy_ns))))
            }
            Supply::Workers { queue, workers } => {
                // What the worker did before the consumer came is not part of the wait.
                let spent = spent_on(workers, k, begin);
                let (read, later) = queue.wait_for(|queue| queue.take(k));
                let end = self.clock.now();
                queue.update(|queue| queue.taken += 1);
                let read = read?;
                let behind = later.map_or(0, |ready| end.saturating_sub(ready.max(begin)));
                let wait = if read.ready_ns <= begin {
                    Wait::split(end - begin, 0, 0)
                } else {
                    let storage_ns = read.storage_ns.saturating_sub(spent.storage_ns);
                    let busy_ns = read.busy_ns.saturating_sub(spent.busy_ns);
                    Wait::split(end - begin, storage_ns, busy_ns)
                };
                Ok(Some(read.deliver(Wait { behind_ns: behind.min(end - begin), ..wait })))
            }
        }
    }
}

impl Worker {
    /// Reads its batches as the queue lets it, until the last, a failure or the queue's end.
    fn read_batches(
        &mut self,
        queue: &Monitor<Queue>,
        dealt: Dealt<'_>,
        batches: impl Iterator<Item = u64>,
    ) {
        for k in batches {
            if !queue.wait_for(|queue| queue.may_start(k)) {
                return;
            }
            // A panic must reach the consumer, which would wait for ever otherwise.
            let (turn, places) = (dealt.turn(k), dealt.places(k));
            let finished = catch_unwind(AssertUnwindSafe(|| self.read_batch(turn, places)))
                .unwrap_or(Err(LoadError::Panicked { batch: k }));
            let failed = finished.is_err();
            queue.update(|queue| queue.put(k, finished));
            if failed {
                return;
            }
        }
    }
}

/// What batch `k` has cost its worker up to `now`; nothing if it is not the one at work.
fn spent_on(workers: &[Watched], k: u64, now: u64) -> Spent {
    let count = workers.len() as u64;
    let worker = &workers[(k % count) as usize];
    let spent = worker.snapshot(now);
    if spent.batch_no == k / count + 1 { spent } else { Spent::default() }
}

impl Drop for TorchBatches<'_, '_> {
    fn drop(&mut self) {
        if let Supply::Workers { queue, .. } = &self.source {
            queue.update(|queue| queue.closed = true);
        }
    }
}

/// Batches that workers have finished and the consumer has not taken.
struct Queue {
    taken: u64,
    closed: bool,
    slots: Vec<Option<Result<Batch, LoadError>>>,
}

impl Queue {
    fn new(outstanding: u64) -> Self {
        Self { taken: 0, closed: false, slots: (0..outstanding).map(|_| None).collect() }
    }

    fn slot(&self, k: u64) -> usize {
        (k % self.slots.len() as u64) as usize
    }

    /// Whether a worker may begin batch `k`: yes, not any more, or not yet.
    fn may_start(&self, k: u64) -> Option<bool> {
        if self.closed {
            return Some(false);
        }
        (k < self.taken + self.slots.len() as u64).then_some(true)
    }

    fn put(&mut self, k: u64, batch: Result<Batch, LoadError>) {
        let slot = self.slot(k);
        self.slots[slot] = Some(batch);
    }

    /// Batch `k` if it is ready, and since when the first batch after it has been.
    fn take(&mut self, k: u64) -> Option<(Result<Batch, LoadError>, Option<u64>)> {
        let slot = self.slot(k);
        let batch = self.slots[slot].take()?;
        let later = self.slots.iter().flatten().flatten().map(|other| other.ready_ns).min();
        Some((batch, later))
    }
}
