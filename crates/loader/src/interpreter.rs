//! The framework's own part of a reader's work, burnt on the reader's thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::Clock;
use feedline_recorder::Site;
use feedline_store::BatchTimer;

use crate::cost::{FrameworkCost, Gauge, Held, Often};
use crate::spans::{HAND_OVER, INTERPRETER, START, Turn, batch_tags};

/// The part that a reader plays in its loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// In the consumer's own thread: a batch is put together and not handed over.
    Consumer,
    /// A worker that hands over whole batches.
    BatchWorker,
    /// A reader of consecutive samples, `batch` of which form a batch.
    SampleReader { batch: u64 },
}

/// The framework in one reader; it costs nothing if it has no cost.
pub(crate) struct Interpreter {
    clock: Clock,
    cost: Option<Arc<FrameworkCost>>,
    role: Role,
    stop: Arc<AtomicBool>,
    progress: Arc<BatchTimer>,
    gauge: Arc<Gauge>,
    is_starting: bool,
}

impl Interpreter {
    pub(crate) fn new(
        clock: &Clock,
        stop: &Arc<AtomicBool>,
        role: Role,
        progress: Arc<BatchTimer>,
    ) -> Self {
        Self {
            clock: clock.clone(),
            cost: None,
            role,
            stop: Arc::clone(stop),
            progress,
            gauge: Arc::default(),
            is_starting: false,
        }
    }

    /// Burns `cost` from now on.
    pub(crate) fn set_cost(&mut self, cost: &Arc<FrameworkCost>) {
        self.cost = Some(Arc::clone(cost));
    }

    /// Counts the memory of batches in `gauge`.
    pub(crate) fn gauge_with(&mut self, gauge: &Arc<Gauge>) {
        self.gauge = Arc::clone(gauge);
    }

    /// The worker's process is new: its next batch waits for it to get going.
    pub(crate) fn restart(&mut self) {
        self.is_starting = true;
    }

    /// A batch begins.
    pub(crate) fn begin(&mut self, turn: Turn) {
        if std::mem::take(&mut self.is_starting)
            && let Some(cost) = &self.cost
        {
            self.burn(&START, turn, cost.start.worker_ns, || ());
        }
    }

    /// Burns the cost of a sample of `bytes` bytes that was just read.
    pub(crate) fn sample(&self, turn: Turn, bytes: u64) {
        let Some(cost) = &self.cost else { return };
        self.burn(&INTERPRETER, turn, cost.sample.at(bytes), || ());
        if let Role::SampleReader { batch } = self.role {
            // Its share of a batch of such samples.
            let whole = cost.batch_bytes(batch, bytes.saturating_mul(batch));
            self.burn(&HAND_OVER, turn, cost.hand_over.worker.at(whole) / batch.max(1), || ());
        }
    }

    /// Says how many samples of a reader of samples make a batch from now on.
    pub(crate) fn set_batch(&mut self, samples: u64) {
        if let Role::SampleReader { batch } = &mut self.role {
            *batch = samples;
        }
    }

    /// All samples of a batch were read: the memory that it holds until the consumer drops it.
    pub(crate) fn end(&self, turn: Turn, samples: u64, sample_bytes: u64) -> Option<Held> {
        let cost = self.cost.as_ref()?;
        let bytes = cost.batch_bytes(samples, sample_bytes);
        match self.role {
            Role::SampleReader { .. } => None,
            Role::Consumer => {
                self.burn(&HAND_OVER, turn, cost.hand_over.collate.at(bytes), || ());
                None
            }
            Role::BatchWorker if cost.hand_over.is_nothing() => None,
            Role::BatchWorker => {
                let hold = || Some(Held::new(bytes, &self.gauge));
                self.burn(&HAND_OVER, turn, cost.hand_over.worker.at(bytes), hold)
            }
        }
    }

    /// Burns CPU time, of which `work` is a part.
    fn burn<T>(&self, site: &'static Site, turn: Turn, cpu_ns: u64, work: impl FnOnce() -> T) -> T {
        if cpu_ns == 0 {
            return work();
        }
        let mut span = site.begin();
        span.tag(turn.tags());
        self.progress.enter_framework(self.clock.now());
        let mark = self.clock.cpu_mark();
        let done = work();
        self.clock.burn(mark, cpu_ns, &self.stop);
        self.progress.leave_framework(self.clock.now());
        done
    }
}

/// The framework on the consumer's side of a loader.
pub(crate) struct Receiver {
    clock: Clock,
    cost: Option<Arc<FrameworkCost>>,
    stop: Arc<AtomicBool>,
    /// The batch that the consumer has, which it drops when it has the next.
    held: Option<Held>,
    has_started: bool,
}

impl Receiver {
    pub(crate) fn new(clock: &Clock, stop: &Arc<AtomicBool>) -> Self {
        let (clock, stop) = (clock.clone(), Arc::clone(stop));
        Self { clock, cost: None, stop, held: None, has_started: false }
    }

    /// Burns `cost` from now on.
    pub(crate) fn set_cost(&mut self, cost: &Arc<FrameworkCost>) {
        self.cost = Some(Arc::clone(cost));
    }

    /// An epoch begins: whether its workers must be started, when the consumer first asks.
    pub(crate) fn begin_epoch(&mut self) -> bool {
        let Some(cost) = self.cost.as_ref().filter(|cost| !cost.start.is_nothing()) else {
            return false;
        };
        !std::mem::replace(&mut self.has_started, true) || cost.start.often == Often::EachEpoch
    }

    /// An epoch is over, and its last batch is dropped.
    pub(crate) fn end_epoch(&mut self) {
        self.held = None;
    }

    /// Starts `workers` workers; the time that it took.
    pub(crate) fn start(&self, epoch: u32, workers: u64) -> u64 {
        let each_ns = self.cost.as_ref().map_or(0, |cost| cost.start.consumer_ns);
        self.burn(&START, (epoch, 0), workers * each_ns, || ())
    }

    /// Receives batch number `batch` with its samples and bytes, and drops the previous one;
    /// the time that it took.
    pub(crate) fn receive(
        &mut self,
        (epoch, batch): (u32, u64),
        (samples, sample_bytes): (u64, u64),
        held: Option<Held>,
    ) -> u64 {
        let cpu_ns = self
            .cost
            .as_ref()
            .map_or(0, |cost| cost.hand_over.consumer.at(cost.batch_bytes(samples, sample_bytes)));
        let before = std::mem::replace(&mut self.held, held);
        self.burn(&HAND_OVER, (epoch, batch), cpu_ns, || drop(before))
    }

    /// Burns CPU time, of which `work` is a part; the time that it took.
    fn burn(
        &self,
        site: &'static Site,
        (epoch, batch): (u32, u64),
        cpu_ns: u64,
        work: impl FnOnce(),
    ) -> u64 {
        if cpu_ns == 0 {
            work();
            return 0;
        }
        let mut span = site.begin();
        span.tag(batch_tags(epoch, batch));
        let begin = self.clock.now();
        let mark = self.clock.cpu_mark();
        work();
        self.clock.burn(mark, cpu_ns, &self.stop);
        self.clock.now() - begin
    }
}
