//! What a run will do: a pure function of the workload and the number of ranks.

pub(crate) mod calibration;
pub(crate) mod checkpoints;
pub(crate) mod dealing;
pub(crate) mod framework;
pub(crate) mod reading;
pub(crate) mod supported;

use feedline_dataset::{NameRule, SampleSpace, Shuffle};
use feedline_loader::Dealing;
use feedline_workload::{Sharding, Workload};

use serde::{Deserialize, Serialize};

use crate::error::{BenchError, Result};
use crate::plan::dealing::DLIO_MAIN;
use crate::plan::framework::FrameworkPlan;
use crate::plan::reading::ReadPlan;
use crate::results::metrics::{BlockTally, Window};

/// Whose rules a run follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Semantics {
    /// What the workload means: true shuffles, every sample, faults of DLIO mended.
    Feedline,
    /// What DLIO does: its order, its trimming, its metric quirks, for comparisons. The DLIO is its main
    /// branch at commit e1919d7.
    Dlio,
}

/// Steps that DLIO's throughput takes off every block (Q26).
const DLIO_LOST_STEPS: u64 = 2;

impl Semantics {
    /// The word for it in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Feedline => "feedline",
            Self::Dlio => "dlio",
        }
    }

    /// DLIO's throughput of a block. Blocks of up to two steps have none: by the formula it comes out
    /// as 0 or less, and only a run that must do as DLIO does says so (Q29).
    pub(crate) fn block_throughput(
        self,
        tally: &BlockTally,
        wall_ns: u64,
        batch: u64,
    ) -> Option<f64> {
        let exists = self == Self::Dlio || tally.steps > DLIO_LOST_STEPS;
        exists.then(|| tally.throughput(wall_ns, batch))
    }
}

/// Everything about a run that follows from the workload.
#[derive(Clone)]
pub struct Plan {
    /// Whose rules are followed.
    pub semantics: Semantics,
    /// Emulated accelerators in all processes; each is one rank.
    pub ranks: u32,
    /// Samples in a file.
    pub samples_per_file: u64,
    /// Files of the training set.
    pub train_files: NameRule,
    /// Files of the evaluation set.
    pub eval_files: NameRule,
    /// What each training epoch reads, if the run trains.
    pub train: Option<PhasePlan>,
    /// What each evaluation reads, if the run evaluates.
    pub eval: Option<PhasePlan>,
    /// How it reads.
    pub reading: ReadPlan,
    /// What it does about the framework's own cost; nothing, unless that is decided later.
    pub framework: FrameworkPlan,
    /// Bytes of a sample as DLIO's MB/s counts them.
    pub nominal_sample_bytes: f64,
}

/// What one pass over a data set reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasePlan {
    /// The sharding in force; never [`Sharding::Auto`].
    pub sharding: Sharding,
    /// What that means for the samples that take part.
    pub dealing: Dealing,
    /// Samples that do not even take part, as DLIO trims the set.
    pub trimmed: u64,
    /// Steps that the data would allow.
    pub available_steps: u64,
    /// Steps that are made.
    pub steps: u64,
    /// How the epoch is shuffled.
    pub shuffle: Shuffle,
    /// Which steps the metrics count.
    pub window: Window,
}

impl Plan {
    /// Works out the run. Fails only where DLIO's rules leave nothing to do.
    pub fn new(workload: &Workload, ranks: u32, semantics: Semantics) -> Result<Self> {
        let dataset = &workload.dataset;
        let rule = |folder, total, subfolders| NameRule {
            folder,
            prefix: dataset.file_prefix.clone(),
            total,
            subfolders,
            extension: supported::extension(workload),
        };
        let mut plan = Self {
            semantics,
            ranks,
            samples_per_file: dataset.num_samples_per_file,
            train_files: rule("train", dataset.num_files_train, dataset.num_subfolders_train),
            eval_files: rule("valid", dataset.num_files_eval, dataset.num_subfolders_eval),
            train: None,
            eval: None,
            reading: ReadPlan::new(workload),
            framework: FrameworkPlan::Ignored,
            nominal_sample_bytes: nominal_sample_bytes(workload, semantics),
        };
        if workload.workflow.train {
            let batch = workload.reader.batch_size;
            let phase = plan.phase(workload, dataset.num_files_train, batch)?;
            if phase.available_steps == 0 && phase.trimmed > 0 {
                let unit = dataset.num_samples_per_file * batch * u64::from(ranks);
                return Err(BenchError::DlioTrimsAll { files: dataset.num_files_train, unit });
            }
            let asked = workload.train.total_training_steps;
            let steps = asked.unwrap_or(phase.available_steps).min(phase.available_steps);
            let expected = asked.unwrap_or(phase.window.expected);
            let window = Window { expected, ..phase.window };
            let shuffle = dealing::shuffle(workload, semantics, &phase);
            plan.train = Some(PhasePlan { steps, shuffle, window, ..phase });
            if workload.workflow.evaluation {
                let batch = workload.reader.batch_size_eval;
                plan.eval = Some(plan.phase(workload, dataset.num_files_eval, batch)?);
            }
        }
        Ok(plan)
    }

    /// One unshuffled pass over `files` in batches of `batch`.
    fn phase(&self, workload: &Workload, files: u64, batch: u64) -> Result<PhasePlan> {
        let (ranks, per_file) = (u64::from(self.ranks), self.samples_per_file);
        let given = SampleSpace { files, per_file };
        let sharding = dealing::sharding(workload, self.semantics, files, ranks);
        let unit = per_file * batch * ranks;
        let space = match (self.semantics, sharding) {
            (Semantics::Dlio, Sharding::Dlio) => {
                SampleSpace { files: files / unit * unit, per_file }
            }
            _ => given,
        };
        let dealing = dealing::dealing(workload, sharding, (space, ranks, batch))?;
        let steps = dealing.steps();
        let metric = &workload.output.metric;
        let window = Window {
            skip_start: metric.exclude_start_steps,
            skip_end: metric.exclude_end_steps,
            expected: match self.semantics {
                Semantics::Feedline => steps,
                Semantics::Dlio => given.len() / (batch * ranks), // DLIO counts before it trims.
            },
        };
        Ok(PhasePlan {
            sharding,
            dealing,
            trimmed: given.len() - space.len(),
            available_steps: steps,
            steps,
            shuffle: Shuffle::None,
            window,
        })
    }

    /// A remark if DLIO's rules leave training files out.
    pub fn trim_notice(&self) -> Option<String> {
        let (used, files) = (self.train.as_ref()?.dealing.index.files(), self.train_files.total);
        (used < files)
            .then(|| format!("as DLIO {DLIO_MAIN}, {used} of {files} training files are used"))
    }

    /// The words for the order in which samples are read.
    pub fn sample_order(&self) -> String {
        let order = match self.train.as_ref().map(|phase| phase.shuffle) {
            Some(Shuffle::Samples) => "permuted",
            Some(Shuffle::Blocks { .. }) => "permuted inside the blocks of ranks",
            Some(Shuffle::Files) => "files permuted",
            Some(Shuffle::None) | None => "sequential",
        };
        match self.reading.shuffle_buffer() {
            Some(size) => format!("{order}, shuffle buffer of {size}"),
            None => order.to_owned(),
        }
    }

    /// Bytes of all training samples, by the nominal size of one.
    pub fn train_bytes(&self) -> f64 {
        (self.train_files.total * self.samples_per_file) as f64 * self.nominal_sample_bytes
    }
}

fn nominal_sample_bytes(workload: &Workload, semantics: Semantics) -> f64 {
    let dataset = &workload.dataset;
    let generates = workload.workflow.generate_data;
    // DLIO knows the dimensions only when it also generates.
    let knows_dims = semantics == Semantics::Feedline || generates;
    if !dataset.record_dims.is_empty() && knows_dims {
        let elements: u64 = dataset.record_dims.iter().product();
        return (elements * dataset.record_element_type.size_bytes()) as f64;
    }
    if semantics == Semantics::Dlio && generates {
        return 1.0; // Q7: DLIO overwrites the length when it also generates.
    }
    dataset.record_length_bytes
}
