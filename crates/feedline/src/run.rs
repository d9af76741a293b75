//! `feedline run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use feedline_bench::results::{self, LogSettings};
use feedline_bench::{
    BenchError, CachePolicy, Existing, Level, Listing, NameRule, Observer, Outcome, OutputFolder,
    Report, Run, Semantics, Summary, discover,
};
use feedline_clock::Clock;
use feedline_report::units;
use feedline_store::{Mode, Posix, Store};
use feedline_workload::{IoEngine, Override};
use serde_json::Value;

use crate::args::{Cache, RunArgs};
use crate::failure;
use crate::progress::Progress;
use crate::request::{self, Request, Text};
use crate::require::Requirement;
use crate::{launcher, quick, show, signals};

/// Runs a workload as the arguments say.
pub(crate) fn main(args: &RunArgs) -> anyhow::Result<ExitCode> {
    launcher::refuse_many()?;
    let requirements =
        args.require.iter().map(|text| Requirement::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if args.generate_only && !requirements.is_empty() {
        let hint = "leave --generate-only or --require out";
        return Err(failure::hinted("--require needs a run that trains", hint));
    }
    let request = request(args)?;
    for warning in &request.warnings {
        failure::say(&format!("warning: {warning}"));
    }
    if args.strict && !request.warnings.is_empty() {
        let found = units::counted(request.warnings.len() as u64, "warning");
        return Err(failure::hinted(
            format!("{found} about the workload, and --strict was given"),
            "mend the keys named above, or leave --strict out",
        ));
    }
    if cache_policy(args) == CachePolicy::Warm && request.workload.reader.odirect {
        return Err(failure::hinted(
            "--cache warm cannot go with `reader.odirect: true`: direct reads leave the page cache \
             alone",
            "use --cache keep, or --set reader.odirect=false",
        ));
    }
    if args.dry_run {
        return show::plan(&request);
    }
    let out = out_folder(args, &request);
    let run_dir =
        request.composed.hydra.run_dir.as_ref().map_or_else(|| out.clone(), PathBuf::from);
    let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
    let settings = Settings {
        out: &out,
        run_dir: &run_dir,
        existing,
        log_level: Level::Warning,
        cache: cache_policy(args),
        quick: args.quick,
    };
    let done = execute(request, &settings, Arc::new(Progress::new()))?;
    show::result(&done, args.json)?;
    Ok(exit_code(&done, &requirements))
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

/// Below the data folder: what `--quick` makes for itself.
const QUICK_FOLDER: &str = "quick";

/// A finished run and everything that was worked out about it.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) summary: Summary,
    pub(crate) report: Report,
    pub(crate) json: Value,
    pub(crate) folder: PathBuf,
}

fn exit_code(done: &Done, requirements: &[Requirement]) -> ExitCode {
    let missed: Vec<_> = requirements.iter().filter_map(|r| r.missed(&done.json)).collect();
    for text in &missed {
        failure::say(&format!("missed: {text}"));
    }
    if done.outcome.interrupted {
        let folder = done.folder.display();
        failure::say(&match done.summary.train {
            Some(_) => format!("stopped: the results so far are in {folder}"),
            None => format!("stopped before training; the log is in {folder}"),
        });
        return ExitCode::from(failure::INTERRUPTED);
    }
    ExitCode::from(if missed.is_empty() { 0 } else { failure::MISSED })
}

/// The workload that the words name, and the overrides among them.
pub(crate) fn named(
    words: &[String],
    config_dir: Option<&Path>,
) -> anyhow::Result<(Text, Vec<Override>)> {
    let is_override = |word: &&String| word.contains('=') || word.starts_with(['~', '+']);
    let (words, names): (Vec<_>, Vec<_>) = words.iter().partition(is_override);
    let overrides = parse_all(&words)?;
    let chosen = overrides.iter().filter_map(Override::workload_choice).next_back();
    let name = match (names.as_slice(), chosen) {
        ([name], None) => (*name).clone(),
        ([], Some(name)) => name.to_owned(),
        ([], None) => {
            return Err(failure::hinted(
                "no workload was named",
                "feedline run NAME, or workload=NAME",
            ));
        }
        ([first, ..], _) => {
            let second = names.get(1).map(|name| name.as_str());
            let also = second.or(chosen).unwrap_or_default();
            return Err(failure::hinted(
                format!("two workloads were named: {first} and {also}"),
                "name one; overrides have the form key=value",
            ));
        }
    };
    if let Some(folder) = config_dir.filter(|folder| !folder.is_dir()) {
        let message = format!("--config-dir {}: no such folder", folder.display());
        return Err(failure::hinted(message, "name a folder that holds workload/NAME.yaml"));
    }
    Ok((request::find(&name, config_dir)?, overrides))
}

fn request(args: &RunArgs) -> anyhow::Result<Request> {
    let (text, mut overrides) = named(&args.words, args.config_dir.as_deref())?;
    overrides.extend(flag_overrides(args)?);
    let semantics = if args.as_dlio { Semantics::Dlio } else { Semantics::Feedline };
    let request =
        |overrides: &[Override]| Request::new(&text, overrides, args.accelerators, semantics);
    if !args.quick {
        return request(&overrides);
    }
    // First, so that whatever the user says wins.
    let full = feedline_workload::resolve(&request::composed(&text, &overrides)?)?.workload;
    overrides.splice(..0, parse_all(&quick::overrides(&full, args.accelerators))?);
    let there = request(&overrides)?;
    if !args.generate && !args.generate_only && data_is_there(&there) {
        return Ok(there);
    }
    // Data of its own, beside whatever is in the data folder, made unless an earlier run did.
    let folder = Path::new(&full.dataset.data_folder).join(QUICK_FOLDER);
    let folder = format!("dataset.data_folder={}", quoted(&folder.to_string_lossy()));
    overrides.extend(parse_all(&[folder])?);
    let made = request(&overrides)?;
    if data_is_there(&made) && !args.generate_only {
        return Ok(made);
    }
    overrides.extend(parse_all(&["workflow.generate_data=True"])?);
    request(&overrides)
}

pub(crate) fn parse_all(words: &[impl AsRef<str>]) -> anyhow::Result<Vec<Override>> {
    Ok(words
        .iter()
        .map(|word| Override::parse_friendly(word.as_ref()))
        .collect::<Result<Vec<_>, _>>()?)
}

/// What the flags say, as overrides, so that the run's record shows it.
fn flag_overrides(args: &RunArgs) -> anyhow::Result<Vec<Override>> {
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
    parse_all(&words)
}

/// A value that the override grammar takes as this very text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// True if every file that the run reads is there already, be it in a larger set.
fn data_is_there(request: &Request) -> bool {
    let store = Posix::new(request.data_folder(), Mode::Buffered);
    let complete = |rule: &NameRule, key| rule.total == 0 || discover(&store, rule, key).is_ok();
    complete(&request.plan.train_files, "dataset.num_subfolders_train")
        && complete(&request.plan.eval_files, "dataset.num_subfolders_eval")
}

/// Where the results go: `--out`, `output.folder`, `hydra.run.dir`, or a folder named by the time.
fn out_folder(args: &RunArgs, request: &Request) -> PathBuf {
    let named = args.out.clone();
    let configured = || request.workload.output.folder.clone().map(PathBuf::from);
    let hydra = || request.composed.hydra.run_dir.clone().map(PathBuf::from);
    named.or_else(configured).or_else(hydra).unwrap_or_else(|| {
        let date = jiff::Zoned::now().strftime("%Y-%m-%d-%H-%M-%S").to_string();
        let folder = Path::new("feedline_results").join(&request.composed.name).join(&date);
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

/// How a run is to be recorded.
pub(crate) struct Settings<'a> {
    /// Where the results go.
    pub(crate) out: &'a Path,
    /// Where Hydra's files go.
    pub(crate) run_dir: &'a Path,
    pub(crate) existing: Existing,
    pub(crate) log_level: Level,
    pub(crate) cache: CachePolicy,
    pub(crate) quick: bool,
}

/// Runs and writes every result file.
pub(crate) fn execute(
    request: Request,
    settings: &Settings<'_>,
    observer: Arc<dyn Observer>,
) -> anyhow::Result<Done> {
    let stop = signals::stop()?;
    feedline_store::allow_open_files().context("cannot look up how many files may be open")?;
    let data: Arc<dyn Store> = Arc::new(data_store(&request)?);
    let checkpoints = Path::new(&request.workload.checkpoint.checkpoint_folder);
    let run = Run {
        plan: request.plan.clone(),
        workload: request.workload.clone(),
        name: request.composed.name.clone(),
        clock: Clock::real(),
        data: Arc::clone(&data),
        checkpoints: Arc::new(Posix::new(checkpoints, Mode::Buffered)),
        stop,
        cache: settings.cache,
        listing: match request.workload.dataset.skip_listing {
            true => Listing::Trust,
            false => Listing::Look,
        },
        observer: Arc::clone(&observer),
        log_level: settings.log_level,
        random_seed: random_seed()?,
        warnings: request.warnings.iter().cloned().chain(request.plan.trim_notice()).collect(),
    };
    let run = run.prepare()?;
    let folder = OutputFolder::claim(settings.out, settings.existing)?;
    for (name, text) in request.hydra_files(settings.run_dir) {
        folder.write_at(&settings.run_dir.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    let outcome = run.execute(&folder)?;
    let summary = Summary::new(&outcome);
    let report =
        Report::new(&request.composed.name, &request.workload, settings.quick, &outcome, &summary);
    let json = results::write(&folder, &outcome, &summary, &report)?;
    let name = request.workload.output.log_file.clone();
    let log = LogSettings { name, level: settings.log_level, observer };
    results::close_log(&folder, &log, &outcome, &summary, &report)?;
    Run::discard_data(&request.workload, &*data, &outcome)?;
    Ok(Done { outcome, summary, report, json, folder: settings.out.to_owned() })
}

/// The data folder, read and written as the workload says.
fn data_store(request: &Request) -> anyhow::Result<Posix> {
    let reading = &request.plan.reading;
    let mode = match (reading.engine, reading.direct) {
        (IoEngine::Mmap, _) => Mode::Mapped,
        (_, true) => Mode::Direct,
        (_, false) => Mode::Buffered,
    };
    let mut store = Posix::new(request.data_folder(), mode);
    if let Some(bytes) = request.workload.reader.transfer_size {
        store = store.with_read_bytes(bytes as usize);
    }
    Ok(match reading.engine {
        IoEngine::IoUring => store.with_ring().map_err(BenchError::Store)?,
        _ => store,
    })
}

/// A seed that differs from run to run.
fn random_seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let mut source =
        std::fs::File::open("/dev/urandom").context("/dev/urandom: cannot be opened")?;
    std::io::Read::read_exact(&mut source, &mut bytes).context("/dev/urandom: cannot be read")?;
    Ok(u64::from_le_bytes(bytes))
}
