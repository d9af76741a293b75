//! `--require`: metrics that a run must reach.

use feedline_bench::explain::explain;
use serde_json::Value;

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
        if !is_number(metric) && explain(metric).is_some() {
            let message = format!("--require {text}: `{metric}` is not one number");
            return Err(failure::hinted(message, "require its mean, if there is one"));
        }
        if explain(metric).is_none() {
            let message = format!("--require {text}: no metric is called `{metric}`");
            return Err(failure::hinted(message, show::metric_hint(metric)));
        }
        Ok(Self::Bound { metric: metric.to_owned(), at_least, bound })
    }

    /// `None` if `summary` meets it, else what is missing.
    pub(crate) fn missed(&self, summary: &Value) -> Option<String> {
        match self {
            Self::Target => {
                let met = summary["metric"]["train_au_meet_expectation"] == "success";
                let (au, target) =
                    (look_up(summary, AU), look_up(summary, "verdict.target_percentage"));
                (!met).then(|| format!("{AU} is {}, required >= {}", number(au), number(target)))
            }
            Self::Bound { metric, at_least, bound } => {
                let value = look_up(summary, metric);
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
    let operation = metric.strip_prefix("storage.").and_then(|rest| rest.split('.').next());
    let known = operation.is_none_or(|op| ["open", "stat", "read"].contains(&op));
    !list && !metric.ends_with("_expectation") && known
}

/// The number of that name below `metric` or below `feedline`.
fn look_up(summary: &Value, metric: &str) -> Option<f64> {
    summary["metric"][metric].as_f64().or_else(|| {
        let path = format!("/feedline/{}", metric.replace('.', "/"));
        summary.pointer(&path)?.as_f64()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_met_or_say_what_is_missing() {
        let summary = serde_json::json!({
            "metric": {"train_au_mean_percentage": 41.5, "train_au_meet_expectation": "fail"},
            "feedline": {
                "storage": {"read": {"calls": 7}},
                "au_strict_percentage": null,
                "verdict": {"target_percentage": 90.0},
            },
        });
        let missed = |text| Requirement::parse(text).unwrap().missed(&summary);
        assert_eq!(
            missed("au"),
            Some("train_au_mean_percentage is 41.5000, required >= 90".into())
        );
        assert_eq!(missed("train_au_mean_percentage>=41.5"), None);
        assert_eq!(missed("au>=41"), None);
        assert_eq!(missed("storage.read.calls<=7"), None);
        assert_eq!(
            missed("storage.read.calls <= 6"),
            Some("storage.read.calls is 7, required <= 6".into())
        );
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
        for metric in ["train_au_percentage", "cached_share_percentage", "storage.write.calls"] {
            let text = format!("{metric}>=1");
            let expected = format!("--require {text}: `{metric}` is not one number");
            assert_eq!(refused(&text), expected);
        }
        assert_eq!(refused("speed>=1"), "--require speed>=1: no metric is called `speed`");
    }
}
