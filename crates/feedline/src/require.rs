//! `--require`: metrics that a run must reach.

use feedline_bench::{Expectation, SummaryFile};
use feedline_report::metrics;

use crate::{failure, show};

/// The metric that targets refer to.
const AU: &str = "train_au_mean_percentage";

/// One requirement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Requirement {
    /// The workload's own target for the utilization.
    Target,
    /// A bound on a metric.
    Bound { metric: String, at_least: bool, bound: f64 },
}

impl Requirement {
    /// Reads `au`, `METRIC>=NUMBER` or `METRIC<=NUMBER`.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        if text == "au" {
            return Ok(Self::Target);
        }
        let hint = "use `au`, METRIC>=NUMBER or METRIC<=NUMBER with a name from `feedline explain`";
        let wrong = || failure::hinted(format!("--require {text}: not a requirement"), hint);
        let (at_least, (metric, bound)) = match text.split_once(">=") {
            Some(sides) => (true, sides),
            None => (false, text.split_once("<=").ok_or_else(wrong)?),
        };
        let (metric, bound) = (metric.trim(), bound.trim().parse().map_err(|_| wrong())?);
        let metric = if metric == "au" { AU } else { metric };
        if metrics::find(metrics::of_run(), metric).is_none() {
            let message = format!("--require {text}: unknown metric `{metric}`");
            let hint = show::metric_hint(&metrics::similar(metrics::of_run(), metric));
            return Err(failure::hinted(message, hint));
        }
        if !is_number(metric) {
            let message = format!("--require {text}: `{metric}` is not one number");
            return Err(failure::hinted(message, "require its mean, if there is one"));
        }
        Ok(Self::Bound { metric: metric.to_owned(), at_least, bound })
    }

    /// `None` if `summary` meets it, else what is missing.
    pub(crate) fn missed(&self, summary: &SummaryFile) -> Option<String> {
        match self {
            Self::Target => {
                let train = summary.metric.train.as_ref();
                let met = train.is_some_and(|it| it.au_meet_expectation == Expectation::Success);
                let au = train.and_then(|it| it.au_mean_percentage);
                let target = Some(summary.feedline.verdict.target_percentage);
                (!met).then(|| format!("{AU} is {}, required >= {}", number(au), number(target)))
            }
            Self::Bound { metric, at_least, bound } => {
                let value = summary.number(metric);
                let met = value.is_some_and(|v| if *at_least { v >= *bound } else { v <= *bound });
                let sign = if *at_least { ">=" } else { "<=" };
                (!met).then(|| format!("{metric} is {}, required {sign} {bound}", number(value)))
            }
        }
    }
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "not known".to_owned(),
        Some(value) if value.fract() == 0.0 => format!("{value}"),
        Some(value) => format!("{value:.4}"),
    }
}

/// Whether a run gives one number of that name; some metrics are lists or words.
fn is_number(metric: &str) -> bool {
    let lists = ["_au_percentage", "_throughput_samples_per_second", "_share_percentage"];
    let list = lists.iter().any(|ending| metric.ends_with(ending)) && !metric.contains('.');
    let general =
        metric.split('.').any(|part| metrics::PLACEHOLDERS.iter().any(|(it, _)| part == *it));
    !list && !metric.ends_with("_expectation") && !general
}

#[cfg(test)]
mod tests {
    use feedline_bench::PhaseMetrics;

    use super::*;

    #[test]
    fn requirements_are_met_or_say_what_is_missing() {
        let mut summary = SummaryFile::default();
        summary.metric.train = Some(PhaseMetrics {
            au_percentage: Vec::new(),
            au_mean_percentage: Some(41.5),
            au_meet_expectation: Expectation::Fail,
            au_stdev_percentage: None,
            throughput_samples_per_second: Vec::new(),
            throughput_mean_samples_per_second: None,
            throughput_stdev_samples_per_second: None,
            io_mean_mib_per_second: None,
            io_stdev_mib_per_second: None,
        });
        summary.feedline.verdict.target_percentage = 90.0;
        summary.feedline.steps = 7;
        let missed = |text| Requirement::parse(text).unwrap().missed(&summary);
        assert_eq!(
            missed("au"),
            Some("train_au_mean_percentage is 41.5000, required >= 90".into())
        );
        assert_eq!(missed("train_au_mean_percentage>=41.5"), None);
        assert_eq!(missed("au>=41"), None);
        assert_eq!(missed("steps<=7"), None);
        assert_eq!(missed("steps <= 6"), Some("steps is 7, required <= 6".into()));
        assert_eq!(
            missed("au_strict_percentage>=1"),
            Some("au_strict_percentage is not known, required >= 1".into())
        );
    }

    #[test]
    fn what_is_no_requirement_is_refused() {
        let refused = |text: &str| Requirement::parse(text).unwrap_err().to_string();
        assert_eq!(refused("fast"), "--require fast: not a requirement");
        assert_eq!(
            refused("au_strict_percentage>=x"),
            "--require au_strict_percentage>=x: not a requirement"
        );
        for metric in ["train_au_percentage", "cached_share_percentage", "storage.OP.calls"] {
            let text = format!("{metric}>=1");
            let expected = format!("--require {text}: `{metric}` is not one number");
            assert_eq!(refused(&text), expected);
        }
        for metric in ["speed", "stall_share", "storage.write.calls"] {
            let text = format!("{metric}>=1");
            let expected = format!("--require {text}: unknown metric `{metric}`");
            assert_eq!(refused(&text), expected);
        }
    }
}
