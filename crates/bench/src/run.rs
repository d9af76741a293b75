//! A whole run: generate, find the files, train on all ranks, write the results.
//!
//! In a job of several processes all of them go through this together. Process 0 looks at what is
//! there, says what is to be done, and gets everything that was measured.

pub(crate) mod gather;
pub(crate) mod journal;
pub(crate) mod rank_threads;
pub(crate) mod storage_emulation;
pub(crate) mod wire;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_dataset::{
    DataSet, DatasetSpec, Discovered, ExistingFiles, FileNames, Generated, GenerationProgress,
    Generator, Listing, MANIFEST_NAME, NameRule, SampleSizes, discover,
};
use feedline_formats::{Companion, CompanionPlace, FileSize, Format};
use feedline_ranks::{Member, Team};
use feedline_store::{EntryKind, Store};
use feedline_workload::{ShuffleMode, Workload};
use serde::{Deserialize, Serialize};

use crate::checkpoints::job::{SaveJob, with_saver};
use crate::checkpoints::phase::CheckpointPhase;
use crate::checkpoints::setup::CheckpointSetup;
use crate::error::{BenchError, Result};
use crate::observer::{Level, Observer, Silent};
use crate::plan::Plan;
use crate::plan::supported;
use crate::results::assessment::{Assessment, Circumstances};
use crate::results::files;
use crate::results::folder::OutputFolder;
use crate::results::host::Host;
use crate::results::moment::Moment;
use crate::results::outcome::{Outcome, RankOutcome};
use crate::results::summary::Summary;
use crate::results::summary_file::SummaryFile;
use crate::run::gather::Gathered;
use crate::run::journal::Journal;
use crate::run::rank_threads::{on_ranks, step_log};
use crate::run::storage_emulation::StorageEmulation;
use crate::spans;
use crate::train::page_cache::CachePolicy;
use crate::train::{Job, Trainer};

/// A file may differ from the described size by one part in this many, for headers of other writers.
const SIZE_TOLERANCE: u64 = 50;

/// Everything that a run is given; [`Run::new`] has the defaults.
pub struct Run {
    /// The workload to run.
    pub workload: Workload,
    /// What the user calls it.
    pub name: String,
    /// What follows from it.
    pub plan: Plan,
    /// The processes that run it, and their ranks.
    pub team: Team,
    /// The clock that times the run; simulated in tests.
    pub clock: Clock,
    /// Where the data set is; its root is the data folder.
    pub data: Arc<dyn Store>,
    /// Where checkpoints go; its root is the checkpoint folder.
    pub checkpoints: Arc<dyn Store>,
    /// Set to end the run early.
    pub stop: Arc<AtomicBool>,
    /// What happens to the page cache before each epoch.
    pub cache: CachePolicy,
    /// Whether checkpoints are dropped from the page cache before they are loaded.
    pub drop_before_load: bool,
    /// Whether it looks for its files first.
    pub listing: Listing,
    /// Hears how it goes.
    pub observer: Arc<dyn Observer>,
    /// Lines of the log below this are dropped.
    pub log_level: Level,
    /// Seed of shuffles whose mode is `random`.
    pub random_seed: u64,
    /// What the results say to be careful about.
    pub warnings: Vec<String>,
    /// What is emulated on top of both stores.
    pub storage: StorageEmulation,
    /// Whether the results say that the run was a quick look.
    pub quick: bool,
}

/// The results of a run that is over. Its result files and its log are complete.
pub struct RunResults {
    /// What every rank measured.
    pub outcome: Outcome,
    /// All metrics of the run.
    pub summary: Summary,
    /// The verdict and what it rests on.
    pub assessment: Assessment,
    /// What `summary.json` holds.
    pub file: SummaryFile,
}

/// A run that has passed every check; nothing has been written yet.
pub struct PreparedRun {
    run: Run,
    spec: DatasetSpec,
    /// The files to read, if they are there already.
    found: Option<Found>,
    /// What there is of the files to make.
    existing: ExistingFiles,
    /// What is known of the checkpoints, if there are to be any.
    saves: Option<CheckpointSetup>,
}

/// The files that a run reads.
#[derive(Serialize, Deserialize)]
struct Found {
    train: Discovered,
    eval: Option<Discovered>,
}

impl Run {
    /// A run of `plan` in this process alone, in real time, without an observer; everything else
    /// is set in its fields.
    pub fn new(
        workload: Workload,
        plan: Plan,
        data: Arc<dyn Store>,
        checkpoints: Arc<dyn Store>,
    ) -> Self {
        Self {
            name: workload.model.name.clone(),
            team: Team::alone(plan.ranks),
            workload,
            plan,
            clock: Clock::real(),
            data,
            checkpoints,
            stop: Arc::default(),
            cache: CachePolicy::Keep,
            drop_before_load: true,
            listing: Listing::Look,
            observer: Arc::new(Silent),
            log_level: Level::Error,
            random_seed: 0,
            warnings: Vec::new(),
            storage: StorageEmulation::default(),
            quick: false,
        }
    }

    /// Checks what can be checked before the first byte is written: that this version can run the
    /// workload, and that the data set is there or has room (Q31). Returns on all processes of the
    /// job once they have all passed.
    ///
    /// After an error, here or later, the caller tells the other processes ([`Team::abort`]).
    pub fn prepare(mut self) -> Result<PreparedRun> {
        let seed = self.workload.train.seed;
        let storage = self.storage.begin(&self.clock, seed, &self.stop, &self.team);
        self.data = storage.wrap(self.data);
        self.checkpoints = storage.wrap(self.checkpoints);
        let format = supported::format(&self.workload, self.plan.semantics)?;
        let spec = supported::dataset_spec(&self.workload, &self.plan, format);
        self.check_memory()?;
        let existing = ExistingFiles::Unknown;
        let mut prepared = PreparedRun { run: self, spec, found: None, existing, saves: None };
        let workflow = &prepared.run.workload.workflow;
        if workflow.checkpoint {
            prepared.saves = Some(CheckpointSetup::new(&prepared.run)?);
        }
        if workflow.generate_data {
            let quiet = |_| ();
            let generator = prepared.generator(&quiet);
            generator.check_layout()?;
            generator.check_folder()?;
            prepared.existing = wire::decide(&prepared.run.team, || {
                let existing = generator.look_back()?;
                generator.check_room(&existing)?;
                Ok(existing)
            })?;
        } else if workflow.train {
            prepared.found = Some(prepared.run.find()?);
        }
        let stop = Arc::clone(&prepared.run.stop);
        // Readers, sleeps and evaluation have no barrier at which they would notice an abort.
        prepared.run.team.on_abort(Box::new(move |_| stop.store(true, Ordering::Relaxed)));
        prepared.run.team.share_stop(&prepared.run.stop);
        prepared.run.team.max(0)?;
        Ok(prepared)
    }

    /// An error if the batches that the framework's workers have ready do not fit in memory.
    fn check_memory(&self) -> Result<()> {
        let held = self.plan.framework.burnt().map_or(0, |burnt| burnt.held_bytes);
        let geometry = self.team.geometry();
        let ranks = geometry.ranks_on(geometry.node_of(self.team.process()));
        let needed = held.saturating_mul(u64::from(ranks));
        match Host::available_bytes() {
            Some(available) if self.team.leads_node() && needed > available => {
                Err(BenchError::BatchesBeyondMemory { ranks, needed, available })
            }
            _ => Ok(()),
        }
    }

    /// Removes the data set if this run made it, or what was missing of it, and was told not to keep
    /// it. It does not remove what it did not make, unlike DLIO, which deletes the whole data folder.
    fn discard_data(workload: &Workload, data: &dyn Store, outcome: &Outcome) -> Result<()> {
        let done = !outcome.interrupted && !workload.generate_only();
        let made = outcome.generated.is_some_and(|made| made.files > 0);
        if workload.dataset.keep_files || !done || !made {
            return Ok(());
        }
        // First, so that what is left of an interrupted removal does not pass for a whole set.
        data.remove(MANIFEST_NAME)?;
        let format = supported::format(workload, outcome.plan.semantics)?;
        for rule in [&outcome.plan.train_files, &outcome.plan.eval_files] {
            remove_files(data, rule, format.companions())?;
        }
        if format
            .companions()
            .iter()
            .any(|companion| companion.place == CompanionPlace::IndexFolder)
        {
            data.remove("index")?;
        }
        Ok(data.remove("")?)
    }

    /// The files to read: process 0 looks, and the other machines see whether theirs are the same.
    fn find(&self) -> Result<Found> {
        let found = wire::decide(&self.team, || self.look())?;
        if self.team.leads_node() && !self.team.leads() && self.listing == Listing::Look {
            let names = found.train.names(&self.plan.train_files);
            let last = self.plan.train_files.total.saturating_sub(1);
            for number in [0, last] {
                let mut key = String::new();
                names.write_key(number, &mut key);
                if self.data.kind(&key)? != Some(EntryKind::File) {
                    let (file, host) = (self.data.locate(&key), Host::look().name);
                    return Err(BenchError::NotOnHost { file, host });
                }
            }
        }
        Ok(found)
    }

    fn look(&self) -> Result<Found> {
        let find = |rule: &NameRule, key| match self.listing {
            Listing::Look => discover(&*self.data, rule, key),
            Listing::Trust => Ok(Discovered::trusted(rule)),
        };
        let train = find(&self.plan.train_files, "dataset.num_subfolders_train")?;
        let eval = match self.plan.eval {
            Some(_) => Some(find(&self.plan.eval_files, "dataset.num_subfolders_eval")?),
            None => None,
        };
        Ok(Found { train, eval })
    }
}

impl PreparedRun {
    /// Runs everything, writes the results and the log into `folder`, and removes data that the
    /// workload does not keep. An interrupted run has results too; a failed one is an error.
    ///
    /// # Errors
    /// The data set, the storage, a result file, or another process of the job.
    pub fn execute(self, folder: &OutputFolder) -> Result<RunResults> {
        let journal = self.run.journal(folder)?;
        let (workload, data) = (self.run.workload.clone(), Arc::clone(&self.run.data));
        let circumstances = Circumstances {
            workload: self.run.name.clone(),
            quick: self.run.quick,
            storage: self.run.storage.clone(),
        };
        let outcome = self.measure(&journal, folder)?;
        let summary = Summary::new(&outcome);
        let assessment = Assessment::new(circumstances, &workload, &outcome, &summary);
        let file = files::write(folder, &outcome, &summary, &assessment)?;
        files::close_log(&journal, folder, &outcome, &summary, &assessment);
        Run::discard_data(&workload, &*data, &outcome)?;
        Ok(RunResults { outcome, summary, assessment, file })
    }

    /// Runs everything and gathers what the ranks measured; `folder` holds their steps meanwhile.
    fn measure(mut self, journal: &Journal, folder: &OutputFolder) -> Result<Outcome> {
        let start = Moment::now(&self.run.clock);
        let worked = self.work(journal, folder.path()).and_then(|(generated, ranks)| {
            Ok((generated, gather::receive(&self.run.team, ranks, folder.path())?))
        });
        match worked {
            Ok((generated, gathered)) => self.run.outcome(start, generated, gathered),
            Err(error) => {
                journal.dated(Level::Error, &chain(&error));
                Err(error)
            }
        }
    }

    /// Runs this process's part of everything; the results go to process 0.
    pub fn assist(mut self) -> Result<()> {
        let journal = Journal::silent(Arc::clone(&self.run.observer));
        let (_, ranks) = self.work(&journal, &std::env::temp_dir())?;
        gather::send(&self.run.team, &ranks)?;
        self.run.team.max(u64::from(self.run.stop.load(Ordering::Relaxed)))?;
        Ok(())
    }

    fn work(
        &mut self,
        journal: &Journal,
        out: &Path,
    ) -> Result<(Option<Generated>, Vec<RankOutcome>)> {
        self.run.announce(journal);
        let mut generated = None;
        if self.run.workload.workflow.generate_data {
            journal.output("Starting data generation");
            let span = spans::GENERATE.begin();
            let observer = &*self.run.observer;
            let made = self.generator(&|done| observer.generating(done)).run(&self.existing);
            observer.phase_ends();
            let made = made?;
            span.end();
            journal.output(&format!("Generation done: {} files, {} bytes", made.files, made.bytes));
            if made.kept_files > 0 {
                let (kept, total) = (made.kept_files, made.kept_files + made.files);
                let manifest = self.run.data.locate(MANIFEST_NAME);
                journal.output(&format!(
                    "{kept} of {total} files already existed; remove {manifest} to make all of them again"
                ));
            }
            generated = Some(made);
        }
        let mut ranks = Vec::new();
        let stopped = u64::from(self.run.stop.load(Ordering::Relaxed));
        if self.run.workload.workflow.train && self.run.team.max(stopped)? == 0 {
            let found = match self.found.take() {
                Some(found) => found,
                None => self.run.find()?,
            };
            self.run.announce_steps(journal);
            let (names, saves) = (found.train.names(&self.run.plan.train_files), self.saves.take());
            let format = supported::read_format(&self.run.workload, &self.run.plan.reading)?;
            ranks = self.run.train(format, found, saves, journal, out)?;
            // Afterwards: asking for its size would warm what a cold run is about to open.
            if self.run.team.leads()
                && let Some(notice) = self.size_notice(&*names)?
            {
                journal.plain(Level::Warning, &notice);
                self.run.warnings.push(notice);
            }
        } else if let Some(saves) = self.saves.take()
            && self.run.workload.checkpoint_only()
        {
            ranks = self.run.checkpoint(saves, journal, out)?;
        }
        Ok((generated, ranks))
    }

    /// A remark if the first file is not as large as the workload says it is.
    fn size_notice(&self, names: &dyn FileNames) -> Result<Option<String>> {
        let file = self.spec.file(0, SampleSizes::new(&self.spec.shape).next_dims());
        let FileSize::Exact(expected) = self.spec.format.size(&file) else { return Ok(None) };
        let mut key = String::new();
        names.write_key(0, &mut key);
        let Some(size) = self.run.data.size(&key)? else { return Ok(None) };
        let differs = size.abs_diff(expected) > expected / SIZE_TOLERANCE;
        Ok(differs.then(|| {
            format!(
                "{}: {size} bytes, but the workload describes a file of {expected}: DLIO's MB/s \
                 follow the workload, sample_MB_per_second the file",
                self.run.data.locate(&key)
            )
        }))
    }

    fn generator<'a>(&'a self, progress: &'a (dyn Fn(GenerationProgress) + Sync)) -> Generator<'a> {
        Generator {
            team: &self.run.team,
            clock: &self.run.clock,
            store: &*self.run.data,
            spec: &self.spec,
            workload: &self.run.name,
            stop: &self.run.stop,
            progress,
        }
    }
}

impl Run {
    fn journal(&self, folder: &OutputFolder) -> Result<Journal> {
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
    }

    /// The steps of each phase and what they follow from.
    fn announce_steps(&self, journal: &Journal) {
        let ranks = self.plan.ranks;
        let describe = |phase: &crate::plan::PhasePlan, what: &str| {
            let (dealing, steps) = (&phase.dealing, phase.available_steps);
            let (files, batch) = (dealing.index.files(), dealing.batch);
            let per_file = self.plan.samples_per_file;
            // Elsewhere than in DLIO the last step may be short.
            let dealt = match steps == dealing.index.len() / (batch * u64::from(ranks)) {
                true => String::new(),
                false => format!(", rounded as `{}` sharding does", phase.sharding),
            };
            journal.output(&format!(
                "{what}: {steps} = {per_file} * {files} / {batch} / {ranks} \
                 (samples per file * num files / batch size / comm size){dealt}"
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
        format: Arc<dyn Format>,
        found: Found,
        saves: Option<CheckpointSetup>,
        journal: &Journal,
        out: &Path,
    ) -> Result<Vec<RankOutcome>> {
        for notice in
            [&found.train].into_iter().chain(&found.eval).filter_map(|f| f.notice.as_ref())
        {
            journal.plain(Level::Warning, notice);
            self.warnings.push(notice.clone());
        }
        spans::mark_read_model(self.plan.reading.reading.model);
        let data_set = |found: &Discovered, rule: &NameRule| {
            let (store, stop) = (Arc::clone(&self.data), Arc::clone(&self.stop));
            let (names, reading) = (found.names(rule), self.plan.reading.reading);
            DataSet { store, names, format: Arc::clone(&format), reading, stop, look: None }
        };
        let mut train_data = data_set(&found.train, &self.plan.train_files);
        train_data.look = Some(Arc::default());
        let eval_data = found.eval.map(|found| data_set(&found, &self.plan.eval_files));
        let saves = saves.map(|saves| self.save_job(saves, journal)).transpose()?;
        let job = Job {
            clock: &self.clock,
            plan: &self.plan,
            workload: &self.workload,
            train_data,
            eval_data,
            cache: self.cache,
            seed: self.seed(),
            stop: Arc::clone(&self.stop),
            journal,
            observer: &*self.observer,
        };
        self.on_ranks(saves.as_ref(), |rank| {
            let log = step_log(out)?;
            with_saver(saves.as_ref(), rank, |saver| Trainer::new(&job, rank, log, saver).run())
        })
    }

    /// Saves and loads checkpoints and does nothing else.
    fn checkpoint(
        &self,
        saves: CheckpointSetup,
        journal: &Journal,
        out: &Path,
    ) -> Result<Vec<RankOutcome>> {
        let job = self.save_job(saves, journal)?;
        let observer = &*self.observer;
        self.on_ranks(Some(&job), |rank| {
            let log = step_log(out)?;
            with_saver(Some(&job), rank, |saver| {
                let saver = saver.expect("there is a job for it");
                CheckpointPhase { job: &job, ranks: rank, journal, observer }.run(saver, log)
            })
        })
    }

    fn save_job(&self, setup: CheckpointSetup, journal: &Journal) -> Result<SaveJob<'_>> {
        setup.announce(journal);
        self.checkpoints.make_folder("")?;
        let (store, stop) = (Arc::clone(&self.checkpoints), Arc::clone(&self.stop));
        Ok(SaveJob::new(&self.clock, store, &self.workload, setup, stop))
    }

    /// `random` draws a new order every run, everything else follows the workload's seed.
    fn seed(&self) -> u64 {
        let reader = &self.workload.reader;
        let random = match reader.sample_shuffle {
            ShuffleMode::Off => reader.file_shuffle == ShuffleMode::Random,
            mode => mode == ShuffleMode::Random,
        };
        if random { self.random_seed } else { u64::from(self.workload.train.seed) }
    }

    fn outcome(
        self,
        start: Moment,
        generated: Option<Generated>,
        gathered: Gathered,
    ) -> Result<Outcome> {
        Ok(Outcome {
            seed: self.seed(),
            cache: self.cache,
            data: self.data.locate(""),
            capabilities: self.data.capabilities(),
            geometry: self.team.geometry().clone(),
            hosts: gathered.hosts,
            start,
            end: Moment::now(&self.clock),
            generated,
            ranks: gathered.ranks,
            interrupted: self.team.max(u64::from(self.stop.load(Ordering::Relaxed)))? > 0,
            warnings: self.warnings,
            plan: self.plan,
        })
    }
}

impl Run {
    /// Works on every rank of this process, and cleans up after those that failed.
    fn on_ranks(
        &self,
        saves: Option<&SaveJob<'_>>,
        work: impl Fn(&Member) -> Result<RankOutcome> + Sync,
    ) -> Result<Vec<RankOutcome>> {
        let done = on_ranks((&self.clock, &self.stop), &self.team, &work);
        if let Some(saves) = saves {
            saves.discard_drafts();
        }
        done
    }
}

/// Removes the files of one rule, what goes with them, and the folders that they leave empty.
fn remove_files(data: &dyn Store, rule: &NameRule, companions: &[Companion]) -> Result<()> {
    let mut key = String::new();
    for number in 0..rule.total {
        key.clear();
        rule.write_key(number, &mut key);
        data.remove(&key)?;
        companions.iter().try_for_each(|companion| data.remove(&companion.key(&key)))?;
    }
    if companions.iter().any(|companion| companion.place == CompanionPlace::IndexFolder) {
        data.remove(&format!("index/{}", rule.folder))?;
    }
    for number in 0..rule.subfolders.max(1) {
        key.clear();
        rule.write_folder(number, &mut key);
        data.remove(&key)?;
    }
    Ok(data.remove(rule.folder)?)
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use feedline_store::Memory;

    use super::*;

    #[test]
    fn files_are_removed_with_what_goes_with_them_and_nothing_else() {
        let rule = |folder, total, subfolders| NameRule {
            folder,
            prefix: "img".into(),
            total,
            subfolders,
            extension: "bin",
        };
        let companions = [
            Companion { suffix: ".off", place: CompanionPlace::Beside },
            Companion { suffix: ".idx", place: CompanionPlace::IndexFolder },
        ];
        let store = Memory::new(Clock::real());
        let own = ["train/0/img_0_of_2.bin", "train/1/img_1_of_2.bin", "valid/img_0_of_1.bin"];
        for key in own {
            store.put(key, &b"data"[..]);
            companions.iter().for_each(|companion| store.put(&companion.key(key), &b"x"[..]));
        }
        store.put("index/valid/mine", &b"mine"[..]);
        remove_files(&store, &rule("train", 2, 2), &companions).unwrap();
        remove_files(&store, &rule("valid", 1, 0), &companions).unwrap();
        for folder in ["train", "valid", "index/train"] {
            assert_eq!(store.kind(folder).unwrap(), None, "{folder}");
        }
        let mut left = Vec::new();
        let visit = &mut |entry: feedline_store::FolderEntry<'_>| {
            left.push(entry.name.to_owned());
            std::ops::ControlFlow::Continue(())
        };
        store.list("index/valid", visit).unwrap();
        assert_eq!(left, ["mine"]);
    }
}
