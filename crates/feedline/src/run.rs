//! `feedline run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use feedline_bench::results::{self, LogSettings};
use feedline_bench::{
    CachePolicy, Existing, Level, Listing, NameRule, Observer, Outcome, OutputFolder, Report, Run,
    Summary, discover,
};
use feedline_clock::Clock;
use feedline_report::units;
use feedline_workload::{Override, Root};
use serde_json::Value;

use crate::args::{Cache, RunArgs};
use crate::calibration_file::Stored;
use crate::failure;
use crate::job::Job;
use crate::order::{self, Letter, NOTHING, Order};
use crate::progress::Progress;
use crate::request::{self, Request, Text, Wish};
use crate::require::Requirement;
use crate::{place, quick, show, signals, tracing};

/// Runs a workload as the arguments say; the exit code.
pub(crate) fn main(args: &RunArgs, job: &Job) -> anyhow::Result<u8> {
    if !job.leads() {
        return order::assist(job);
    }
    let requirements =
        args.require.iter().map(|text| Requirement::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if args.generate_only && !requirements.is_empty() {
        let hint = "leave --generate-only or --require out";
        return Err(failure::hinted("--require needs a run that trains", hint));
    }
    let order = Order {
        version: order::VERSION.to_owned(),
        accelerators: args.accelerators.unwrap_or(job.processes()),
        as_dlio: args.as_dlio,
        named_dlio: false,
        cache: cache_policy(args),
        drop_before_load: args.cache != Some(Cache::Keep),
        seed: random_seed()?,
        store_limit: args.store_limit.clone(),
        store_faults: args.store_fault.clone(),
        calibration: Stored::find(args.calibration.as_deref())?,
        trace: args.trace.as_deref().map(tracing::folder).transpose()?,
    };
    job.team(order.accelerators)?;
    let wish = wish(args, &order)?;
    let mut request = order.request(&wish)?;
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
    if request.workload.data_root().is_url() {
        refuse_cache(args)?;
        // Sends nothing, and refuses what is no place.
        place::data(&request, &Arc::default())?;
    }
    if let Some(caution) = order.wanted()?.caution() {
        failure::say(&format!("warning: {caution}"));
        request.warnings.push(caution);
    }
    if args.dry_run {
        job.tell(&NOTHING)?;
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
        quick: args.quick,
    };
    job.tell(&Some((&order, Letter::from(&wish))))?;
    let done = execute(request, &order, &settings, Arc::new(Progress::new()), job)?;
    show::result(&done, args.json)?;
    Ok(exit_code(&done, &requirements))
}

/// An object store is asked past every page cache of this machine.
fn refuse_cache(args: &RunArgs) -> anyhow::Result<()> {
    match args.cache {
        None | Some(Cache::Keep) => Ok(()),
        Some(_) => Err(failure::hinted(
            "--cache drop and --cache warm need files: an object store has no page cache here",
            "leave --cache out",
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

fn exit_code(done: &Done, requirements: &[Requirement]) -> u8 {
    let missed: Vec<_> = requirements.iter().filter_map(|r| r.missed(&done.json)).collect();
    for text in &missed {
        failure::say(&format!("missed: {text}"));
    }
    if done.outcome.interrupted {
        let folder = done.folder.display();
        failure::say(&match done.summary.train {
            None if done.outcome.ranks.is_empty() => {
                format!("stopped before training; the log is in {folder}")
            }
            _ => format!("stopped: the results so far are in {folder}"),
        });
        return failure::INTERRUPTED;
    }
    if missed.is_empty() { 0 } else { failure::MISSED }
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

/// What the arguments ask for.
fn wish(args: &RunArgs, order: &Order) -> anyhow::Result<Wish> {
    let (text, mut overrides) = named(&args.words, args.config_dir.as_deref())?;
    overrides.extend(flag_overrides(args)?);
    let mut wish = Wish::new(text, overrides);
    if !args.quick {
        return Ok(wish);
    }
    // First, so that whatever the user says wins.
    let full = wish.workload()?;
    wish.overrides.splice(..0, parse_all(&quick::overrides(&full, order.accelerators))?);
    if full.checkpoint_only() {
        return Ok(wish);
    }
    let there = data_is_there(&order.request(&wish)?)?;
    if !args.generate && !args.generate_only && there {
        return Ok(wish);
    }
    // Data of its own, beside whatever is in the data folder, made unless an earlier run did.
    let folder = Root::parse(&full.dataset.data_folder).join(QUICK_FOLDER).to_string();
    let folder = format!("dataset.data_folder={}", quoted(&folder));
    let wish = wish.with(parse_all(&[folder])?);
    if data_is_there(&order.request(&wish)?)? && !args.generate_only {
        return Ok(wish);
    }
    Ok(wish.with(parse_all(&["workflow.generate_data=True"])?))
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
fn data_is_there(request: &Request) -> anyhow::Result<bool> {
    let store = place::data(request, &Arc::default())?;
    let complete = |rule: &NameRule, key| rule.total == 0 || discover(&*store, rule, key).is_ok();
    Ok(complete(&request.plan.train_files, "dataset.num_subfolders_train")
        && complete(&request.plan.eval_files, "dataset.num_subfolders_eval"))
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
    pub(crate) quick: bool,
}

/// This process's part of a run that its ranks and stores are ready for.
pub(crate) fn build(
    request: &Request,
    order: &Order,
    observer: Arc<dyn Observer>,
    log_level: Level,
    job: &Job,
) -> anyhow::Result<Run> {
    let stop = signals::stop()?;
    feedline_store::allow_open_files().context("cannot look up how many files may be open")?;
    let (clock, team) = (Clock::real(), job.team(order.accelerators)?);
    let storage = order.wanted()?.begin(&clock, request.workload.train.seed, &stop, &team);
    Ok(Run {
        plan: request.plan.clone(),
        workload: request.workload.clone(),
        name: request.composed.name.clone(),
        team,
        clock,
        data: storage.wrap(place::data(request, &stop)?),
        checkpoints: storage.wrap(place::checkpoints(&request.workload, &stop)?),
        stop,
        cache: order.cache,
        drop_before_load: order.drop_before_load,
        listing: match request.workload.dataset.skip_listing {
            true => Listing::Trust,
            false => Listing::Look,
        },
        observer,
        log_level,
        random_seed: order.seed,
        warnings: request.warnings.iter().cloned().chain(request.plan.trim_notice()).collect(),
    })
}

/// Runs, on process 0, and writes every result file.
pub(crate) fn execute(
    request: Request,
    order: &Order,
    settings: &Settings<'_>,
    observer: Arc<dyn Observer>,
    job: &Job,
) -> anyhow::Result<Done> {
    let run = build(&request, order, Arc::clone(&observer), settings.log_level, job)?;
    let data = Arc::clone(&run.data);
    let run = run.prepare()?;
    let folder = OutputFolder::claim(settings.out, settings.existing)?;
    for (name, text) in request.hydra_files(settings.run_dir) {
        folder.write_at(&settings.run_dir.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    let ranks = job.ranks(order.accelerators)?;
    let outcome = tracing::traced(order.trace.as_deref(), ranks, || Ok(run.execute(&folder)?))?;
    let summary = Summary::new(&outcome);
    let mut report =
        Report::new(&request.composed.name, &request.workload, settings.quick, &outcome, &summary);
    report.altered = order.wanted()?.altered();
    let json = results::write(&folder, &outcome, &summary, &report)?;
    let name = request.workload.output.log_file.clone();
    let log = LogSettings { name, level: settings.log_level, observer };
    results::close_log(&folder, &log, &outcome, &summary, &report)?;
    Run::discard_data(&request.workload, &*data, &outcome)?;
    Ok(Done { outcome, summary, report, json, folder: settings.out.to_owned() })
}

/// A seed that differs from run to run.
pub(crate) fn random_seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    let mut source =
        std::fs::File::open("/dev/urandom").context("/dev/urandom: cannot be opened")?;
    std::io::Read::read_exact(&mut source, &mut bytes).context("/dev/urandom: cannot be read")?;
    Ok(u64::from_le_bytes(bytes))
}
