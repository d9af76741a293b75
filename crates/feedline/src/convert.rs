//! `feedline convert`.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_report::units;
use feedline_trace::chrome::{ChromeSink, ChromeSource};
use feedline_trace::dialect::{DftracerSink, DftracerSource, Dialect, TimeUnit};
use feedline_trace::perfetto::{self, View};
use feedline_trace::{
    Batch, ConvertError, Folder, FolderWriter, Found, Intake, Recovered, Sink, Source, Tables,
    pour, recognise, recover,
};

use crate::args::{ConvertArgs, TraceFormat, TraceUnit};
use crate::failure;

/// Converts a trace.
pub(crate) fn main(args: &ConvertArgs) -> anyhow::Result<u8> {
    let format = format(args)?;
    check_options(args, format)?;
    let view = view(args)?;
    let found = recognise(&args.input).map_err(hinted)?;
    let output = output(args, format)?;
    let old = make_room(args, format, &output)?;
    if let Found::Folder(folder) = &found {
        say_recovered(folder, &recover(folder)?);
    }
    let (events, files, intake) = match format {
        TraceFormat::Dftracer | TraceFormat::DftracerLegacy => {
            let dialect =
                if format == TraceFormat::Dftracer { Dialect::Current } else { Dialect::Legacy };
            let unit = match args.time_unit.unwrap_or_default() {
                TraceUnit::Us => TimeUnit::Microseconds,
                TraceUnit::Ns => TimeUnit::Nanoseconds,
            };
            let mut sink = DftracerSink::new(&output, dialect, unit);
            let intake = convert(&found, &mut sink)?;
            for path in old.into_iter().filter(|path| !sink.has_written(path)) {
                fs::remove_file(&path).map_err(|source| ConvertError::Write { path, source })?;
            }
            (units::counted(intake.events, "event"), sink.files() as u64, intake)
        }
        TraceFormat::Chrome => {
            let intake = convert(&found, &mut ChromeSink::new(&output)?)?;
            (units::counted(intake.events, "event"), 1, intake)
        }
        TraceFormat::Perfetto => {
            let (exported, source) =
                perfetto::export::<_, anyhow::Error>(|| Input::open(&found), &output, view)?;
            let merged = match exported.merged {
                0 => String::new(),
                merged => format!(", {} of them merged", units::count(merged)),
            };
            let intake = source.intake();
            let events = units::counted(intake.events, "event");
            (format!("{events} as {}{merged}", units::counted(exported.slices, "slice")), 1, intake)
        }
        TraceFormat::Feedline => {
            let intake = to_folder(&found, &output)?;
            (units::counted(intake.events, "event"), 1, intake)
        }
    };
    report(args, format, &events, files, &intake);
    Ok(0)
}

/// A trace that is read, whatever its format.
pub(crate) enum Input {
    Dftracer(Box<DftracerSource>),
    Chrome(Box<ChromeSource>),
    Folder(Box<Folder>, Intake),
}

impl Input {
    pub(crate) fn open(found: &Found) -> anyhow::Result<Self> {
        Ok(match found {
            Found::Dftracer(paths) => {
                Self::Dftracer(Box::new(DftracerSource::open(paths.clone())?))
            }
            Found::Chrome(path) => Self::Chrome(Box::new(ChromeSource::open(path)?)),
            Found::Folder(path) => Self::Folder(
                Box::new(Folder::open(path)?),
                Intake { files: 1, ..Intake::default() },
            ),
        })
    }

    fn intake(&self) -> Intake {
        match self {
            Self::Dftracer(source) => source.intake().clone(),
            Self::Chrome(source) => source.intake().clone(),
            Self::Folder(_, intake) => intake.clone(),
        }
    }
}

impl Source for Input {
    type Error = anyhow::Error;

    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> anyhow::Result<bool> {
        Ok(match self {
            Self::Dftracer(source) => source.next_batch(tables, batch)?,
            Self::Chrome(source) => source.next_batch(tables, batch)?,
            Self::Folder(source, intake) => {
                let is_more = source.next_batch(tables, batch)?;
                intake.events += batch.events.len() as u64;
                is_more
            }
        })
    }
}

fn convert<K>(found: &Found, sink: &mut K) -> anyhow::Result<Intake>
where
    K: Sink<Error: std::error::Error + Send + Sync + 'static>,
{
    let mut source = Input::open(found)?;
    pour::<_, _, anyhow::Error>(&mut source, &mut Loose(sink))?;
    Ok(source.intake())
}

/// A sink whose errors are as good as any.
struct Loose<'a, K>(&'a mut K);

impl<K> Sink for Loose<'_, K>
where
    K: Sink<Error: std::error::Error + Send + Sync + 'static>,
{
    type Error = anyhow::Error;

    fn write(&mut self, tables: &Tables, batch: &Batch) -> anyhow::Result<()> {
        Ok(self.0.write(tables, batch)?)
    }

    fn finish(&mut self, tables: &Tables) -> anyhow::Result<()> {
        Ok(self.0.finish(tables)?)
    }
}

/// A folder appears under its name when it is complete.
fn to_folder(found: &Found, output: &Path) -> anyhow::Result<Intake> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let partial = output.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let made = FolderWriter::create(&partial)
        .map_err(anyhow::Error::from)
        .and_then(|mut writer| convert(found, &mut writer));
    let moved = made.and_then(|intake| {
        let failed = |source| ConvertError::Write { path: output.to_owned(), source };
        if output.is_dir() {
            fs::remove_dir_all(output).map_err(failed)?;
        } else if output.exists() {
            fs::remove_file(output).map_err(failed)?;
        }
        fs::rename(&partial, output).map_err(failed)?;
        Ok(intake)
    });
    if moved.is_err() {
        // What was made is of no use without the rest.
        let _ = fs::remove_dir_all(&partial);
    }
    moved
}

/// What was found in raw recordings and is part of the trace now.
fn say_recovered(folder: &Path, recovered: &Recovered) {
    let shown = folder.display();
    if recovered.events > 0 {
        let events = units::counted(recovered.events, "event");
        failure::say(&format!("{shown}: {events} of raw recordings were taken in"));
    }
    if recovered.running > 0 {
        let running = units::counted(recovered.running, "program");
        failure::say(&format!("warning: {shown}: {running} still recording, not taken in yet"));
    }
    if recovered.writing > 0 {
        failure::say(&format!(
            "warning: {shown} is being written: what its program did of late is not in it yet"
        ));
    }
    if recovered.elsewhere > 0 {
        let files = units::counted(recovered.elsewhere, "recording");
        failure::say(&format!("warning: {shown}: {files} of other machines, taken in only there"));
    }
    for problem in &recovered.problems {
        failure::say(&format!("warning: {problem}"));
    }
}

fn format(args: &ConvertArgs) -> anyhow::Result<TraceFormat> {
    if let Some(format) = args.to {
        return Ok(format);
    }
    let name = args.output.to_string_lossy();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let suffix = Path::new(plain).extension().map(|suffix| suffix.to_string_lossy().into_owned());
    match suffix.as_deref() {
        Some("pfw") => Ok(TraceFormat::Dftracer),
        Some("json") => Ok(TraceFormat::Chrome),
        Some("pftrace" | "perfetto-trace") => Ok(TraceFormat::Perfetto),
        None => Ok(TraceFormat::Feedline),
        Some(_) => Err(failure::hinted(
            format!("no trace format is known by the suffix of {name}"),
            "end it with .pfw.gz, .json, .json.gz or .pftrace, or name the format with --to",
        )),
    }
}

fn check_options(args: &ConvertArgs, format: TraceFormat) -> anyhow::Result<()> {
    let is_dftracer = matches!(format, TraceFormat::Dftracer | TraceFormat::DftracerLegacy);
    let is_perfetto = format == TraceFormat::Perfetto;
    let options = [
        ("--time-unit", args.time_unit.is_some(), is_dftracer, "DFTracer's files"),
        ("--max-events", args.max_events.is_some(), is_perfetto, "Perfetto's traces"),
        ("--window", args.window.is_some(), is_perfetto, "Perfetto's traces"),
        ("--min-duration", args.min_duration.is_some(), is_perfetto, "Perfetto's traces"),
        ("--ranks", args.ranks.is_some(), is_perfetto, "Perfetto's traces"),
    ];
    match options.iter().find(|(_, is_given, fits, _)| *is_given && !fits) {
        Some((option, _, _, what)) => Err(failure::hinted(
            format!("{option} is for {what}, and {} is none", args.output.display()),
            format!("leave {option} out, or choose the format with --to"),
        )),
        None => Ok(()),
    }
}

/// The path to write; DFTracer's files in a folder need a name to begin with.
fn output(args: &ConvertArgs, format: TraceFormat) -> anyhow::Result<PathBuf> {
    let output = args.output.clone();
    let is_dftracer = matches!(format, TraceFormat::Dftracer | TraceFormat::DftracerLegacy);
    let has_suffix =
        [".pfw", ".pfw.gz"].iter().any(|suffix| output.to_string_lossy().ends_with(suffix));
    if is_dftracer && (output.is_dir() || !has_suffix) {
        return Ok(output.join("trace.pfw.gz"));
    }
    if output.is_dir() && format != TraceFormat::Feedline {
        return Err(failure::hinted(
            format!("{} is a folder", output.display()),
            format!("name the file to write, e.g. {}", output.join("trace.json").display()),
        ));
    }
    Ok(output)
}

/// Makes the folder of the output, and looks for what is there already. Gives the files of an older trace
/// of DFTracer, which would be taken for a part of the new one; a single file is replaced.
fn make_room(
    args: &ConvertArgs,
    format: TraceFormat,
    output: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let there = match format {
        TraceFormat::Dftracer | TraceFormat::DftracerLegacy => DftracerSink::existing(output)?,
        _ if output.exists() => vec![output.to_owned()],
        _ => Vec::new(),
    };
    if let Some(path) = there.first() {
        if !args.overwrite {
            return Err(hinted(ConvertError::Exists { path: path.clone() }));
        }
        let same = |path: &PathBuf| path.canonicalize().ok() == args.input.canonicalize().ok();
        let inside = |path: &PathBuf| {
            args.input.is_dir()
                && path
                    .canonicalize()
                    .ok()
                    .zip(args.input.canonicalize().ok())
                    .is_some_and(|(path, input)| path.starts_with(input))
        };
        if there.iter().any(|path| same(path) || inside(path)) {
            return Err(failure::hinted(
                format!("{} belongs to the trace that is read", path.display()),
                "choose another OUT",
            ));
        }
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)
            .map_err(|source| ConvertError::Write { path: folder.to_owned(), source })?;
    }
    let is_dftracer = matches!(format, TraceFormat::Dftracer | TraceFormat::DftracerLegacy);
    Ok(if is_dftracer { there } else { Vec::new() })
}

fn view(args: &ConvertArgs) -> anyhow::Result<View> {
    let mut view = View { ranks: args.ranks.clone(), ..View::default() };
    view.window = args.window.unwrap_or_default();
    view.max_events = args.max_events.unwrap_or(view.max_events);
    if let Some(text) = &args.min_duration {
        view.min_duration_ns = duration_ns(text).ok_or_else(|| {
            failure::hinted(
                format!("expected a time for --min-duration, found {text:?}"),
                "write a number and ns, us, ms or s: --min-duration 100us",
            )
        })?;
    }
    Ok(view)
}

fn duration_ns(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = number.trim().parse::<f64>().ok()? * factor;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to fit")]
    (0.0..=1e18).contains(&ns).then_some(ns.round() as u64)
}

fn hinted(error: ConvertError) -> anyhow::Error {
    let hint = match &error {
        ConvertError::Exists { .. } => "add --overwrite to replace it",
        ConvertError::Perfetto { .. } => "convert the trace that it was made of",
        ConvertError::Unknown { .. } => {
            "traces that can be read: folders of Feedline, DFTracer's .pfw and .pfw.gz, Chrome's JSON"
        }
        _ => return error.into(),
    };
    failure::hinted(error.to_string(), hint)
}

/// What was read and written, and what was wrong.
fn report(args: &ConvertArgs, format: TraceFormat, events: &str, files: u64, intake: &Intake) {
    let read = units::counted(intake.files, "file");
    let written = units::counted(files, "file");
    let mut shown = args.output.display().to_string();
    if matches!(format, TraceFormat::Dftracer | TraceFormat::DftracerLegacy) {
        // One file a process, named as DFTracer does.
        for suffix in [".pfw.gz", ".pfw"] {
            if let Some(begin) = shown.strip_suffix(suffix) {
                shown = format!("{begin}-*-app{suffix}");
                break;
            }
        }
    }
    failure::say(&format!("{shown}: {events}, {read} read, {written} written"));
    for bad in &intake.first_bad {
        let reason = bad.reason;
        failure::say(&format!("warning: {}:{}: this {reason}", bad.path.display(), bad.line));
    }
    let notes = [
        (intake.bad_lines, "bad line", "left out"),
        (intake.damaged_files, "damaged or truncated piece", "read as far as it goes"),
        (intake.not_utf8, "line", "not UTF-8, read with replacements"),
        (intake.unnamed_files, "event", "on a file that is known by its hash only"),
        (intake.unpaired, "event", "without a begin or an end"),
        (intake.left_out, "record", "of a kind without a place here, left out"),
    ];
    for (count, what, fate) in notes {
        if count > 0 {
            failure::say(&format!("warning: {}: {fate}", units::counted(count, what)));
        }
    }
}
