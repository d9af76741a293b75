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

/// Problems that are being collected.
#[derive(Debug, Default)]
pub(crate) struct ProblemLog {
    problems: Vec<Problem>,
}

/// Whether times or sums may be wrong because of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Limits,
    Notes,
}

impl ProblemLog {
    /// The worst first: those that limit claims, then the others, each in the order in which they came.
    pub(crate) fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| !problem.limits_claims);
        self.problems
    }

    /// Adds a problem, if there is one.
    pub(crate) fn add(
        &mut self,
        code: &str,
        weight: Weight,
        count: u64,
        text: &str,
        places: impl IntoIterator<Item = String>,
    ) {
        if count == 0 {
            return;
        }
        self.problems.push(Problem {
            code: code.to_owned(),
            count,
            text: text.to_owned(),
            places: places.into_iter().take(PLACES).collect(),
            limits_claims: weight == Weight::Limits,
        });
    }

    /// What reading files of other tools met.
    pub(crate) fn intake(&mut self, intake: &ReadStats) {
        let backward = |reason: &str| reason == BACKWARD;
        let unknown = |reason: &str| reason == UNKNOWN;
        let is_other = |reason: &str| !backward(reason) && !unknown(reason);
        let places = |is_it: &dyn Fn(&str) -> bool| -> Vec<String> {
            let named = intake.first_bad.iter().filter(|bad| is_it(bad.reason));
            named.map(|bad| format!("{}:{} {}", bad.path.display(), bad.line, bad.reason)).collect()
        };
        let counted = |is_it: &dyn Fn(&str) -> bool| {
            intake.bad_reasons.iter().filter(|(reason, _)| is_it(reason)).map(|(_, n)| n).sum()
        };
        self.add(
            "bad-lines",
            Weight::Limits,
            counted(&is_other),
            "lines that are not records were skipped",
            places(&is_other),
        );
        self.add(
            "bad-durations",
            Weight::Limits,
            counted(&backward),
            "events that end before they begin were skipped",
            places(&backward),
        );
        self.add(
            "unknown-records",
            Weight::Notes,
            counted(&unknown) + intake.left_out,
            "records of unknown kinds were skipped",
            places(&unknown),
        );
        self.add(
            "truncated-file",
            Weight::Limits,
            intake.damaged_files,
            "files are truncated or damaged; everything before the damage was read",
            intake.first_damaged.iter().map(|path| path.display().to_string()),
        );
        self.add(
            "unnamed-files",
            Weight::Notes,
            intake.unnamed_files,
            "events name files of which only a hash is known",
            [],
        );
        self.add(
            "unpaired",
            Weight::Limits,
            intake.unpaired,
            "begin events have no end, or end events no begin",
            [],
        );
    }

    /// What picking up left-over recordings met.
    pub(crate) fn recovered(&mut self, recovered: &Recovered) {
        self.add(
            "still-recording",
            Weight::Limits,
            recovered.running + recovered.writing,
            "processes are still recording; their latest events are not in the trace yet",
            [],
        );
        self.add(
            "other-machines",
            Weight::Limits,
            recovered.elsewhere,
            "recordings of processes on other machines must be recovered there",
            [],
        );
        self.add(
            "picked-up",
            Weight::Notes,
            recovered.events,
            "events were recovered from recordings that had not been added to the trace",
            [],
        );
        self.add(
            "bad-recordings",
            Weight::Limits,
            recovered.problems.len() as u64,
            "recordings could not be read",
            recovered.problems.iter().cloned(),
        );
    }

    /// What the processes say about themselves.
    pub(crate) fn processes(&mut self, tables: &Tables) {
        type Of = (&'static str, Weight, &'static str, fn(&Process) -> u64);
        let all: [Of; 5] = [
            (
                "killed-processes",
                Weight::Limits,
                "processes were killed; they may have lost events",
                |p| u64::from(p.end == End::Killed),
            ),
            ("dropped-events", Weight::Limits, "events were lost while they were recorded", |p| {
                p.dropped
            }),
            ("untraced-processes", Weight::Limits, "processes were not traced", |p| {
                u64::from(!p.is_traced)
            }),
            ("sampled", Weight::Limits, "calls were skipped by sampling", |p| p.skipped),
            ("filtered", Weight::Notes, "calls were skipped by filters", |p| p.filtered),
        ];
        for (code, weight, text, of) in all {
            let with = tables.processes.iter().filter(|process| of(process) > 0);
            let count = with.clone().map(of).total();
            self.add(code, weight, count, text, with.map(title));
        }
    }

    /// Processes that began and never said that they ended.
    pub(crate) fn unended(&mut self, tables: &Tables, rows: &[u32]) {
        let with = rows.iter().filter_map(|row| tables.processes.get(*row as usize));
        self.add(
            "no-end",
            Weight::Limits,
            rows.len() as u64,
            "processes have no end record: they were killed, or their files are incomplete",
            with.map(title),
        );
    }

    pub(crate) fn units(&mut self, units_ns: &[u64]) {
        if units_ns.len() > 1 {
            self.add(
                "mixed-time-units",
                Weight::Notes,
                units_ns.len() as u64,
                "files use different time units",
                units_ns.iter().map(|unit| format!("{unit} ns")),
            );
        }
    }

    /// Files that are taken to share a clock of which they say nothing.
    pub(crate) fn unanchored(&mut self, files: Vec<String>) {
        self.add(
            "unknown-clocks",
            Weight::Limits,
            files.len() as u64,
            "files have no start time; they are assumed to share one clock",
            files,
        );
    }

    /// Events whose times are impossible.
    pub(crate) fn impossible(&mut self, events: u64) {
        self.add(
            "bad-times",
            Weight::Limits,
            events,
            "events with impossible times, or longer than a year, were skipped",
            [],
        );
    }

    /// What was seen while events became rows.
    pub(crate) fn rows(&mut self, numbering: &Numbering, zero_times: u64, too_long: u64) {
        self.add(
            "zero-times",
            Weight::Limits,
            zero_times,
            "events have the timestamp 0; they were skipped",
            [],
        );
        self.add(
            "bad-durations",
            Weight::Limits,
            too_long,
            "events longer than a year were skipped",
            [],
        );
        self.add(
            "summaries",
            Weight::Limits,
            numbering.summaries[1],
            "calls are summarized: individual calls and their order are not in the trace",
            [],
        );
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
        self.add(
            "clock-skew",
            Weight::Limits,
            late.clone().count() as u64,
            "machines start more than 30 s after the first one: their clocks may be wrong",
            late.map(says),
        );
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
