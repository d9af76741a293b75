//! What is said about a run besides its numbers: the verdict, what to know before believing it, and
//! what to try next.

use feedline_dataset::KeptFor;
use feedline_store::Op;
use feedline_workload::Workload;

use crate::plan::framework::FrameworkPlan;
use crate::results::host::usable_cpus;
use crate::results::outcome::Outcome;
use crate::results::summary::Summary;
use crate::results::verdict::{Basis, Cause, Verdict};
use crate::run::storage_emulation::StorageEmulation;
use crate::train::page_cache::CachePolicy;

/// The share of the data in the page cache from which on a result says little about the storage.
const MOSTLY_CACHED: f64 = 0.5;

/// Ranks per core from which on waking them all takes a visible part of a step.
const RANKS_PER_CPU: u32 = 16;

/// What is said about a run besides its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The workload's name.
    pub workload: String,
    /// The utilization that the workload asks for, as a fraction.
    pub target: f64,
    /// True if the data set was cut down for a quick look.
    pub quick: bool,
    /// What was emulated on top of the storage.
    pub storage: StorageEmulation,
    /// The answer.
    pub verdict: Verdict,
    /// What the framework and the storage took per sample, where the framework's cost is burnt.
    pub per_sample: Option<PerSample>,
    /// The utilization that figures of another machine let expect with the framework's own cost,
    /// where that is left out.
    pub forecast_au_percent: Option<f64>,
    /// What to know before believing the numbers.
    pub cautions: Vec<String>,
    /// What to try next.
    pub next_step: String,
}

/// What an [`Assessment`] cannot see in the numbers.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// What the user calls the workload.
    pub workload: String,
    /// True if the data set was cut down for a quick look.
    pub quick: bool,
    /// What was emulated on top of the storage.
    pub storage: StorageEmulation,
}

/// What one sample took, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSample {
    /// CPU time of the framework: the interpreter and the sample's share of handing a batch over.
    pub framework_s: f64,
    /// Time in storage calls.
    pub storage_s: f64,
}

impl PerSample {
    fn new(outcome: &Outcome, summary: &Summary) -> Option<Self> {
        let burnt = outcome.plan.framework.burnt()?;
        let batch = outcome.plan.train.as_ref()?.dealing.batch;
        let samples = summary.strict.steps * batch * outcome.ranks.len() as u64;
        let meter = outcome.meter();
        let busy_ns: u64 = Op::ALL.iter().map(|&op| meter.op(op).busy_ns).sum();
        Some(Self {
            framework_s: burnt.per_sample_ns as f64 / 1e9,
            storage_s: busy_ns as f64 / 1e9 / samples.max(1) as f64,
        })
    }
}

/// What the run would have reached at most with the framework's own cost, if that is left out.
fn forecast_au_percent(outcome: &Outcome, verdict: &Verdict) -> Option<f64> {
    let FrameworkPlan::LeftOut(left_out) = &outcome.plan.framework else { return None };
    let found = match *verdict {
        Verdict::Fed { au_percent, .. } | Verdict::Starved { au_percent, .. } => au_percent,
        Verdict::Unpaced | Verdict::TooShort | Verdict::NotTrained => return None,
    };
    let forecast = left_out.forecast.as_ref()?;
    Some(forecast.au_percent(outcome.geometry.ranks_on(0), usable_cpus()).min(found))
}

impl Assessment {
    /// Judges a run of `workload` in the given circumstances.
    pub fn new(
        circumstances: Circumstances,
        workload: &Workload,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Self {
        let Circumstances { workload: name, quick, storage } = circumstances;
        let setting = Setting {
            accelerators: outcome.geometry.ranks_on(0),
            read_threads: workload.reader.read_threads,
            cpus: usable_cpus(),
            odirect: workload.reader.odirect,
            cache: outcome.cache,
        };
        let basis = Basis::of(&outcome.plan);
        let verdict = Verdict::new(summary, workload.metric.au, basis);
        let mut cautions = cautions(outcome, summary, setting);
        cautions.extend(outcome.plan.framework.burnt().and_then(|burnt| burnt.caution.clone()));
        let dlio_au = summary.train.as_ref().and_then(|train| Some(train.au()?.0));
        if let (Basis::Strict, Some(au)) = (basis, dlio_au) {
            cautions.insert(
                0,
                format!(
                    "an epoch has hardly more steps than batches read ahead, so DLIO's AU of \
                     {au:.1} % shows little of the storage: the verdict rests on the strict one"
                ),
            );
        }
        let cached = summary.cached_share.last().copied().flatten();
        Self {
            workload: name,
            target: workload.metric.au,
            quick,
            storage,
            per_sample: PerSample::new(outcome, summary),
            forecast_au_percent: forecast_au_percent(outcome, &verdict),
            verdict,
            cautions,
            next_step: match outcome.interrupted {
                true => "let it run to its end for numbers that can be compared".into(),
                false => after_checkpoints(workload, summary)
                    .unwrap_or_else(|| next_step(&verdict, setting, cached)),
            },
        }
    }
}

/// What the verdict depends on besides the numbers: how the run was set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Emulated accelerators of rank 0's machine.
    pub accelerators: u32,
    /// Reader threads of each.
    pub read_threads: u32,
    /// Processors that the run could use.
    pub cpus: u32,
    /// Whether reads go past the page cache.
    pub odirect: bool,
    /// What happens to the page cache before each epoch.
    pub cache: CachePolicy,
}

/// The next thing to try after a run that only checkpointed.
fn after_checkpoints(workload: &Workload, summary: &Summary) -> Option<String> {
    if summary.train.is_some() {
        return None;
    }
    let files = |direction| {
        format!("see how single files fared: `feedline explain checkpoints.{direction}.files`")
    };
    match (&summary.saves, &summary.loads) {
        (Some(_), _) if !workload.checkpoint.fsync => Some(
            "make sure that what counts as saved is on the device: --set checkpoint.fsync=true"
                .into(),
        ),
        (Some(_), None) => Some(
            "load them too: --set checkpoint.num_checkpoints_write=0 \
             --set checkpoint.num_checkpoints_read=N"
                .into(),
        ),
        (Some(_), Some(_)) => Some(files("save")),
        (None, Some(_)) => Some(files("load")),
        (None, None) => None,
    }
}

/// The one next thing to try, as a sentence.
pub(crate) fn next_step(verdict: &Verdict, setting: Setting, cached: Option<f64>) -> String {
    let Setting { accelerators, read_threads, cpus, odirect, .. } = setting;
    let readers = accelerators * read_threads.max(1);
    match *verdict {
        Verdict::Fed { .. } if !odirect && cached.is_some_and(|share| share > MOSTLY_CACHED) => {
            "the reads came from the page cache: measure the storage with --cache drop, or read past \
             the cache with --set reader.odirect=true"
                .into()
        }
        Verdict::Fed { .. } => format!("find the limit: --accelerators {}", accelerators * 2),
        Verdict::Starved { by: Cause::Storage, .. } if readers < cpus * 2 => format!(
            "ask the storage for more at once: --set reader.read_threads={}",
            read_threads.max(1) * 2
        ),
        Verdict::Starved { by: Cause::Storage, au_percent, target_percent, .. } => {
            let fed = f64::from(accelerators) * au_percent / target_percent;
            match fed as u32 {
                0 => "this storage does not feed one such accelerator; compare with a lower rate \
                      of computation (--set train.computation_time=SECONDS)"
                    .into(),
                fed => format!("find how many accelerators this feeds: --accelerators {fed}"),
            }
        }
        Verdict::Starved { by: Cause::Decode, .. } if readers < cpus => format!(
            "decode on more cores: --set reader.read_threads={}",
            (cpus / accelerators).max(read_threads + 1)
        ),
        Verdict::Starved { by: Cause::Decode, .. } => {
            format!(
                "{cpus} cores cannot decode faster: use a client with more cores (`feedline ceiling` \
                 says what this one can feed)"
            )
        }
        Verdict::Starved { by: Cause::Framework, .. } if readers < cpus => format!(
            "let Python read on more cores: --set reader.read_threads={}",
            (cpus / accelerators).max(read_threads + 1)
        ),
        Verdict::Starved { by: Cause::Framework, .. } => format!(
            "Python is the limit on {cpus} cores, not the storage: use a client with more cores or \
             a reader without Python; --set reader.interpreter=none shows what the storage could do"
        ),
        Verdict::Starved { by: Cause::Workers, .. } if readers > cpus => format!(
            "{readers} readers share {cpus} cores: --set reader.read_threads={}",
            (cpus / accelerators).max(1)
        ),
        Verdict::Starved { by: Cause::Workers, .. } => {
            "let the readers run further ahead: --set reader.prefetch_size=8".into()
        }
        Verdict::Starved { by: Cause::Peers, .. } => {
            "one rank holds up the others: compare the ranks in <rank>_output.json".into()
        }
        Verdict::Unpaced => {
            "give the accelerators something to do: --set train.computation_time=SECONDS".into()
        }
        Verdict::TooShort => "make more steps: --epochs N, or more files".into(),
        Verdict::NotTrained => "train on the data: leave --generate-only out".into(),
    }
}

/// What the user should know before believing the numbers.
pub(crate) fn cautions(outcome: &Outcome, summary: &Summary, setting: Setting) -> Vec<String> {
    let mut cautions = Vec::new();
    let bytes = outcome.plan.train_bytes();
    // The smallest machine's: it may read any file.
    let memory = outcome.hosts.iter().map(|host| host.memory_bytes).min().unwrap_or(0) as f64;
    let shares: Vec<f64> = summary.cached_share.iter().copied().flatten().collect();
    let cached = shares.iter().filter(|&&share| share > MOSTLY_CACHED).count();
    if cached > 0 && !setting.odirect {
        let largest = 100.0 * shares.iter().copied().fold(0.0, f64::max);
        cautions.push(format!(
            "up to {largest:.0} % of the data lay in the page cache (epochs: {cached} of {}): reads \
             show the speed of memory, not of the storage",
            shares.len()
        ));
    } else if summary.train.is_some()
        && bytes < memory
        && !setting.odirect
        && outcome.capabilities.page_cache
        && setting.cache != CachePolicy::Drop
    {
        cautions.push(format!(
            "the data set ({:.1} GB) fits in memory ({:.1} GB): later epochs may not touch the \
             storage",
            bytes / 1e9,
            memory / 1e9
        ));
    }
    if outcome.plan.reading.reading.kept_for == KeptFor::Run && summary.cached_share.len() > 1 {
        cautions.push(
            "files were kept between epochs (`reader.read_type: memory`): what is read whole is read \
             once, and later epochs show the speed of memory"
                .to_owned(),
        );
    }
    if summary.train.is_some() && setting.accelerators > RANKS_PER_CPU * setting.cpus {
        cautions.push(format!(
            "{} accelerators share {} cores: waiting for each other may be the client's doing",
            setting.accelerators, setting.cpus
        ));
    }
    let readers = setting.accelerators * setting.read_threads;
    if summary.train.is_some() && readers > setting.cpus {
        cautions.push(format!(
            "{readers} reader threads share {} cores: the client may be the limit",
            setting.cpus
        ));
    }
    let seconds = summary.rank_done_s.map_or(0.0, |(_, last)| last);
    if summary.train.is_some() && (summary.strict.counted_steps < 10 || seconds < 10.0) {
        cautions.push(format!(
            "the run is short (counted steps: {}, {seconds:.1} s): start-up weighs in the numbers",
            summary.strict.counted_steps
        ));
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_fits_the_cause_and_the_machine() {
        let cache = CachePolicy::Keep;
        let setting = Setting { accelerators: 2, read_threads: 4, cpus: 16, odirect: false, cache };
        let starved = |by| Verdict::Starved {
            au_percent: 45.0,
            target_percent: 90.0,
            by,
            share_percent: 50.0,
        };
        let next = |verdict: &Verdict, setting| next_step(verdict, setting, Some(0.0));
        assert_eq!(
            next(&starved(Cause::Storage), setting),
            "ask the storage for more at once: --set reader.read_threads=8"
        );
        assert_eq!(
            next(&starved(Cause::Storage), Setting { cpus: 2, ..setting }),
            "find how many accelerators this feeds: --accelerators 1"
        );
        assert_eq!(
            next(&starved(Cause::Framework), setting),
            "let Python read on more cores: --set reader.read_threads=8"
        );
        assert_eq!(
            next(&starved(Cause::Framework), Setting { cpus: 8, ..setting }),
            "Python is the limit on 8 cores, not the storage: use a client with more cores or a \
             reader without Python; --set reader.interpreter=none shows what the storage could do"
        );
        assert_eq!(
            next(&starved(Cause::Workers), Setting { cpus: 4, ..setting }),
            "8 readers share 4 cores: --set reader.read_threads=2"
        );
        let fed = Verdict::Fed { au_percent: 95.0, target_percent: 90.0 };
        assert_eq!(next(&fed, setting), "find the limit: --accelerators 4");
    }
}
