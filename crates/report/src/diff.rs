//! Two runs beside each other.

use feedline_analyze::diff::{Diff, Figure, FunctionChange, Shift};
use feedline_numbers::units;

use crate::style::Ink;
use crate::{Style, wrap};

/// The most rows of a table.
const ROWS: usize = 10;

/// What changed between two runs.
pub fn diff_screen(diff: &Diff, style: Style) -> String {
    let ink = if diff.is_worse { Ink::BoldRed } else { Ink::Bold };
    let mut text = format!("{}\n", style.paint(ink, &diff.text));
    if let Some([least, most]) = diff.step_change_interval {
        let line = format!(
            "step time {} to {} (95 % interval); allowed {}",
            signed(least * 100.0),
            signed(most * 100.0),
            signed(diff.allowed * 100.0)
        );
        text += &lines(&line, style);
    }
    text += &format!("  A  {}\n  B  {}\n", diff.first.join(" "), diff.second.join(" "));
    for warning in &diff.warnings {
        text += &lines(&format!("warning: {warning}"), style);
    }
    text += &shifts(&diff.shifts);
    text += &figures(&diff.figures);
    text += &functions(&diff.functions);
    text
}

fn lines(text: &str, style: Style) -> String {
    let lines = wrap::hanging("  ", "  ", text, style.columns());
    lines.into_iter().map(|line| line + "\n").collect()
}

fn signed(percent: f64) -> String {
    format!("{percent:+.1} %")
}

fn milliseconds(ns: i64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

fn shifts(shifts: &[Shift]) -> String {
    if shifts.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<16}{:>12}{:>12}{:>12}\n", "ms per step", "A", "B", "change");
    for shift in shifts.iter().take(ROWS) {
        text += &format!(
            "{:<16}{:>12}{:>12}{:>+12.3}\n",
            shift.what,
            milliseconds(shift.first_ns),
            milliseconds(shift.second_ns),
            shift.change_ns() as f64 / 1e6
        );
    }
    text
}

fn value(figure: &Figure, value: f64) -> String {
    match figure.unit.as_str() {
        "ns" => units::duration(value / 1e9),
        "bytes" => units::bytes(value),
        "percent" => format!("{value:.1} %"),
        "per-second" => format!("{value:.1}/s"),
        _ => units::count(value as u64),
    }
}

fn figures(figures: &[Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<24}{:>14}{:>14}\n", "", "A", "B");
    for figure in figures {
        let (first, second) = (value(figure, figure.first), value(figure, figure.second));
        text += &format!("{:<24}{first:>14}{second:>14}\n", figure.name);
    }
    text
}

fn functions(functions: &[FunctionChange]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<28}{:>22}{:>22}\n",
        "largest changes in calls", "calls A, mean us", "calls B, mean us"
    );
    for row in functions.iter().take(ROWS) {
        let cell =
            |at: usize| format!("{}, {:.1}", units::count(row.counts[at]), row.mean_ns[at] / 1e3);
        text += &format!("{:<28}{:>22}{:>22}\n", row.name, cell(0), cell(1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_run_says_by_how_much_and_why() {
        let diff = Diff {
            first: vec!["a".into()],
            second: vec!["b".into()],
            text: "10.0 % slower: 11.0 ms per step, before 10.0 ms (read +1.0 ms per step)".into(),
            is_worse: true,
            allowed: 0.05,
            step_change: Some(0.1),
            step_change_interval: Some([0.08, 0.12]),
            shifts: vec![Shift { what: "read".into(), first_ns: 1_000_000, second_ns: 2_000_000 }],
            figures: vec![Figure {
                name: "stalled".into(),
                first: 10.0,
                second: 18.2,
                unit: "percent".into(),
            }],
            functions: vec![FunctionChange {
                name: "POSIX/read".into(),
                counts: [1000, 2000],
                mean_ns: [1500.0, 2500.0],
                p99_ns: [1, 2],
                total_ns: [1, 2],
            }],
            warnings: vec!["1 ranks compared with 2".into()],
        };
        let text = diff_screen(&diff, Style { width: 80, color: false });
        let expected = "\
10.0 % slower: 11.0 ms per step, before 10.0 ms (read +1.0 ms per step)
  step time +8.0 % to +12.0 % (95 % interval); allowed +5.0 %
  A  a
  B  b
  warning: 1 ranks compared with 2

ms per step                A           B      change
read                   1.000       2.000      +1.000

                                     A             B
stalled                         10.0 %        18.2 %

largest changes in calls          calls A, mean us      calls B, mean us
POSIX/read                              1,000, 1.5            2,000, 2.5
";
        assert_eq!(text, expected);
    }
}
