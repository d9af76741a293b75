//! From what the workload says about ranks and batches to how an epoch is dealt.

use feedline_dataset::{SampleSpace, Shuffle};
use feedline_loader::{Dealing, EpochTally, LastBatch, Remainder, Sharding as Deal};
use feedline_workload::{
    DataLoader, Phase, SampleOrder, Sharding, ShuffleMode, Workload, WorkloadError,
};

use crate::error::{BenchError, Result};
use crate::plan::{PhasePlan, Plan, Semantics};

/// The DLIO whose main branch is reproduced.
pub const DLIO_MAIN: &str = "main (e1919d7)";
/// The DLIO of the package index.
const DLIO_2_0_0: &str = "2.0.0";

/// The sharding in force for `files` files on `ranks` ranks; never [`Sharding::Auto`].
pub(crate) fn sharding(
    workload: &Workload,
    semantics: Semantics,
    files: u64,
    ranks: u64,
) -> Sharding {
    let reader = &workload.reader;
    let streamed = workload.dataset.format.is_streamed;
    let as_dlio = semantics == Semantics::Dlio || reader.sample_order == SampleOrder::Dlio;
    match (reader.sharding, reader.data_loader) {
        (Sharding::Auto, _) if as_dlio => Sharding::Dlio,
        (Sharding::Auto, DataLoader::Pytorch) if streamed => Sharding::Files,
        (Sharding::Auto, _) if streamed && files < ranks => Sharding::Records,
        (Sharding::Auto, _) if streamed => Sharding::Files,
        (Sharding::Auto, DataLoader::Tensorflow | DataLoader::Dali | DataLoader::NativeDali) => {
            Sharding::Blocked
        }
        (Sharding::Auto, _) => Sharding::Strided,
        (asked, _) => asked,
    }
}

/// How `space` is dealt to `ranks` ranks in batches of `batch`.
///
/// # Errors
/// DLIO 2.0.0 stops for ever where samples cannot be dealt evenly.
pub(crate) fn dealing(
    workload: &Workload,
    sharding: Sharding,
    (space, ranks, batch): (SampleSpace, u64, u64),
) -> Result<Dealing> {
    let (reader, format) = (&workload.reader, workload.dataset.format);
    let loader = reader.data_loader;
    let of_dlio = matches!(sharding, Sharding::Dlio | Sharding::Dlio200);
    if sharding == Sharding::Dlio200 {
        let units =
            if format.is_streamed && space.files >= ranks { space.files } else { space.len() };
        if units % ranks != 0 {
            return Err(BenchError::DlioStuck { units, ranks });
        }
    }
    let workers = u64::from(reader.read_threads.max(1));
    let deal = match sharding {
        Sharding::Files if loader == DataLoader::Pytorch => Deal::WorkerFiles { workers },
        Sharding::Files => Deal::Files,
        Sharding::Records => Deal::Records,
        Sharding::Dlio | Sharding::Dlio200 if format.is_streamed => match loader {
            DataLoader::Pytorch => Deal::WorkerFiles { workers },
            _ if space.files < ranks => Deal::Records,
            _ => Deal::Files,
        },
        Sharding::Dlio => Deal::WholeSteps,
        Sharding::Blocked | Sharding::Dlio200 => Deal::Blocked,
        Sharding::Strided | Sharding::Auto => Deal::Strided,
    };
    let dali = matches!(loader, DataLoader::Dali | DataLoader::NativeDali);
    let cuts = reader.sampler_drop_last.unwrap_or(loader != DataLoader::Pytorch);
    let drops = reader.drop_last.unwrap_or(dali || of_dlio);
    Ok(Dealing {
        index: space.into(),
        ranks,
        batch,
        sharding: deal,
        remainder: if cuts { Remainder::Cut } else { Remainder::Pad },
        last_batch: if drops { LastBatch::Drop } else { LastBatch::Keep },
    })
}

/// How the epochs of training are shuffled.
pub(crate) fn shuffle(workload: &Workload, semantics: Semantics, phase: &PhasePlan) -> Shuffle {
    let reader = &workload.reader;
    let samples_shuffled = reader.sample_shuffle != ShuffleMode::Off;
    if phase.sharding == Sharding::Dlio200 {
        let ordered = workload.dataset.format.is_streamed
            || reader.data_loader != DataLoader::Pytorch
            || reader.sample_order == SampleOrder::Sequential;
        let len = phase.dealing.samples(0);
        return if samples_shuffled && !ordered { Shuffle::Blocks { len } } else { Shuffle::None };
    }
    if semantics == Semantics::Dlio {
        return Shuffle::None;
    }
    let files_shuffled = reader.file_shuffle != ShuffleMode::Off;
    match reader.sample_order {
        SampleOrder::Sequential | SampleOrder::Dlio => Shuffle::None,
        SampleOrder::Auto if workload.has_shuffle_buffer() => match files_shuffled {
            true => Shuffle::Files,
            false => Shuffle::None,
        },
        SampleOrder::Permuted => Shuffle::Samples,
        SampleOrder::Auto if samples_shuffled => Shuffle::Samples,
        SampleOrder::Auto if files_shuffled => Shuffle::Files,
        SampleOrder::Auto => Shuffle::None,
    }
}

impl PhasePlan {
    /// What all ranks read in a whole epoch, of all samples of the set.
    pub fn tally(&self) -> EpochTally {
        let tally = self.dealing.tally(self.steps);
        EpochTally { left_out: tally.left_out + self.trimmed, ..tally }
    }

    /// Samples of the set, read or not.
    pub fn given(&self) -> u64 {
        self.dealing.index.len() + self.trimmed
    }

    /// Which settings leave samples out of every epoch, in words; none if nothing is left out.
    pub fn why_left_out(&self) -> Option<String> {
        if self.tally().left_out == 0 {
            return None;
        }
        let dealing = &self.dealing;
        let by_place = matches!(dealing.sharding, Deal::Strided | Deal::Blocked);
        let kept = Dealing { last_batch: LastBatch::Keep, ..dealing.clone() };
        // Ranks are of two kinds at most, and the first and the last are not of the same one.
        let drops = |rank| kept.batches(rank) > dealing.batches(rank);
        let reasons = [
            (self.steps < self.available_steps, "`train.total_training_steps`"),
            (self.sharding == Sharding::Dlio, "`reader.sharding: dlio`"),
            (dealing.batches(0) > self.available_steps, "the rank with the fewest samples"),
            (
                by_place
                    && dealing.remainder == Remainder::Cut
                    && !dealing.index.len().is_multiple_of(dealing.ranks),
                "`reader.sampler_drop_last`",
            ),
            (
                dealing.sharding != Deal::WholeSteps && (drops(0) || drops(dealing.ranks - 1)),
                "`reader.drop_last`",
            ),
        ];
        let reasons = reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name);
        Some(reasons.collect::<Vec<_>>().join(", "))
    }
}

impl Plan {
    /// The DLIO whose order or formulas are followed, if one is.
    pub fn dlio_version(&self) -> Option<&'static str> {
        match self.train.as_ref().map(|phase| phase.sharding) {
            Some(Sharding::Dlio200) => Some(DLIO_2_0_0),
            Some(Sharding::Dlio) => Some(DLIO_MAIN),
            _ => (self.semantics == Semantics::Dlio).then_some(DLIO_MAIN),
        }
    }

    /// Checks that every phase has a step, and as many as are asked for.
    ///
    /// # Errors
    /// The first phase that has not.
    pub fn check_steps(&self, workload: &Workload) -> Result<(), WorkloadError> {
        let phases = [(Phase::Train, &self.train), (Phase::Evaluation, &self.eval)];
        for (phase, plan) in
            phases.into_iter().filter_map(|(phase, plan)| Some((phase, plan.as_ref()?)))
        {
            let Dealing { ref index, batch, ranks, .. } = plan.dealing;
            if plan.available_steps > 0 || plan.given() == 0 {
                continue;
            }
            let (samples, job) = (plan.given(), self.ranks);
            let by_file = matches!(plan.dealing.sharding, Deal::Files | Deal::WorkerFiles { .. });
            return Err(if by_file && index.files() < ranks {
                WorkloadError::RanksBeyondFiles { phase, files: index.files(), ranks: job }
            } else if samples < batch {
                WorkloadError::BatchBeyondData { phase, samples, batch }
            } else {
                let needed = batch * ranks;
                WorkloadError::RanksBeyondData { phase, samples, batch, ranks: job, needed }
            });
        }
        match (workload.train.total_training_steps, &self.train) {
            (Some(requested), Some(plan)) if requested > plan.available_steps => {
                let available = plan.available_steps;
                Err(WorkloadError::StepsBeyondData { requested, available })
            }
            _ => Ok(()),
        }
    }
}
