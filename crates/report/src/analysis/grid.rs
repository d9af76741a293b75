//! Tables: a name on the left, numbers on the right, and no wider than the terminal.

use crate::wrap::shorten;

/// Names longer than that are shortened.
const NAME_COLUMNS: usize = 24;
const INDENT: usize = 2;
const GAP: usize = 2;

/// A heading and rows, all of as many cells. The last columns are left out if there is no room for them.
pub(super) fn grid(heading: &[&str], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = rows.iter().map(|row| short_name(&row[0])).collect();
    let longest = names.iter().map(|name| name.chars().count() + INDENT).max().unwrap_or(0);
    let first = longest.max(heading[0].chars().count());
    let widths: Vec<usize> = (1..heading.len())
        .map(|place| {
            let cells = rows.iter().map(|row| row[place].as_str()).chain([heading[place]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut used = first;
    let fitting = widths.iter().take_while(|width| {
        used += GAP + **width;
        used <= columns
    });
    let fitting = fitting.count();
    let line = |name: String, cells: Vec<&str>| {
        let mut line = format!("{name:<first$}");
        for (cell, width) in cells.iter().zip(&widths).take(fitting) {
            line += &format!("{:GAP$}{cell:>width$}", "");
        }
        line.trim_end().to_owned()
    };
    let mut lines = vec![line(heading[0].to_owned(), heading[1..].to_vec())];
    for (name, row) in names.into_iter().zip(rows) {
        let cells = row[1..].iter().map(String::as_str).collect();
        lines.push(line(format!("{:INDENT$}{name}", ""), cells));
    }
    lines
}

/// A name that fits; one word that does not is cut.
fn short_name(name: &str) -> String {
    if name.chars().count() <= NAME_COLUMNS {
        return name.to_owned();
    }
    let short = shorten(name, NAME_COLUMNS);
    if short.chars().count() > 1 {
        return short;
    }
    name.chars().take(NAME_COLUMNS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        [["read", "12", "4.00 ms"], ["a_name_that_is_longer_than_most", "3", "1.00 s"]]
            .map(|row| row.map(String::from).to_vec())
            .to_vec()
    }

    #[test]
    fn numbers_stand_below_each_other() {
        assert_eq!(
            grid(&["calls", "count", "p50"], &rows(), 80),
            [
                "calls                       count      p50",
                "  read                         12  4.00 ms",
                "  a_name_that_is_longer_t…      3   1.00 s",
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(
            grid(&["calls", "count", "p50"], &rows(), 40),
            [
                "calls                       count",
                "  read                         12",
                "  a_name_that_is_longer_t…      3",
            ]
        );
        assert!(grid(&["calls", "count"], &[], 40).is_empty());
    }
}
