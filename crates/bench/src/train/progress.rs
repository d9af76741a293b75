//! What rank 0 says while it trains: DLIO's log lines and the progress.

use feedline_loader::Delivered;
use feedline_ranks::Ranks;

use crate::checkpoints::phase;
use crate::observer::{Level, Pass, Rates, Stepping};
use crate::results::metrics::{Step, StrictTally, Window};
use crate::results::moment::Moment;
use crate::results::outcome::{BlockOutcome, CheckpointOutcome};
use crate::train::Job;

/// What a pass over the data has come to on one rank.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) strict: StrictTally,
    pub(crate) samples: u64,
    pub(crate) sample_bytes: u64,
}

impl Progress {
    pub(crate) fn add(&mut self, step: &Step, batch: &Delivered, window: &Window) {
        self.strict.add(step, window);
        self.samples += batch.samples;
        self.sample_bytes += batch.sample_bytes;
    }
}

/// Speaks on rank 0, is silent elsewhere.
pub(crate) struct TrainingLog<'a> {
    job: &'a Job<'a>,
    speaks: bool,
    rank: u32,
    ranks: u32,
}

impl<'a> TrainingLog<'a> {
    pub(crate) fn new(job: &'a Job<'a>, ranks: &dyn Ranks) -> Self {
        Self { job, speaks: ranks.rank() == 0, rank: ranks.rank(), ranks: ranks.size() }
    }

    pub(crate) fn epoch_begins(&self, epoch: u32, steps: u64) {
        let how = match self.job.workload.train.total_training_steps {
            Some(_) => format!("number of steps overridden to {steps}"),
            None => format!("{steps} steps expected"),
        };
        self.say(|| format!("Starting epoch {epoch}: {how}"));
        self.step(Pass::Training, epoch, steps, &Progress::default());
    }

    pub(crate) fn epoch_ends(&self, epoch: u32, start: &Moment, end: &Moment, steps: u64) {
        let seconds = end.seconds_since(start);
        self.say(|| format!("Ending epoch {epoch} - {steps} steps completed in {seconds:.2} s"));
        if self.speaks {
            self.job.observer.phase_ends();
        }
    }

    pub(crate) fn block_begins(&self, block: u32) {
        self.say(|| format!("Starting block {block}"));
    }

    pub(crate) fn block_ends(&self, epoch: u32, block: &BlockOutcome, batch: u64) {
        let (number, steps, wall) = (block.number, block.tally.steps, block.wall_ns());
        let seconds = wall as f64 / 1e9;
        self.say(|| format!("Ending block {number} - {steps} steps completed in {seconds:.2} s"));
        let head = format!("Epoch {epoch} - Block {number} [Training]");
        let tally = &block.tally;
        self.say(|| {
            let au = tally.au_percent(wall);
            format!("{head} Accelerator Utilization [AU] (%): {au:.4}")
        });
        self.say(|| {
            let rate = self.job.plan.semantics.block_throughput(tally, wall, batch);
            let rate = rate
                .map_or("n/a".to_owned(), |rate| format!("{:.4}", rate * f64::from(self.ranks)));
            format!("{head} Throughput (samples/second): {rate}")
        });
        self.say(|| {
            let measured = tally.compute_s();
            let measured = measured
                .map_or("n/a".to_owned(), |(mean, stdev)| format!("{mean:.4}+/-{stdev:.4}"));
            let set = self.job.workload.train.computation_time.mean_seconds();
            format!("{head} Computation time per step (second): {measured} (set value: {set})")
        });
    }

    pub(crate) fn checkpoint_begins(&self, number: u32, step: u64, epoch: u32) {
        self.say(|| format!("Saving checkpoint {number} after step {step} of epoch {epoch}"));
    }

    pub(crate) fn checkpoint_ends(&self, epoch: u32, saved: &CheckpointOutcome) {
        self.say(|| phase::ended_line(saved, epoch));
    }

    pub(crate) fn eval_begins(&self, epoch: u32, steps: u64) {
        self.say(|| format!("Starting eval - {steps} steps expected"));
        self.step(Pass::Evaluation, epoch, steps, &Progress::default());
    }

    pub(crate) fn eval_ends(&self, epoch: u32, block: &BlockOutcome, batch: u64) {
        let (tally, wall) = (&block.tally, block.wall_ns());
        let (steps, seconds) = (tally.steps, wall as f64 / 1e9);
        self.say(|| format!("Ending eval - {steps} steps completed in {seconds:.2} s"));
        self.say(|| {
            let au = tally.au_percent(wall);
            format!("Epoch {epoch} [Eval] Accelerator Utilization [AU] (%): {au:.4}")
        });
        self.say(|| {
            let rate = tally.eval_throughput(wall, batch) * f64::from(self.ranks);
            format!("Epoch {epoch} [Eval] Throughput (samples/second): {rate:.4}")
        });
        if self.speaks {
            self.job.observer.phase_ends();
        }
    }

    /// Tells the observer how the epoch's training or evaluation goes.
    pub(crate) fn step(&self, pass: Pass, epoch: u32, steps: u64, so_far: &Progress) {
        if !self.speaks {
            return;
        }
        let (split, step) = (&so_far.strict.split, so_far.strict.steps);
        let wall_s = split.total_ns() as f64 / 1e9;
        let ranks = f64::from(self.ranks);
        let rates = (wall_s > 0.0 && step > 0).then(|| Rates {
            busy_percent: 100.0 * split.compute_ns as f64 / 1e9 / wall_s,
            samples_per_s: ranks * so_far.samples as f64 / wall_s,
            bytes_per_s: ranks * so_far.sample_bytes as f64 / wall_s,
            seconds_left: wall_s / step as f64 * (steps - step) as f64,
        });
        let epochs = self.job.workload.train.epochs;
        self.job.observer.stepping(Stepping { pass, epoch, epochs, step, steps, rates });
    }

    /// What DLIO says of every step on every rank at level `info`.
    pub(crate) fn step_details(&self, number: u64, step: &Step, samples: u64) {
        if !self.job.journal.hears(Level::Info) {
            return;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (rank, load) = (self.rank, seconds(step.wait.total_ns()));
        let text = format!("Rank {rank} step {number}: loaded {samples} samples in {load:.4} s");
        self.job.journal.dated(Level::Info, &text);
        let whole = seconds(step.proc_ns);
        let text =
            format!("Rank {rank} step {number}: processed {samples} samples in {whole:.4} s");
        self.job.journal.dated(Level::Info, &text);
    }

    /// The text is made only where it is heard.
    fn say(&self, text: impl FnOnce() -> String) {
        if self.speaks {
            self.job.journal.output(&text());
        }
    }
}
