//! One rank's training: epochs, blocks, steps, evaluations, checkpoints, in DLIO's sequence.

pub(crate) mod durations;
pub(crate) mod page_cache;
pub(crate) mod progress;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_dataset::{CacheLook, DataSet, EpochOrder};
use feedline_loader::{Delivered, Epoch, EpochShare, LoadError, Loader, Preprocess};
use feedline_ranks::Ranks;
use feedline_recorder::Span;
use feedline_workload::{TimeSpec, Workload};

use crate::checkpoints::phase::number_behind;
use crate::checkpoints::saver::{CheckpointLabel, Saver};
use crate::checkpoints::schedule::Schedule;
use crate::error::{BenchError, Result};
use crate::observer::{Observer, Pass};
use crate::plan::reading::LoaderPlan;
use crate::plan::{PhasePlan, Plan, Semantics};
use crate::results::host::Host;
use crate::results::metrics::{BlockTally, Step, Window};
use crate::results::moment::Moment;
use crate::results::outcome::{
    BlockOutcome, CheckpointOutcome, Direction, EpochOutcome, RankOutcome, SavingTally,
};
use crate::results::step_log::StepLog;
use crate::run::journal::Journal;
use crate::spans::{self, StepPosition};
use crate::train::durations::Durations;
use crate::train::page_cache::{CachePolicy, Share};
use crate::train::progress::{Progress, TrainingLog};

/// Separates the random streams of compute, evaluation and preprocessing times.
const COMPUTE_STREAM: u64 = 1 << 32;
const EVAL_STREAM: u64 = 2 << 32;
const PREPROCESS_STREAM: u64 = 3 << 32;

/// What ranks tell each other at the end of a step; the largest is heard by all.
const GO_ON: u64 = 0;
/// A stop was asked for: this step is the last.
const STOP: u64 = 1;
/// A stop was asked for in the middle of this step: it does not count.
const BROKEN_STEP: u64 = 2;

/// What all ranks of a run share.
pub(crate) struct Job<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) plan: &'a Plan,
    pub(crate) workload: &'a Workload,
    pub(crate) train_data: DataSet,
    pub(crate) eval_data: Option<DataSet>,
    pub(crate) cache: CachePolicy,
    pub(crate) seed: u64,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) journal: &'a Journal,
    pub(crate) observer: &'a dyn Observer,
}

/// One rank at work.
pub(crate) struct Trainer<'a> {
    job: &'a Job<'a>,
    ranks: &'a dyn Ranks,
    phase: PhasePlan,
    compute: Durations,
    eval_compute: Durations,
    /// If it saves checkpoints.
    saver: Option<Saver<'a>>,
    saving: SavingTally,
    schedule: Schedule,
    /// Steps of the whole run.
    steps_done: u64,
    /// Time of those.
    steps_ns: u64,
    /// Time that giving the last asynchronous save its name took.
    commit_ns: u64,
    log: StepLog,
    narrator: TrainingLog<'a>,
    steps_left: Option<u64>,
    done_ns: u64,
}

/// What an epoch has gathered so far.
struct Running {
    blocks: Vec<BlockOutcome>,
    checkpoints: Vec<CheckpointOutcome>,
    progress: Progress,
    /// Which of the epoch's steps DLIO's metrics count.
    window: Window,
    epoch: u32,
    /// The open block: in the trace, its begin, its tally and its first step in the log.
    span: Option<Span<'static>>,
    begin: Moment,
    tally: BlockTally,
    first: u64,
}

impl Running {
    fn steps(&self) -> u64 {
        self.progress.strict.steps
    }
}

impl<'a> Trainer<'a> {
    pub(crate) fn new(
        job: &'a Job<'a>,
        ranks: &'a dyn Ranks,
        log: StepLog,
        saver: Option<Saver<'a>>,
    ) -> Self {
        let (workload, rank) = (job.workload, u64::from(ranks.rank()));
        let draws = |spec: &TimeSpec, stream| Durations::new(spec, job.seed, stream + rank);
        Self {
            job,
            ranks,
            phase: job.plan.train.clone().expect("a run that trains has a training plan"),
            compute: draws(&workload.train.computation_time, COMPUTE_STREAM),
            eval_compute: draws(&workload.evaluation.eval_time, EVAL_STREAM),
            saver,
            saving: SavingTally::default(),
            steps_done: 0,
            steps_ns: 0,
            commit_ns: 0,
            schedule: Schedule::new(workload),
            log,
            narrator: TrainingLog::new(job, ranks),
            steps_left: workload.train.max_steps,
            done_ns: 0,
        }
    }

    /// Trains all epochs; ends early, with what there is, when a stop is asked for.
    pub(crate) fn run(mut self) -> Result<RankOutcome> {
        let reading = self.job.plan.reading;
        let mut loader = self.loader(reading.train, &self.job.train_data);
        let eval = self.job.plan.eval.as_ref().and(self.job.eval_data.as_ref());
        let mut eval_loader = eval.map(|data| self.loader(reading.eval, data));
        let mut epochs: Vec<EpochOutcome> = Vec::new();
        if let Some(saver) = &mut self.saver {
            saver.begin();
        }
        for number in 1..=self.job.workload.train.epochs {
            if self.agree_to_stop()? || self.steps_left == Some(0) {
                break;
            }
            epochs.push(self.epoch(number, &mut loader, eval_loader.as_mut())?);
        }
        let ended = self.drain()?;
        if let Some(last) = epochs.last_mut() {
            self.list(last.number, &mut last.checkpoints, ended);
        }
        Ok(RankOutcome {
            epochs,
            meter: loader.meter().expect("the last epoch was dropped at its end"),
            done_ns: self.done_ns,
            saving: self.saving,
            steps: self.log.finish().map_err(spool_error)?,
        })
    }

    fn loader(&self, plan: LoaderPlan, data: &DataSet) -> Loader {
        let rank = u64::from(self.ranks.rank());
        let time = preprocess_time(self.job);
        let loader = plan.build(self.job.clock, data, |worker| {
            let stream = PREPROCESS_STREAM + (rank << 16) + u64::from(worker);
            let mut pauses = Durations::new(&time, self.job.seed, stream);
            let work: Preprocess = Box::new(move || pauses.next_ns());
            (time != TimeSpec::default()).then_some(work)
        });
        match self.job.plan.framework.cost() {
            Some(cost) => loader.with_cost(cost),
            None => loader,
        }
    }

    fn epoch(
        &mut self,
        number: u32,
        loader: &mut Loader,
        eval_loader: Option<&mut Loader>,
    ) -> Result<EpochOutcome> {
        // Every machine has a page cache of its own, so its ranks take care of all files.
        let (rank, ranks) = self.ranks.on_node();
        let (rank, ranks) = (u64::from(rank), u64::from(ranks));
        let share = Share { rank, ranks, files: self.phase.dealing.index.files() };
        page_cache::apply(self.job.cache, &self.job.train_data, &share, number)?;
        if let (Some(data), Some(phase)) = (&self.job.eval_data, &self.job.plan.eval) {
            let share = Share { rank, ranks, files: phase.dealing.index.files() };
            page_cache::apply(self.job.cache, data, &share, number)?;
        }
        let look = self.job.train_data.look.as_deref();
        if let Some(look) = look {
            look.begin(number, self.phase.dealing.index.files());
        }
        self.ranks.barrier()?;
        let meminfo = Host::meminfo_now();
        self.ranks.barrier()?;
        let steps = self.phase.steps.min(self.steps_left.unwrap_or(u64::MAX));
        let start = Moment::now(self.job.clock);
        self.narrator.epoch_begins(number, steps);
        let mut running = self.train(number, steps, loader)?;
        // All ranks save or none does.
        let stop = self.agree_to_stop()?;
        if let Some(left) = &mut self.steps_left {
            *left -= running.steps();
        }
        if self.schedule.due_after_epoch(number) && !stop {
            let label = match self.job.plan.semantics {
                Semantics::Feedline => running.steps(),
                Semantics::Dlio => steps + 1, // Q41
            };
            self.save(number, label, &mut running)?;
        }
        let train_end = Moment::now(self.job.clock);
        self.narrator.epoch_ends(number, &start, &train_end, running.steps());
        let eval = match eval_loader {
            Some(loader) if self.eval_is_due(number) => Some(self.evaluate(number, loader)?),
            _ => None,
        };
        let cached_share = look.and_then(CacheLook::share);
        Ok(EpochOutcome {
            number,
            start,
            train_end,
            end: Moment::now(self.job.clock),
            blocks: running.blocks,
            eval,
            checkpoints: running.checkpoints,
            strict: running.progress.strict,
            samples: running.progress.samples,
            sample_bytes: running.progress.sample_bytes,
            cached_share,
            meminfo,
        })
    }

    fn train(&mut self, epoch: u32, steps: u64, loader: &mut Loader) -> Result<Running> {
        let change = self.job.workload.train.seed_change_epoch;
        let seed = self.job.seed.wrapping_add(if change { u64::from(epoch) } else { 0 });
        let order = EpochOrder::new(self.phase.dealing.index.clone(), self.phase.shuffle, seed);
        let share = EpochShare {
            order: Arc::new(order),
            dealing: self.phase.dealing.clone(),
            rank: u64::from(self.ranks.rank()),
            // DLIO lets the loader run on to the end of the data and takes one batch too many (Q32).
            batches: match self.job.plan.semantics {
                Semantics::Feedline => steps,
                Semantics::Dlio => self.phase.available_steps,
            },
            epoch,
            seed,
        };
        let _span = spans::in_epoch(&spans::TRAIN, epoch);
        let mut running = self.open_epoch(epoch, steps);
        self.steps(epoch, steps, &mut loader.epoch(share), &mut running)?;
        Ok(running)
    }

    fn steps(
        &mut self,
        epoch: u32,
        steps: u64,
        batches: &mut Epoch,
        running: &mut Running,
    ) -> Result<()> {
        loop {
            let begin = self.job.clock.now();
            let here = StepPosition { epoch, step: running.steps() + 1 };
            let batch = fetch(here, batches)?;
            if running.steps() == steps {
                break;
            }
            let Some(batch) = batch else {
                // Stopped inside a batch: the other ranks hear of it where this step would end.
                self.ranks.max(BROKEN_STEP)?;
                break;
            };
            let asked_ns = self.compute.next_ns();
            let mut step = self.compute(here, begin, &batch, asked_ns);
            let before = self.job.clock.now();
            self.done_ns = before;
            // A computation that was cut short has no time that could count.
            let own = match self.stopping() {
                true if step.compute_ns < asked_ns => BROKEN_STEP,
                true => STOP,
                false => GO_ON,
            };
            let meeting = here.begin(&spans::MEET);
            let news = self.ranks.max(own)?;
            meeting.end();
            if news == BROKEN_STEP {
                break; // Some rank has no batch for this step, so no rank makes it.
            }
            let stop = news == STOP;
            step.peers_ns = self.job.clock.now() - before;
            self.record(&step, &batch, running)?;
            self.poll(epoch, running)?;
            let number = running.steps();
            self.narrator.step(Pass::Training, epoch, steps, &running.progress);
            self.narrator.step_details(number, &step, batch.samples);
            if self.schedule.due_after_step(number, self.steps_done) && !stop {
                self.close_block(epoch, running);
                self.save(epoch, number, running)?;
                if self.job.plan.semantics == Semantics::Feedline {
                    // Ranks that write nothing would charge the save to their next step's peers.
                    self.ranks.barrier()?;
                }
                self.open_block(running);
            }
            if stop || (number == steps && self.job.plan.semantics == Semantics::Feedline) {
                break;
            }
        }
        self.close_block(epoch, running);
        Ok(())
    }

    fn compute(&self, here: StepPosition, begin: u64, batch: &Delivered, asked_ns: u64) -> Step {
        let clock = self.job.clock;
        let _span = here.begin(&spans::COMPUTE);
        let computing = clock.now();
        if asked_ns > 0 {
            clock.sleep_unless(asked_ns, &self.job.stop);
        }
        let end = clock.now();
        Step {
            wait: batch.wait,
            compute_ns: end - computing,
            asked_ns,
            proc_ns: end - begin,
            peers_ns: 0,
        }
    }

    fn record(&mut self, step: &Step, batch: &Delivered, running: &mut Running) -> Result<()> {
        self.count(step, running.steps() == 0);
        running.tally.add(step, &running.window);
        running.progress.add(step, batch, &running.window);
        self.log.add(step).map_err(spool_error)
    }

    fn open_epoch(&mut self, epoch: u32, steps: u64) -> Running {
        let planned = self.phase.window;
        // The last epoch before `train.max_steps` may be shorter than planned.
        let expected = if steps < self.phase.steps { steps } else { planned.expected };
        let running = Running {
            window: Window { expected, ..planned },
            blocks: Vec::new(),
            checkpoints: Vec::new(),
            progress: Progress::default(),
            epoch,
            span: Some(spans::in_epoch(&spans::BLOCK, epoch)),
            begin: Moment::now(self.job.clock),
            tally: BlockTally::default(),
            first: self.log.len(),
        };
        self.narrator.block_begins(1);
        running
    }

    fn open_block(&self, running: &mut Running) {
        running.span = Some(spans::in_epoch(&spans::BLOCK, running.epoch));
        running.begin = Moment::now(self.job.clock);
        running.tally = BlockTally::default();
        running.first = self.log.len();
        self.narrator.block_begins(running.blocks.len() as u32 + 1);
    }

    fn close_block(&mut self, epoch: u32, running: &mut Running) {
        running.span = None;
        let block = BlockOutcome {
            number: running.blocks.len() as u32 + 1,
            start: running.begin.clone(),
            end: Moment::now(self.job.clock),
            tally: running.tally,
            steps: running.first..self.log.len(),
        };
        self.narrator.block_ends(epoch, &block, self.phase.dealing.batch);
        running.blocks.push(block);
    }

    fn save(&mut self, epoch: u32, step: u64, running: &mut Running) -> Result<()> {
        let Some(saver) = &mut self.saver else { return Ok(()) };
        let number = number_behind(&running.checkpoints, Direction::Save);
        self.narrator.checkpoint_begins(number, step, epoch);
        let begin = self.job.clock.now();
        let ended = saver.save(CheckpointLabel { epoch, step }, self.steps_done)?;
        let pause_ns = self.job.clock.now() - begin + self.commit_ns;
        self.list(epoch, &mut running.checkpoints, ended);
        let mean_step_ns = self.steps_ns as f64 / self.steps_done.max(1) as f64;
        if let Some(steps) = self.schedule.steps_for(pause_ns, mean_step_ns) {
            // The rank that waited longest speaks for all.
            let steps = self.ranks.max(steps)?;
            self.schedule.put_off(self.steps_done + steps);
        }
        Ok(())
    }

    /// Counts a step, and whether a save went on meanwhile.
    fn count(&mut self, step: &Step, first_of_epoch: bool) {
        let took_ns = step.proc_ns + step.peers_ns;
        self.steps_done += 1;
        self.steps_ns += took_ns;
        // The first step of an epoch waits for a pipeline that is empty.
        if first_of_epoch {
            return;
        }
        let tally = &mut self.saving;
        let (steps, ns) = match self.saver.as_ref().is_some_and(Saver::is_saving) {
            true => (&mut tally.steps_while_saving, &mut tally.while_saving_ns),
            false => (&mut tally.steps_alone, &mut tally.alone_ns),
        };
        *steps += 1;
        *ns += took_ns;
    }

    /// Between two steps: completes a save that has run in the background.
    fn poll(&mut self, epoch: u32, running: &mut Running) -> Result<()> {
        let Some(saver) = &mut self.saver else { return Ok(()) };
        let begin = self.job.clock.now();
        let ended = saver.poll(self.steps_done)?;
        if ended.is_some() {
            self.commit_ns = self.job.clock.now() - begin;
        }
        self.list(epoch, &mut running.checkpoints, ended.into_iter().collect());
        Ok(())
    }

    /// Waits for saves that are going on.
    fn drain(&mut self) -> Result<Vec<CheckpointOutcome>> {
        let Some(saver) = &mut self.saver else { return Ok(Vec::new()) };
        let begin = self.job.clock.now();
        let ended = saver.drain(self.steps_done)?;
        self.saving.drain_ns = self.job.clock.now() - begin;
        let known = saver.tally();
        self.saving.unsaved_steps = known.unsaved_steps;
        self.saving.unsaved_ns = known.unsaved_ns;
        self.saving.pool_bytes = known.pool_bytes;
        Ok(ended)
    }

    fn list(&self, epoch: u32, all: &mut Vec<CheckpointOutcome>, ended: Vec<CheckpointOutcome>) {
        for mut outcome in ended {
            outcome.number = number_behind(all, outcome.direction);
            self.narrator.checkpoint_ends(epoch, &outcome);
            all.push(outcome);
        }
    }

    fn eval_is_due(&self, epoch: u32) -> bool {
        let evaluation = &self.job.workload.evaluation;
        let (first, every) = (evaluation.eval_after_epoch, evaluation.epochs_between_evals.max(1));
        !self.stopping() && epoch >= first && (epoch - first).is_multiple_of(every)
    }

    fn evaluate(&mut self, epoch: u32, loader: &mut Loader) -> Result<BlockOutcome> {
        let phase = self.job.plan.eval.as_ref();
        let phase = phase.expect("an evaluation loader comes from an evaluation plan");
        let order = EpochOrder::new(phase.dealing.index.clone(), phase.shuffle, self.job.seed);
        let share = EpochShare {
            order: Arc::new(order),
            dealing: phase.dealing.clone(),
            rank: u64::from(self.ranks.rank()),
            batches: phase.steps,
            epoch,
            seed: self.job.seed,
        };
        let _span = spans::in_epoch(&spans::EVALUATE, epoch);
        let start = Moment::now(self.job.clock);
        self.narrator.eval_begins(epoch, phase.steps);
        let (mut tally, mut progress) = (BlockTally::default(), Progress::default());
        let first = self.log.len();
        let mut batches = loader.epoch(share);
        while !self.stopping() {
            let begin = self.job.clock.now();
            let here = StepPosition { epoch, step: tally.steps + 1 };
            let Some(batch) = fetch(here, &mut batches)? else { break };
            let asked_ns = self.eval_compute.next_ns();
            let step = self.compute(here, begin, &batch, asked_ns);
            if self.stopping() && step.compute_ns < asked_ns {
                break;
            }
            tally.add(&step, &phase.window);
            progress.add(&step, &batch, &phase.window);
            self.log.add(&step).map_err(spool_error)?;
            self.narrator.step(Pass::Evaluation, epoch, phase.steps, &progress);
            self.narrator.step_details(tally.steps, &step, batch.samples);
        }
        // The evaluation ends when its readers have.
        drop(batches);
        let end = Moment::now(self.job.clock);
        let block = BlockOutcome { number: 1, start, end, tally, steps: first..self.log.len() };
        self.narrator.eval_ends(epoch, &block, phase.dealing.batch);
        Ok(block)
    }

    fn stopping(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    /// Meets the other ranks; true if any of them was asked to stop.
    fn agree_to_stop(&self) -> Result<bool> {
        Ok(self.ranks.max(if self.stopping() { STOP } else { GO_ON })? >= STOP)
    }
}

/// Waits for a batch; none if that was stopped, or there are no more.
fn fetch(here: StepPosition, batches: &mut Epoch) -> Result<Option<Delivered>> {
    let mut span = here.begin(&spans::FETCH);
    let batch = match batches.next_batch() {
        Err(LoadError::Stopped) => None,
        other => other?,
    };
    match &batch {
        Some(batch) => span.tags.size = Some(batch.sample_bytes),
        None => span.cancel(),
    }
    Ok(batch)
}

/// DLIO does not preprocess samples of the synthetic format.
fn preprocess_time(job: &Job<'_>) -> TimeSpec {
    match (job.train_data.format.facts().name, job.plan.semantics) {
        ("synthetic", _) | ("tfrecord", Semantics::Dlio) => TimeSpec::default(),
        _ => job.workload.reader.preprocess_time,
    }
}

fn spool_error(source: std::io::Error) -> BenchError {
    BenchError::Output { file: "step log in the output folder".into(), source }
}
