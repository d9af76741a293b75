//! What an analysis says, on one screen: the answer first, then why, then what to do, then the numbers.
//!
//! About 50 lines. If there is more to say, lists get shorter; the page and the tables have all of it.
//! Sections without data are left out, and so is every claim that the trace cannot bear: a trace of
//! storage calls only has no verdict. Names in a trace are other people's text: control characters in
//! them, which a terminal would obey, are not passed on.

use feedline_analyze::Analysis;
use feedline_analyze::analysis::{Answer, Coverage};
use feedline_numbers::units;

use crate::style::{Ink, Style};
use crate::wrap::{self, joined, labeled};

mod answer;
mod grid;
mod numbers;

#[cfg(test)]
mod tests;

/// More lines than that do not fit on a screen.
const MOST_LINES: usize = 50;

/// How long lists may get.
#[derive(Clone, Copy)]
struct Room {
    causes: usize,
    /// Findings that have their evidence and all of their actions beside them.
    explained: usize,
    cases: usize,
    layers: usize,
    functions: usize,
    epochs: usize,
    stragglers: usize,
    problems: usize,
    /// Blank lines between sections.
    gap: usize,
}

/// From generous to tight; the first one that fits is used.
const ROOMS: [Room; 3] = [
    Room {
        causes: 14,
        explained: 5,
        cases: 10,
        layers: 17,
        functions: 10,
        epochs: 10,
        stragglers: 3,
        problems: 5,
        gap: 1,
    },
    Room {
        causes: 6,
        explained: 5,
        cases: 5,
        layers: 6,
        functions: 5,
        epochs: 5,
        stragglers: 3,
        problems: 3,
        gap: 0,
    },
    Room {
        causes: 5,
        explained: 2,
        cases: 3,
        layers: 4,
        functions: 3,
        epochs: 3,
        stragglers: 1,
        problems: 2,
        gap: 0,
    },
];

/// The screen.
pub fn analysis_screen(analysis: &Analysis, style: Style) -> String {
    let mut lines = Vec::new();
    for room in ROOMS {
        lines = arranged(analysis, room, style);
        if lines.len() <= MOST_LINES {
            break;
        }
    }
    joined(&lines)
}

fn arranged(analysis: &Analysis, room: Room, style: Style) -> Vec<String> {
    let columns = style.columns();
    let mut sections = vec![headline(analysis, style)];
    if claims_stalls(analysis) {
        sections.push(answer::evidence(&analysis.verdict, columns));
        sections.push(answer::stall(analysis, room.causes, style));
    }
    sections.push(answer::findings(analysis, room.explained, columns));
    if claims_stalls(analysis) {
        sections.push(answer::what_if(&analysis.what_if, room.cases, columns));
    }
    sections.push(numbers::traced(analysis, columns));
    sections.push(numbers::layers(&analysis.layers, room.layers, columns));
    sections.push(numbers::overlaps(&analysis.overlaps, columns));
    sections.push(numbers::functions(&analysis.functions, room.functions, columns));
    sections.push(numbers::access(&analysis.access, columns));
    if claims_stalls(analysis) {
        sections.push(numbers::epochs(&analysis.epochs, room.epochs, columns));
        sections.push(numbers::stragglers(&analysis.stragglers, room.stragglers, columns));
    }
    sections.push(numbers::checkpoints(&analysis.checkpoints, columns));
    sections.push(numbers::health(&analysis.health, room.problems, columns));
    let gap = vec![String::new(); room.gap];
    sections.retain(|section| !section.is_empty());
    sections.join(&gap[..])
}

/// Whether the trace has steps, so that something can be said about them.
fn claims_stalls(analysis: &Analysis) -> bool {
    analysis.health.coverage != Coverage::CallsOnly
}

fn headline(analysis: &Analysis, style: Style) -> Vec<String> {
    let (word, ink) = match analysis.verdict.answer {
        _ if !claims_stalls(analysis) => ("CALLS ONLY", Ink::BoldYellow),
        Answer::NotInputBound => ("NOT INPUT-BOUND", Ink::BoldGreen),
        Answer::ModeratelyInputBound => ("MODERATELY INPUT-BOUND", Ink::BoldYellow),
        Answer::InputBound => ("INPUT-BOUND", Ink::BoldRed),
        Answer::TooFewSteps => ("TOO FEW STEPS", Ink::BoldYellow),
        Answer::NoSteps => ("NO STEPS", Ink::BoldYellow),
    };
    let text = match claims_stalls(analysis) {
        true => plain(&analysis.verdict.text),
        false => analysis.health.coverage.sentence().to_owned(),
    };
    let text = if text.is_empty() { word.to_owned() } else { format!("{word}: {text}") };
    wrap::headline(&text, (word, ink), style)
}

/// Text of a trace without anything that a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn ns(ns: u64) -> String {
    units::duration(ns as f64 / 1e9)
}

fn share(share: f64) -> String {
    units::percent(100.0 * share)
}

/// A part of a whole; nothing has no parts.
fn part(part: u64, whole: u64) -> String {
    units::percent((whole > 0).then(|| 100.0 * part as f64 / whole as f64))
}

/// `text` after a label, or nothing if there is no text.
fn line(label: &str, text: &str, columns: usize) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { labeled(label, text, columns) }
}
