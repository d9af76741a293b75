//! `summary.json` as a type: written at the end of a run, read back to compare runs.
//!
//! The keys at the top and below `metric` are DLIO's; everything that Feedline adds is below
//! `feedline`. `feedline explain` describes each number. A value that does not exist is `null`.

mod checkpoints;
mod dlio_metrics;
mod feedline;
mod ordered_map;
mod storage;

pub use checkpoints::{CheckpointsSummary, FileRates, Spread, TransferSummary};
pub use dlio_metrics::{CheckpointMetrics, DlioMetrics, Expectation, PhaseMetrics};
pub use feedline::{
    EpochSummary, FeedlineSummary, FrameworkSummary, GenerationSummary, HostSummary, RankSummary,
    ShardingSummary, TimeSplit, VerdictSummary,
};
pub use ordered_map::OrderedMap;
pub use storage::{LatencySummary, OperationSummary, RequestSize, RequestSizes};

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::results::assessment::Assessment;
use crate::results::host::Host;
use crate::results::outcome::Outcome;
use crate::results::summary::Summary;

/// Raised when a key changes its meaning or is removed; a new key does not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything in `summary.json`.
#[expect(missing_docs, reason = "each field is a key of the file; `feedline explain` has the text")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SummaryFile {
    pub start: String,
    pub num_accelerators: u32,
    pub num_hosts: usize,
    pub hostname: String,
    pub metric: DlioMetrics,
    pub num_files_train: u64,
    pub num_files_eval: u64,
    pub num_samples_per_file: u64,
    pub host_cpu_count: Vec<u32>,
    pub host_processor_name: String,
    pub potential_caching: Vec<u8>,
    pub host_cpuinfo: OrderedMap<String>,
    pub host_meminfo: OrderedMap<String>,
    #[serde(rename = "host_memory_GB")]
    pub host_memory_gib: Vec<f64>,
    #[serde(rename = "data_size_per_host_GB")]
    pub data_size_per_host_gib: f64,
    pub epochs: usize,
    pub end: String,
    pub feedline: FeedlineSummary,
}

/// Why a file cannot be read as a [`SummaryFile`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryFileError {
    /// The file is missing or cannot be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// Its path.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is not JSON, or a key is missing or has another type.
    #[error("{file} is not the summary.json of a Feedline run")]
    NotSummary {
        /// Its path.
        file: String,
        /// Where it differs.
        source: serde_json::Error,
    },
    /// Another version of Feedline gave the keys another meaning.
    #[error(
        "{file} has schema version {found}, but this version of Feedline reads {SCHEMA_VERSION}"
    )]
    Schema {
        /// Its path.
        file: String,
        /// The version in the file.
        found: u64,
    },
}

impl SummaryFile {
    /// Reads a `summary.json`.
    ///
    /// # Errors
    /// The file cannot be read, is something else, or has another [`SCHEMA_VERSION`].
    pub fn read(path: &Path) -> Result<Self, SummaryFileError> {
        let file = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| SummaryFileError::Unreadable { file: file(), source })?;
        let not_summary = |source| SummaryFileError::NotSummary { file: file(), source };
        // Before everything else: keys that another schema has lost would hide the reason.
        let versioned: Versioned = serde_json::from_str(&text).map_err(not_summary)?;
        match versioned.feedline.schema_version {
            found if found == u64::from(SCHEMA_VERSION) => {
                serde_json::from_str(&text).map_err(not_summary)
            }
            found => Err(SummaryFileError::Schema { file: file(), found }),
        }
    }

    /// The number that `feedline explain` calls `metric`: a key below `metric`, or a dotted path
    /// below `feedline`. `None` if the run has no such number.
    pub fn number(&self, metric: &str) -> Option<f64> {
        let value = serde_json::to_value(self).ok()?;
        value["metric"][metric].as_f64().or_else(|| {
            let path = format!("/feedline/{}", metric.replace('.', "/"));
            value.pointer(&path)?.as_f64()
        })
    }

    pub(crate) fn new(outcome: &Outcome, summary: &Summary, assessment: &Assessment) -> Self {
        let (plan, hosts) = (&outcome.plan, &outcome.hosts);
        let host = &hosts[0];
        let data_gib = data_gib_by_host(outcome);
        let cached = |(host, &gib): (&Host, &f64)| u8::from(host.memory_gib() > gib);
        Self {
            start: outcome.start.text.clone(),
            num_accelerators: plan.ranks,
            num_hosts: hosts.len(),
            hostname: host.name.clone(),
            metric: DlioMetrics::new(summary, plan.nominal_sample_bytes, assessment.target),
            num_files_train: plan.train_files.total,
            num_files_eval: plan.eval_files.total,
            num_samples_per_file: plan.samples_per_file,
            host_cpu_count: hosts.iter().map(|host| host.cpus).collect(),
            host_processor_name: String::new(),
            potential_caching: hosts.iter().zip(&data_gib).map(cached).collect(),
            host_cpuinfo: host.cpuinfo.iter().cloned().collect(),
            host_meminfo: host.meminfo.iter().cloned().collect(),
            host_memory_gib: hosts.iter().map(Host::memory_gib).collect(),
            data_size_per_host_gib: data_gib[0],
            epochs: summary.train.as_ref().map_or(0, |train| train.au_percent.len()),
            end: outcome.end.text.clone(),
            feedline: FeedlineSummary::new(outcome, summary, assessment),
        }
    }
}

/// The one key that every schema has.
#[derive(Deserialize)]
struct Versioned {
    feedline: SchemaVersion,
}

#[derive(Deserialize)]
struct SchemaVersion {
    schema_version: u64,
}

/// GiB that the ranks of each machine read per epoch, by the workload's own description.
fn data_gib_by_host(outcome: &Outcome) -> Vec<f64> {
    let plan = &outcome.plan;
    let samples = plan.train_files.total * plan.samples_per_file;
    let of_node = |node| {
        let read = u64::from(outcome.geometry.ranks_on(node)) * samples / u64::from(plan.ranks);
        read as f64 * plan.nominal_sample_bytes / f64::from(1 << 30)
    };
    (0..outcome.geometry.nodes()).map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SummaryFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        std::fs::write(&path, text).unwrap();
        let name = path.display().to_string();
        SummaryFile::read(&path).map_err(|error| error.to_string().replace(&name, "FILE"))
    }

    fn example() -> SummaryFile {
        let mut file = SummaryFile::default();
        file.feedline.schema_version = SCHEMA_VERSION;
        file
    }

    #[test]
    fn another_schema_is_named_even_if_its_keys_differ() {
        assert_eq!(
            read(r#"{"feedline": {"schema_version": 2}, "metric": []}"#).unwrap_err(),
            "FILE has schema version 2, but this version of Feedline reads 1"
        );
        let not_summary = "FILE is not the summary.json of a Feedline run";
        for text in ["", "[]", r#"{"metric": {}}"#, r#"{"feedline": {"schema_version": 1}}"#] {
            assert_eq!(read(text).unwrap_err(), not_summary, "{text}");
        }
        let missing = SummaryFile::read(Path::new("/nowhere/summary.json")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read /nowhere/summary.json");
    }

    #[test]
    fn keys_that_were_added_later_do_not_matter() {
        let text = serde_json::to_string(&example()).unwrap();
        assert_eq!(read(&text.replacen('{', r#"{"new_key": [1],"#, 1)).unwrap(), example());
    }

    #[test]
    fn numbers_are_found_by_the_names_that_explain_uses() {
        let mut file = example();
        file.metric.checkpoint_size_gib = Some(2.5);
        file.feedline.verdict.target_percentage = 90.0;
        assert_eq!(file.number("checkpoint_size_GB"), Some(2.5));
        assert_eq!(file.number("verdict.target_percentage"), Some(90.0));
        assert_eq!(file.number("au_strict_percentage"), None);
        assert_eq!(file.number("train_au_mean_percentage"), None);
    }
}
