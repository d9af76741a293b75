//! A run to be simulated.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{
    Burnt, Existing, FrameworkPlan, Level, Observer, Outcome, OutputFolder, Plan, Run, Semantics,
    Silent, Summary,
};
use feedline_clock::Clock;
use feedline_loader::FrameworkCost;
use feedline_store::{Limit, Memory, Op, RateLimiter, Store, Throttled};
use feedline_workload::{DataLoader, Framework, ReadModel, SampleFormat, TimeSpec, Workload};

pub(crate) const S: u64 = 1_000_000_000;

/// A run to be simulated. One sample a file, batches of one, one worker, unless changed.
pub(crate) struct Scenario {
    pub(crate) workload: Workload,
    pub(crate) ranks: u32,
    pub(crate) semantics: Semantics,
    /// Seconds that opening a file takes, by its number.
    pub(crate) open_s: fn(u64) -> f64,
    /// Seconds that a checkpoint write takes.
    pub(crate) save_s: f64,
    /// What the framework costs, if that is burnt.
    pub(crate) cost: Option<FrameworkCost>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Scenario {
    pub(crate) fn new(files: u64) -> Self {
        let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
        workload.dataset.format = SampleFormat::find("npy").unwrap();
        workload.dataset.num_files_train = files;
        workload.dataset.record_length_bytes = 64.0;
        workload.workflow.generate_data = true;
        workload.reader.data_loader = DataLoader::Pytorch;
        // One open, one stat and one read per file; what frameworks ask for is a test of its own.
        workload.reader.read_model = ReadModel::Native;
        workload.train.computation_time = TimeSpec::Constant { mean: 1.0 };
        Self {
            workload,
            ranks: 1,
            semantics: Semantics::Feedline,
            open_s: |_| 0.0,
            save_s: 0.0,
            cost: None,
            observer: Arc::new(Silent),
            stop: Arc::default(),
        }
    }

    pub(crate) fn run(self) -> (Outcome, Summary) {
        self.run_on(Clock::simulated())
    }

    pub(crate) fn run_on(self, clock: Clock) -> (Outcome, Summary) {
        let (open_s, save_s) = (self.open_s, self.save_s);
        let data = Memory::new(clock.clone()).with_latency(move |op, key, _, _| match op {
            Op::Open => (open_s(file_number(key)) * 1e9) as u64,
            _ => 0,
        });
        let checkpoints = Memory::new(clock.clone()).with_latency(move |op, _, _, _| match op {
            Op::Write => (save_s * 1e9) as u64,
            _ => 0,
        });
        let outcome = self.execute(clock, Arc::new(data), Arc::new(checkpoints));
        let summary = Summary::new(&outcome);
        (outcome, summary)
    }

    /// The same on a storage that answers at once but for `limit`, which is the whole job's.
    pub(crate) fn run_limited(self, limit: &str) -> (Outcome, Summary) {
        let clock = Clock::simulated();
        let limit = Limit::parse(limit).unwrap();
        let pace = Arc::new(RateLimiter::new(limit, clock.clone()));
        let store = || -> Arc<dyn Store> {
            Arc::new(Throttled::new(Memory::new(clock.clone()), Arc::clone(&pace)))
        };
        let outcome = self.execute(clock.clone(), store(), store());
        let summary = Summary::new(&outcome);
        (outcome, summary)
    }

    pub(crate) fn execute(
        self,
        clock: Clock,
        data: Arc<dyn Store>,
        checkpoints: Arc<dyn Store>,
    ) -> Outcome {
        let out = tempfile::tempdir().unwrap();
        let mut plan = Plan::new(&self.workload, self.ranks, self.semantics).unwrap();
        plan.framework = self.cost.map_or(FrameworkPlan::Ignored, burnt);
        let run = Run {
            clock,
            stop: self.stop,
            observer: self.observer,
            log_level: Level::Output,
            random_seed: 77,
            ..Run::new(self.workload, plan, data, checkpoints)
        };
        let folder = OutputFolder::claim(out.path(), Existing::Refuse).unwrap();
        run.prepare().unwrap().execute(&folder).unwrap().outcome
    }
}

fn burnt(cost: FrameworkCost) -> FrameworkPlan {
    FrameworkPlan::Burnt(Burnt {
        cost: Arc::new(cost),
        per_sample_ns: 2 * S,
        held_bytes: 0,
        file: "made up".into(),
        source: "nobody".into(),
        caution: None,
    })
}

/// `train/img_3_of_8.npy` -> 3
pub(crate) fn file_number(key: &str) -> u64 {
    key.split('_').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
