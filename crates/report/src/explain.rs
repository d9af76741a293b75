//! What a metric means, and the list of all metrics.

use feedline_bench::explain::{Explanation, metrics};

use crate::style::{Ink, Style};
use crate::wrap::{joined, labeled, shorten};

/// How DLIO's metrics begin; all others are Feedline's.
const DLIO_PREFIXES: [&str; 5] =
    ["train_", "eval_", "save_checkpoint_", "load_checkpoint_", "checkpoint_"];

/// One metric in full.
pub fn metric(explanation: &Explanation, style: Style) -> String {
    let Explanation { name, unit, meaning, formula, limits } = *explanation;
    let mut lines = vec![style.paint(Ink::Bold, name), String::new()];
    let rows = [("meaning", meaning), ("unit", unit), ("formula", formula), ("leaves out", limits)];
    for (label, text) in rows {
        let text = if text == "-" { "nothing" } else { text };
        lines.extend(labeled(label, text, style.columns()));
    }
    joined(&lines)
}

/// All metrics, one line each.
pub fn index(style: Style) -> String {
    let name_columns = metrics().map(|metric| metric.name.len()).max().unwrap_or(0);
    let room = style.columns().saturating_sub(name_columns + 4);
    let dlio = |metric: &&Explanation| DLIO_PREFIXES.iter().any(|p| metric.name.starts_with(p));
    let line = |metric: &Explanation| {
        let meaning = shorten(metric.meaning, room);
        format!("  {:<name_columns$}  {meaning}", metric.name)
    };
    let mut lines = vec![style.paint(Ink::Bold, "DLIO's metrics, by DLIO's formulas")];
    lines.extend(metrics().filter(dlio).map(line));
    lines.push(String::new());
    lines.push(style.paint(Ink::Bold, "Feedline's metrics"));
    lines.extend(metrics().filter(|metric| !dlio(metric)).map(line));
    joined(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::strip;

    const PLAIN: Style = Style { width: 80, color: false };

    const WAIT: Explanation = Explanation {
        name: "wait_seconds",
        unit: "s",
        meaning: "time in which an accelerator had nothing to do because its batch was not there",
        formula: "sum over all steps",
        limits: "-",
    };

    #[test]
    fn a_metric_is_told_in_full() {
        let expected = "\
wait_seconds

meaning     time in which an accelerator had nothing to do because its batch was
            not there
unit        s
formula     sum over all steps
leaves out  nothing
";
        assert_eq!(metric(&WAIT, PLAIN), expected);
    }

    #[test]
    fn the_index_names_every_metric_once() {
        let text = index(PLAIN);
        for explanation in metrics() {
            let line = format!("  {} ", explanation.name);
            assert_eq!(text.lines().filter(|text| text.starts_with(&line)).count(), 1, "{line}");
        }
        assert_eq!(text.lines().count(), metrics().count() + 3);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_index_has_two_groups() {
        let text = index(Style { width: 100, color: false });
        let (dlio, own) = text.split_once("\n\n").expect("a blank line between the groups");
        let begins = |group: &str| group.lines().take(3).collect::<Vec<_>>().join("\n");
        let expected = "\
DLIO's metrics, by DLIO's formulas
  train_au_percentage                        accelerator utilization of each epoch
  train_au_mean_percentage                   accelerator utilization (AU) of the run: the number…";
        assert_eq!(begins(dlio), expected);
        let expected = "\
Feedline's metrics
  au_strict_percentage                       share of all step time that the accelerators were…
  au_strict_worst_rank_percentage            the same of the rank that has least of it";
        assert_eq!(begins(own), expected);
        assert!(dlio.lines().last().is_some_and(|line| line.contains("checkpoint_size_GB")));
    }

    #[test]
    fn color_adds_nothing_but_color() {
        let colored = Style { color: true, ..PLAIN };
        assert_ne!(index(colored), index(PLAIN));
        assert_eq!(strip(&index(colored)), index(PLAIN));
        assert_eq!(strip(&metric(&WAIT, colored)), metric(&WAIT, PLAIN));
    }
}
