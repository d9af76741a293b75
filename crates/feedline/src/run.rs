//! `feedline run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{CachePolicy, Existing, Semantics, StorageEmulation};
use feedline_engine::{
    EngineError, FinishedRun, PlannedRun, QuickData, RunOptions, RunOutput, StoredCalibration,
    quoted,
};
use feedline_numbers::units;
use feedline_tracer::empty_folder;

use crate::args::{Cache, RunArgs};
use crate::failure;
use crate::job::Job;
use crate::progress::Progress;
use crate::require::Requirement;
use crate::{selection, show, signals};

/// Runs a workload as the arguments say; the exit code.
pub(crate) fn main(args: &RunArgs, job: &Job) -> anyhow::Result<u8> {
    if !job.leads() {
        return job.assist();
    }
    let requirements =
        args.require.iter().map(|text| Requirement::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if args.generate_only && !requirements.is_empty() {
        let hint = "omit --generate-only or --require";
        return Err(failure::hinted("--require needs a run that trains", hint));
    }
    let options = options(args, job)?;
    job.check_ranks(options.accelerators)?;
    let stop = Arc::default();
    let mut planned = plan(args, options, &stop)?;
    for warning in &planned.warnings {
        failure::say(&format!("warning: {warning}"));
    }
    check(args, &planned)?;
    if let Some(caution) = planned.options.storage.caution() {
        failure::say(&format!("warning: {caution}"));
        planned.warnings.push(caution);
    }
    if args.dry_run {
        job.dismiss()?;
        return show::plan(&planned);
    }
    let output = output(args, &planned);
    signals::set_on_signal(&stop)?;
    let done = feedline_engine::run(planned, &output, job.begin(), Arc::new(Progress::new()))?;
    failure::warn_of_lost_events(done.lost_events);
    show::result(&done, args.json)?;
    Ok(exit_code(&done, &requirements))
}

fn options(args: &RunArgs, job: &Job) -> anyhow::Result<RunOptions> {
    Ok(RunOptions {
        semantics: if args.as_dlio { Semantics::Dlio } else { Semantics::Feedline },
        cache: cache_policy(args),
        drop_before_load: args.cache != Some(Cache::Keep),
        storage: StorageEmulation::parse(args.store_limit.as_deref(), &args.store_fault)?,
        calibration: StoredCalibration::find(args.calibration.as_deref())?,
        trace: trace_folder(args)?,
        ..RunOptions::new(args.accelerators.unwrap_or(job.processes()))?
    })
}

/// The folder that `--trace` names. It is absolute: other processes of the job may run elsewhere.
fn trace_folder(args: &RunArgs) -> Result<Option<PathBuf>, EngineError> {
    Ok(args.trace.as_deref().map(empty_folder).transpose()?)
}

/// Composes, checks and plans what the arguments ask for.
fn plan(args: &RunArgs, options: RunOptions, stop: &Arc<AtomicBool>) -> anyhow::Result<PlannedRun> {
    let selection =
        selection::named(&args.words, args.config_dir.as_deref(), &flag_overrides(args))?;
    if !args.quick {
        return Ok(PlannedRun::new(selection, options, stop)?);
    }
    let data = match (args.generate_only, args.generate) {
        (true, _) => QuickData::New,
        (false, true) => QuickData::Own,
        (false, false) => QuickData::Any,
    };
    Ok(PlannedRun::quick(selection, options, data, stop)?)
}

/// An error if the flags do not go with the workload.
fn check(args: &RunArgs, planned: &PlannedRun) -> anyhow::Result<()> {
    if args.strict && !planned.warnings.is_empty() {
        let found = units::counted(planned.warnings.len() as u64, "warning");
        return Err(failure::hinted(
            format!("{found} about the workload, which --strict treats as errors"),
            "fix the keys named above, or omit --strict",
        ));
    }
    if planned.options.cache == CachePolicy::Warm && planned.workload.reader.odirect {
        return Err(failure::hinted(
            "--cache warm cannot be combined with `reader.odirect: true`: direct reads bypass the page \
             cache",
            "use --cache keep, or --set reader.odirect=false",
        ));
    }
    if !planned.workload.data_root().capabilities().page_cache {
        refuse_cache(args)?;
        // Sends nothing, and refuses invalid locations.
        planned.data()?;
    }
    Ok(())
}

/// An object store is asked past every page cache of this machine.
fn refuse_cache(args: &RunArgs) -> anyhow::Result<()> {
    match args.cache {
        None | Some(Cache::Keep) => Ok(()),
        Some(_) => Err(failure::hinted(
            "--cache drop and --cache warm need files: an object store has no page cache here",
            "omit --cache",
        )),
    }
}

/// A quick look is there to see the storage, and its data has just been written.
fn cache_policy(args: &RunArgs) -> CachePolicy {
    match args.cache {
        Some(Cache::Keep) => CachePolicy::Keep,
        Some(Cache::Drop) => CachePolicy::Drop,
        Some(Cache::Warm) => CachePolicy::Warm,
        None if args.quick => CachePolicy::Drop,
        None => CachePolicy::Keep,
    }
}

fn exit_code(done: &FinishedRun, requirements: &[Requirement]) -> u8 {
    let missed: Vec<_> = requirements.iter().filter_map(|r| r.missed(&done.results.file)).collect();
    for text in &missed {
        failure::say(&format!("missed: {text}"));
    }
    if done.results.outcome.interrupted {
        let folder = done.folder.display();
        failure::say(&match done.results.summary.train {
            None if done.results.outcome.ranks.is_empty() => {
                format!("stopped before training; the log is in {folder}")
            }
            _ => format!("stopped: the results so far are in {folder}"),
        });
        return failure::INTERRUPTED;
    }
    if missed.is_empty() { 0 } else { failure::MISSED }
}

/// What the flags say, as overrides, so that the run's record shows it.
fn flag_overrides(args: &RunArgs) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(folder) = &args.data {
        words.push(format!("dataset.data_folder={}", quoted(folder)));
    }
    if let Some(epochs) = args.epochs {
        words.push(format!("train.epochs={epochs}"));
    }
    if args.generate || args.generate_only {
        words.push("workflow.generate_data=True".to_owned());
    }
    if args.generate_only {
        for phase in ["train", "evaluation", "checkpoint"] {
            words.push(format!("workflow.{phase}=False"));
        }
    }
    words.extend(args.set.iter().cloned());
    words
}

/// Where the results go.
fn output(args: &RunArgs, planned: &PlannedRun) -> RunOutput {
    let folder = out_folder(args, planned);
    let run_dir =
        planned.composed.hydra.run_dir.as_ref().map_or_else(|| folder.clone(), PathBuf::from);
    let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
    RunOutput { run_dir, existing, is_quick: args.quick, ..RunOutput::new(folder) }
}

/// `--out`, `output.folder`, `hydra.run.dir`, or a folder named by the time.
fn out_folder(args: &RunArgs, planned: &PlannedRun) -> PathBuf {
    let named = args.out.clone();
    let configured = || planned.workload.output.folder.clone().map(PathBuf::from);
    let hydra = || planned.composed.hydra.run_dir.clone().map(PathBuf::from);
    named.or_else(configured).or_else(hydra).unwrap_or_else(|| {
        let date = jiff::Zoned::now().strftime("%Y-%m-%d-%H-%M-%S").to_string();
        let folder = Path::new("feedline_results").join(&planned.composed.name).join(&date);
        let taken = |n: &u32| folder.with_file_name(format!("{date}-{n}")).exists();
        match folder.exists() {
            false => folder,
            true => {
                let free = (2..).find(|n| !taken(n)).expect("numbers do not run out");
                folder.with_file_name(format!("{date}-{free}"))
            }
        }
    })
}
