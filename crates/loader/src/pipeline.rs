//! What happens to samples between their readers and the consumer of a streaming loader: an
//! interleave that takes one from each reader in turn, a shuffle buffer, a batch, a parse step, a
//! prefetch. Bookkeeping only: no bytes, no threads, no clock; a trace is told of every batch here.

use std::collections::VecDeque;

use feedline_dataset::ShuffleBuffer;
use feedline_recorder::Tags;
use feedline_store::BatchTimes;

use crate::batch::{Delivered, Wait};
use crate::spans::{BATCH, number};
use crate::{LoadError, Result};

/// Limits and sizes of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) readers: usize,
    /// Samples in a full batch.
    pub(crate) batch: u64,
    /// Samples of the epoch; the last batch may be short of some.
    pub(crate) samples: u64,
    /// Batches of the epoch.
    pub(crate) batches: u64,
    /// The part of the samples, the r-th of each R, that this rank takes; the others are dropped.
    pub(crate) part: Option<(u64, u64)>,
    /// Batches that wait for the consumer; with 0 a batch is put together when it is asked for.
    pub(crate) prefetch: u64,
    /// Batches in the parse step at a time; 0 means that there is no such step.
    pub(crate) parsers: u64,
    /// The epoch's number, for the trace.
    pub(crate) epoch: u32,
}

/// Whether a change concerns anybody who waits. Waking threads that go back to sleep costs more than
/// reading a small sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    All,
    Nobody,
}

/// The state that readers, parsers and the consumer share.
pub(crate) struct Pipeline {
    limits: Limits,
    readers: Vec<Reader>,
    /// Whose sample is next.
    turn: usize,
    shuffle: Option<ShuffleBuffer<u64>>,
    /// Samples that have come so far, those of other ranks included.
    came: u64,
    /// Samples and bytes of the batch that is being put together.
    samples: u64,
    bytes: u64,
    /// Batches put together and not taken.
    queue: VecDeque<Queued>,
    /// Batches that were put together so far.
    assembled: u64,
    /// Of those in the queue, how many a parser has taken.
    parsing: usize,
    asked: bool,
    /// Whether readers have been started.
    is_open: bool,
    closed: bool,
    error: Option<LoadError>,
}

/// The state of one reader.
#[derive(Default)]
struct Reader {
    /// Sizes in bytes of samples that were read and not yet taken.
    ready: VecDeque<u64>,
    finished: bool,
    /// What all its samples have cost it.
    spent: BatchTimes,
}

/// A batch on its way to the consumer.
struct Queued {
    samples: u64,
    bytes: u64,
    assembled_ns: u64,
    ready_ns: Option<u64>,
    /// The reader that brought the last sample, and what it had spent by then.
    last: (usize, BatchTimes),
}

impl Pipeline {
    pub(crate) fn new(limits: Limits, shuffle: Option<ShuffleBuffer<u64>>) -> Self {
        let readers = (0..limits.readers).map(|_| Reader::default()).collect();
        Self {
            limits,
            readers,
            turn: 0,
            shuffle,
            came: 0,
            samples: 0,
            bytes: 0,
            queue: VecDeque::new(),
            assembled: 0,
            parsing: 0,
            asked: false,
            is_open: true,
            closed: false,
            error: None,
        }
    }

    /// Samples that a reader may hold ready: a batch's worth of all readers, a few at least so that
    /// it reads on while its last one is taken, and not enough to run far ahead.
    fn held_max(&self) -> usize {
        (self.limits.batch / self.limits.readers as u64).clamp(2, 64) as usize
    }

    /// How many samples the reader may read now: some, none any more (0), or none yet.
    pub(crate) fn room(&self, reader: usize) -> Option<usize> {
        if self.closed || self.error.is_some() || self.assembled == self.limits.batches {
            return Some(0);
        }
        let room = self.held_max().saturating_sub(self.readers[reader].ready.len());
        (self.is_open && room > 0).then_some(room)
    }

    /// Lets no reader begin until [`Pipeline::open`].
    pub(crate) fn hold_back(&mut self) {
        self.is_open = false;
    }

    /// Readers have been started.
    pub(crate) fn open(&mut self) {
        self.is_open = true;
    }

    /// Whether readers have been started.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The reader brings samples and says what they cost it; whether anybody else waits for that.
    pub(crate) fn put(
        &mut self,
        now: u64,
        reader: usize,
        samples: &[u64],
        cost: BatchTimes,
    ) -> Wake {
        let most = self.held_max();
        let full: Vec<bool> = self.readers.iter().map(|side| side.ready.len() >= most).collect();
        let before = self.assembled;
        let side = &mut self.readers[reader];
        side.ready.extend(samples);
        side.spent.batch_no += cost.batch_no;
        side.spent.extend(&cost);
        self.advance(now, reader);
        let mut sides = full.iter().zip(&self.readers);
        let room = sides.any(|(&full, side)| full && side.ready.len() < most);
        match self.assembled > before || room {
            true => Wake::All,
            false => Wake::Nobody,
        }
    }

    /// The reader has nothing more to read.
    pub(crate) fn finish(&mut self, now: u64, reader: usize) {
        self.readers[reader].finished = true;
        self.advance(now, reader);
    }

    /// Something went wrong; the first error is the epoch's.
    pub(crate) fn fail(&mut self, error: LoadError) {
        self.error.get_or_insert(error);
    }

    /// The consumer has gone.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// What a reader has spent, finished samples only.
    pub(crate) fn spent(&self, reader: usize) -> BatchTimes {
        self.readers[reader].spent
    }

    /// The consumer asks for a batch.
    pub(crate) fn ask(&mut self, now: u64) {
        self.asked = true;
        self.advance(now, 0);
    }

    /// The batch that was asked for, if it is ready. `begin` is when that was, `before` what each
    /// reader had spent then.
    pub(crate) fn take(
        &mut self,
        begin: u64,
        now: u64,
        before: &[BatchTimes],
    ) -> Option<Result<Delivered>> {
        let ready_ns = self.queue.front().and_then(|batch| batch.ready_ns);
        let Some(ready_ns) = ready_ns else {
            return self.error.take().map(Err);
        };
        let batch = self.queue.pop_front().expect("its front is ready");
        self.parsing = self.parsing.saturating_sub(1);
        self.asked = false;
        let wait = batch.wait(begin, ready_ns, now, before);
        self.advance(now, 0);
        Some(Ok(Delivered { wait, samples: batch.samples, sample_bytes: batch.bytes }))
    }

    /// The next batch for a parser: its number in the queue's history and its samples, the end, or
    /// not yet.
    pub(crate) fn parse_next(&mut self) -> Option<Option<(u64, u64)>> {
        if self.closed || self.error.is_some() {
            return Some(None);
        }
        if self.parsing < self.queue.len() {
            let first = self.assembled - self.queue.len() as u64;
            let samples = self.queue[self.parsing].samples;
            self.parsing += 1;
            return Some(Some((first + self.parsing as u64 - 1, samples)));
        }
        (self.assembled == self.limits.batches).then_some(None)
    }

    /// A parser has finished batch `number`.
    pub(crate) fn parsed(&mut self, now: u64, number: u64) {
        let first = self.assembled - self.queue.len() as u64;
        self.queue[(number - first) as usize].ready_ns = Some(now);
        self.advance(now, 0);
    }

    /// Puts batches together as far as samples and limits allow.
    fn advance(&mut self, now: u64, reader: usize) {
        while self.may_assemble() {
            let Some(bytes) = self.next_sample() else { return };
            self.samples += 1;
            self.bytes += bytes;
            let left = self.limits.samples - self.assembled * self.limits.batch;
            if self.samples == self.limits.batch.min(left) {
                let ready_ns = (self.limits.parsers == 0).then_some(now);
                let last = (reader, self.readers[reader].spent);
                self.queue.push_back(Queued {
                    samples: self.samples,
                    bytes: self.bytes,
                    assembled_ns: now,
                    ready_ns,
                    last,
                });
                self.assembled += 1;
                BATCH.mark(Tags {
                    epoch: Some(i64::from(self.limits.epoch)),
                    step: Some(number(self.assembled)),
                    size: Some(self.bytes),
                    ..Tags::NONE
                });
                (self.samples, self.bytes) = (0, 0);
            }
        }
    }

    fn may_assemble(&self) -> bool {
        let ready = self.queue.iter().filter(|batch| batch.ready_ns.is_some()).count() as u64;
        let unready = self.queue.len() as u64 - ready;
        let target = self.limits.prefetch.max(u64::from(self.asked));
        let room = ready < target && unready < self.limits.parsers.max(1);
        self.assembled < self.limits.batches && room
    }

    /// The next sample of this rank; none if a reader is not there yet.
    fn next_sample(&mut self) -> Option<u64> {
        loop {
            let bytes = self.next_of_all()?;
            let number = self.came;
            self.came += 1;
            if self.limits.part.is_none_or(|(rank, ranks)| number % ranks == rank) {
                return Some(bytes);
            }
        }
    }

    /// The next sample out of the shuffle buffer, for whichever rank.
    fn next_of_all(&mut self) -> Option<u64> {
        loop {
            if self.readers.iter().all(|reader| reader.finished && reader.ready.is_empty()) {
                return self.shuffle.as_mut()?.drain_one();
            }
            let side = &mut self.readers[self.turn];
            let bytes = match side.ready.pop_front() {
                Some(bytes) => bytes,
                None if side.finished => {
                    self.turn = (self.turn + 1) % self.limits.readers;
                    continue;
                }
                None => return None,
            };
            self.turn = (self.turn + 1) % self.limits.readers;
            match &mut self.shuffle {
                None => return Some(bytes),
                Some(shuffle) => match shuffle.pass(bytes) {
                    Some(bytes) => return Some(bytes),
                    None => continue,
                },
            }
        }
    }
}

impl Queued {
    /// Until the batch was put together the consumer waited for the reader that came last; then for
    /// the parse step; then for being handed the batch.
    fn wait(&self, begin: u64, ready_ns: u64, end: u64, before: &[BatchTimes]) -> Wait {
        let (reader, spent) = self.last;
        let before = before.get(reader).copied().unwrap_or_default();
        let reading_ns = self.assembled_ns.saturating_sub(begin).min(end - begin);
        let mut wait = Wait::split(reading_ns, spent.since(&before));
        let parsing_ns = ready_ns.min(end).saturating_sub(self.assembled_ns.max(begin));
        wait.decode_ns += parsing_ns;
        wait.worker_ns += (end - begin) - wait.total_ns();
        wait
    }
}
