//! What every reported number means: the one table behind `feedline explain`, `docs/metrics.md` and
//! the tooltips of an analysis page.

mod analysis;
mod dlio;
mod run;

/// A number that Feedline reports, and what it means.
///
/// Texts are fragments: lower case, no full stop. An empty one does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its stable name. That of a result is its key in `summary.json`: below `metric` (DLIO's) or
    /// below `feedline`, with dots. Segments of [`PLACEHOLDERS`] are for several keys.
    pub name: &'static str,
    /// What it is called on the page; empty for results of a run, which are not on it.
    pub label: &'static str,
    /// Its unit; empty for numbers of an analysis, which are always printed with theirs.
    pub unit: &'static str,
    /// What it tells.
    pub meaning: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// What it leaves out or gets wrong.
    pub caveats: &'static str,
}

/// Metrics by what reports them, each group with its title.
pub const GROUPS: [(&str, &[Metric]); 3] = [
    ("DLIO's metrics of a run, by DLIO's formulas", dlio::METRICS),
    ("Feedline's metrics of a run", run::METRICS),
    ("Metrics of an analysis", analysis::METRICS),
];

/// Segments of names that are for several keys, and these keys.
pub const PLACEHOLDERS: [(&str, &[&str]); 4] = [
    ("OP", &["open", "stat", "read"]),
    ("PART", &["storage", "decode", "framework", "workers", "peers", "compute"]),
    ("WAY", &["save", "load"]),
    ("STAT", &["mean", "stdev", "min", "p10", "p50", "p90", "p99", "p99_9", "max"]),
];

/// Every metric.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|(_, metrics)| *metrics)
}

/// The results of a run.
pub fn of_run() -> impl Iterator<Item = &'static Metric> {
    all().filter(|metric| metric.label.is_empty())
}

/// The numbers of an analysis.
pub fn of_analysis() -> impl Iterator<Item = &'static Metric> {
    all().filter(|metric| !metric.label.is_empty())
}

/// The metric called `name` among `metrics`. Numbers of an epoch or a rank mean the same as those of
/// the run.
pub fn find(
    mut metrics: impl Iterator<Item = &'static Metric>,
    name: &str,
) -> Option<&'static Metric> {
    let part = name.strip_prefix("per_epoch.").or_else(|| name.strip_prefix("per_rank."));
    metrics.find(|metric| matches(metric.name, part.unwrap_or(name)))
}

/// Up to three names among `metrics` that contain most words of what was typed.
pub fn similar(metrics: impl Iterator<Item = &'static Metric>, typed: &str) -> Vec<&'static str> {
    let typed = typed.to_ascii_lowercase();
    let words: Vec<_> = typed.split(['_', '.', ' ']).filter(|word| word.len() > 1).collect();
    let hits = |name: &str| words.iter().filter(|word| name.contains(**word)).count();
    let names: Vec<_> = metrics.map(|metric| metric.name).collect();
    let best = names.iter().map(|name| hits(name)).max().unwrap_or(0);
    names.into_iter().filter(|name| best > 0 && hits(name) == best).take(3).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    let stands_for = |segment: &str, key: &str| {
        PLACEHOLDERS.iter().any(|(general, keys)| *general == segment && keys.contains(&key))
    };
    pattern.split('.').count() == name.split('.').count()
        && pattern.split('.').zip(name.split('.')).all(|(a, b)| a == b || stands_for(a, b))
}

/// A result of a run.
const fn result(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    formula: &'static str,
    caveats: &'static str,
) -> Metric {
    Metric { name, label: "", unit, meaning, formula, caveats }
}

#[cfg(test)]
mod tests {
    use feedline_analyze::StallCause;

    use super::*;

    #[test]
    fn names_are_unique_and_texts_are_fragments() {
        for (place, metric) in all().enumerate() {
            assert_eq!(all().position(|other| other.name == metric.name), Some(place));
            for text in [metric.meaning, metric.formula, metric.caveats] {
                assert!(!text.ends_with('.'), "{}: {text}", metric.name);
            }
            assert!(!metric.meaning.is_empty(), "{}", metric.name);
        }
    }

    #[test]
    fn every_cause_is_defined() {
        for cause in StallCause::ALL {
            assert!(find(of_analysis(), cause.name()).is_some(), "{}", cause.name());
        }
    }

    #[test]
    fn what_was_probably_meant_is_found_by_its_words() {
        assert_eq!(
            similar(all(), "au_strict"),
            ["au_strict_percentage", "au_strict_worst_rank_percentage"]
        );
        assert_eq!(similar(all(), "cached")[..], ["cached_share_percentage"]);
        assert_eq!(similar(all(), "stalled")[..], ["stalled_steps"]);
        assert_eq!(similar(of_run(), "stalled"), [""; 0]);
        assert_eq!(similar(all(), "qqq"), [""; 0]);
    }

    #[test]
    fn parts_are_explained_by_the_whole() {
        let name = |of| find(all(), of).map(|metric| metric.name);
        assert_eq!(name("storage.read.latency_us.p99"), Some("storage.OP.latency_us.STAT"));
        assert_eq!(name("storage.OP.latency_us.STAT"), Some("storage.OP.latency_us.STAT"));
        assert_eq!(name("checkpoints.load.files"), Some("checkpoints.WAY.files"));
        assert_eq!(name("per_rank.au_strict_percentage"), Some("au_strict_percentage"));
        assert_eq!(name("storage.write.calls"), None);
        assert_eq!(name("storage.read"), None);
        assert_eq!(name("speed"), None);
    }
}
