//! Loaders that read samples in a row: tf.data over TFRecords and DALI's parallel callbacks, which
//! differ only in who reads which samples.
//!
//! W readers bring samples; one is taken from each in turn, goes through a shuffle buffer if there
//! is one, and B of them are a batch; a parse step works on up to C batches at a time; P batches wait
//! for the consumer. Every epoch starts cold. Memory is bounded: a reader holds one open file and the
//! sizes of a few samples, the shuffle buffer sizes only; bytes are read, checked and dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::{Clock, Monitor};
use feedline_dataset::{DataSet, SampleId, ShuffleBuffer};
use feedline_store::{BatchTimes, Meter};

use crate::Sharding;
use crate::batch::{Batches, Delivered};
use crate::cost::FrameworkCost;
use crate::epoch::Epoch;
use crate::error::{LoadError, Result};
use crate::interpreter::{Receiver, Role};
use crate::pipeline::{Limits, Pipeline, Wake};
use crate::readers::{LentReaders, Readers};
use crate::share::EpochShare;
use crate::spans::{PREPROCESS, Turn, batch_tags};
use crate::turns::Turns;
use crate::watched::Watched;
use crate::worker::{Preprocess, Worker};

/// Small samples are handed over together, until they have so many bytes or took so long.
const HAND_OVER_BYTES: u64 = 64 << 10;
const HAND_OVER_NS: u64 = 1_000_000;

/// What the workload says about the loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Reader threads, 1 or more.
    pub readers: u32,
    /// Batches in the parse step at a time.
    pub parsers: u32,
    /// Batches that wait for the consumer; with 0 a batch is put together when it is asked for.
    pub prefetch: u64,
    /// Samples in the shuffle buffer, if there is one.
    pub shuffle: Option<u64>,
    /// Who reads which samples.
    pub rows: ReaderSharding,
}

/// Who reads which samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderSharding {
    /// The rank's files are dealt to the readers in turn and read from front to back.
    ByFile,
    /// The places of the rank's share, one after the other, dealt to the readers in turn.
    BySample,
}

/// A loader that lives as long as the run; its readers' buffers are reused in every epoch.
pub struct StreamLoader {
    config: StreamConfig,
    clock: Clock,
    readers: Arc<Readers>,
    stop: Arc<AtomicBool>,
}

impl StreamLoader {
    /// A loader over `data`, whose files are read with `readers` and not kept longer than they are
    /// read. `preprocess` is asked once for every parser (its number is passed) when samples come
    /// from files, for every reader when they come from places, as the frameworks do; `None` says
    /// that there is no such work.
    pub fn new(
        clock: &Clock,
        data: &DataSet,
        config: StreamConfig,
        mut preprocess: impl FnMut(u32) -> Option<Preprocess>,
    ) -> Self {
        let mut data = data.clone();
        if config.rows == ReaderSharding::ByFile {
            // The file that a reader is at.
            data.reading.kept_files = data.reading.kept_files.max(1);
        }
        let own_work = config.rows == ReaderSharding::BySample;
        let readers = (0..config.readers)
            .map(|number| {
                let work = if own_work { preprocess(number) } else { None };
                let work = work.unwrap_or_else(|| Box::new(|| 0));
                // An epoch says how many samples make a batch.
                let role = Role::SampleReader { batch: 1 };
                Worker::new(clock, data.clone(), role, work)
            })
            .collect();
        let parsers = match own_work {
            true => Vec::new(),
            false => (0..config.parsers).map_while(preprocess).collect(),
        };
        let (receiver, stop) = (Receiver::new(clock, &data.stop), Arc::clone(&data.stop));
        let readers = Readers::new(readers, parsers, receiver);
        Self { config, clock: clock.clone(), readers, stop }
    }

    /// Burns what the framework costs, too.
    pub fn with_cost(self, cost: &Arc<FrameworkCost>) -> Self {
        self.readers.set_cost(cost);
        self
    }

    /// Starts an epoch. The one before must have been dropped: its readers are this one's, too.
    pub fn epoch(&mut self, share: EpochShare) -> Epoch {
        let Some(readers) = LentReaders::take(&self.readers) else {
            return Epoch::refused(LoadError::EpochRunning);
        };
        let share = share.in_order();
        let limits = Limits {
            readers: readers.worker_count(),
            batch: share.dealing.batch,
            samples: share.samples(),
            batches: share.batches,
            part: match share.dealing.sharding {
                Sharding::Records => Some((share.rank, share.dealing.ranks)),
                _ => None,
            },
            prefetch: self.config.prefetch,
            parsers: readers.parser_count() as u64,
            epoch: share.epoch,
        };
        // Records are dealt behind the buffer, so that it must do the same on every rank.
        let own = if limits.part.is_some() { 0 } else { share.rank };
        let seed = share.seed.wrapping_add(own);
        let shuffle = self.config.shuffle.map(|size| ShuffleBuffer::new(size as usize, seed));
        let watched = readers.workers().map(|reader| Watched::new(reader.progress())).collect();
        let mut pipeline = Pipeline::new(limits, shuffle);
        readers.workers().for_each(|mut reader| reader.set_batch(limits.batch));
        let must_start = readers.receiver().begin_epoch();
        if must_start {
            readers.workers().for_each(|mut reader| reader.restart());
            pipeline.hold_back();
        }
        let clock = self.clock.clone();
        let pipeline = Arc::new(Monitor::new(&clock, pipeline));
        // Made before the first reader: whatever happens from here on closes the pipeline.
        let mut epoch = StreamEpoch { clock, pipeline, watched, share, next: 0, readers };
        if let Err(error) = epoch.start(self.config, &self.stop) {
            epoch.pipeline.update(|pipeline| pipeline.fail(error));
        }
        Epoch::new(epoch)
    }

    /// What the readers asked of the store since the loader was made; `None` while an epoch has them.
    pub fn meter(&mut self) -> Option<Meter> {
        self.readers.meter()
    }
}

/// The samples of one reader.
#[derive(Clone)]
struct Row {
    rows: StreamConfig,
    share: EpochShare,
    reader: u64,
    readers: u64,
    /// How the samples of all readers follow on one another.
    turns: Arc<Turns>,
}

impl Row {
    /// What the reader reads, in order.
    fn samples(&self) -> Box<dyn Iterator<Item = SampleId>> {
        let share = self.share.clone();
        match self.rows.rows {
            ReaderSharding::BySample => {
                let step = self.readers as usize;
                let numbers = (self.reader..share.samples()).step_by(step);
                Box::new(numbers.map(move |n| share.sample(n)))
            }
            ReaderSharding::ByFile => {
                let row = share.dealing.row(share.rank, 0).part(self.reader, self.readers);
                let files = row.index(&share.dealing.index);
                let records = (0..files.len()).map(move |n| files.sample(n));
                Box::new(records.map(move |record| share.record(row, record)))
            }
        }
    }

    /// Where the reader is at its n-th sample. What goes through a shuffle buffer goes into a batch
    /// that is not known yet, and what other ranks take into none of this one.
    fn turn(&self, n: u64) -> Turn<'_> {
        let (dealing, rank) = (&self.share.dealing, self.share.rank);
        let number = match self.rows.rows {
            ReaderSharding::BySample => n * self.readers + self.reader,
            ReaderSharding::ByFile => self.turns.number(self.reader, n),
        };
        let (number, is_mine) = match dealing.sharding {
            Sharding::Records => (number / dealing.ranks, number % dealing.ranks == rank),
            _ => (number, true),
        };
        let batch = number / dealing.batch;
        let is_settled = is_mine && self.rows.shuffle.is_none() && batch < self.share.batches;
        Turn { epoch: self.share.epoch, batch, is_settled, index: self.share.order.index() }
    }
}

/// How the samples of a rank's readers follow on one another if its files are dealt to them.
fn interleave(share: &EpochShare, readers: u64) -> Turns {
    let row = share.dealing.row(share.rank, 0);
    let samples = |reader| row.part(reader, readers).index(&share.dealing.index).len();
    Turns::new((0..readers).map(samples).collect())
}

/// Reads a row as the pipeline lets it, until its end, a failure or the pipeline's end.
fn read_row(
    clock: &Clock,
    pipeline: &Monitor<Pipeline>,
    worker: &mut Worker,
    number: usize,
    row: &Row,
) {
    let mut samples = row.samples().enumerate().peekable();
    let mut block = Vec::new();
    while samples.peek().is_some() {
        let mut room = pipeline.wait_for(|pipeline| pipeline.room(number));
        if room == 0 {
            return;
        }
        let (mut cost, mut bytes) = (BatchTimes::default(), 0);
        block.clear();
        while room > 0 && bytes < HAND_OVER_BYTES && cost.busy_ns < HAND_OVER_NS {
            let Some((turn, sample)) = samples.next() else { break };
            let turn = row.turn(turn as u64);
            // A panic must reach the consumer, which would wait for ever otherwise.
            let read = catch_unwind(AssertUnwindSafe(|| worker.read_one(turn, sample)))
                .unwrap_or(Err(LoadError::Panicked { batch: turn.batch }));
            match read {
                Ok(read) => {
                    block.push(read.sample_bytes);
                    cost.batch_no += 1;
                    cost.extend(&read.spent);
                    bytes += read.sample_bytes.max(1);
                    room -= 1;
                }
                Err(error) => return pipeline.update(|pipeline| pipeline.fail(error)),
            }
        }
        let now = clock.now();
        if pipeline.with(|pipeline| pipeline.put(now, number, &block, cost)) == Wake::All {
            pipeline.update(|_| ());
        }
    }
    let now = clock.now();
    pipeline.update(|pipeline| pipeline.finish(now, number));
}

/// Works on batches as long as there are some.
fn parse(
    clock: &Clock,
    pipeline: &Monitor<Pipeline>,
    work: &mut Preprocess,
    (epoch, stop): (u32, &AtomicBool),
) {
    while let Some((number, samples)) = pipeline.wait_for(Pipeline::parse_next) {
        let pause = catch_unwind(AssertUnwindSafe(|| (0..samples).map(|_| work()).sum()));
        let Ok(pause_ns) = pause else {
            let error = LoadError::Panicked { batch: number };
            return pipeline.update(|pipeline| pipeline.fail(error));
        };
        if pause_ns > 0 {
            let mut span = PREPROCESS.begin();
            span.tag(batch_tags(epoch, number));
            clock.sleep_unless(pause_ns, stop);
        }
        let now = clock.now();
        pipeline.update(|pipeline| pipeline.parsed(now, number));
    }
}

/// An epoch whose batches are put together from samples in a row. Dropping it closes the pipeline
/// first: only then do the threads end for which dropping `readers` waits.
struct StreamEpoch {
    clock: Clock,
    pipeline: Arc<Monitor<Pipeline>>,
    watched: Vec<Watched>,
    share: EpochShare,
    next: u64,
    readers: LentReaders,
}

impl StreamEpoch {
    fn start(&mut self, rows: StreamConfig, stop: &Arc<AtomicBool>) -> Result<()> {
        let readers = self.readers.worker_count();
        let turns = Arc::new(interleave(&self.share, readers as u64));
        for number in 0..readers {
            let (clock, pipeline) = (self.clock.clone(), Arc::clone(&self.pipeline));
            let share = self.share.clone();
            let turns = Arc::clone(&turns);
            let row = Row { rows, share, reader: number as u64, readers: readers as u64, turns };
            self.readers.spawn(&self.clock, ("reader", number), move |readers| {
                read_row(&clock, &pipeline, &mut readers.worker(number), number, &row);
            })?;
        }
        for number in 0..self.readers.parser_count() {
            let (clock, pipeline) = (self.clock.clone(), Arc::clone(&self.pipeline));
            let (epoch, stop) = (self.share.epoch, Arc::clone(stop));
            self.readers.spawn(&self.clock, ("parser", number), move |readers| {
                parse(&clock, &pipeline, &mut readers.parser(number), (epoch, &stop));
            })?;
        }
        Ok(())
    }
}

impl Batches for StreamEpoch {
    fn next_batch(&mut self) -> Result<Option<Delivered>> {
        if self.next >= self.share.batches {
            return Ok(None);
        }
        let place = (self.share.epoch, self.next);
        self.next += 1;
        let mut framework_ns = 0;
        if self.pipeline.with(|pipeline| !pipeline.is_open()) {
            framework_ns = self.readers.receiver().start(place.0, self.watched.len() as u64);
            self.pipeline.update(Pipeline::open);
        }
        let begin = self.clock.now();
        let before: Vec<BatchTimes> = self.pipeline.update(|pipeline| {
            pipeline.ask(begin);
            let spent = |(number, reader)| up_to(begin, pipeline.spent(number), reader);
            self.watched.iter().enumerate().map(spent).collect()
        });
        let taken = self.pipeline.wait_for(|pipeline| {
            let now = self.clock.now();
            pipeline.take(begin, now, &before)
        });
        // Readers and parsers wait for the room that this has made.
        self.pipeline.update(|_| ());
        let mut taken = taken?;
        let size = (taken.samples, taken.sample_bytes);
        framework_ns += self.readers.receiver().receive(place, size, None);
        taken.wait.framework_ns += framework_ns;
        Ok(Some(taken))
    }
}

/// What a reader has spent in this epoch up to `now`: on samples that it has handed over, and on the
/// one that it is at. Small ones that it still holds back are not known yet.
fn up_to(now: u64, finished: BatchTimes, reader: &Watched) -> BatchTimes {
    let current = reader.snapshot(now);
    if current.batch_no <= finished.batch_no {
        return finished;
    }
    let mut all = finished;
    all.extend(&current);
    all
}

impl Drop for StreamEpoch {
    fn drop(&mut self) {
        self.pipeline.update(Pipeline::close);
    }
}
