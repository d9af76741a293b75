//! What is wrong with a trace: everything that was met while it was read, as problems.

use std::collections::BTreeMap;

use feedline_trace::{End, Process, ReadStats, Recovered, Tables};

use crate::analysis::Problem;
use crate::saturating::Total;

use super::numbering::{Numbering, TimeSpan};

/// Places that a problem names.
const PLACES: usize = 5;
/// Clocks of machines that are further apart are wrong.
const SKEW_NS: u64 = 30 * 1_000_000_000;

/// A problem that a trace can have.
struct Known {
    code: &'static str,
    /// Whether times or sums may be wrong because of it.
    limits_claims: bool,
    text: &'static str,
}

const fn limit(code: &'static str, text: &'static str) -> Known {
    Known { code, limits_claims: true, text }
}

const fn note(code: &'static str, text: &'static str) -> Known {
    Known { code, limits_claims: false, text }
}

const BAD_LINES: Known = limit("bad-lines", "lines that are not records were skipped");
const BACKWARD_EVENTS: Known =
    limit("bad-durations", "events that end before they begin were skipped");
const UNKNOWN_RECORDS: Known = note("unknown-records", "records of unknown kinds were skipped");
const TRUNCATED_FILE: Known = limit(
    "truncated-file",
    "files are truncated or damaged; everything before the damage was read",
);
const UNNAMED_FILES: Known =
    note("unnamed-files", "events name files of which only a hash is known");
const UNPAIRED: Known = limit("unpaired", "begin events have no end, or end events no begin");
const STILL_RECORDING: Known = limit(
    "still-recording",
    "processes are still recording; their latest events are not in the trace yet",
);
const OTHER_MACHINES: Known =
    limit("other-machines", "recordings of processes on other machines must be recovered there");
const PICKED_UP: Known =
    note("picked-up", "events were recovered from recordings that had not been added to the trace");
const BAD_RECORDINGS: Known = limit("bad-recordings", "recordings could not be read");
const NO_END: Known = limit(
    "no-end",
    "processes have no end record: they were killed, or their files are incomplete",
);
const MIXED_UNITS: Known = note("mixed-time-units", "files use different time units");
const UNKNOWN_CLOCKS: Known =
    limit("unknown-clocks", "files have no start time; they are assumed to share one clock");
const IMPOSSIBLE_TIMES: Known =
    limit("bad-times", "events with impossible times, or longer than a year, were skipped");
const ZERO_TIMES: Known = limit("zero-times", "events have the timestamp 0; they were skipped");
const LONG_EVENTS: Known = limit("bad-durations", "events longer than a year were skipped");
const SUMMARIES: Known = limit(
    "summaries",
    "calls are summarized: individual calls and their order are not in the trace",
);
const CLOCK_SKEW: Known = limit(
    "clock-skew",
    "machines start more than 30 s after the first one: their clocks may be wrong",
);

/// Counts how often a process has a problem.
type CountOf = fn(&Process) -> u64;

/// What processes say about themselves.
const OF_PROCESSES: [(Known, CountOf); 5] = [
    (limit("killed-processes", "processes were killed; they may have lost events"), |process| {
        u64::from(process.end == End::Killed)
    }),
    (limit("dropped-events", "events were lost while they were recorded"), |it| it.dropped),
    (limit("untraced-processes", "processes were not traced"), |it| u64::from(!it.is_traced)),
    (limit("sampled", "calls were skipped by sampling"), |it| it.skipped),
    (note("filtered", "calls were skipped by filters"), |it| it.filtered),
];

/// Collects the problems of a trace while it is read.
#[derive(Debug, Default)]
pub(crate) struct ProblemLog {
    problems: Vec<Problem>,
}

impl ProblemLog {
    /// The worst first: those that limit claims, then the others, each in the order in which they came.
    pub(crate) fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| !problem.limits_claims);
        self.problems
    }

    /// Adds a problem, if it occurred.
    fn add(&mut self, known: &Known, count: u64, places: impl IntoIterator<Item = String>) {
        if count > 0 {
            self.problems.push(Problem {
                code: known.code.to_owned(),
                count,
                text: known.text.to_owned(),
                places: places.into_iter().take(PLACES).collect(),
                limits_claims: known.limits_claims,
            });
        }
    }

    /// Adds what the reader of another tool's files met.
    pub(crate) fn intake(&mut self, intake: &ReadStats) {
        type Pick = fn(&str) -> bool;
        let places = |is_it: Pick| {
            let named = intake.first_bad.iter().filter(move |bad| is_it(bad.reason));
            named.map(|bad| format!("{}:{} {}", bad.path.display(), bad.line, bad.reason))
        };
        let counted = |is_it: Pick| {
            intake.bad_reasons.iter().filter(|(reason, _)| is_it(reason)).map(|(_, n)| n).sum()
        };
        let is_other: Pick = |reason| reason != BACKWARD && reason != UNKNOWN;
        let (is_backward, is_unknown): (Pick, Pick) = (|it| it == BACKWARD, |it| it == UNKNOWN);
        self.add(&BAD_LINES, counted(is_other), places(is_other));
        self.add(&BACKWARD_EVENTS, counted(is_backward), places(is_backward));
        self.add(&UNKNOWN_RECORDS, counted(is_unknown) + intake.left_out, places(is_unknown));
        let damaged = intake.first_damaged.iter().map(|path| path.display().to_string());
        self.add(&TRUNCATED_FILE, intake.damaged_files, damaged);
        self.add(&UNNAMED_FILES, intake.unnamed_files, []);
        self.add(&UNPAIRED, intake.unpaired, []);
    }

    /// Adds what the recovery of left-over recordings met.
    pub(crate) fn recovered(&mut self, recovered: &Recovered) {
        self.add(&STILL_RECORDING, recovered.running + recovered.writing, []);
        self.add(&OTHER_MACHINES, recovered.elsewhere, []);
        self.add(&PICKED_UP, recovered.events, []);
        let problems = &recovered.problems;
        self.add(&BAD_RECORDINGS, problems.len() as u64, problems.iter().cloned());
    }

    /// Adds what the processes say about themselves.
    pub(crate) fn processes(&mut self, tables: &Tables) {
        for (known, of) in &OF_PROCESSES {
            let with = tables.processes.iter().filter(|process| of(process) > 0);
            self.add(known, with.clone().map(of).total(), with.map(title));
        }
    }

    /// Processes that started and never said that they ended.
    pub(crate) fn unended(&mut self, tables: &Tables, rows: &[u32]) {
        let with = rows.iter().filter_map(|row| tables.processes.get(*row as usize));
        self.add(&NO_END, rows.len() as u64, with.map(title));
    }

    pub(crate) fn units(&mut self, units_ns: &[u64]) {
        if units_ns.len() > 1 {
            let units = units_ns.iter().map(|unit| format!("{unit} ns"));
            self.add(&MIXED_UNITS, units_ns.len() as u64, units);
        }
    }

    /// Files that are assumed to share a clock, although they do not name one.
    pub(crate) fn unanchored(&mut self, files: Vec<String>) {
        self.add(&UNKNOWN_CLOCKS, files.len() as u64, files);
    }

    /// Events whose times are impossible.
    pub(crate) fn impossible(&mut self, events: u64) {
        self.add(&IMPOSSIBLE_TIMES, events, []);
    }

    /// What was seen while events became rows.
    pub(crate) fn rows(&mut self, numbering: &Numbering, zero_times: u64, too_long: u64) {
        self.add(&ZERO_TIMES, zero_times, []);
        self.add(&LONG_EVENTS, too_long, []);
        self.add(&SUMMARIES, numbering.summaries[1], []);
    }

    /// Machines whose times have nothing to do with those of the others.
    pub(crate) fn clocks(&mut self, numbering: &Numbering, tables: &Tables) {
        let mut hosts: BTreeMap<&str, TimeSpan> = BTreeMap::new();
        for (lane, span) in numbering.lanes.iter().zip(&numbering.spans) {
            if let Some(process) = tables.processes.get(lane.process as usize)
                && !span.is_empty()
            {
                hosts.entry(&process.host).or_default().add(*span);
            }
        }
        let Some(first) = hosts.values().map(|span| span.start_ns).min() else { return };
        let late = hosts.iter().filter(|(_, span)| span.start_ns.abs_diff(first) > SKEW_NS);
        let says = |(host, span): (&&str, &TimeSpan)| {
            format!(
                "{host} starts {} s after the first",
                span.start_ns.abs_diff(first) / 1_000_000_000
            )
        };
        self.add(&CLOCK_SKEW, late.clone().count() as u64, late.map(says));
    }
}

/// The reason of a line whose event ends before it begins.
const BACKWARD: &str = "ends before it begins";
/// The reason of a line of an unknown kind.
const UNKNOWN: &str = "is an event of an unknown kind";

fn title(process: &Process) -> String {
    let program = process.program.rsplit('/').next().unwrap_or_default();
    format!("{} {} {program}", process.host, process.pid).trim_end().to_owned()
}
