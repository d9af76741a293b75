//! What a metric means: one in full, the list of all, and the reference page.

use crate::metrics::{GROUPS, Metric, PLACEHOLDERS, all};
use crate::style::{Ink, Style};
use crate::wrap::{joined, labeled, shorten};

/// One metric in full.
pub fn metric(metric: &Metric, style: Style) -> String {
    let mut lines = vec![style.paint(Ink::Bold, metric.name), String::new()];
    for (label, text) in rows(metric) {
        lines.extend(labeled(label, text, style.columns()));
    }
    joined(&lines)
}

/// All metrics, one line each.
pub fn index(style: Style) -> String {
    let name_columns = all().map(|metric| metric.name.len()).max().unwrap_or(0);
    let room = style.columns().saturating_sub(name_columns + 4);
    let line = |metric: &Metric| {
        format!("  {:<name_columns$}  {}", metric.name, shorten(metric.meaning, room))
    };
    let mut lines = Vec::new();
    for (title, metrics) in GROUPS {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(style.paint(Ink::Bold, title));
        lines.extend(metrics.iter().map(line));
    }
    joined(&lines)
}

/// All metrics as a reference page in Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\nEvery number of a run and of an analysis, as `feedline explain NAME` prints it. \
         In `summary.json`, DLIO's metrics are under `metric` and Feedline's under `feedline`. In their \
         names, these words are placeholders:\n\n",
    );
    for (placeholder, keys) in PLACEHOLDERS {
        page.push_str(&format!("- `{placeholder}`: {}\n", keys.join(", ")));
    }
    for (title, metrics) in GROUPS {
        page.push_str(&format!("\n## {title}\n"));
        for metric in metrics {
            page.push_str(&format!("\n### {}\n\n", metric.name));
            for (label, text) in rows(metric) {
                page.push_str(&format!("- {label}: {text}\n"));
            }
        }
    }
    page
}

/// What is said about a metric, under its labels.
fn rows(metric: &Metric) -> impl Iterator<Item = (&'static str, &'static str)> {
    let Metric { name: _, label, unit, meaning, formula, caveats } = *metric;
    let rows = [
        ("on the page", label),
        ("meaning", meaning),
        ("unit", unit),
        ("formula", formula),
        ("caveats", caveats),
    ];
    rows.into_iter().filter(|(_, text)| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::strip;

    const PLAIN: Style = Style { width: 80, color: false };

    const WAIT: Metric = Metric {
        name: "wait_seconds",
        label: "",
        unit: "s",
        meaning: "time in which an accelerator had nothing to do because its batch was not there",
        formula: "sum over all steps",
        caveats: "",
    };

    #[test]
    fn a_metric_is_told_in_full() {
        let expected = "\
wait_seconds

meaning     time in which an accelerator had nothing to do because its batch was
            not there
unit        s
formula     sum over all steps
";
        assert_eq!(metric(&WAIT, PLAIN), expected);
    }

    #[test]
    fn the_index_names_every_metric_once() {
        let text = index(PLAIN);
        for metric in all() {
            let line = format!("  {} ", metric.name);
            assert_eq!(text.lines().filter(|text| text.starts_with(&line)).count(), 1, "{line}");
        }
        assert_eq!(text.lines().count(), all().count() + 5);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_index_has_three_groups() {
        let text = index(Style { width: 100, color: false });
        let groups: Vec<_> = text.split("\n\n").collect();
        let [dlio, own, analysis] = groups[..] else { panic!("{} groups", groups.len()) };
        let begins = |group: &str| group.lines().take(3).collect::<Vec<_>>().join("\n");
        let expected = "\
DLIO's metrics of a run, by DLIO's formulas
  train_au_percentage                        accelerator utilization of each epoch
  train_au_mean_percentage                   accelerator utilization (AU) of the run: the number…";
        assert_eq!(begins(dlio), expected);
        let expected = "\
Feedline's metrics of a run
  au_strict_percentage                       share of all step time that the accelerators were…
  au_strict_worst_rank_percentage            au_strict_percentage of the rank with the lowest";
        assert_eq!(begins(own), expected);
        assert!(analysis.starts_with("Metrics of an analysis\n  stall_share "));
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
