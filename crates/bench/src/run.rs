//! A whole run: generate, find the files, train on all ranks, write the results.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use feedline_clock::Clock;
use feedline_loader::DataSet;
use feedline_ranks::{Ranks, ThreadRank};
use feedline_store::Store;
use feedline_workload::{Shuffle, Workload};

use crate::discover::discover;
use crate::error::BenchError;
use crate::folder::OutputFolder;
use crate::generate::{Generated, Generator};
use crate::host::Host;
use crate::journal::Journal;
use crate::moment::Moment;
use crate::observer::{Level, Observer};
use crate::outcome::{Outcome, RankOutcome};
use crate::plan::Plan;
use crate::steplog::StepLog;
use crate::support;
use crate::train::{Job, Trainer};

/// Everything that a run is given.
pub struct Run {
    /// What to do.
    pub workload: Workload,
    /// What follows from it.
    pub plan: Plan,
    /// Whose time counts.
    pub clock: Clock,
    /// Where the data set is; its root is the data folder.
    pub data: Arc<dyn Store>,
    /// Where checkpoints go; its root is the checkpoint folder.
    pub checkpoints: Arc<dyn Store>,
    /// Set to end the run early.
    pub stop: Arc<AtomicBool>,
    /// Hears how it goes.
    pub observer: Arc<dyn Observer>,
    /// Lines of the log below this are dropped.
    pub log_level: Level,
    /// Seed of shuffles whose mode is `random`.
    pub random_seed: u64,
    /// Things to be said in the results.
    pub warnings: Vec<String>,
}

impl Run {
    /// Runs everything; the log goes to `folder`. An interrupted run is an outcome too; a failed one is an error.
    pub fn execute(mut self, folder: &OutputFolder) -> Result<Outcome, BenchError> {
        let format = support::format(&self.workload)?;
        let element = support::element(&self.workload)?;
        let journal = self.journal(folder)?;
        let start = Moment::now(&self.clock);
        self.announce(&journal);
        let mut generated = None;
        if self.workload.workflow.generate_data {
            journal.output("Starting data generation");
            let generator = Generator {
                clock: &self.clock,
                store: &*self.data,
                plan: &self.plan,
                dataset: &self.workload.dataset,
                format,
                element,
                seed: u64::from(self.workload.train.seed),
                stop: &self.stop,
                observer: &*self.observer,
            };
            let made = generator.run()?;
            journal.output(&format!("Generation done: {} files, {} bytes", made.files, made.bytes));
            generated = Some(made);
        }
        let mut ranks = Vec::new();
        if self.workload.workflow.train && !self.stop.load(Ordering::Relaxed) {
            ranks = self.train(format, &journal, folder.path())?;
        }
        if !self.workload.dataset.keep_files && !self.workload.generate_only() {
            self.data.remove_folder("")?;
        }
        Ok(self.outcome(start, generated, ranks))
    }

    fn journal(&self, folder: &OutputFolder) -> Result<Journal, BenchError> {
        let path = folder.path().join(&self.workload.output.log_file);
        Journal::create(&path, self.log_level, Arc::clone(&self.observer))
            .map_err(|source| BenchError::Output { file: path.display().to_string(), source })
    }

    fn announce(&self, journal: &Journal) {
        let workflow = &self.workload.workflow;
        let modes = [
            (workflow.generate_data, "Generating data"),
            (workflow.train, "Training"),
            (workflow.evaluation, "Evaluation"),
            (workflow.checkpoint, "Checkpointing"),
        ];
        let modes: Vec<_> = modes.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        let ranks = self.plan.ranks;
        journal.output(&format!("Running [{}] with {ranks} process(es)", modes.join(" & ")));
        for warning in &self.warnings {
            journal.plain(Level::Warning, warning);
        }
        let describe = |phase: &crate::plan::PhasePlan, what: &str| {
            let (space, steps) = (phase.space, phase.available_steps);
            let (files, per_file, batch) = (space.files, space.per_file, phase.batch);
            journal.output(&format!(
                "{what}: {steps} = {per_file} * {files} / {batch} / {ranks} \
                 (samples per file * num files / batch size / comm size)"
            ));
        };
        if let Some(phase) = &self.plan.train {
            describe(phase, "Max steps per epoch");
            if let Some(steps) = self.workload.train.total_training_steps {
                journal.output(&format!("Total training steps is set to be {steps}"));
            }
        }
        if let Some(phase) = &self.plan.eval {
            describe(phase, "Steps per eval");
        }
    }

    fn train(
        &mut self,
        format: &'static dyn feedline_formats::Format,
        journal: &Journal,
        out: &Path,
    ) -> Result<Vec<RankOutcome>, BenchError> {
        let mut data_set = |rule, key| -> Result<DataSet, BenchError> {
            let found = discover(&*self.data, rule, key)?;
            if let Some(notice) = found.notice {
                journal.plain(Level::Warning, &notice);
                self.warnings.push(notice);
            }
            let (store, stop) = (Arc::clone(&self.data), Arc::clone(&self.stop));
            Ok(DataSet { store, names: found.names, format, stop })
        };
        let train_data = data_set(&self.plan.train_files, "dataset.num_subfolders_train")?;
        let eval_data = match self.plan.eval {
            Some(_) => Some(data_set(&self.plan.eval_files, "dataset.num_subfolders_eval")?),
            None => None,
        };
        if self.workload.workflow.checkpoint {
            self.checkpoints.make_folder("")?;
        }
        let job = Job {
            clock: &self.clock,
            plan: &self.plan,
            workload: &self.workload,
            train_data,
            eval_data,
            checkpoints: &*self.checkpoints,
            seed: self.seed(),
            stop: Arc::clone(&self.stop),
            journal,
            observer: &*self.observer,
        };
        on_ranks(&job, out)
    }

    /// `random` draws a new order every run, everything else follows the workload's seed.
    fn seed(&self) -> u64 {
        let reader = &self.workload.reader;
        let random = match reader.sample_shuffle {
            Shuffle::Off => reader.file_shuffle == Shuffle::Random,
            mode => mode == Shuffle::Random,
        };
        if random { self.random_seed } else { u64::from(self.workload.train.seed) }
    }

    fn outcome(
        self,
        start: Moment,
        generated: Option<Generated>,
        ranks: Vec<RankOutcome>,
    ) -> Outcome {
        Outcome {
            seed: self.seed(),
            host: Host::look(),
            start,
            end: Moment::now(&self.clock),
            generated,
            ranks,
            warnings: self.warnings,
            interrupted: self.stop.load(Ordering::Relaxed),
            plan: self.plan,
        }
    }
}

/// Trains on every rank. The error of the rank that failed first is the run's error.
fn on_ranks(job: &Job<'_>, out: &Path) -> Result<Vec<RankOutcome>, BenchError> {
    let ranks = feedline_ranks::threads(job.clock, job.plan.ranks);
    let results = Mutex::new(Vec::new());
    job.clock.scope(|scope| {
        for rank in &ranks {
            let results = &results;
            scope.spawn(format!("rank-{}", rank.rank()), move || {
                let result = one_rank(job, rank, out);
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push((rank.rank(), result));
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(rank, _)| *rank);
    let own_failure = |result: &Result<RankOutcome, BenchError>| matches!(result, Err(error) if !matches!(error, BenchError::Aborted(_)));
    if let Some(place) = results.iter().position(|(_, result)| own_failure(result)) {
        return Err(results.swap_remove(place).1.err().expect("found as a failure"));
    }
    results.into_iter().map(|(_, result)| result).collect()
}

fn one_rank(job: &Job<'_>, rank: &ThreadRank, out: &Path) -> Result<RankOutcome, BenchError> {
    let result = StepLog::create(out, rank.rank())
        .map_err(|source| BenchError::Output { file: out.display().to_string(), source })
        .and_then(|log| Trainer::new(job, rank, log).run());
    if let Err(error) = &result {
        rank.abort(&error.to_string());
    }
    result
}
