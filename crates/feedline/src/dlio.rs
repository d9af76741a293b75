//! DLIO's command line, exit codes and log, for everything written for `dlio_benchmark`.
//!
//! Exit 0 when it ran, 1 on an error, 255 when more steps are asked for than the data has. The log
//! goes to stderr and to `dlio.log`; results replace what is in the run folder. One process is one
//! rank, as in DLIO; `FEEDLINE_ACCELERATORS=N` makes it N for the whole job.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use feedline_bench::{CachePolicy, Dialect, Existing, Level};
use feedline_workload::{Cfg, DlioCommandLine, WorkloadError, default_run_dir, to_yaml};

use crate::calibration_file::Stored;
use crate::failure;
use crate::job::Job;
use crate::order::{self, Letter, NOTHING, Order};
use crate::progress::Progress;
use crate::request::{self, Request, Wish};
use crate::run::{self, Settings};
use crate::show;

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
FEEDLINE_ACCELERATORS=N emulates N accelerators instead of one a process. DLIO_LOG_LEVEL sets the log level.
`feedline workloads` lists the workloads, `feedline run --help` tells of everything else.";

/// DLIO's exit code of an error.
pub(crate) const ERROR: u8 = 1;

/// Runs as DLIO.
pub(crate) fn main(args: Vec<String>, job: Job) -> ExitCode {
    let result = if job.leads() { run(&args, &job) } else { order::assist(&job) };
    job.end(result, Dialect::Dlio, |error| {
        let too_many = error.chain().any(|cause| {
            let found = cause.downcast_ref::<WorkloadError>();
            matches!(found, Some(WorkloadError::StepsBeyondData { .. }))
        });
        if too_many { 255 } else { ERROR }
    })
}

fn run(args: &[String], job: &Job) -> anyhow::Result<u8> {
    let line = DlioCommandLine::parse(args)?;
    if line.help || line.hydra_help {
        job.tell(&NOTHING)?;
        return show::print(HELP);
    }
    if line.version {
        job.tell(&NOTHING)?;
        return show::print(&format!("Feedline {} as dlio_benchmark", env!("CARGO_PKG_VERSION")));
    }
    let folders: Vec<_> = [&line.config_path, &line.config_dir].into_iter().flatten().collect();
    let text = folders
        .iter()
        .find_map(|folder| request::find(line.workload(), Some(Path::new(folder.as_str()))).ok())
        .map_or_else(|| request::find(line.workload(), None), Ok)?;
    let wish = Wish::new(text, line.overrides.clone());
    if let Some(cfg) = line.cfg {
        job.tell(&NOTHING)?;
        return print_config(cfg, &line, &wish);
    }
    let level = log_level()?;
    let order = Order {
        version: order::VERSION.to_owned(),
        accelerators: accelerators()?.unwrap_or(job.processes()),
        as_dlio: false,
        named_dlio: true,
        cache: CachePolicy::Keep,
        drop_before_load: false,
        seed: run::random_seed()?,
        store_limit: None,
        store_faults: Vec::new(),
        calibration: Stored::find(None)?,
        trace: None,
    };
    job.team(order.accelerators)?;
    let request = order.request(&wish)?;
    let run_dir = run_dir(&request);
    let out = request.workload.output.folder.clone().map_or_else(|| run_dir.clone(), PathBuf::from);
    let progress = Arc::new(Progress::log_only(level));
    let settings = Settings {
        out: &out,
        run_dir: &run_dir,
        existing: Existing::Replace,
        log_level: level,
        quick: false,
    };
    job.tell(&Some((&order, Letter::from(&wish))))?;
    let done = run::execute(request, &order, &settings, progress, job)?;
    Ok(if done.outcome.interrupted { failure::INTERRUPTED } else { 0 })
}

fn print_config(cfg: Cfg, line: &DlioCommandLine, wish: &Wish) -> anyhow::Result<u8> {
    let composed = wish.composed()?;
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
fn run_dir(request: &Request) -> PathBuf {
    let now = |format: &str| jiff::Zoned::now().strftime(format).to_string();
    let given = request.composed.hydra.run_dir.clone();
    PathBuf::from(given.unwrap_or_else(|| default_run_dir(&request.workload.model.name, &now)))
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
