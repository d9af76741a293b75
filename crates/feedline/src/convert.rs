//! `feedline convert`.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_numbers::{quantity, units};
use feedline_trace::dftracer::TimeUnit;
use feedline_trace::perfetto::View;
use feedline_trace::{
    Access, FORMATS, Files, Output, ReadStats, Recovered, TraceError, TraceFormat, WriteOption,
    WriteOptions, convert, readable, recognize, recover,
};

use crate::args::{ConvertArgs, TraceUnit};
use crate::failure;

/// Converts a trace.
pub(crate) fn main(args: &ConvertArgs) -> anyhow::Result<u8> {
    let format = format(args)?;
    check_options(args, format)?;
    let options = options(args)?;
    let found = recognize(&args.input).map_err(hinted)?;
    let path = output(args, format)?;
    let old = make_room(args, format, &path)?;
    if found.format.access == Access::RowGroups {
        for folder in &found.files {
            say_recovered(&folder.path, &recover(&folder.path)?);
        }
    }
    let create = format.create.expect("--to and suffixes select formats that can be written");
    let mut sink = create(&path, &options)?;
    let intake = convert(|| found.open(), &mut *sink)?;
    let output = sink.output();
    if format.files == Files::PerProcess {
        // Left over, they would be taken for a part of the new trace.
        for path in old.into_iter().filter(|path| !output.paths.contains(path)) {
            fs::remove_file(&path).map_err(|source| TraceError::Write { path, source })?;
        }
    }
    report(args, format, &intake, &output);
    Ok(0)
}

/// What was found in raw recordings and is part of the trace now.
fn say_recovered(folder: &Path, recovered: &Recovered) {
    let shown = folder.display();
    if recovered.events > 0 {
        let events = units::counted(recovered.events, "event");
        failure::say(&format!("{shown}: recovered {events} from raw recordings"));
    }
    if recovered.running > 0 {
        let running = units::counted(recovered.running, "program");
        failure::say(&format!(
            "warning: {shown}: {running} still recording; their latest events are missing"
        ));
    }
    if recovered.writing > 0 {
        failure::say(&format!(
            "warning: {shown} is still being written; the latest events are missing"
        ));
    }
    if recovered.elsewhere > 0 {
        let files = units::counted(recovered.elsewhere, "recording");
        failure::say(&format!(
            "warning: {shown}: {files} from other machines can only be recovered there"
        ));
    }
    for problem in &recovered.problems {
        failure::say(&format!("warning: {problem}"));
    }
}

fn format(args: &ConvertArgs) -> anyhow::Result<&'static TraceFormat> {
    if let Some(format) = args.to {
        return Ok(format);
    }
    let name = args.output.to_string_lossy();
    let plain = Path::new(name.strip_suffix(".gz").unwrap_or(&name));
    let is_folder = plain.extension().is_none();
    let writable = || FORMATS.iter().filter(|format| format.create.is_some());
    let fits = |format: &&TraceFormat| {
        if is_folder { format.files == Files::Folder } else { format.has_suffix(plain) }
    };
    writable().find(fits).ok_or_else(|| {
        // Neighbors in the table may share their suffixes.
        let mut known: Vec<_> = writable().map(|format| format.suffixes.join(", ")).collect();
        known.retain(|suffixes| !suffixes.is_empty());
        known.dedup();
        failure::hinted(
            format!("cannot tell the trace format from the name {name}"),
            format!("end it with one of {}, or select a format with --to", known.join(", ")),
        )
    })
}

fn check_options(args: &ConvertArgs, format: &TraceFormat) -> anyhow::Result<()> {
    let options = [
        ("--time-unit", args.time_unit.is_some(), WriteOption::TimeUnit),
        ("--max-events", args.max_events.is_some(), WriteOption::View),
        ("--window", args.window.is_some(), WriteOption::View),
        ("--min-duration", args.min_duration.is_some(), WriteOption::View),
        ("--ranks", args.ranks.is_some(), WriteOption::View),
    ];
    let unfit =
        options.iter().find(|(_, is_given, kind)| *is_given && !format.options.contains(kind));
    let Some((option, _, kind)) = unfit else { return Ok(()) };
    let titles = FORMATS.iter().filter(|format| format.options.contains(kind));
    let title = titles.map(|format| format.title).next().unwrap_or_default();
    Err(failure::hinted(
        format!("{option} applies to {title} output, not to {}", args.output.display()),
        format!("drop {option}, or select the format with --to"),
    ))
}

/// The path to write; files of one trace in a folder need a name to begin with.
fn output(args: &ConvertArgs, format: &TraceFormat) -> anyhow::Result<PathBuf> {
    let output = args.output.clone();
    match format.files {
        Files::PerProcess if output.is_dir() || !format.has_suffix(&output) => {
            let suffix = format.suffixes.first().copied().unwrap_or_default();
            Ok(output.join(format!("trace{suffix}")))
        }
        Files::Single if output.is_dir() => Err(failure::hinted(
            format!("{} is a folder", output.display()),
            format!("name the file to write, e.g. {}", output.join("trace.json").display()),
        )),
        _ => Ok(output),
    }
}

/// Makes the folder of the output. Gives what an earlier trace has left there.
fn make_room(
    args: &ConvertArgs,
    format: &TraceFormat,
    output: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let there = (format.existing)(output)?;
    if let Some(path) = there.first() {
        if !args.overwrite {
            return Err(hinted(TraceError::Exists { path: path.clone() }));
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
                format!("{} is part of the input trace", path.display()),
                "choose a different OUT",
            ));
        }
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)
            .map_err(|source| TraceError::Write { path: folder.to_owned(), source })?;
    }
    Ok(there)
}

fn options(args: &ConvertArgs) -> anyhow::Result<WriteOptions> {
    let time_unit = match args.time_unit.unwrap_or_default() {
        TraceUnit::Us => TimeUnit::Microseconds,
        TraceUnit::Ns => TimeUnit::Nanoseconds,
    };
    Ok(WriteOptions { time_unit, view: view(args)? })
}

fn view(args: &ConvertArgs) -> anyhow::Result<View> {
    let mut view = View { ranks: args.ranks.clone(), ..View::default() };
    view.window = args.window.unwrap_or_default();
    view.max_events = args.max_events.unwrap_or(view.max_events);
    if let Some(text) = &args.min_duration {
        let ns = quantity::parse(&text.replace(' ', ""), quantity::TIMES);
        view.min_duration_ns = ns.ok_or_else(|| {
            failure::hinted(
                format!("expected a time for --min-duration, found {text:?}"),
                "write a number and ns, us, ms or s: --min-duration 100us",
            )
        })?;
    }
    Ok(view)
}

fn hinted(error: TraceError) -> anyhow::Error {
    let hint = match &error {
        TraceError::Exists { .. } => "use --overwrite to replace it".to_owned(),
        TraceError::WriteOnly { .. } => "convert the trace it was made from".to_owned(),
        TraceError::Unknown { .. } => format!("readable traces: {}", readable(FORMATS)),
        _ => return error.into(),
    };
    failure::hinted(error.to_string(), hint)
}

/// What was read and written, and what was wrong.
fn report(args: &ConvertArgs, format: &TraceFormat, intake: &ReadStats, output: &Output) {
    let read = units::counted(intake.files, "file");
    let written = units::counted(output.paths.len() as u64, "file");
    let mut events = units::counted(intake.events, "event");
    if let Some(slices) = output.slices {
        events += &format!(" as {}", units::counted(slices.slices, "slice"));
        if slices.merged > 0 {
            events += &format!(", {} of them merged", units::count(slices.merged));
        }
    }
    let mut shown = args.output.display().to_string();
    if format.files == Files::PerProcess {
        for suffix in format.suffixes {
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
        (intake.bad_lines, "bad line", "skipped"),
        (intake.damaged_files, "damaged or truncated piece", "read up to the damage"),
        (intake.not_utf8, "line", "not UTF-8, read with replacement characters"),
        (intake.unnamed_files, "event", "on a file known only by its hash"),
        (intake.unpaired, "event", "without a matching begin or end"),
        (intake.left_out, "record", "of unsupported types, skipped"),
    ];
    for (count, what, fate) in notes {
        if count > 0 {
            failure::say(&format!("warning: {}: {fate}", units::counted(count, what)));
        }
    }
}
