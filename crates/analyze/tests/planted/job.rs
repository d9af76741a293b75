//! What a simulated training job is, and how long everything in it takes.

use crate::draft::US;

/// A job. Times are microseconds, so that no format of traces rounds them.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) ranks: usize,
    /// Machines; rank r runs on machine r mod `hosts`.
    pub(crate) hosts: usize,
    /// Workers a rank.
    pub(crate) workers: usize,
    /// Batches that may be under way or ready, a rank.
    pub(crate) outstanding: usize,
    /// Samples of a batch.
    pub(crate) batch: usize,
    /// Steps of an epoch.
    pub(crate) steps: usize,
    pub(crate) epochs: u32,
    pub(crate) life: Life,
    pub(crate) sample: Sample,
    /// Putting a batch together, in the worker.
    pub(crate) collate_us: i64,
    /// What the consumer does to a batch that is ready before it has it.
    pub(crate) hand_off_us: i64,
    pub(crate) compute_us: i64,
    /// From the beginning of an epoch, or of the run, until workers work.
    pub(crate) start_up_us: i64,
    /// Ranks meet at the end of each step, which takes this long.
    pub(crate) meeting_us: Option<i64>,
    /// Every duration is up to this much shorter or longer.
    pub(crate) jitter_percent: i64,
    /// A rank whose storage is slower than that of the others.
    pub(crate) slow_rank: Option<(usize, i64)>,
    /// Every n-th batch takes so many times as long.
    pub(crate) burst: Option<(usize, i64)>,
    /// Steps of an evaluation after each epoch.
    pub(crate) evaluation: Option<usize>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) store: Store,
    /// Calls on every n-th file take so many times as long.
    pub(crate) slow_folder: Option<(usize, i64)>,
    /// A fetch at the end of each epoch that brings nothing, as DLIO has it.
    pub(crate) surplus_us: Option<i64>,
    pub(crate) seed: u64,
}

/// How long a worker lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// As long as the run.
    Run,
    /// An epoch, or an evaluation.
    Phase,
}

/// Where samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Files,
    Objects,
}

/// What is done for a sample, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) python_us: i64,
    pub(crate) open_us: i64,
    pub(crate) reads: usize,
    /// One read.
    pub(crate) read_us: i64,
    pub(crate) read_bytes: i64,
    pub(crate) close_us: i64,
    pub(crate) decode_us: i64,
    pub(crate) transform_us: i64,
}

/// What is written after every `every` steps while training stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) every: usize,
    pub(crate) writes: usize,
    pub(crate) write_us: i64,
    pub(crate) write_bytes: i64,
    pub(crate) sync_us: i64,
}

impl Default for Job {
    /// A job that is fed: 4 workers take 9.7 ms for a batch, the accelerator 8 ms.
    fn default() -> Self {
        Self {
            ranks: 1,
            hosts: 1,
            workers: 4,
            outstanding: 8,
            batch: 4,
            steps: 60,
            epochs: 1,
            life: Life::Phase,
            sample: Sample {
                python_us: 0,
                open_us: 250,
                reads: 3,
                read_us: 300,
                read_bytes: 65_536,
                close_us: 25,
                decode_us: 900,
                transform_us: 300,
            },
            collate_us: 100,
            hand_off_us: 20,
            compute_us: 8_000,
            start_up_us: 2_000,
            meeting_us: Some(50),
            jitter_percent: 10,
            slow_rank: None,
            burst: None,
            evaluation: None,
            checkpoint: None,
            store: Store::Files,
            slow_folder: None,
            surplus_us: None,
            seed: 7,
        }
    }
}

/// What a duration belongs to: the same thing takes the same time in every variant of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) rank: usize,
    pub(crate) phase: u64,
    pub(crate) step: usize,
    pub(crate) sample: usize,
    pub(crate) piece: u64,
}

impl Job {
    /// How long something takes that takes `usual_us` in the mean, in nanoseconds.
    pub(crate) fn takes_ns(&self, usual_us: i64, place: Place) -> i64 {
        let numbers =
            [place.rank as u64, place.phase, place.step as u64, place.sample as u64, place.piece];
        let random = numbers.iter().fold(mix(self.seed), |state, number| mix(state ^ mix(*number)));
        let width = (2 * self.jitter_percent + 1).cast_unsigned();
        let percent = 100 - self.jitter_percent + (random % width).cast_signed();
        usual_us * percent / 100 * US
    }

    /// Whether a sample is in the slow folder.
    pub(crate) fn is_slow(&self, sample: usize) -> bool {
        self.slow_folder.is_some_and(|(every, _)| sample.is_multiple_of(every))
    }

    /// The file of a sample, counted over the whole epoch.
    pub(crate) fn file(&self, sample: usize) -> String {
        let folder = if self.is_slow(sample) { "target3" } else { "target1" };
        match self.store {
            Store::Files => format!("/data/{folder}/sample_{sample:05}.npz"),
            Store::Objects => format!("s3://bucket/{folder}/sample_{sample:05}.npz"),
        }
    }

    /// The same job with other workers, and as many batches a worker under way as before.
    pub(crate) fn with_workers(&self, workers: usize) -> Self {
        let outstanding = self.outstanding * workers / self.workers;
        Self { workers, outstanding, ..self.clone() }
    }

    /// The same job with so many times faster storage.
    pub(crate) fn with_storage(&self, times: i64) -> Self {
        let sample = Sample {
            open_us: self.sample.open_us / times,
            read_us: self.sample.read_us / times,
            close_us: self.sample.close_us / times,
            ..self.sample
        };
        Self { sample, ..self.clone() }
    }
}

/// The finalizer of SplitMix64.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
