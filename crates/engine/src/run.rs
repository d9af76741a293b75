//! A run, from its plan to its result files, alone or in a job of several processes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{BenchError, Existing, Level, Observer, OutputFolder, Run, RunResults, Team};
use feedline_dataset::Listing;
use feedline_ranks::Link;
use feedline_tracer::record_this_process;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::options::RunOptions;
use crate::place;
use crate::planned::PlannedRun;
use crate::selection::WorkloadSelection;

/// The version of this build; all processes of a job must have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the results of a run go.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The folder of the result files.
    pub folder: PathBuf,
    /// Where Hydra's files go.
    pub run_dir: PathBuf,
    /// What happens to results that are there already.
    pub existing: Existing,
    /// Lines of the log below this are dropped.
    pub log_level: Level,
    /// Whether the results say that the run was a quick look.
    pub is_quick: bool,
}

impl RunOutput {
    /// All files in one folder, which must not hold results yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let (run_dir, existing) = (folder.clone(), Existing::Refuse);
        Self { folder, run_dir, existing, log_level: Level::Warning, is_quick: false }
    }
}

/// A run that is over: its results, which are also on disk.
pub struct FinishedRun {
    /// What was measured, and what follows from it.
    pub results: RunResults,
    /// The folder of the result files.
    pub folder: PathBuf,
    /// Events that did not make it into the trace of this process.
    pub lost_events: u64,
}

/// What process 0 sends to the others: a run in which they take part.
#[derive(Serialize, Deserialize)]
pub struct RunOrder {
    version: String,
    selection: WorkloadSelection,
    options: RunOptions,
}

/// Runs a workload on this process and on all others that `link` joins, which must be in [`hear`].
///
/// # Errors
/// The data set, the storage, or another process of the job. The caller tells the other processes.
pub fn run(
    planned: PlannedRun,
    output: &RunOutput,
    link: Arc<dyn Link>,
    observer: Arc<dyn Observer>,
) -> Result<FinishedRun, EngineError> {
    let (selection, options) = (planned.selection.clone(), planned.options.clone());
    send(&*link, Some(&RunOrder { version: VERSION.to_owned(), selection, options }))?;
    let run = build(&planned, link)?;
    let run = Run { observer, log_level: output.log_level, quick: output.is_quick, ..run };
    let ranks = ranks_of(&run.team);
    let run = run.prepare()?;
    let folder = OutputFolder::claim(&output.folder, output.existing)?;
    for (name, text) in planned.hydra_files(&output.run_dir) {
        folder.write_at(&output.run_dir.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    let (results, lost_events) =
        recorded(planned.options.trace.as_deref(), ranks, || Ok(run.execute(&folder)?))?;
    Ok(FinishedRun { results, folder: output.folder.clone(), lost_events })
}

/// Waits for what process 0 has to say; `None` if there is nothing to do.
///
/// # Errors
/// Process 0 has failed, or runs another build.
pub fn hear(link: &dyn Link) -> Result<Option<RunOrder>, EngineError> {
    let bytes = link.broadcast(Vec::new()).map_err(BenchError::Aborted)?;
    let order: Option<RunOrder> =
        serde_json::from_slice(&bytes).map_err(EngineError::OtherMessage)?;
    match order {
        Some(RunOrder { version, .. }) if version != VERSION => {
            Err(EngineError::OtherVersion { ours: VERSION.to_owned(), theirs: version })
        }
        order => Ok(order),
    }
}

impl RunOrder {
    /// Does this process's part of the run, until it is over; how many events its trace lost.
    ///
    /// # Errors
    /// As [`run`].
    pub fn assist(self, link: Arc<dyn Link>, stop: &Arc<AtomicBool>) -> Result<u64, EngineError> {
        let planned = PlannedRun::new(self.selection, self.options, stop)?;
        let run = build(&planned, link)?;
        let (trace, ranks) = (planned.options.trace.as_deref(), ranks_of(&run.team));
        let run = run.prepare()?;
        let ((), lost) = recorded(trace, ranks, || Ok(run.assist()?))?;
        Ok(lost)
    }
}

/// Tells the processes that are in [`hear`] that there is nothing to do.
///
/// # Errors
/// Another process of the job has failed.
pub fn dismiss(link: &dyn Link) -> Result<(), EngineError> {
    send(link, None)
}

fn send(link: &dyn Link, order: Option<&RunOrder>) -> Result<(), EngineError> {
    let bytes = serde_json::to_vec(&order).expect("options have no keys that are not text");
    link.broadcast(bytes).map_err(BenchError::Aborted)?;
    Ok(())
}

fn ranks_of(team: &Team) -> Range<u32> {
    team.geometry().ranks_of(team.process())
}

/// Does some work and records it if there is a folder for the trace. `ranks` are those of this process.
/// Also returns how many events were lost.
fn recorded<T>(
    folder: Option<&Path>,
    ranks: Range<u32>,
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<(T, u64), EngineError> {
    let Some(folder) = folder else { return Ok((work()?, 0)) };
    let rank = (ranks.len() == 1).then_some(ranks.start);
    let (done, drained) = record_this_process(folder, rank, work)?;
    Ok((done?, drained.dropped))
}

/// This process's part of a run.
fn build(planned: &PlannedRun, link: Arc<dyn Link>) -> Result<Run, EngineError> {
    let (workload, options, stop) = (&planned.workload, &planned.options, &planned.stop);
    feedline_store::allow_open_files().map_err(EngineError::OpenFiles)?;
    let (data, checkpoints) = (planned.data()?, place::checkpoints(workload, stop)?);
    Ok(Run {
        name: planned.composed.name.clone(),
        team: Team::new(link, options.accelerators).map_err(EngineError::Team)?,
        stop: Arc::clone(stop),
        cache: options.cache,
        drop_before_load: options.drop_before_load,
        listing: match workload.dataset.skip_listing {
            true => Listing::Trust,
            false => Listing::Look,
        },
        random_seed: options.seed,
        warnings: planned.warnings.iter().cloned().chain(planned.plan.trim_notice()).collect(),
        storage: options.storage.clone(),
        ..Run::new(workload.clone(), planned.plan.clone(), data, checkpoints)
    })
}
