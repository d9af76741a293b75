//! What is below `metric`: DLIO's keys, as its post-processors read them.
#![expect(missing_docs, reason = "each field is a key; `feedline explain` has the text")]

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::results::summary::{Series, Summary};
use crate::results::transfers::Transfers;

const MIB: f64 = 1048576.0;

/// DLIO's metrics. A group is there only if the run did such a thing; its keys carry its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct DlioMetrics {
    pub save: Option<CheckpointMetrics>,
    pub load: Option<CheckpointMetrics>,
    pub checkpoint_size_gib: Option<f64>,
    pub train: Option<PhaseMetrics>,
    pub eval: Option<PhaseMetrics>,
}

/// DLIO's numbers of saves or loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMetrics {
    #[serde(rename = "io_mean_GB_per_second")]
    pub io_mean_gib_per_second: f64,
    #[serde(rename = "io_stdev_GB_per_second")]
    pub io_stdev_gib_per_second: f64,
    pub duration_mean_seconds: f64,
    pub duration_stdev_seconds: f64,
}

/// DLIO's numbers of training or evaluation; lists have one value per epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseMetrics {
    pub au_percentage: Vec<Option<f64>>,
    pub au_mean_percentage: Option<f64>,
    pub au_meet_expectation: Expectation,
    pub au_stdev_percentage: Option<f64>,
    pub throughput_samples_per_second: Vec<Option<f64>>,
    pub throughput_mean_samples_per_second: Option<f64>,
    pub throughput_stdev_samples_per_second: Option<f64>,
    #[serde(rename = "io_mean_MB_per_second")]
    pub io_mean_mib_per_second: Option<f64>,
    #[serde(rename = "io_stdev_MB_per_second")]
    pub io_stdev_mib_per_second: Option<f64>,
}

/// Whether the utilization reached the workload's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expectation {
    Success,
    Fail,
}

impl Expectation {
    /// Judges a mean and standard deviation in percent against `target`, a fraction.
    pub(crate) fn new(au: Option<(f64, f64)>, target: f64) -> Self {
        match au.is_some_and(|(mean, _)| mean >= 100.0 * target) {
            true => Self::Success,
            false => Self::Fail,
        }
    }

    /// DLIO's word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Fail => "fail",
        }
    }
}

impl DlioMetrics {
    pub(super) fn new(summary: &Summary, sample_bytes: f64, target: f64) -> Self {
        let phase = |series: &Series| PhaseMetrics::new(series, sample_bytes, target);
        let sized = summary.saves.as_ref().or(summary.loads.as_ref());
        Self {
            save: summary.saves.as_ref().map(CheckpointMetrics::new),
            load: summary.loads.as_ref().map(CheckpointMetrics::new),
            checkpoint_size_gib: sized.map(Transfers::size_gib),
            train: summary.train.as_ref().map(phase),
            eval: summary.eval.as_ref().map(phase),
        }
    }
}

impl CheckpointMetrics {
    fn new(all: &Transfers) -> Self {
        let (rate, seconds) = (all.gib_per_s(), all.seconds());
        Self {
            io_mean_gib_per_second: rate.0,
            io_stdev_gib_per_second: rate.1,
            duration_mean_seconds: seconds.0,
            duration_stdev_seconds: seconds.1,
        }
    }
}

impl PhaseMetrics {
    fn new(series: &Series, sample_bytes: f64, target: f64) -> Self {
        let (au, rate) = (series.au(), series.samples_per_s());
        let mib = |(mean, stdev): (f64, f64)| {
            let of = |samples: f64| samples * sample_bytes / MIB;
            (of(mean), of(stdev))
        };
        let ((au_mean, au_stdev), (rate_mean, rate_stdev)) = (au.unzip(), rate.unzip());
        let (io_mean_mib_per_second, io_stdev_mib_per_second) = rate.map(mib).unzip();
        Self {
            au_percentage: series.au_percent.clone(),
            au_mean_percentage: au_mean,
            au_meet_expectation: Expectation::new(au, target),
            au_stdev_percentage: au_stdev,
            throughput_samples_per_second: series.throughput.clone(),
            throughput_mean_samples_per_second: rate_mean,
            throughput_stdev_samples_per_second: rate_stdev,
            io_mean_mib_per_second,
            io_stdev_mib_per_second,
        }
    }
}

/// Groups in the order of the file, with what their keys begin with.
const SAVE: &str = "save_checkpoint_";
const LOAD: &str = "load_checkpoint_";
const SIZE: &str = "checkpoint_size_GB";
const TRAIN: &str = "train_";
const EVAL: &str = "eval_";

impl From<DlioMetrics> for Map<String, Value> {
    fn from(metrics: DlioMetrics) -> Self {
        let mut map = Self::new();
        put_group(&mut map, SAVE, metrics.save);
        put_group(&mut map, LOAD, metrics.load);
        if let Some(size) = metrics.checkpoint_size_gib {
            map.insert(SIZE.to_owned(), size.into());
        }
        put_group(&mut map, TRAIN, metrics.train);
        put_group(&mut map, EVAL, metrics.eval);
        map
    }
}

impl TryFrom<Map<String, Value>> for DlioMetrics {
    type Error = serde_json::Error;

    fn try_from(map: Map<String, Value>) -> Result<Self, serde_json::Error> {
        Ok(Self {
            save: group(&map, SAVE)?,
            load: group(&map, LOAD)?,
            checkpoint_size_gib: map.get(SIZE).and_then(Value::as_f64),
            train: group(&map, TRAIN)?,
            eval: group(&map, EVAL)?,
        })
    }
}

fn put_group(map: &mut Map<String, Value>, prefix: &str, group: Option<impl Serialize>) {
    if let Some(Ok(Value::Object(group))) = group.map(serde_json::to_value) {
        map.extend(group.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)));
    }
}

/// The group whose keys begin with `prefix`, if there are any.
fn group<T: for<'de> Deserialize<'de>>(
    map: &Map<String, Value>,
    prefix: &str,
) -> Result<Option<T>, serde_json::Error> {
    let keys = map.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
    let group: Map<_, _> = keys.map(|(key, value)| (key.to_owned(), value.clone())).collect();
    (!group.is_empty()).then(|| serde_json::from_value(Value::Object(group))).transpose()
}
