//! How many accelerators this client could feed if the storage were infinitely fast.
//!
//! The workload runs against a store that answers every file with the same few, out of memory:
//! what is left is the client's own work (finding, copying, checking and decoding samples, queues,
//! barriers). First unpaced, for the rate that the machine can reach; then paced, for the number of
//! accelerators that are really kept busy at the workload's own target.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_dataset::{DatasetError, Listing};
use feedline_formats::{Content, Element, FileSpec, Format};
use feedline_store::{Looped, Memory};
use feedline_workload::{ReadModel, TimeSpec, Workload};
use serde_json::{Value, json};

use crate::error::{BenchError, Result};
use crate::plan::framework::FrameworkPlan;
use crate::plan::supported::{self, sample_sizes};
use crate::plan::{Plan, Semantics};
use crate::results::folder::{Existing, OutputFolder};
use crate::results::host;
use crate::results::summary::Summary;
use crate::run::Run;

/// Bytes of one file in memory, if its samples allow.
const FILE_BYTES: u64 = 64 << 20;
/// Files of different size that are kept, and the bytes that end the collection.
const TEMPLATES: usize = 4;
const TEMPLATE_BYTES: usize = 512 << 20;
/// How long an unpaced run should take, in steps that are doubled until it does.
const UNPACED_SECONDS: f64 = 1.5;
const UNPACED_STEPS_MAX: u64 = 1 << 14;
/// How long a paced run should take, if that is enough steps.
const PACED_SECONDS: f64 = 3.0;
const PACED_STEPS: u64 = 8;
/// The most accelerators that are tried: each is a group of threads.
pub const ACCELERATORS_MAX: u32 = 256;
/// Paced runs in the search.
const PROBES_MAX: usize = 10;

/// What the client can do with Feedline's own reader, and with the framework's.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Accelerators that were kept busy at the target.
    pub accelerators: u32,
    /// What keeps the client from feeding more.
    pub bound: Bound,
    /// The utilization that counts as fed, in percent.
    pub target_percent: f64,
    /// Samples per second that one accelerator takes.
    pub demand_samples_per_s: f64,
    /// What the readers of one accelerator deliver when nothing else runs.
    pub alone: Rate,
    /// What the whole client delivers.
    pub client: Rate,
    /// The paced runs, in the order in which they were made.
    pub probes: Vec<Probe>,
    /// Processors that were used.
    pub cpus: u32,
    /// What the framework's reader lets it do, if the workload has one.
    pub framework: Option<FrameworkCeiling>,
    /// Samples in a file; fewer than the workload's where its files are too large for memory.
    pub samples_per_file: u64,
}

impl Ceiling {
    /// The whole of it as one JSON object.
    pub fn to_json(&self, workload: &str) -> Value {
        let finite = |value: f64| value.is_finite().then_some(value);
        let rate = |rate: Rate| {
            json!({
                "samples_per_second": finite(rate.samples_per_s),
                "sample_MB_per_second": finite(rate.bytes_per_s / 1e6),
            })
        };
        let probe = |probe: &Probe| json!({"accelerators": probe.accelerators, "au_percentage": probe.au_percent});
        json!({
            "workload": workload,
            "framework": self.framework.as_ref().map(FrameworkCeiling::to_json),
            "accelerators": self.accelerators,
            "bound": self.bound.as_str(),
            "target_percentage": self.target_percent,
            "demand_samples_per_second": self.demand_samples_per_s,
            "client": rate(self.client),
            "one_accelerator_alone": rate(self.alone),
            "probes": self.probes.iter().map(probe).collect::<Vec<_>>(),
            "processors": self.cpus,
            "samples_per_file": self.samples_per_file,
        })
    }
}

/// What the client can do with the framework's reader.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameworkCeiling {
    /// Accelerators that are kept busy at the target.
    pub accelerators: u32,
    /// Samples per second of the whole client.
    pub samples_per_s: f64,
    /// CPU time of the framework per sample.
    pub per_sample_ns: u64,
    /// Whose figures they are.
    pub source: String,
    /// The paced runs; none if it is an estimate by figures of another machine.
    pub probes: Vec<Probe>,
}

impl FrameworkCeiling {
    /// Whether nothing was measured here.
    pub fn is_estimate(&self) -> bool {
        self.probes.is_empty()
    }

    fn to_json(&self) -> Value {
        let probe = |probe: &Probe| json!({"accelerators": probe.accelerators, "au_percentage": probe.au_percent});
        json!({
            "accelerators": self.accelerators,
            "samples_per_second": self.samples_per_s.is_finite().then_some(self.samples_per_s),
            "per_sample_ms": self.per_sample_ns as f64 / 1e6,
            "estimate": self.is_estimate(),
            "source": self.source,
            "probes": self.probes.iter().map(probe).collect::<Vec<_>>(),
        })
    }
}

/// How fast samples come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Samples per second.
    pub samples_per_s: f64,
    /// Bytes of samples per second.
    pub bytes_per_s: f64,
}

/// Why no more accelerators are fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The client is at its limit.
    Client,
    /// One accelerator's own readers do not keep up, however idle the client is.
    Readers,
    /// The framework's reader, where Feedline's own would feed more.
    Framework,
    /// The limit was not reached: more accelerators were not tried.
    NotReached,
}

impl Bound {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Readers => "readers",
            Self::Framework => "framework",
            Self::NotReached => "not reached",
        }
    }
}

/// A paced run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Accelerators that it had.
    pub accelerators: u32,
    /// How busy they were, in percent.
    pub au_percent: f64,
}

/// The client under test.
pub struct Client<'a> {
    /// The clock that times the runs; simulated in tests.
    pub clock: Clock,
    /// Where the runs' own files go; they are removed.
    pub folder: &'a Path,
    /// Set to end the measurement early.
    pub stop: Arc<AtomicBool>,
    /// What is done about the framework's own cost.
    pub framework: FrameworkPlan,
    /// Hears about every paced run.
    pub seen: &'a dyn Fn(Probe),
}

impl Client<'_> {
    /// Measures the client with `workload`, which must train and compute.
    pub fn measure(&self, workload: &Workload) -> Result<Ceiling> {
        let mut bench = Bench::new(self, workload)?;
        let cpus = host::usable_cpus();
        let demand = workload.reader.batch_size as f64 / bench.compute_s;
        let Reach { alone, client, probes } = bench.reach(cpus, demand)?;
        let accelerators = bench.most_fed(&probes);
        let bound = match accelerators {
            0 if alone.samples_per_s < demand => Bound::Readers,
            most if probes.iter().all(|probe| probe.accelerators <= most) => Bound::NotReached,
            _ => Bound::Client,
        };
        let framework = self.framework_reach(&mut bench, cpus, demand)?;
        let is_framework = framework.as_ref().is_some_and(|it| it.accelerators < accelerators);
        Ok(Ceiling {
            accelerators,
            bound: if is_framework { Bound::Framework } else { bound },
            target_percent: bench.target_percent,
            demand_samples_per_s: demand,
            alone,
            client,
            probes,
            cpus,
            framework,
            samples_per_file: bench.workload.dataset.num_samples_per_file,
        })
    }

    /// The same with what the framework's reader costs: measured if that is known, estimated if not.
    fn framework_reach(
        &self,
        bench: &mut Bench<'_>,
        cpus: u32,
        demand: f64,
    ) -> Result<Option<FrameworkCeiling>> {
        match &self.framework {
            FrameworkPlan::Ignored => Ok(None),
            FrameworkPlan::LeftOut(left_out) => Ok(left_out.forecast.as_ref().map(|forecast| {
                let accelerators = forecast.accelerators(cpus, bench.target_percent);
                FrameworkCeiling {
                    accelerators,
                    samples_per_s: forecast.samples_per_s(ACCELERATORS_MAX, cpus),
                    per_sample_ns: forecast.per_sample_ns,
                    source: forecast.source.clone(),
                    probes: Vec::new(),
                }
            })),
            FrameworkPlan::Burnt(burnt) => {
                bench.framework = self.framework.without_start();
                bench.workload.reader.read_model = ReadModel::Framework;
                let Reach { client, probes, .. } = bench.reach(cpus, demand)?;
                Ok(Some(FrameworkCeiling {
                    accelerators: bench.most_fed(&probes),
                    samples_per_s: client.samples_per_s,
                    per_sample_ns: burnt.per_sample_ns,
                    source: burnt.source.clone(),
                    probes,
                }))
            }
        }
    }
}

/// How far a client gets with one kind of reader.
struct Reach {
    alone: Rate,
    client: Rate,
    probes: Vec<Probe>,
}

/// How a run is paced.
#[derive(Clone, Copy, Default)]
struct Pace {
    compute: TimeSpec,
    /// Steps at the start that do not count.
    fill: u64,
}

/// The workload cut down to what is measured, and its files in memory.
struct Bench<'a> {
    client: &'a Client<'a>,
    workload: Workload,
    store: Looped,
    framework: FrameworkPlan,
    compute_s: f64,
    target_percent: f64,
}

impl<'a> Bench<'a> {
    fn new(client: &'a Client<'a>, workload: &Workload) -> Result<Self> {
        let mut workload = workload.clone();
        workload.workflow.train = true;
        workload.workflow.generate_data = false;
        workload.workflow.evaluation = false;
        workload.workflow.checkpoint = false;
        workload.train.epochs = 1;
        workload.train.max_steps = None;
        // What the framework's reader lets the client do is asked for apart.
        if workload.read_model() == ReadModel::Framework {
            workload.reader.read_model = ReadModel::Native;
        }
        let compute_s = workload.train.computation_time.mean_seconds();
        let target_percent = 100.0 * workload.metric.au;
        let format = supported::format(&workload, Semantics::Feedline)?;
        let element = workload.dataset.record_element_type;
        let sample = largest_sample(&workload, element);
        let dataset = &mut workload.dataset;
        dataset.num_samples_per_file =
            dataset.num_samples_per_file.min((FILE_BYTES / sample).max(1));
        let store = templates(&workload, &*format, element)?;
        let framework = FrameworkPlan::Ignored;
        Ok(Self { client, workload, store, framework, compute_s, target_percent })
    }

    /// Rates as fast as it goes, then paced runs for accelerators that take `demand` each.
    fn reach(&self, cpus: u32, demand: f64) -> Result<Reach> {
        let readers = self.workload.reader.read_threads.max(1);
        let crowd = (2 * cpus).div_ceil(readers).max(2);
        let alone = self.unpaced(1)?;
        let together = self.unpaced(crowd)?;
        let client = if together.samples_per_s > alone.samples_per_s { together } else { alone };
        let first = (client.samples_per_s / demand) as u32;
        // Where readers do not keep up, steps take as long as their batches.
        let batch_s = self.workload.reader.batch_size as f64 / alone.samples_per_s;
        let step_s = self.compute_s.max(batch_s);
        let probes = self.search(first.clamp(1, ACCELERATORS_MAX), step_s)?;
        Ok(Reach { alone, client, probes })
    }

    /// The most accelerators that a paced run has kept busy.
    fn most_fed(&self, probes: &[Probe]) -> u32 {
        let fed = |probe: &&Probe| probe.au_percent >= self.target_percent;
        probes.iter().filter(fed).map(|probe| probe.accelerators).max().unwrap_or(0)
    }

    /// The rate of `ranks` accelerators that compute nothing.
    fn unpaced(&self, ranks: u32) -> Result<Rate> {
        let mut steps = 4;
        loop {
            let (summary, seconds) = self.run(ranks, steps, Pace::default())?;
            if seconds >= UNPACED_SECONDS || steps >= UNPACED_STEPS_MAX {
                let strict = &summary.strict;
                return Ok(Rate {
                    samples_per_s: strict.samples_per_s.unwrap_or(f64::INFINITY),
                    bytes_per_s: strict.sample_bytes_per_s.unwrap_or(f64::INFINITY),
                });
            }
            let factor = (1.2 * UNPACED_SECONDS / seconds.max(1e-3)).clamp(2.0, 64.0);
            steps = ((steps as f64 * factor) as u64).min(UNPACED_STEPS_MAX);
        }
    }

    /// Paced runs around `first`, of steps of about `step_s`, until the largest number that is fed is found.
    fn search(&self, first: u32, step_s: f64) -> Result<Vec<Probe>> {
        let mut probes = Vec::new();
        let (mut good, mut bad) = (0, ACCELERATORS_MAX + 1);
        let mut next = first;
        while probes.len() < PROBES_MAX && good < next && next < bad {
            let probe = self.paced(next, step_s)?;
            (self.client.seen)(probe);
            probes.push(probe);
            let fed = probe.au_percent >= self.target_percent;
            if fed {
                good = next
            } else {
                bad = next
            }
            next = match (good, bad > ACCELERATORS_MAX) {
                // Where it is not enough, it is usually by as much as the accelerators idle; where that
                // is not enough either, by half, so that a single one is tried before none is said.
                (0, false) if probes.len() > 1 => bad / 2,
                (0, false) => {
                    let share = probe.au_percent / self.target_percent;
                    ((f64::from(bad) * share) as u32).clamp(1, bad.max(2) - 1)
                }
                // The estimate is usually close; if it was not, larger steps find the end.
                (_, true) if probes.len() < 3 => good + (good / 8).max(1),
                (_, true) => 2 * good,
                (_, false) => good.midpoint(bad),
            }
            .min(ACCELERATORS_MAX);
        }
        Ok(probes)
    }

    fn paced(&self, ranks: u32, step_s: f64) -> Result<Probe> {
        // What was read ahead while the pipeline filled flatters the first steps, so they do not count.
        let fill = Plan::new(&self.workload, 1, Semantics::Feedline)?.reading.ahead() + 1;
        let counted = ((PACED_SECONDS / step_s) as u64).clamp(PACED_STEPS, 2000);
        let pace = Pace { compute: self.workload.train.computation_time, fill };
        let (summary, _) = self.run(ranks, fill + counted, pace)?;
        let au_percent = summary.train.and_then(|train| train.au()).map_or(0.0, |(mean, _)| mean);
        Ok(Probe { accelerators: ranks, au_percent })
    }

    /// One run; its summary and how long it took.
    fn run(&self, ranks: u32, steps: u64, pace: Pace) -> Result<(Summary, f64)> {
        let mut workload = self.workload.clone();
        workload.train.computation_time = pace.compute;
        workload.output.metric.exclude_start_steps = pace.fill;
        workload.output.metric.exclude_end_steps = 0;
        workload.train.total_training_steps = Some(steps);
        let dataset = &mut workload.dataset;
        // Names cost nothing here, so that there can be as many files as the steps need.
        let samples = steps * workload.reader.batch_size * u64::from(ranks);
        let files = samples.div_ceil(dataset.num_samples_per_file);
        let files = dataset.num_files_train.max(files);
        dataset.num_files_train = files.next_multiple_of(u64::from(ranks));
        let mut plan = Plan::new(&workload, ranks, Semantics::Feedline)?;
        plan.framework = self.framework.clone();
        let clock = self.client.clock.clone();
        let (data, checkpoints) =
            (Arc::new(self.store.clone()), Arc::new(Memory::new(clock.clone())));
        let run = Run {
            clock: clock.clone(),
            stop: Arc::clone(&self.client.stop),
            listing: Listing::Trust,
            ..Run::new(workload, plan, data, checkpoints)
        };
        let folder = OutputFolder::claim(self.client.folder, Existing::Replace)?;
        let begin = clock.now();
        let finished = run.prepare()?.execute(&folder)?;
        let seconds = (clock.now() - begin) as f64 / 1e9;
        if self.client.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        Ok((finished.summary, seconds))
    }
}

/// Bytes of the largest of the samples that are made, at least 1.
fn largest_sample(workload: &Workload, element: Element) -> u64 {
    let mut sizes = sample_sizes(&workload.dataset);
    let elements = (0..TEMPLATES).map(|_| sizes.next_dims().iter().product::<u64>()).max();
    (elements.unwrap_or(1) * element.size_bytes()).max(1)
}

/// Files of the workload in memory, with their companions.
fn templates(workload: &Workload, format: &dyn Format, element: Element) -> Result<Looped> {
    let dataset = &workload.dataset;
    let mut sizes = sample_sizes(dataset);
    // A companion must belong to the file that is read, and keys do not tell which one that is.
    let alike = sizes.is_uniform() || !format.companions().is_empty();
    let count = if alike { 1 } else { TEMPLATES };
    let suffix = format!(".{}", format.extension());
    let mut objects: Vec<(String, Arc<[u8]>)> = Vec::new();
    let mut total = 0;
    for index in 0..count as u64 {
        let (dims, samples) = (sizes.next_dims(), dataset.num_samples_per_file);
        let file = FileSpec { dims, samples, element, index };
        let file_name = || format!("{suffix} in memory");
        let failed = |source| DatasetError::Generate { file: file_name(), source };
        let mut bytes = Vec::new();
        let content = Content::new(u64::from(workload.train.seed), index);
        format.encode(&file, &content, &mut bytes).map_err(failed)?;
        total += bytes.len();
        objects.push((suffix.clone(), bytes.into()));
        for companion in format.companions() {
            let mut bytes = Vec::new();
            format.encode_companion(companion, &file, &mut bytes).map_err(failed)?;
            objects.push((format!("{suffix}{}", companion.suffix), bytes.into()));
        }
        if total >= TEMPLATE_BYTES {
            break;
        }
    }
    Ok(Looped::new(objects))
}
