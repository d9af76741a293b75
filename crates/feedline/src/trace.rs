//! `feedline trace`: runs a program under the preload library and writes the trace while it runs.
//!
//! The program is a child with its own standard streams; signals meant for it are passed on. This
//! process only drains, at low priority, and says at the end what was recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser as _;
use feedline_recorder::{MARK_BEGIN, MARK_BYTES, OPS, build_mark, is_counter_trusted, tidy};
use feedline_report::trace::TraceReport;
use feedline_trace::{Batch, DrainReport, Drainer, Folder, Source as _, Tables};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use signal_hook::consts;

use crate::args::{Args, Command, TraceArgs};
use crate::{failure, launcher};

/// The library's file.
const LIBRARY: &str = "libfeedline_preload.so";
/// Signals that end or steer programs; the program gets them, this process stays until it is gone.
const PASSED_ON: [(i32, Signal); 6] = [
    (consts::SIGINT, Signal::INT),
    (consts::SIGTERM, Signal::TERM),
    (consts::SIGHUP, Signal::HUP),
    (consts::SIGQUIT, Signal::QUIT),
    (consts::SIGUSR1, Signal::USR1),
    (consts::SIGUSR2, Signal::USR2),
];

/// The whole command: it has no job of its own.
pub(crate) fn launch() -> ExitCode {
    match Args::try_parse() {
        Ok(Args { command: Command::Trace(args) }) => match main(&args) {
            Ok(code) => ExitCode::from(code),
            Err(error) => failure::report_once(&error, failure::ERROR),
        },
        Ok(_) => ExitCode::from(failure::ERROR),
        Err(error) => {
            // Nobody reads it any more if it cannot be printed.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { failure::ERROR } else { 0 })
        }
    }
}

/// Traces a program; its exit code.
pub(crate) fn main(args: &TraceArgs) -> anyhow::Result<u8> {
    if let Some(list) = &args.calls {
        check_calls(list)?;
    }
    let library = library(args)?;
    let wanted = patterns(&args.include, &args.data)?;
    let unwanted = patterns(&args.exclude, &[])?;
    let out = args.out.clone().unwrap_or_else(|| default_folder(&args.command[0]));
    let place = Place::prepare(&out, args.overwrite)?;
    let memory = feedline_engine::memory_folder(&place.folder)?;
    let mut drainer = Drainer::start(&place.folder, &memory)?;
    let mut variables = variables(args, &library, &drainer, &memory);
    for (name, list) in [("FEEDLINE_TRACE_INCLUDE", wanted), ("FEEDLINE_TRACE_EXCLUDE", unwanted)] {
        variables.push((name, list));
    }
    let start = Instant::now();
    let mut program = match Program::start(args, &variables) {
        Ok(program) => program,
        Err(error) => {
            // Nothing was recorded by this launcher, which takes back what it made.
            let _ = drainer.finish();
            let _ = fs::remove_dir_all(&memory);
            place.take_back();
            return Err(error);
        }
    };
    place.forget_old();
    drainer.expect(program.child.id(), &found(&args.command[0]));
    // Not an error if it may not: then it drains as fast as others work.
    let _ = rustix::process::nice(10);
    // The program matters more than its trace: it is waited for also when nothing can be written.
    let mut trouble = None;
    let status = loop {
        let status = program.wait(drainer.pause())?;
        if trouble.is_none() {
            trouble = drainer.round().err();
        }
        if let Some(status) = status {
            break status;
        }
    };
    let written = match trouble {
        Some(error) => Err(error.into()),
        None => finish(args, &place.folder, drainer, &program, start),
    };
    let code = code_of(status);
    if let Err(error) = written {
        failure::print(
            &error.context("the trace is not complete"),
            feedline_bench::Dialect::Feedline,
        );
        let shown = place.folder.display();
        failure::say(&format!(
            "hint: when there is room, feedline convert {shown} OUT takes in the rest"
        ));
        return Ok(if code == 0 { failure::ERROR } else { code });
    }
    // Empty unless processes are still running.
    let _ = fs::remove_dir(&memory);
    Ok(code)
}

/// Takes in what is left, and says what was recorded.
fn finish(
    args: &TraceArgs,
    out: &Path,
    mut drainer: Drainer,
    program: &Program,
    start: Instant,
) -> anyhow::Result<()> {
    wait_for_rest(&mut drainer, program)?;
    let seconds = start.elapsed().as_secs_f64();
    let drained = drainer.finish()?;
    let report = report(out, &drained, seconds)?;
    write_report(out, &report)?;
    if !args.quiet {
        for line in report.screen().lines() {
            failure::say(line);
        }
    }
    Ok(())
}

/// Children may outlive the program. What they do belongs to the trace, so it goes on until they are
/// gone, or until the user has had enough.
fn wait_for_rest(drainer: &mut Drainer, program: &Program) -> anyhow::Result<()> {
    let mut is_said = false;
    loop {
        let running = drainer.running()?;
        if running == 0 || program.is_interrupted() {
            break;
        }
        if !is_said {
            is_said = true;
            failure::say(&format!(
                "the program has ended, {running} of its processes not yet; Ctrl-C ends the trace",
            ));
        }
        std::thread::sleep(drainer.pause());
        drainer.round()?;
    }
    Ok(())
}

/// What the library is told.
fn variables(
    args: &TraceArgs,
    library: &Path,
    drainer: &Drainer,
    memory: &Path,
) -> Vec<(&'static str, OsString)> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let clock = if is_counter_trusted() { "counter" } else { "monotonic" };
    let number = |number: Option<u32>| number.map_or_else(OsString::new, |n| n.to_string().into());
    vec![
        ("LD_PRELOAD", preload),
        ("FEEDLINE_TRACE", drainer.dir().as_os_str().to_owned()),
        ("FEEDLINE_TRACE_OVERFLOW", drainer.overflow().as_os_str().to_owned()),
        ("FEEDLINE_TRACE_MEMORY", memory.as_os_str().to_owned()),
        ("FEEDLINE_TRACE_MEMORY_BYTES", (args.memory << 20).to_string().into()),
        ("FEEDLINE_TRACE_DRAINED", "1".into()),
        ("FEEDLINE_TRACE_CLOCK", clock.into()),
        ("FEEDLINE_TRACE_CALLS", args.calls.clone().unwrap_or_default().into()),
        ("FEEDLINE_TRACE_SAMPLE", number(args.sample)),
        ("FEEDLINE_TRACE_SUMMARY_MS", number(args.summary)),
    ]
}

/// The trace folder, and what was there before.
struct Place {
    folder: PathBuf,
    /// Whether this launcher made the folder.
    is_made: bool,
    /// Where an older trace waits until the program has started.
    old: Option<PathBuf>,
}

impl Place {
    /// Makes the trace folder. Launchers of one parallel job share theirs.
    fn prepare(out: &Path, overwrite: bool) -> anyhow::Result<Self> {
        let shown = out.display();
        let started = launcher::started();
        if overwrite && started.is_some() {
            return Err(failure::hinted(
                format!(
                    "--overwrite in several processes: each would remove {shown} of the others"
                ),
                format!("rm -r {shown} before the job, or another folder with -o"),
            ));
        }
        let is_empty =
            |folder: &Path| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none());
        let is_there = out.exists();
        let mut old = None;
        if is_there && !is_empty(out) {
            // The first launcher of a parallel job may not have got further than this.
            let is_joined = started.is_some() && out.join(JOB).is_file();
            if !is_joined && !out.join("trace.json").is_file() {
                return Err(failure::hinted(
                    format!("{shown} is there already, and is no trace"),
                    "choose another folder with -o",
                ));
            }
            if started.is_none() && !overwrite {
                return Err(failure::hinted(
                    format!("{shown} holds a trace already"),
                    "--overwrite replaces it; or choose another folder with -o",
                ));
            }
            if overwrite {
                let name = out.file_name().unwrap_or_default().to_string_lossy();
                let aside = out.with_file_name(format!(".{name}.{}.old", process::id()));
                fs::rename(out, &aside).with_context(|| format!("cannot replace {shown}"))?;
                old = Some(aside);
            }
        }
        fs::create_dir_all(out).with_context(|| format!("cannot make the trace folder {shown}"))?;
        let folder = out.canonicalize().with_context(|| format!("cannot find {shown}"))?;
        if started.is_some() {
            join(&folder)?;
        }
        Ok(Self { folder, is_made: (!is_there || old.is_some()) && started.is_none(), old })
    }

    /// The program did not start: everything is as it was.
    fn take_back(self) {
        let made = ["trace.json", "writers", "segments", "events", "files", "processes"];
        if self.is_made {
            let _ = fs::remove_dir_all(&self.folder);
        } else if launcher::started().is_none() {
            // An empty folder of the user's.
            for name in made {
                let path = self.folder.join(name);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        if let Some(old) = &self.old {
            let _ = fs::rename(old, &self.folder);
        }
    }

    /// The program has started: the older trace is replaced.
    fn forget_old(&self) {
        if let Some(old) = &self.old {
            let _ = fs::remove_dir_all(old);
        }
    }
}

/// The file that says which parallel job a trace belongs to.
const JOB: &str = "job";

/// A parallel job must not add to the trace of an earlier one.
fn join(out: &Path) -> anyhow::Result<()> {
    let names =
        ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID", "SLURM_JOB_ID"];
    let job: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)))
        .collect();
    let job = job.join("\n") + "\n";
    let path = out.join(JOB);
    match fs::File::options().write(true).create_new(true).open(&path) {
        Ok(mut file) => file
            .write_all(job.as_bytes())
            .with_context(|| format!("cannot write {}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let found = fs::read_to_string(&path).unwrap_or_default();
            // Another launcher may be about to write it.
            if found == job || found.is_empty() {
                return Ok(());
            }
            Err(failure::hinted(
                format!("{} holds the trace of another job", out.display()),
                "choose another folder with -o, or remove it",
            ))
        }
        Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// What was recorded, in numbers.
fn report(out: &Path, drained: &DrainReport, seconds: f64) -> anyhow::Result<TraceReport> {
    let mut tables = Tables::default();
    // The tables come with the first events.
    Folder::open(out)?.next_batch(&mut tables, &mut Batch::default())?;
    let troubles = tables.processes.iter().filter_map(|process| {
        let trouble = process.trouble.clone()?;
        Some((process.program.clone(), process.is_traced, process.dropped, trouble))
    });
    let (own, children) = cpu_seconds();
    Ok(TraceReport {
        folder: out.display().to_string(),
        seconds,
        processes: drained.processes,
        running: drained.running,
        events: drained.events,
        trace_bytes: drained.bytes,
        dropped: drained.dropped,
        filtered: drained.filtered,
        skipped: drained.skipped,
        read_bytes: drained.read_bytes,
        written_bytes: drained.written_bytes,
        tracer_cpu_seconds: own,
        program_cpu_seconds: children,
        troubles: troubles.collect(),
        problems: drained.problems.clone(),
    })
}

/// CPU time of this process, and of those whose end was waited for.
fn cpu_seconds() -> (f64, f64) {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let own = own.tv_sec as f64 + own.tv_nsec as f64 / 1e9;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything: times of children are the 14th and 15th field.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    (own, ticks as f64 / TICKS_PER_SECOND)
}

/// The unit of times in /proc, on every Linux that there is.
const TICKS_PER_SECOND: f64 = 100.0;

fn write_report(out: &Path, report: &TraceReport) -> anyhow::Result<()> {
    // One launcher of several writes the last one; each has its own numbers.
    let path = match launcher::started() {
        Some(started) => out.join(format!("report-{}.json", started.rank)),
        None => out.join("report.json"),
    };
    let mut text = serde_json::to_string_pretty(&report.json())?;
    text.push('\n');
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The words of `--calls`.
fn check_calls(list: &str) -> anyhow::Result<()> {
    let mut words: Vec<String> = OPS
        .iter()
        .flat_map(|op| [op.facts().category.name().to_lowercase(), op.facts().class.name().into()])
        .collect();
    words.sort_unstable();
    words.dedup();
    for word in list.split(',') {
        let name = word.trim().trim_start_matches('-').to_lowercase();
        if !words.contains(&name) {
            let known = words.join(", ");
            return Err(failure::hinted(
                format!("no calls are named `{word}`"),
                format!("one of {known}"),
            ));
        }
    }
    Ok(())
}

/// Where the library is.
fn library(args: &TraceArgs) -> anyhow::Result<PathBuf> {
    let found = match &args.library {
        Some(path) => Some(path.clone()).filter(|path| path.is_file()),
        None => {
            let program = std::env::current_exe().context("cannot find this program's own file")?;
            let folder = program.parent().unwrap_or(Path::new("/"));
            [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)]
                .into_iter()
                .find(|path| path.is_file())
        }
    };
    let named = args.library.as_deref().unwrap_or(Path::new(LIBRARY)).display();
    let found = found.ok_or_else(|| {
        failure::hinted(
            format!("no library to preload: {named} is not there"),
            "cargo build --release -p feedline-preload puts it beside the program; or --library FILE",
        )
    })?;
    let found = found.canonicalize().with_context(|| format!("{}", found.display()))?;
    check_build(&found)?;
    // The loader takes a list.
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
        return Err(failure::hinted(
            format!("{} cannot be preloaded: its path has a colon or a space", found.display()),
            "copy it elsewhere and name it with --library",
        ));
    }
    Ok(found)
}

/// A library of another build records what this program cannot read.
fn check_build(library: &Path) -> anyhow::Result<()> {
    let shown = library.display();
    let bytes = fs::read(library).with_context(|| format!("cannot read {shown}"))?;
    let mut marks = bytes.windows(MARK_BYTES).filter(|mark| mark.starts_with(MARK_BEGIN));
    if marks.any(|mark| *mark == build_mark()) {
        return Ok(());
    }
    Err(failure::hinted(
        format!("{shown} is not the library of this build of Feedline"),
        "cargo build --release -p feedline -p feedline-preload makes both",
    ))
}

/// A pattern that means the same wherever the program is: one without a slash means files of that name
/// anywhere, one with a slash begins in the current folder.
fn pattern(glob: &str, here: &Path) -> OsString {
    if glob.starts_with('/') || glob.starts_with("**") {
        glob.into()
    } else if glob.contains('/') {
        tidied(&here.join(glob))
    } else {
        format!("**/{glob}").into()
    }
}

/// A path without `.` and `..`.
fn tidied(path: &Path) -> OsString {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    let length = tidy(&mut bytes);
    bytes.truncate(length);
    OsString::from_vec(bytes)
}

/// Patterns of files as the library reads them, separated by colons.
fn patterns(globs: &[String], folders: &[PathBuf]) -> anyhow::Result<OsString> {
    let mut list = OsString::new();
    let here = std::env::current_dir().context("cannot find the current folder")?;
    let folders = folders.iter().map(|folder| {
        // Programs may name it by a link or by what the link leads to; paths are compared as given.
        tidied(&here.join(folder))
    });
    let folders: Vec<_> = folders.collect();
    let given = globs.iter().map(OsString::from).chain(folders.iter().cloned());
    let meant = globs.iter().map(|glob| pattern(glob, &here)).chain(folders.iter().cloned());
    for (given, pattern) in given.zip(meant) {
        if pattern.as_encoded_bytes().contains(&b':') {
            return Err(failure::hinted(
                format!("{} has a colon, which separates patterns", Path::new(&given).display()),
                "match it with ?",
            ));
        }
        if !list.is_empty() {
            list.push(":");
        }
        list.push(pattern);
    }
    if list.len() >= 4096 {
        return Err(failure::hinted(
            format!("patterns of files take {} bytes, 4095 fit", list.len()),
            "use fewer, with **",
        ));
    }
    Ok(list)
}

/// The program, running.
struct Program {
    child: Child,
    signals: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Program {
    fn start(args: &TraceArgs, variables: &[(&str, OsString)]) -> anyhow::Result<Self> {
        let ignored = ignored_signals();
        let signals = PASSED_ON
            .into_iter()
            // What is ignored here (nohup) is ignored in the program too, and stays so.
            .filter(|(number, _)| ignored & (1 << (number - 1)) == 0)
            .map(|(number, signal)| {
                let flag = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register(number, Arc::clone(&flag))?;
                Ok((signal, flag))
            })
            .collect::<std::io::Result<_>>()
            .context("cannot listen for signals")?;
        let name = &args.command[0];
        let child = process::Command::new(name)
            .args(&args.command[1..])
            .envs(variables.iter().map(|(key, value)| (key, value)))
            .spawn()
            .map_err(|error| {
                let named = Path::new(name).display();
                failure::hinted(
                    format!("cannot start {named}: {error}"),
                    "the program and its arguments go after --, as in: feedline trace -- ls /",
                )
            })?;
        Ok(Self { child, signals })
    }

    /// Waits for its end, but no longer than `most`, which is less than a second.
    fn wait(&mut self, most: Duration) -> anyhow::Result<Option<ExitStatus>> {
        self.pass_signals_on();
        let pid = Pid::from_child(&self.child);
        if let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            let most = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
            // A signal ends the wait early, which is as good.
            let _ = poll(&mut handles, Some(&most));
        } else {
            std::thread::sleep(most);
        }
        self.child.try_wait().context("cannot wait for the program")
    }

    /// Whether a signal came that ends programs.
    fn is_interrupted(&self) -> bool {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        let mut signals = self.signals.iter().filter(|(signal, _)| ends.contains(signal));
        signals.any(|(_, flag)| flag.load(Ordering::Relaxed))
    }

    /// The terminal sends its own signals to all of a group, so the program has those already.
    fn pass_signals_on(&self) {
        let is_sent_by_terminal = |signal: Signal| {
            (signal == Signal::INT || signal == Signal::QUIT) && is_in_foreground()
        };
        for (signal, flag) in &self.signals {
            if flag.swap(false, Ordering::Relaxed) && !is_sent_by_terminal(*signal) {
                // A program that is gone needs it no more.
                let _ = rustix::process::kill_process(Pid::from_child(&self.child), *signal);
            }
        }
    }
}

/// Whether this process and its children are what their terminal talks to.
fn is_in_foreground() -> bool {
    fs::File::open("/dev/tty").is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}

/// A bit for each signal that this process ignores.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The program's exit code, as a shell would say it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(failure::ERROR)
}

/// The file of a program, searched for as the system does.
fn found(command: &OsStr) -> PathBuf {
    let named = Path::new(command);
    if named.components().count() > 1 {
        return named.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join(named));
    places.into_iter().find(|place| place.is_file()).unwrap_or_else(|| named.to_owned())
}

/// A short name for the trace of a program.
fn default_folder(command: &OsStr) -> PathBuf {
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy().into_owned();
    let date = jiff::Zoned::now().strftime("%Y-%m-%d-%H-%M-%S");
    Path::new("feedline_traces").join(format!("{name}-{date}-{}", process::id()))
}
