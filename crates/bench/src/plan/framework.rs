//! What a run does about the framework's own cost: burn it, leave it out and say so, or nothing.

use std::sync::Arc;

use feedline_formats::ReadUnit;
use feedline_loader::{FrameworkCost, WorkerStart};
use feedline_workload::{DataLoader, Interpreter, ReadModel, Workload};

use crate::error::{BenchError, Result};
use crate::plan::Plan;
use crate::plan::calibration::Calibration;
use crate::plan::reading::LoaderPlan;

/// What a run does about the framework's own cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FrameworkPlan {
    /// Nothing: the reader is not a framework's, or the workload says so.
    #[default]
    Ignored,
    /// Readers and consumers burn it.
    Burnt(Burnt),
    /// It is not in the numbers, since it is not known.
    LeftOut(LeftOut),
}

/// A cost that is burnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Burnt {
    /// CPU time per sample, per batch and per worker start.
    pub cost: Arc<FrameworkCost>,
    /// CPU time per sample of the workload's size, hand-over included.
    pub per_sample_ns: u64,
    /// Bytes that finished batches of one rank hold in memory at most.
    pub held_bytes: u64,
    /// The calibration's file.
    pub file: String,
    /// Whose cost it is, and when it was measured.
    pub source: String,
    /// What to know before believing it.
    pub caution: Option<String>,
}

/// A cost that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Why the framework is left out, for people.
    pub why: String,
    /// What other figures let expect.
    pub forecast: Option<Forecast>,
}

/// A calibration that was found, and where.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The calibration that was found, maybe of another CPU.
    pub calibration: &'a Calibration,
    /// Its file.
    pub file: &'a str,
    /// The CPU of this machine.
    pub cpu: &'a str,
}

impl FrameworkPlan {
    /// Decides for a run of `workload` as planned in `plan`.
    ///
    /// # Errors
    /// The workload insists on a calibration, and there is none for it.
    pub fn decide(workload: &Workload, plan: &Plan, found: Option<Found<'_>>) -> Result<Self> {
        if !Self::is_wanted(workload) {
            return Ok(Self::Ignored);
        }
        let mode = workload.reader.interpreter;
        let format = workload.dataset.format.name;
        let Some(found) = found else {
            return match mode {
                Interpreter::Calibrated => Err(BenchError::NotCalibrated),
                _ => Ok(Self::left_out("this machine has no calibration".into(), workload, plan)),
            };
        };
        let Some(cost) = found.calibration.cost(workload, plan.semantics) else {
            let file = found.file.to_owned();
            return match mode {
                Interpreter::Calibrated => {
                    Err(BenchError::FormatNotCalibrated { format: format.to_owned(), file })
                }
                _ => {
                    let why = format!("the calibration does not cover this kind of {format}");
                    Ok(Self::left_out(why, workload, plan))
                }
            };
        };
        let measured_on = &found.calibration.machine.cpu;
        if measured_on != found.cpu && mode == Interpreter::Auto {
            let why = format!("the calibration is of another CPU ({measured_on})");
            return Ok(Self::left_out(why, workload, plan));
        }
        Ok(Self::Burnt(Burnt::new(cost, workload, plan, found)))
    }

    /// Whether the framework's own cost belongs to a run of `workload`.
    pub fn is_wanted(workload: &Workload) -> bool {
        let reader = &workload.reader;
        workload.workflow.train
            && reader.interpreter != Interpreter::None
            && workload.read_model() == ReadModel::Framework
            && matches!(reader.data_loader, DataLoader::Pytorch | DataLoader::Tensorflow)
            && workload.dataset.format.read_unit != ReadUnit::Nothing
    }

    fn left_out(why: String, workload: &Workload, plan: &Plan) -> Self {
        Self::LeftOut(LeftOut { why, forecast: Forecast::of_reference(workload, plan) })
    }

    /// The same with workers that are there at once, for rates that last.
    pub(crate) fn without_start(&self) -> Self {
        match self {
            Self::Burnt(burnt) => {
                let start = WorkerStart::default();
                let cost = Arc::new(FrameworkCost { start, ..(*burnt.cost).clone() });
                Self::Burnt(Burnt { cost, ..burnt.clone() })
            }
            other => other.clone(),
        }
    }

    /// The cost to burn, if there is one.
    pub fn cost(&self) -> Option<&Arc<FrameworkCost>> {
        self.burnt().map(|burnt| &burnt.cost)
    }

    /// What is burnt, if anything is.
    pub fn burnt(&self) -> Option<&Burnt> {
        match self {
            Self::Burnt(burnt) => Some(burnt),
            Self::Ignored | Self::LeftOut(_) => None,
        }
    }
}

impl Burnt {
    fn new(cost: FrameworkCost, workload: &Workload, plan: &Plan, found: Found<'_>) -> Self {
        let demand = Demand::new(&cost, workload, plan);
        let calibration = found.calibration;
        let other_cpu = (calibration.machine.cpu != found.cpu).then(|| {
            format!(
                "the framework's cost was measured on another CPU ({}): this one is {}",
                calibration.machine.cpu, found.cpu
            )
        });
        let no_torch =
            workload.reader.data_loader == DataLoader::Pytorch && calibration.data_loader.is_none();
        let no_torch = no_torch.then(|| {
            "the calibration was made without torch: handing batches over and starting workers \
             cost nothing here"
                .to_owned()
        });
        Self {
            per_sample_ns: demand.per_sample_ns(),
            held_bytes: held_bytes(&cost, plan, demand.sample_bytes),
            cost: Arc::new(cost),
            file: found.file.to_owned(),
            source: source(calibration),
            caution: other_cpu.or(no_torch),
        }
    }
}

/// Bytes of the batches of one rank that can be finished and not dropped: those that are
/// outstanding, and the one that the consumer has.
fn held_bytes(cost: &FrameworkCost, plan: &Plan, sample_bytes: u64) -> u64 {
    match plan.reading.train {
        LoaderPlan::Torch(config) if config.workers > 0 && !cost.hand_over.is_nothing() => {
            let batch = plan.train.as_ref().map_or(0, |phase| phase.dealing.batch);
            let bytes = cost.batch_bytes(batch, batch.saturating_mul(sample_bytes));
            (config.outstanding() + 1).saturating_mul(bytes)
        }
        _ => 0,
    }
}

/// Whose figures they are: Python, its packages, the day.
fn source(calibration: &Calibration) -> String {
    let mut words = vec![format!("Python {}", calibration.python.version)];
    let packages = calibration.python.packages.iter();
    words.extend(packages.map(|(name, version)| format!("{name} {version}")));
    let day = calibration.date.split('T').next().unwrap_or_default();
    format!("{}, measured {day}", words.join(", "))
}

/// What an accelerator asks of the framework.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Demand {
    workers: u32,
    batch: u64,
    sample_bytes: u64,
    compute_s: f64,
    /// CPU time of a reader per batch, and of the consumer.
    reader_ns: u64,
    consumer_ns: u64,
}

impl Demand {
    fn new(cost: &FrameworkCost, workload: &Workload, plan: &Plan) -> Self {
        let reader = &workload.reader;
        let (workers, batch) = (reader.read_threads, reader.batch_size);
        let sample_bytes = plan.nominal_sample_bytes.max(0.0) as u64;
        let batch_bytes = cost.batch_bytes(batch, batch.saturating_mul(sample_bytes));
        let hand_over = &cost.hand_over;
        let (in_reader, consumer_ns) = match workers {
            0 => (hand_over.collate.at(batch_bytes), 0),
            _ => (hand_over.worker.at(batch_bytes), hand_over.consumer.at(batch_bytes)),
        };
        let reader_ns =
            batch.saturating_mul(cost.sample.at(sample_bytes)).saturating_add(in_reader);
        let compute_s = workload.train.computation_time.mean_seconds();
        Self { workers, batch, sample_bytes, compute_s, reader_ns, consumer_ns }
    }

    fn per_sample_ns(&self) -> u64 {
        (self.reader_ns + self.consumer_ns) / self.batch.max(1)
    }
}

/// What the framework would let a client reach if its storage took no time, by the figures of a
/// calibration.
///
/// A step takes as long as the slowest of three: the accelerator (computing, and receiving the
/// batch), its workers (a batch's CPU time over the workers that have a core), and the client (the
/// CPU time of all batches over all cores). Without workers, reading and computing take turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    demand: Demand,
    /// CPU time of the framework per sample, hand-over included.
    pub per_sample_ns: u64,
    /// Whose figures.
    pub source: String,
}

impl Forecast {
    /// By the shipped figures of another machine; `None` if they do not cover the format or
    /// nothing is computed.
    pub fn of_reference(workload: &Workload, plan: &Plan) -> Option<Self> {
        Self::new(&Calibration::reference(), workload, plan)
    }

    /// By the figures of `calibration`.
    pub fn new(calibration: &Calibration, workload: &Workload, plan: &Plan) -> Option<Self> {
        let cost = calibration.whole_cost(workload, plan.semantics)?;
        let demand = Demand::new(&cost, workload, plan);
        let cpu = &calibration.machine.cpu;
        let source = format!("{cpu}, Python {}", calibration.python.version);
        let per_sample_ns = demand.per_sample_ns();
        (demand.compute_s > 0.0).then_some(Self { demand, per_sample_ns, source })
    }

    /// The utilization that `ranks` accelerators of a client with `cpus` cores would reach.
    pub fn au_percent(&self, ranks: u32, cpus: u32) -> f64 {
        100.0 * self.demand.compute_s / self.step_s(ranks, cpus)
    }

    /// Samples per second of all of them.
    pub fn samples_per_s(&self, ranks: u32, cpus: u32) -> f64 {
        f64::from(ranks) * self.demand.batch as f64 / self.step_s(ranks, cpus)
    }

    /// The most accelerators of a client with `cpus` cores that would be kept busy.
    pub fn accelerators(&self, cpus: u32, target_percent: f64) -> u32 {
        let fed = |ranks: &u32| self.au_percent(*ranks, cpus) >= target_percent;
        (1..=crate::ceiling::ACCELERATORS_MAX).take_while(fed).last().unwrap_or(0)
    }

    fn step_s(&self, ranks: u32, cpus: u32) -> f64 {
        let Demand { workers, compute_s, reader_ns, consumer_ns, .. } = self.demand;
        let (ranks, cpus) = (f64::from(ranks.max(1)), f64::from(cpus.max(1)));
        let (reader_s, consumer_s) = (reader_ns as f64 / 1e9, consumer_ns as f64 / 1e9);
        let client_s = (reader_s + consumer_s) * ranks / cpus;
        if workers == 0 {
            return (compute_s + reader_s).max(client_s);
        }
        let at_work = f64::from(workers).min((cpus / ranks).max(1.0));
        (compute_s + consumer_s).max(reader_s / at_work).max(client_s)
    }
}

#[cfg(test)]
mod tests {
    use feedline_workload::{SampleFormat, TimeSpec};

    use super::*;
    use crate::plan::Semantics;
    use crate::plan::calibration::tests::{made_up, workload};

    fn plan(workload: &Workload) -> Plan {
        Plan::new(workload, 1, Semantics::Feedline).unwrap()
    }

    fn training() -> Workload {
        let mut workload = workload();
        workload.workflow.train = true;
        workload.train.computation_time = TimeSpec::Constant { mean: 1e-6 };
        workload.dataset.record_length_bytes = 1000.0;
        workload.reader.batch_size = 2;
        workload.reader.read_threads = 4;
        workload
    }

    fn decide(workload: &Workload, cpu: Option<&str>) -> Result<FrameworkPlan> {
        let calibration = made_up();
        let found = cpu.map(|cpu| Found { calibration: &calibration, file: "c.json", cpu });
        FrameworkPlan::decide(workload, &plan(workload), found)
    }

    #[test]
    fn the_workload_and_the_machine_decide() {
        let mut workload = training();
        let word = |workload: &Workload, cpu| match decide(workload, cpu) {
            Ok(FrameworkPlan::Ignored) => "ignored".to_owned(),
            Ok(FrameworkPlan::Burnt(burnt)) => burnt.caution.unwrap_or("burnt".into()),
            Ok(FrameworkPlan::LeftOut(left_out)) => left_out.why,
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(word(&workload, Some("A CPU")), "burnt");
        assert_eq!(word(&workload, Some("B")), "the calibration is of another CPU (A CPU)");
        assert_eq!(word(&workload, None), "this machine has no calibration");
        workload.reader.interpreter = Interpreter::Calibrated;
        assert_eq!(word(&workload, Some("A CPU")), "burnt");
        assert_eq!(
            word(&workload, Some("B")),
            "the framework's cost was measured on another CPU (A CPU): this one is B"
        );
        assert!(word(&workload, None).starts_with("error: `reader.interpreter: calibrated`"));
        workload.dataset.format = SampleFormat::find("hdf5").unwrap();
        assert_eq!(
            word(&workload, Some("A CPU")),
            "error: `reader.interpreter: calibrated`: c.json does not cover this kind of hdf5"
        );
        workload.reader.interpreter = Interpreter::Auto;
        assert_eq!(
            word(&workload, Some("A CPU")),
            "the calibration does not cover this kind of hdf5"
        );
        for change in [
            (|w: &mut Workload| w.reader.interpreter = Interpreter::None) as fn(&mut Workload),
            |w| w.reader.read_model = ReadModel::Deep,
            |w| w.reader.data_loader = DataLoader::Dali,
            |w| w.workflow.train = false,
        ] {
            let mut workload = training();
            change(&mut workload);
            assert_eq!(word(&workload, Some("A CPU")), "ignored");
        }
    }

    #[test]
    fn what_is_burnt_is_told_per_sample_and_held_per_rank() {
        // 4 workers: 400 a sample; 100 and 200 a batch of two. 4 outstanding batches and one more.
        let FrameworkPlan::Burnt(burnt) = decide(&training(), Some("A CPU")).unwrap() else {
            panic!("not burnt")
        };
        assert_eq!(burnt.per_sample_ns, 400 + (100 + 200) / 2);
        assert_eq!(burnt.held_bytes, (4 + 1) * 2 * 1000);
        assert_eq!(burnt.source, "Python 3.11.7, torch 2.15.0, measured 2026-11-18");
    }

    #[test]
    fn a_forecast_is_the_slowest_of_accelerator_workers_and_client() {
        // A batch of two takes 2 x 500 + 100 = 1100 ns in a worker and 200 in the consumer.
        let forecast = |compute_ns: f64, workers: u32| {
            let mut workload = training();
            workload.train.computation_time = TimeSpec::Constant { mean: compute_ns / 1e9 };
            workload.reader.read_threads = workers;
            Forecast::new(&made_up(), &workload, &plan(&workload)).unwrap()
        };
        let check = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
        };
        // The accelerator: 800 + 200, while 4 workers need 275 and 8 cores 162.5.
        check(forecast(800.0, 4).au_percent(1, 8), 80.0);
        // The workers: 1100 / 4 against 50 + 200.
        check(forecast(50.0, 4).au_percent(1, 8), 100.0 * 50.0 / 275.0);
        // The client: 2 ranks of 1300 on 2 cores; no rank has more than one core for its workers.
        check(forecast(130.0, 4).au_percent(2, 2), 10.0);
        check(forecast(130.0, 4).samples_per_s(2, 2), 2.0 * 2.0 / 1300e-9);
        // Without workers: 1000 + 50 to read and collate, then 350 to compute.
        check(forecast(350.0, 0).au_percent(1, 8), 25.0);
        // 1300 ns of CPU time per step on 4 cores: 3 ranks need 975, 4 need 1300.
        assert_eq!(forecast(800.0, 4).accelerators(4, 80.0), 3);
        assert_eq!(forecast(1.0, 4).accelerators(4, 80.0), 0);
    }

    #[test]
    fn nothing_is_forecast_for_who_computes_nothing() {
        let mut workload = training();
        workload.train.computation_time = TimeSpec::default();
        assert_eq!(Forecast::new(&made_up(), &workload, &plan(&workload)), None);
    }
}
