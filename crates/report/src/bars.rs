//! Where the time of the steps went, as bars. The whole width is all of the time.

use feedline_bench::Split;
use feedline_numbers::units;

use crate::style::{Ink, Style};

/// Blocks of one to eight eighths of a column.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// A share that is written as 0.0 % has no bar.
const LEAST_SHARE: f64 = 0.0005;

/// One line a part, with its share and its time on each of `ranks`.
pub(crate) fn lines(split: &Split, ranks: u32, style: Style) -> Vec<String> {
    let mut parts = vec![
        ("compute", split.compute_ns, Ink::DimGreen),
        ("storage", split.storage_ns, Ink::DimRed),
        ("decode", split.decode_ns, Ink::DimYellow),
        ("framework", split.framework_ns, Ink::DimCyan),
        ("workers", split.worker_ns, Ink::DimMagenta),
        ("peers", split.peers_ns, Ink::DimBlue),
    ];
    if split.framework_ns == 0 {
        // It is not burnt; the screen says why.
        parts.retain(|(name, ..)| *name != "framework");
    }
    let total = split.total_ns().max(1) as f64;
    let time = |ns: u64| units::duration(ns as f64 / 1e9 / f64::from(ranks.max(1)));
    let times: Vec<_> = parts.iter().map(|(_, ns, _)| time(*ns)).collect();
    let time_columns = times.iter().map(|time| time.chars().count()).max().unwrap_or(0);
    let line = |((name, ns, ink), time): ((&str, u64, Ink), &String)| {
        let share = ns as f64 / total;
        let percent = units::percent(100.0 * share);
        let text = format!("  {name:<9} {percent:>7}  {time:>time_columns$}");
        let room = style.columns().saturating_sub(text.chars().count() + 2);
        match bar(share, room) {
            bar if bar.is_empty() => text,
            bar => format!("{text}  {}", style.paint(ink, &bar)),
        }
    };
    parts.into_iter().zip(&times).map(line).collect()
}

/// A bar of that share of `room` columns.
pub(crate) fn bar(share: f64, room: usize) -> String {
    if share < LEAST_SHARE || room == 0 {
        return String::new();
    }
    let eighths = ((share * (8 * room) as f64).round() as usize).clamp(1, 8 * room);
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_shares_of_the_room() {
        for (share, room, expected) in [
            (0.0, 4, ""),
            (0.0004, 4, ""),
            (0.0006, 4, "▏"),
            (0.25, 4, "█"),
            (0.5, 3, "█▌"),
            (1.0, 4, "████"),
            (1.0, 0, ""),
        ] {
            assert_eq!(bar(share, room), expected, "{share} of {room}");
        }
    }
}
