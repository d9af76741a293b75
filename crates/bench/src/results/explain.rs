//! What every reported number means. The table behind `feedline explain` and `docs/metrics.md`.

mod dlio;
mod own;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its key in `summary.json`: below `metric` (DLIO's names) or below `feedline`, with dots.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// What it leaves out or gets wrong.
    pub limits: &'static str,
}

/// Every metric, DLIO's first.
pub fn metrics() -> impl Iterator<Item = &'static Explanation> {
    dlio::METRICS.iter().chain(own::METRICS)
}

/// The explanation of the metric called `name`. One operation's numbers (`storage.read.calls`) are
/// explained for all (`storage.OP.calls`), those of an epoch or a rank by those of the run, those of
/// saves and loads by `checkpoints.WAY`.
pub fn explain(name: &str) -> Option<&'static Explanation> {
    let part = name.strip_prefix("per_epoch.").or_else(|| name.strip_prefix("per_rank."));
    let name = part.unwrap_or(name);
    let way = ["checkpoints.save.", "checkpoints.load."].iter().find_map(|p| name.strip_prefix(p));
    let general = match name.strip_prefix("storage.").and_then(|rest| rest.split_once('.')) {
        Some((_, rest)) => format!("storage.OP.{rest}"),
        None => way.map_or(name.to_owned(), |rest| match rest.split_once('.') {
            Some((of, _)) => format!("checkpoints.WAY.{of}.STAT"),
            None => format!("checkpoints.WAY.{rest}"),
        }),
    };
    metrics().find(|metric| metric.name == general)
}

/// Names that contain what was typed, or a word of it: what was probably meant.
pub fn similar(typed: &str) -> Vec<&'static str> {
    let typed = typed.to_ascii_lowercase();
    let words: Vec<_> = typed.split(['_', '.', ' ']).filter(|word| word.len() > 1).collect();
    let names = || metrics().map(|metric| metric.name);
    let hits = |name: &str| words.iter().filter(|word| name.contains(**word)).count();
    let best = names().map(hits).max().unwrap_or(0);
    names().filter(|name| best > 0 && hits(name) == best).take(3).collect()
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    formula: &'static str,
    limits: &'static str,
) -> Explanation {
    Explanation { name, unit, meaning, formula, limits }
}

/// All explanations as a reference page.
pub fn metrics_markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\nEvery number in `summary.json`, as `feedline explain NAME` prints it. Names \
         without a dot from `train_` to `checkpoint_` stand under `metric` and are DLIO's; the others \
         stand under `feedline`. `OP` is an operation of the store: open, stat, read; `WAY` is save or load, `STAT` mean, stdev, min or max.\n",
    );
    for Explanation { name, unit, meaning, formula, limits } in metrics() {
        page.push_str(&format!(
            "\n## {name}\n\n{meaning}.\n\n- unit: {unit}\n- formula: {formula}\n- leaves out: {limits}\n"
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probably_meant_is_found_by_its_words() {
        assert_eq!(
            similar("au_strict"),
            ["au_strict_percentage", "au_strict_worst_rank_percentage"]
        );
        assert_eq!(similar("cached")[..], ["cached_share_percentage"]);
        assert_eq!(similar("qqq"), [""; 0]);
    }

    #[test]
    fn parts_are_explained_by_the_whole() {
        let name = |of| explain(of).map(|metric| metric.name);
        assert_eq!(name("storage.read.latency_us.p99"), Some("storage.OP.latency_us.p99"));
        assert_eq!(name("per_rank.au_strict_percentage"), Some("au_strict_percentage"));
        assert_eq!(name("speed"), None);
    }
}
