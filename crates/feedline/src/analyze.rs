//! `feedline analyze`, `merge` and `diff`.

use std::fs;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use feedline_analyze::analysis::Answer;
use feedline_analyze::load::{self, AnalyzeError};
use feedline_analyze::partial::{PartialAnalysis, Shard};
use feedline_analyze::{Analysis, Settings, tables};
use feedline_report::export;
use feedline_store::write_file;
use feedline_trace::{FORMATS, TraceError, readable};

use crate::args::{AnalyzeArgs, DiffArgs, ExportFormat, MergeArgs, OutputArgs, ReadArgs};
use crate::load_progress::LoadProgressBar;
use crate::{failure, show, verdict_lane};

/// Analyzes a trace.
pub(crate) fn main(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    let mut settings = settings(&args.output)?;
    settings.load = options(&args.read)?;
    let shard = args.shard.as_deref().map(shard).transpose()?;
    make_room(&args.output, args.perfetto.iter().chain(&args.out))?;
    if args.perfetto.is_some() {
        verdict_lane::check(&args.inputs)?;
    }
    let progress = LoadProgressBar::new();
    if let (Some(shard), Some(out)) = (shard, &args.out) {
        let partial = feedline_analyze::partial_of(&args.inputs, shard, &settings, &progress)
            .map_err(explained)?;
        progress.done();
        put_with(out, |file| Ok(serde_json::to_writer(file, &partial)?))?;
        return Ok(0);
    }
    let analysis =
        feedline_analyze::analyze(&args.inputs, &settings, &progress).map_err(explained)?;
    progress.done();
    if let Some(path) = &args.perfetto {
        verdict_lane::export(&args.inputs, &analysis, path)?;
    }
    give(&analysis, &args.output)
}

/// Joins the parts of an analysis.
pub(crate) fn merge(args: &MergeArgs) -> anyhow::Result<u8> {
    let settings = settings(&args.output)?;
    make_room(&args.output, [])?;
    let mut parts = Vec::new();
    for path in &args.parts {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let part: PartialAnalysis = serde_json::from_slice(&text)
            .ok()
            .filter(|part: &PartialAnalysis| part.is_known())
            .ok_or_else(|| {
                failure::hinted(
                    format!("{} is not a part of an analysis of this version", path.display()),
                    "parts are written by `feedline analyze TRACE --shard I/N -o FILE`",
                )
            })?;
        parts.push(part);
    }
    let whole = PartialAnalysis::join(parts).map_err(|error| {
        failure::hinted(error.to_string(), "pass all parts of one trace, each once")
    })?;
    give(&whole.assemble(&settings), &args.output)
}

/// Compares two runs.
pub(crate) fn diff(args: &DiffArgs) -> anyhow::Result<u8> {
    if !args.allow.is_finite() || args.allow < 0.0 {
        return Err(failure::hinted(
            format!("expected a percentage for --allow, found {}", args.allow),
            "use a number of at least 0: --allow 5",
        ));
    }
    let read = |path: &Path| -> anyhow::Result<Analysis> {
        if let Some(analysis) = recorded(path)? {
            return Ok(analysis);
        }
        let settings = Settings { load: options(&args.read)?, ..Settings::default() };
        let progress = LoadProgressBar::new();
        let found = feedline_analyze::analyze(&[path.to_owned()], &settings, &progress);
        progress.done();
        found.map_err(explained)
    };
    let (first, second) = (read(&args.first)?, read(&args.second)?);
    if (first.verdict.steps == 0) != (second.verdict.steps == 0) {
        let without = if first.verdict.steps == 0 { &args.first } else { &args.second };
        return Err(failure::hinted(
            format!("{} has no steps, but the other one has", without.display()),
            "did it end before its first step? `feedline analyze` shows its contents",
        ));
    }
    let diff = feedline_analyze::diff::diff(&first, &second, args.allow / 100.0);
    if args.json {
        show::print(&format!("{}\n", serde_json::to_string_pretty(&diff)?))?;
    } else {
        show::print(&feedline_report::diff::diff_screen(&diff, show::style()))?;
    }
    Ok(if diff.is_worse { failure::MISSED } else { 0 })
}

/// An analysis that `--json` wrote, if the path is one.
fn recorded(path: &Path) -> anyhow::Result<Option<Analysis>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut begin = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut begin));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let begin = String::from_utf8_lossy(&begin).into_owned();
    if begin.contains(feedline_analyze::partial::FORMAT) {
        return Err(failure::hinted(
            format!("{} is a part of an analysis", path.display()),
            "merge all parts first: feedline merge PART... --json",
        ));
    }
    if !begin.contains(feedline_analyze::analysis::FORMAT) {
        return Ok(None);
    }
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let analysis = serde_json::from_slice::<Analysis>(&text).ok();
    let known = analysis.filter(|it| it.version == feedline_analyze::analysis::VERSION);
    known.map(Some).ok_or_else(|| {
        failure::hinted(
            format!("{} is not an analysis of this version", path.display()),
            "analyze its trace again: feedline analyze TRACE --json",
        )
    })
}

/// Prints and writes what was asked for.
fn give(analysis: &Analysis, output: &OutputArgs) -> anyhow::Result<u8> {
    if let Some(path) = &output.html {
        put(path, feedline_report::html::html_report(analysis).as_bytes())?;
    }
    if let (Some(format), Some(folder)) = (output.export, &output.export_dir) {
        write_tables(analysis, format, folder)?;
    }
    if output.json {
        show::print_json(analysis)?;
    } else if !output.quiet {
        show::print(&feedline_report::analysis::analysis_screen(analysis, show::style()))?;
    }
    let Some(most) = output.max_stall else { return Ok(0) };
    if matches!(analysis.verdict.answer, Answer::NoSteps | Answer::TooFewSteps) {
        return Err(failure::hinted(
            format!("--max-stall cannot be judged: {}", analysis.verdict.text),
            "trace a run with at least 20 steps, including its fetches",
        ));
    }
    let stalled = analysis.verdict.stall_share * 100.0;
    let missed = stalled > most;
    if missed {
        failure::say(&format!("missed: {stalled:.1} % of step time is stalled"));
    }
    Ok(if missed { failure::MISSED } else { 0 })
}

fn write_tables(analysis: &Analysis, format: ExportFormat, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for table in tables::tables(analysis) {
        let (suffix, bytes) = match format {
            ExportFormat::Parquet => ("parquet", export::parquet(&table)?),
            ExportFormat::Csv => ("csv", export::csv(&table).into_bytes()),
            ExportFormat::Json => ("json", export::json(&table).into_bytes()),
        };
        put(&folder.join(format!("{}.{suffix}", table.name)), &bytes)?;
    }
    Ok(())
}

/// Writes a file, which has its name when it is complete.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    put_with(path, |file| file.write_all(bytes))
}

/// Lets a file be written, which has its name when it is complete.
fn put_with(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    make_folder(path)?;
    write_file(path, write).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes the folder that a file goes to.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display())),
        None => Ok(()),
    }
}

/// Looks, before any work is done, whether what is to be written is there already, or cannot be.
fn make_room<'a>(
    output: &'a OutputArgs,
    others: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let files = output.html.iter().chain(others);
    for path in files {
        if path.is_dir() {
            return Err(failure::hinted(
                format!("{} is a folder", path.display()),
                "name the file to write",
            ));
        }
        if path.exists() && !output.overwrite {
            return Err(failure::hinted(
                format!("{} exists", path.display()),
                "use --overwrite to replace it",
            ));
        }
    }
    let Some(folder) = &output.export_dir else { return Ok(()) };
    let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_used && !output.overwrite {
        return Err(failure::hinted(
            format!("{} is not empty", folder.display()),
            "choose another folder, or use --overwrite to replace its tables",
        ));
    }
    Ok(())
}

fn settings(output: &OutputArgs) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    for text in &output.threshold {
        let parsed = text
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse::<f64>().ok()?)));
        let is_set = parsed.is_some_and(|(name, value)| settings.thresholds.set(name, value));
        if !is_set {
            let names = feedline_analyze::Thresholds::NAMES.join(", ");
            return Err(failure::hinted(
                format!("expected NAME=NUMBER for --threshold, found {text:?}"),
                format!("the names are {names}"),
            ));
        }
    }
    let steps = output
        .exclude_steps
        .split_once(',')
        .and_then(|(start, end)| Some([start.trim().parse().ok()?, end.trim().parse().ok()?]));
    settings.excluded_steps = steps.ok_or_else(|| {
        failure::hinted(
            format!("expected START,END for --exclude-steps, found {:?}", output.exclude_steps),
            "use two numbers of steps: --exclude-steps 1,0",
        )
    })?;
    if output.max_stall.is_some_and(|most| !(0.0..=100.0).contains(&most)) {
        return Err(failure::hinted(
            "expected a percentage for --max-stall".to_owned(),
            "use a number from 0 to 100: --max-stall 10",
        ));
    }
    Ok(settings)
}

fn options(read: &ReadArgs) -> anyhow::Result<load::LoadOptions> {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = read.threads.and_then(|threads| NonZeroUsize::new(usize::from(threads)));
    let cache = match (&read.cache, read.no_cache) {
        (Some(folder), _) => Some(folder.clone()),
        (None, true) => None,
        (None, false) => default_cache(),
    };
    let (threads, memory_bytes) = (threads.unwrap_or(cores), read.memory << 20);
    Ok(load::LoadOptions { threads, memory_bytes, cache, ..load::LoadOptions::default() })
}

fn default_cache() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    folder.is_absolute().then(|| folder.join("feedline").join("traces"))
}

fn shard(text: &str) -> anyhow::Result<Shard> {
    let parts = text
        .split_once('/')
        .and_then(|(index, of)| Some((index.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
    parts.filter(|(index, of)| (1..=*of).contains(index)).map_or_else(
        || {
            Err(failure::hinted(
                format!("expected I/N for --shard, found {text:?}"),
                "use a part, counted from 1, and the number of parts: --shard 3/16",
            ))
        },
        |(index, of)| Ok(Shard { index, of }),
    )
}

/// Adds a hint where there is something to do about an error.
fn explained(error: AnalyzeError) -> anyhow::Error {
    let hint = match &error {
        AnalyzeError::Trace(TraceError::Unknown { .. } | TraceError::Empty { .. })
        | AnalyzeError::NoTrace { .. } => {
            format!("readable traces: {}; tar archives of these", readable(FORMATS))
        }
        AnalyzeError::Trace(TraceError::WriteOnly { .. }) => {
            "analyze the trace it was converted from".to_owned()
        }
        AnalyzeError::Empty { .. } => {
            "was the program traced? the report of `feedline trace -- CMD` shows what was recorded"
                .to_owned()
        }
        _ => return error.into(),
    };
    failure::hinted(error.to_string(), hint)
}
