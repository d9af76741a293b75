//! What is below `feedline`: what was run, the strict metrics, the counts.
#![expect(missing_docs, reason = "each field is a key; `feedline explain` has the text")]

use feedline_dataset::{Generated, KeptFor};
use feedline_loader::{LastBatch, Remainder};
use serde::{Deserialize, Serialize};

use super::SCHEMA_VERSION;
use super::checkpoints::CheckpointsSummary;
use super::ordered_map::OrderedMap;
use super::storage::{self, OperationSummary};
use crate::plan::framework::FrameworkPlan;
use crate::plan::{PhasePlan, Plan};
use crate::results::assessment::Assessment;
use crate::results::host::{Host, usable_cpus};
use crate::results::metrics::{Split, StrictTally};
use crate::results::outcome::{EpochOutcome, Outcome};
use crate::results::summary::Summary;
use crate::results::verdict::{Cause, Verdict};

/// Feedline's own part of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedlineSummary {
    pub schema_version: u32,
    pub version: String,
    pub workload: String,
    pub semantics: String,
    pub data_loader: String,
    pub read_model: String,
    pub reader_library: Option<String>,
    pub reader_python: Option<String>,
    pub framework: FrameworkSummary,
    pub data: String,
    pub io_engine: String,
    pub odirect: bool,
    pub queue_depth: Option<usize>,
    pub read_type: String,
    pub transfer_size: Option<u64>,
    pub sample_order: String,
    pub sharding: Option<ShardingSummary>,
    pub dlio_version: Option<String>,
    pub cache: String,
    pub seed: u64,
    pub accelerators: u32,
    pub processes: u32,
    pub hosts: Vec<HostSummary>,
    pub quick: bool,
    pub interrupted: bool,
    pub comparable: bool,
    pub store_limit: Option<String>,
    pub store_faults: Vec<String>,
    pub verdict: VerdictSummary,
    pub au_strict_percentage: Option<f64>,
    pub au_strict_worst_rank_percentage: Option<f64>,
    pub throughput_strict_samples_per_second: Option<f64>,
    #[serde(rename = "sample_MB_per_second")]
    pub sample_mb_per_second: Option<f64>,
    pub steps: u64,
    pub counted_steps: u64,
    pub time_split_seconds: TimeSplit,
    pub time_split_percentage: TimeSplit,
    pub per_epoch: Vec<EpochSummary>,
    pub per_rank: Vec<RankSummary>,
    pub in_order_delay_seconds: f64,
    pub first_rank_done_seconds: Option<f64>,
    pub last_rank_done_seconds: Option<f64>,
    pub cached_share_percentage: Vec<Option<f64>>,
    pub storage: OrderedMap<OperationSummary>,
    pub generation: Option<GenerationSummary>,
    pub checkpoints: Option<CheckpointsSummary>,
    pub warnings: Vec<String>,
    pub next_step: String,
}

/// What was done about the framework's own cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "interpreter")]
pub enum FrameworkSummary {
    #[default]
    #[serde(rename = "none")]
    Ignored,
    #[serde(rename = "calibrated")]
    Burnt { calibration: String, source: String, per_sample_ms: f64, held_bytes: u64 },
    #[serde(rename = "left out")]
    LeftOut { why: String, estimated_au_percentage: Option<f64>, estimate_from: Option<String> },
}

/// How an epoch was dealt to ranks, and what that makes of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardingSummary {
    pub name: String,
    pub drop_last: bool,
    pub sampler_drop_last: bool,
    pub samples: u64,
    pub samples_read: u64,
    pub samples_read_twice: u64,
    pub samples_left_out: u64,
    pub left_out_by: Option<String>,
}

/// A machine and what ran on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    pub name: String,
    pub processes: usize,
    pub ranks: Vec<u32>,
    pub cpus: u32,
    pub memory_bytes: u64,
}

/// The answer: `result` is `fed`, `starved`, `unpaced`, `too_short` or `not_trained`. What a result
/// does not have is left out of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictSummary {
    pub result: String,
    pub target_percentage: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub au_percentage: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starved_by: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_percentage: Option<f64>,
}

/// Step time by what it went into, in seconds or percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSplit {
    pub storage: f64,
    pub decode: f64,
    pub framework: f64,
    pub workers: f64,
    pub peers: f64,
    pub compute: f64,
}

/// One epoch, all ranks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochSummary {
    pub epoch: u64,
    pub au_strict_percentage: Option<f64>,
    pub time_split_seconds: TimeSplit,
}

/// One rank, all epochs together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankSummary {
    pub rank: u64,
    pub au_strict_percentage: Option<f64>,
    pub time_split_seconds: TimeSplit,
}

/// What was made and kept of the data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerationSummary {
    pub files: u64,
    pub bytes: u64,
    pub seconds: f64,
    pub kept_files: u64,
    pub kept_bytes: u64,
    pub requests: u64,
    pub retries: u64,
    #[serde(rename = "MB_per_second")]
    pub mb_per_second: Option<f64>,
}

impl FeedlineSummary {
    pub(super) fn new(outcome: &Outcome, summary: &Summary, assessment: &Assessment) -> Self {
        let (plan, strict) = (&outcome.plan, &summary.strict);
        let reading = &plan.reading;
        let (first_rank_done_seconds, last_rank_done_seconds) = summary.rank_done_s.unzip();
        let percent = 100.0 / strict.split.total_ns().max(1) as f64;
        let faults = assessment.storage.faults.iter().map(ToString::to_string).collect();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workload: assessment.workload.clone(),
            semantics: plan.semantics.as_str().to_owned(),
            data_loader: reading.loader.as_str().to_owned(),
            read_model: reading.model().to_owned(),
            reader_library: reading.calls.map(|calls| calls.library.to_owned()),
            reader_python: owned(reading.calls.and_then(|calls| calls.python())),
            framework: FrameworkSummary::new(outcome),
            data: outcome.data.clone(),
            io_engine: io_engine(outcome),
            odirect: reading.direct,
            queue_depth: reading.queue_depth(),
            read_type: read_type(plan).to_owned(),
            transfer_size: reading.transfer_bytes,
            sample_order: plan.sample_order(),
            sharding: plan.train.as_ref().map(ShardingSummary::new),
            dlio_version: owned(plan.dlio_version()),
            cache: outcome.cache.as_str().to_owned(),
            seed: outcome.seed,
            accelerators: plan.ranks,
            processes: outcome.geometry.processes(),
            hosts: hosts(outcome),
            quick: assessment.quick,
            interrupted: outcome.interrupted,
            comparable: !assessment.quick && !outcome.interrupted && assessment.storage.is_none(),
            store_limit: assessment.storage.limit.map(|limit| limit.to_string()),
            store_faults: faults,
            verdict: VerdictSummary::new(assessment),
            au_strict_percentage: strict.au_percent,
            au_strict_worst_rank_percentage: strict.au_worst_rank_percent,
            throughput_strict_samples_per_second: strict.samples_per_s,
            sample_mb_per_second: strict.sample_bytes_per_s.map(|rate| rate / 1e6),
            steps: strict.steps,
            counted_steps: strict.counted_steps,
            time_split_seconds: TimeSplit::new(&strict.split, 1e-9),
            time_split_percentage: TimeSplit::new(&strict.split, percent),
            per_epoch: per_epoch(outcome),
            per_rank: per_rank(outcome),
            in_order_delay_seconds: strict.split.behind_ns as f64 / 1e9,
            first_rank_done_seconds,
            last_rank_done_seconds,
            cached_share_percentage: percentages(&summary.cached_share),
            storage: storage::operations(outcome),
            generation: outcome.generated.map(GenerationSummary::new),
            checkpoints: CheckpointsSummary::new(outcome, summary),
            warnings: outcome.warnings.iter().chain(&assessment.cautions).cloned().collect(),
            next_step: assessment.next_step.clone(),
        }
    }
}

impl FrameworkSummary {
    fn new(outcome: &Outcome) -> Self {
        match &outcome.plan.framework {
            FrameworkPlan::Ignored => Self::Ignored,
            FrameworkPlan::Burnt(burnt) => Self::Burnt {
                calibration: burnt.file.clone(),
                source: burnt.source.clone(),
                per_sample_ms: burnt.per_sample_ns as f64 / 1e6,
                held_bytes: burnt.held_bytes,
            },
            FrameworkPlan::LeftOut(left_out) => {
                let (ranks, forecast) = (outcome.geometry.ranks_on(0), left_out.forecast.as_ref());
                Self::LeftOut {
                    why: left_out.why.clone(),
                    estimated_au_percentage: forecast.map(|it| it.au_percent(ranks, usable_cpus())),
                    estimate_from: forecast.map(|it| it.source.clone()),
                }
            }
        }
    }
}

/// The word for how bytes are asked for.
fn io_engine(outcome: &Outcome) -> String {
    match outcome.capabilities.network {
        Some(protocol) => protocol.to_lowercase(),
        None => outcome.plan.reading.engine.as_str().to_owned(),
    }
}

/// The word for what readers keep between samples.
fn read_type(plan: &Plan) -> &'static str {
    match plan.reading.reading.kept_for {
        KeptFor::Epoch => "on_demand",
        KeptFor::Run => "memory",
    }
}

fn hosts(outcome: &Outcome) -> Vec<HostSummary> {
    let (geometry, nodes) = (&outcome.geometry, outcome.geometry.node_of_ranks());
    let host = |(node, host): (u32, &Host)| HostSummary {
        name: host.name.clone(),
        processes: geometry.processes_on(node).count(),
        ranks: (0..).zip(&nodes).filter(|&(_, &of)| of == node).map(|(rank, _)| rank).collect(),
        cpus: host.cpus,
        memory_bytes: host.memory_bytes,
    };
    (0..).zip(&outcome.hosts).map(host).collect()
}

impl GenerationSummary {
    fn new(made: Generated) -> Self {
        let seconds = made.wall_ns as f64 / 1e9;
        Self {
            files: made.files,
            bytes: made.bytes,
            seconds,
            kept_files: made.kept_files,
            kept_bytes: made.kept_bytes,
            requests: made.requests,
            retries: made.retries,
            mb_per_second: (seconds > 0.0).then(|| made.bytes as f64 / 1e6 / seconds),
        }
    }
}

impl ShardingSummary {
    fn new(phase: &PhasePlan) -> Self {
        let tally = phase.tally();
        Self {
            name: phase.sharding.as_str().to_owned(),
            drop_last: phase.dealing.last_batch == LastBatch::Drop,
            sampler_drop_last: phase.dealing.remainder == Remainder::Cut,
            samples: phase.given(),
            samples_read: tally.read,
            samples_read_twice: tally.repeated,
            samples_left_out: tally.left_out,
            left_out_by: phase.why_left_out(),
        }
    }
}

impl VerdictSummary {
    fn new(assessment: &Assessment) -> Self {
        let (au_percentage, starved_by, share_percentage) = match assessment.verdict {
            Verdict::Fed { au_percent, .. } => (Some(au_percent), None, None),
            Verdict::Starved { au_percent, by, share_percent, .. } => {
                (Some(au_percent), Some(by), Some(share_percent))
            }
            Verdict::Unpaced | Verdict::TooShort | Verdict::NotTrained => (None, None, None),
        };
        Self {
            result: assessment.verdict.as_str().to_owned(),
            target_percentage: 100.0 * assessment.target,
            au_percentage,
            starved_by,
            share_percentage,
        }
    }
}

impl TimeSplit {
    fn new(split: &Split, factor: f64) -> Self {
        let part = |ns: u64| ns as f64 * factor;
        Self {
            storage: part(split.storage_ns),
            decode: part(split.decode_ns),
            framework: part(split.framework_ns),
            workers: part(split.worker_ns),
            peers: part(split.peers_ns),
            compute: part(split.compute_ns),
        }
    }
}

fn percentages(shares: &[Option<f64>]) -> Vec<Option<f64>> {
    shares.iter().map(|share| share.map(|share| 100.0 * share)).collect()
}

fn per_epoch(outcome: &Outcome) -> Vec<EpochSummary> {
    let count = outcome.ranks.iter().map(|rank| rank.epochs.len()).max().unwrap_or(0);
    let epoch = |i: usize| {
        let all = together(outcome.ranks.iter().filter_map(|rank| rank.epochs.get(i)));
        EpochSummary {
            epoch: i as u64 + 1,
            au_strict_percentage: all.au_percent(),
            time_split_seconds: TimeSplit::new(&all.split, 1e-9),
        }
    };
    (0..count).map(epoch).collect()
}

fn per_rank(outcome: &Outcome) -> Vec<RankSummary> {
    let ranks = (0..).zip(&outcome.ranks).map(|(number, rank)| {
        let all = together(&rank.epochs);
        RankSummary {
            rank: number,
            au_strict_percentage: all.au_percent(),
            time_split_seconds: TimeSplit::new(&all.split, 1e-9),
        }
    });
    ranks.collect()
}

fn together<'a>(epochs: impl IntoIterator<Item = &'a EpochOutcome>) -> StrictTally {
    let mut all = StrictTally::default();
    epochs.into_iter().for_each(|epoch| all.merge(&epoch.strict));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_the_framework_comes_back_as_it_went_out() {
        let burnt = FrameworkSummary::Burnt {
            calibration: "c.json".into(),
            source: "torch 2.15".into(),
            per_sample_ms: 2.0,
            held_bytes: 10_000,
        };
        let left_out = FrameworkSummary::LeftOut {
            why: "this machine has no calibration".into(),
            estimated_au_percentage: Some(50.0),
            estimate_from: None,
        };
        let cases = [
            (FrameworkSummary::Ignored, r#"{"interpreter":"none"}"#),
            (
                burnt,
                r#"{"interpreter":"calibrated","calibration":"c.json","source":"torch 2.15","per_sample_ms":2.0,"held_bytes":10000}"#,
            ),
            (
                left_out,
                r#"{"interpreter":"left out","why":"this machine has no calibration","estimated_au_percentage":50.0,"estimate_from":null}"#,
            ),
        ];
        for (value, text) in cases {
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
            assert_eq!(serde_json::from_str::<FrameworkSummary>(text).unwrap(), value);
        }
    }
}
