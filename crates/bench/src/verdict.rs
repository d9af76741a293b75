//! The answer in one line: were the accelerators fed, and if not, who starved them.

use feedline_dataset::KeptFor;
use feedline_store::Op;
use feedline_workload::Workload;
use serde::{Deserialize, Serialize};

use crate::cache::CachePolicy;
use crate::framework::FrameworkPlan;
use crate::host::usable_cpus;
use crate::metrics::Split;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::summary::Summary;

/// The share of the data in the page cache from which on a result says little about the storage.
const MOSTLY_CACHED: f64 = 0.5;

/// Ranks a core from which on waking them all takes a visible part of a step.
const RANKS_PER_CPU: u32 = 16;

/// Whom the accelerators waited for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Storage calls.
    Storage,
    /// Decoding, checking and preprocessing of bytes that were there.
    Decode,
    /// The framework itself: its interpreter, handing batches over, starting workers.
    Framework,
    /// Reader threads that were not running or were handing over.
    Workers,
    /// Other ranks.
    Peers,
}

impl Cause {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Decode => "decode",
            Self::Framework => "framework",
            Self::Workers => "workers",
            Self::Peers => "peers",
        }
    }
}

/// What the run says about the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The utilization reached the target.
    Fed {
        /// The utilization that was judged.
        au_percent: f64,
        /// The target.
        target_percent: f64,
    },
    /// It did not.
    Starved {
        /// The utilization that was judged.
        au_percent: f64,
        /// The target.
        target_percent: f64,
        /// What the accelerators waited for most.
        by: Cause,
        /// Its share of all step time.
        share_percent: f64,
    },
    /// The workload computes nothing: the run read as fast as it could.
    Unpaced,
    /// Too few steps count for a judgment.
    TooShort,
    /// Nothing was trained.
    NotTrained,
}

impl Verdict {
    /// Judges a run against `target` (a fraction), by DLIO's utilization where `basis` allows it.
    pub fn new(summary: &Summary, target: f64, basis: Basis) -> Self {
        let Some(train) = &summary.train else { return Self::NotTrained };
        let strict = &summary.strict;
        if strict.counted_steps == 0 {
            return Self::TooShort;
        }
        if strict.asked_ns == 0 {
            return Self::Unpaced;
        }
        let au_percent = match basis {
            Basis::Dlio => train.au().map_or(0.0, |(mean, _)| mean),
            Basis::Strict => strict.au_percent.unwrap_or(0.0),
        };
        let target_percent = 100.0 * target;
        if au_percent >= target_percent {
            return Self::Fed { au_percent, target_percent };
        }
        let (by, share_percent) = main_cause(&strict.split);
        Self::Starved { au_percent, target_percent, by, share_percent }
    }

    /// The word for it in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Fed { .. } => "fed",
            Self::Starved { .. } => "starved",
            Self::Unpaced => "unpaced",
            Self::TooShort => "too_short",
            Self::NotTrained => "not_trained",
        }
    }
}

fn main_cause(split: &Split) -> (Cause, f64) {
    let waits = [
        (Cause::Storage, split.storage_ns),
        (Cause::Decode, split.decode_ns),
        (Cause::Framework, split.framework_ns),
        (Cause::Workers, split.worker_ns),
        (Cause::Peers, split.peers_ns),
    ];
    let (cause, ns) = waits
        .into_iter()
        .fold((Cause::Storage, 0), |best, wait| if wait.1 > best.1 { wait } else { best });
    (cause, 100.0 * ns as f64 / split.total_ns().max(1) as f64)
}

/// Which utilization a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// DLIO's, which the target refers to.
    Dlio,
    /// The strict one: the steps that DLIO counts are no more than the batches that are read ahead,
    /// so all of them can come out of the step that it leaves out.
    Strict,
}

impl Basis {
    fn of(plan: &Plan) -> Self {
        let Some(phase) = plan.train else { return Self::Dlio };
        let window = phase.window;
        let counted = window.expected.saturating_sub(window.skip_start + window.skip_end);
        if counted <= plan.reading.ahead() { Self::Strict } else { Self::Dlio }
    }
}

/// What is said about a run besides its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Name of the workload.
    pub workload: String,
    /// The utilization that the workload asks for, as a fraction.
    pub target: f64,
    /// True if the data set was cut down for a quick look.
    pub quick: bool,
    /// What was made of the storage on purpose.
    pub altered: Altered,
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

/// What a sample took, on the mean.
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
        let batch = outcome.plan.train?.dealing.batch;
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

/// What a run made of its storage on purpose, in the words in which it can be asked for again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Altered {
    /// What it was held to.
    pub limit: Option<String>,
    /// Which operations failed.
    pub faults: Vec<String>,
}

impl Altered {
    /// True if the storage was left as it is.
    pub fn is_nothing(&self) -> bool {
        self.limit.is_none() && self.faults.is_empty()
    }

    /// What was done, as the end of a sentence that begins with the storage: `limited to 2GB/s`.
    pub fn described(&self) -> String {
        let limit = self.limit.iter().map(|limit| format!("limited to {limit}"));
        let faults =
            (!self.faults.is_empty()).then(|| format!("failing {}", self.faults.join(" ")));
        limit.chain(faults).collect::<Vec<_>>().join(", ")
    }
}

impl Report {
    /// Judges a run of `workload`.
    pub fn new(
        name: &str,
        workload: &Workload,
        quick: bool,
        outcome: &Outcome,
        summary: &Summary,
    ) -> Self {
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
            workload: name.to_owned(),
            target: workload.metric.au,
            quick,
            altered: Altered::default(),
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
    use crate::summary::{Series, Strict};

    fn summary(au: f64, strict_au: f64, split: Split) -> Summary {
        Summary {
            train: Some(Series { au_percent: vec![Some(au)], throughput: vec![None] }),
            eval: None,
            saves: None,
            loads: None,
            strict: Strict {
                au_percent: Some(strict_au),
                asked_ns: split.compute_ns,
                split,
                steps: 10,
                counted_steps: 9,
                ..Strict::default()
            },
            rank_done_s: Some((60.0, 60.0)),
            cached_share: vec![Some(0.0)],
        }
    }

    const SPLIT: Split = Split {
        storage_ns: 30,
        decode_ns: 20,
        framework_ns: 0,
        worker_ns: 5,
        peers_ns: 5,
        compute_ns: 40,
        behind_ns: 0,
    };

    #[test]
    fn the_largest_wait_is_the_cause() {
        let check = |split: Split, by, share_percent| {
            let expected =
                Verdict::Starved { au_percent: 40.0, target_percent: 90.0, by, share_percent };
            assert_eq!(Verdict::new(&summary(40.0, 39.0, split), 0.9, Basis::Dlio), expected);
        };
        check(SPLIT, Cause::Storage, 30.0);
        check(Split { storage_ns: 5, decode_ns: 45, ..SPLIT }, Cause::Decode, 45.0);
        check(Split { storage_ns: 5, framework_ns: 25, ..SPLIT }, Cause::Framework, 25.0);
        check(Split { storage_ns: 5, worker_ns: 30, ..SPLIT }, Cause::Workers, 30.0);
        check(Split { storage_ns: 0, peers_ns: 35, ..SPLIT }, Cause::Peers, 35.0);
    }

    #[test]
    fn the_target_is_reached_at_the_target() {
        let fed = Verdict::Fed { au_percent: 90.0, target_percent: 90.0 };
        assert_eq!(Verdict::new(&summary(90.0, 20.0, SPLIT), 0.9, Basis::Dlio), fed);
    }

    #[test]
    fn a_run_that_lives_on_what_was_read_ahead_is_judged_strictly() {
        let verdict = Verdict::new(&summary(99.0, 20.0, SPLIT), 0.9, Basis::Strict);
        assert!(matches!(verdict, Verdict::Starved { au_percent: 20.0, .. }), "{verdict:?}");
    }

    #[test]
    fn runs_without_computation_or_steps_are_not_judged() {
        let idle = Split { compute_ns: 0, ..SPLIT };
        assert_eq!(Verdict::new(&summary(0.0, 0.0, idle), 0.9, Basis::Dlio), Verdict::Unpaced);
        let mut short = summary(0.0, 0.0, SPLIT);
        short.strict.counted_steps = 0;
        assert_eq!(Verdict::new(&short, 0.9, Basis::Dlio), Verdict::TooShort);
        short.train = None;
        assert_eq!(Verdict::new(&short, 0.9, Basis::Dlio), Verdict::NotTrained);
    }

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
