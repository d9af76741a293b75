//! Breaks text into lines between words.
//!
//! A number stays with its unit and an option with its value, so that neither is torn apart. A
//! word that is longer than the line, such as a path, stays whole so that it can be copied.

use crate::style::{Ink, Style};

/// Columns of the labels at the beginning of lines.
const LABEL_COLUMNS: usize = 12;

const UNITS: [&str; 21] = [
    "%",
    "B",
    "kB",
    "MB",
    "GB",
    "TB",
    "PB",
    "EB",
    "MB/s",
    "GB/s",
    "MiB/s",
    "GiB",
    "GiB/s",
    "ns",
    "us",
    "ms",
    "s",
    "min",
    "h",
    "steps",
    "samples/s",
];

/// `text` after `label`, wrapped; further lines are indented to the text's column.
pub(crate) fn labeled(label: &str, text: &str, columns: usize) -> Vec<String> {
    let first = format!("{label:<LABEL_COLUMNS$}");
    hanging(&first, &" ".repeat(LABEL_COLUMNS), text, columns)
}

/// The same for one of several texts under a label: a dash tells where each begins.
pub(crate) fn item(label: &str, text: &str, columns: usize) -> Vec<String> {
    let first = format!("{label:<LABEL_COLUMNS$}- ");
    hanging(&first, &" ".repeat(LABEL_COLUMNS + 2), text, columns)
}

/// `text` wrapped, with `first` before the first line and `rest` before the others.
pub(crate) fn hanging(first: &str, rest: &str, text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut empty) = (first.to_owned(), true);
    for piece in pieces(text) {
        if !empty && line.chars().count() + 1 + piece.chars().count() > columns {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&piece);
        empty = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// The first lines of a screen, with their most important word in color.
pub(crate) fn headline(text: &str, (word, ink): (&str, Ink), style: Style) -> Vec<String> {
    let mut lines = hanging("", "  ", text, style.columns());
    lines[0] = lines[0].replacen(word, &style.paint(ink, word), 1);
    lines
}

/// Texts after their labels, each as [`labeled`] does it.
pub(crate) fn all_labeled(rows: &[(&str, String)], columns: usize) -> Vec<String> {
    rows.iter().flat_map(|(label, text)| labeled(label, text, columns)).collect()
}

/// Rows with cells of equal width: those of the first `left` columns begin on one line, the others end on
/// one. The gaps are narrower if the rows would not fit otherwise.
pub(crate) fn aligned<const N: usize>(
    rows: &[[String; N]],
    left: usize,
    columns: usize,
) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let is_roomy = widths.iter().sum::<usize>() + 2 * (N - 1) <= columns;
    let cell = |(column, (cell, width)): (usize, (&String, usize))| {
        if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).enumerate().map(cell).collect();
        cells.join(if is_roomy { "  " } else { " " })
    };
    rows.iter().map(line).collect()
}

/// As much of `text` as fits, cut between words with an ellipsis.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split_whitespace() {
        if short.chars().count() + word.chars().count() + 2 > columns {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    short.trim_end_matches([',', ':', ';']).to_owned() + "…"
}

/// Lines as one text.
pub(crate) fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The parts between which a line may end.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match pieces.last_mut() {
            Some(last) if belongs_to(last, word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

fn belongs_to(last: &str, word: &str) -> bool {
    let number = last.ends_with(|c: char| c.is_ascii_digit());
    let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
    let option = last.starts_with("--") && !last.contains(' ');
    (number && UNITS.contains(&unit))
        || (option && last.ends_with(|c: char| c.is_alphanumeric()) && !word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, expected: &[&str]) {
        assert_eq!(hanging("", "  ", text, columns), expected);
    }

    #[test]
    fn lines_end_between_words() {
        check("one two three", 7, &["one two", "  three"]);
        check("one two three", 13, &["one two three"]);
        check("", 13, &[""]);
    }

    #[test]
    fn a_number_keeps_its_unit_and_an_option_its_value() {
        check("busy 41.3 % of", 9, &["busy", "  41.3 %", "  of"]);
        check("in 5.0 s, then", 7, &["in", "  5.0 s,", "  then"]);
        check("try --set a=8 now", 9, &["try", "  --set a=8", "  now"]);
        check("say --quick: not", 13, &["say --quick:", "  not"]);
    }

    #[test]
    fn a_long_word_stays_whole() {
        check("in /a/long/path now", 8, &["in", "  /a/long/path", "  now"]);
    }

    #[test]
    fn labels_stand_in_their_own_column() {
        assert_eq!(labeled("next", "a b", 14), ["next        a", "            b"]);
        assert_eq!(item("", "a b", 16), ["            - a", "              b"]);
    }

    #[test]
    fn short_texts_end_between_words() {
        assert_eq!(shorten("time, of a call", 20), "time, of a call");
        assert_eq!(shorten("time, of a call", 10), "time, of…");
        assert_eq!(shorten("time, of a call", 8), "time…");
    }
}
