//! DLIO's command line, exit codes and log, for everything written for `dlio_benchmark`.
//!
//! Exit 0 when it ran, 1 on an error, 255 when more steps are asked for than the data has. The log
//! goes to stderr and to `dlio.log`; results replace what is in the run folder. One process is one
//! rank, as in DLIO; `FEEDLINE_ACCELERATORS=N` makes it N for the whole job.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use feedline_bench::{Dialect, Existing, Level};
use feedline_engine::{
    EngineError, PlannedRun, RunOptions, RunOutput, StoredCalibration, WorkloadSelection,
    WorkloadSource,
};
use feedline_workload::{Cfg, DlioCommandLine, Sharding, WorkloadError, default_run_dir, to_yaml};

use crate::job::Job;
use crate::progress::Progress;
use crate::{failure, show, signals};

const HELP: &str = "\
Feedline, started as dlio_benchmark: runs DLIO workloads.

  dlio_benchmark workload=NAME [overrides]

Overrides: key=value changes a key, +key=value adds one, ++key=value does either, ~key deletes one.
  workload=unet3d_h100                          choose a workload
  ++workload.dataset.data_folder=DIR            where the data is
  ++workload.workflow.generate_data=True        make the data first
  hydra.run.dir=DIR                             where the results go

Flags: --config-dir DIR  a folder with workload/NAME.yaml files
       --cfg job         print the workload and run nothing
       --help, --version

Ranks read the blocks that DLIO's main branch (commit e1919d7) gives them;
++workload.reader.sharding=dlio_2.0.0 does as the released 2.0.0, =strided as PyTorch.
FEEDLINE_ACCELERATORS=N emulates N accelerators instead of one per process. DLIO_LOG_LEVEL sets the log level.
`feedline workloads` lists the workloads, `feedline run --help` tells of everything else.";

/// DLIO's exit code of an error.
pub(crate) const ERROR: u8 = 1;

/// Runs as DLIO.
pub(crate) fn main(args: Vec<String>, job: Job) -> ExitCode {
    let result = if job.leads() { run(&args, &job) } else { job.assist() };
    job.end(result, Dialect::Dlio, |error| {
        let too_many = error.chain().any(|cause| {
            let found = cause.downcast_ref::<EngineError>();
            matches!(found, Some(EngineError::Workload(WorkloadError::StepsBeyondData { .. })))
        });
        if too_many { 255 } else { ERROR }
    })
}

fn run(args: &[String], job: &Job) -> anyhow::Result<u8> {
    let line = DlioCommandLine::parse(args)?;
    if line.help || line.hydra_help {
        job.dismiss()?;
        return show::print(HELP);
    }
    if line.version {
        job.dismiss()?;
        return show::print(&format!("Feedline {} as dlio_benchmark", env!("CARGO_PKG_VERSION")));
    }
    let folders: Vec<_> = [&line.config_path, &line.config_dir].into_iter().flatten().collect();
    let source = folders
        .iter()
        .find_map(|folder| {
            WorkloadSource::find(line.workload(), Some(Path::new(folder.as_str()))).ok()
        })
        .map_or_else(|| WorkloadSource::find(line.workload(), None), Ok)?;
    let selection = WorkloadSelection::new(source, line.overrides.clone());
    if let Some(cfg) = line.cfg {
        job.dismiss()?;
        return print_config(cfg, &line, &selection);
    }
    let level = log_level()?;
    let options = RunOptions {
        sharding: Sharding::Dlio,
        drop_before_load: false,
        calibration: StoredCalibration::find(None)?,
        ..RunOptions::new(accelerators()?.unwrap_or(job.processes()))?
    };
    job.check_ranks(options.accelerators)?;
    let stop = Arc::default();
    let planned = PlannedRun::new(selection, options, &stop)?;
    let run_dir = run_dir(&planned);
    let folder = planned.workload.output.folder.clone();
    let output = RunOutput {
        existing: Existing::Replace,
        log_level: level,
        ..RunOutput::new(folder.map_or_else(|| run_dir.clone(), PathBuf::from))
    };
    let output = RunOutput { run_dir, ..output };
    signals::set_on_signal(&stop)?;
    let progress = Arc::new(Progress::log_only(level));
    let done = feedline_engine::run(planned, &output, job.begin(), progress)?;
    Ok(if done.results.outcome.interrupted { failure::INTERRUPTED } else { 0 })
}

fn print_config(
    cfg: Cfg,
    line: &DlioCommandLine,
    selection: &WorkloadSelection,
) -> anyhow::Result<u8> {
    let composed = selection.composed()?;
    let tree = if line.resolve { &composed.tree } else { &composed.unresolved };
    let job = match &line.package {
        None => to_yaml(tree),
        Some(package) => {
            let part =
                tree.get(package).with_context(|| format!("--package {package}: no such key"))?;
            to_yaml(part)
        }
    };
    let cwd = std::env::current_dir().unwrap_or_default();
    let run_dir = composed.hydra.run_dir.clone().unwrap_or_default();
    let cwd = cwd.to_string_lossy();
    let hydra = composed.hydra_yaml(feedline_workload::RunPaths { run_dir: &run_dir, cwd: &cwd });
    show::print(&match cfg {
        Cfg::Job => job,
        Cfg::Hydra => hydra,
        Cfg::All => hydra + &job,
    })
}

/// Hydra's run folder: as given, or `./hydra_log/<model>/<date>-<time>`.
fn run_dir(planned: &PlannedRun) -> PathBuf {
    let now = |format: &str| jiff::Zoned::now().strftime(format).to_string();
    let given = planned.composed.hydra.run_dir.clone();
    PathBuf::from(given.unwrap_or_else(|| default_run_dir(&planned.workload.model.name, &now)))
}

fn log_level() -> anyhow::Result<Level> {
    let text = std::env::var("DLIO_LOG_LEVEL").unwrap_or_else(|_| "warning".to_owned());
    match text.to_ascii_lowercase().as_str() {
        "debug" | "info" => Ok(Level::Info),
        "warning" | "warn" => Ok(Level::Warning),
        "error" | "critical" => Ok(Level::Error),
        _ => Err(failure::hinted(
            format!("DLIO_LOG_LEVEL={text}: no such level"),
            "use debug, info, warning, error or critical",
        )),
    }
}

fn accelerators() -> anyhow::Result<Option<u32>> {
    let Ok(text) = std::env::var("FEEDLINE_ACCELERATORS") else { return Ok(None) };
    match text.parse() {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Err(failure::hinted(
            format!("FEEDLINE_ACCELERATORS={text}: expected a whole number > 0"),
            "FEEDLINE_ACCELERATORS=4",
        )),
    }
}
