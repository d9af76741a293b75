//! Jobs of several processes under simulated time: they give, to the nanosecond, what one process
//! gives with as many ranks.

use std::sync::{Arc, Mutex};

use feedline_bench::{
    BenchError, Existing, Level, Outcome, OutputFolder, Plan, Run, Semantics, Summary, Team,
};
use feedline_clock::Clock;
use feedline_ranks::rehearse;
use feedline_store::{FaultInjecting, Memory, Op, Store};
use feedline_workload::{DataLoader, Framework, SampleFormat, ShuffleMode, TimeSpec, Workload};

const RANKS: u32 = 4;

/// Sixteen files to train on, four to evaluate with; a checkpoint of every rank after each epoch.
fn workload() -> Workload {
    let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
    workload.dataset.format = SampleFormat::find("npy").unwrap();
    workload.dataset.num_files_train = 16;
    workload.dataset.num_files_eval = 4;
    workload.dataset.record_length_bytes = 64.0;
    workload.workflow.generate_data = true;
    workload.workflow.evaluation = true;
    workload.workflow.checkpoint = true;
    workload.model.parallelism.zero_stage = 1;
    workload.reader.data_loader = DataLoader::Pytorch;
    workload.reader.sample_shuffle = ShuffleMode::Seed;
    workload.train.epochs = 2;
    workload.train.computation_time = TimeSpec::Constant { mean: 1.0 };
    workload.evaluation.eval_time = TimeSpec::Constant { mean: 0.5 };
    workload
}

/// What all processes share.
struct World {
    clock: Clock,
    data: Arc<dyn Store>,
    checkpoints: Arc<dyn Store>,
    /// Data files that were opened.
    opened: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// File `n` takes `n` tenths of a second to be opened.
    fn new() -> Self {
        let clock = Clock::simulated();
        let opened: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&opened);
        let data = Memory::new(clock.clone()).with_latency(move |op, key, _, _| {
            if op != Op::Open || !key.ends_with(".npy") {
                return 0;
            }
            seen.lock().unwrap().push(key.to_owned());
            let number = key.split('_').nth(1).and_then(|number| number.parse::<u64>().ok());
            100_000_000 * number.unwrap_or(0)
        });
        let checkpoints = Memory::new(clock.clone());
        Self { data: Arc::new(data), checkpoints: Arc::new(checkpoints), clock, opened }
    }

    /// Runs the workload over processes on these machines; what each of them came to.
    fn run(&self, nodes: &[u32]) -> Vec<Result<Option<Outcome>, BenchError>> {
        let results = Mutex::new(Vec::new());
        self.clock.scope(|scope| {
            for link in rehearse(&self.clock, nodes) {
                let team = Team::new(Arc::new(link), RANKS).unwrap();
                let results = &results;
                scope
                    .spawn(format!("process {}", team.process()), move || {
                        let result = self.process(&team);
                        if let Err(error) = &result {
                            team.abort(&error.to_string());
                        }
                        results.lock().unwrap().push((team.process(), result));
                    })
                    .unwrap();
            }
        });
        let mut results = results.into_inner().unwrap();
        results.sort_by_key(|(process, _)| *process);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn process(&self, team: &Team) -> Result<Option<Outcome>, BenchError> {
        let workload = workload();
        let plan = Plan::new(&workload, RANKS, Semantics::Feedline).unwrap();
        let (data, checkpoints) = (Arc::clone(&self.data), Arc::clone(&self.checkpoints));
        let run = Run {
            team: team.clone(),
            clock: self.clock.clone(),
            log_level: Level::Output,
            random_seed: 77,
            ..Run::new(workload, plan, data, checkpoints)
        };
        let run = run.prepare()?;
        if !team.leads() {
            return run.assist().map(|()| None);
        }
        let out = tempfile::tempdir().unwrap();
        let folder = OutputFolder::claim(out.path(), Existing::Refuse)?;
        run.execute(&folder).map(|finished| Some(finished.outcome))
    }
}

/// The outcome of a job that went well, and the files that it opened, sorted.
fn outcome(nodes: &[u32]) -> (Outcome, Vec<String>) {
    let world = World::new();
    let mut results = world.run(nodes);
    let first = results.remove(0).unwrap().expect("process 0 has the outcome");
    for other in results {
        assert!(other.unwrap().is_none());
    }
    let mut opened = world.opened.lock().unwrap().clone();
    opened.sort();
    (first, opened)
}

#[test]
fn a_job_measures_the_same_in_one_process_and_in_many() {
    let (alone, opened) = outcome(&[0]);
    let summary = Summary::new(&alone);
    // Two epochs of four steps on every rank; the ranks wait for one another at each.
    assert_eq!((summary.strict.steps, alone.ranks.len()), (8, 4));
    // Every file once in each of two epochs.
    let train = (0..16).flat_map(|n| vec![format!("train/img_{n:02}_of_16.npy"); 2]);
    let valid = (0..4).flat_map(|n| vec![format!("valid/img_{n}_of_4.npy"); 2]);
    let expected: Vec<_> = train.chain(valid).collect();
    assert_eq!(opened, expected);
    for nodes in [&[0, 0][..], &[0, 1, 0, 1], &[0, 0, 1]] {
        let (spread, opened) = outcome(nodes);
        assert_eq!(Summary::new(&spread), summary, "{nodes:?}");
        let hosts = *nodes.iter().max().unwrap() as usize + 1;
        assert_eq!((spread.hosts.len(), spread.ranks.len()), (hosts, 4));
        assert_eq!(opened, expected, "{nodes:?}");
        assert_eq!(spread.storage_counts(), alone.storage_counts(), "{nodes:?}");
        assert_eq!(spread.generated.unwrap().files, 20);
        assert_eq!(spread.generated.unwrap().bytes, alone.generated.unwrap().bytes);
    }
}

#[test]
fn checkpoints_are_those_of_all_ranks() {
    for nodes in [&[0][..], &[0, 1, 1]] {
        let world = World::new();
        assert!(world.run(nodes).into_iter().all(|result| result.is_ok()));
        for (epoch, rank) in [(1, 0), (1, 3), (2, 1), (2, 2)] {
            let key = format!("global_epoch{epoch}_step4/model_states-{rank}.pt");
            assert_eq!(world.checkpoints.open(&key).unwrap().len().unwrap(), 11_817, "{key}");
        }
    }
}

#[test]
fn q39_a_process_that_fails_ends_the_others() {
    // The 30th file that is opened cannot be: in the second epoch, on whichever rank.
    let mut world = World::new();
    world.data = Arc::new(FaultInjecting::new(Arc::clone(&world.data), Op::Open, 30, 5));
    let results = world.run(&[0, 1, 1]);
    let failed = |result: &Result<_, BenchError>| matches!(result, Err(BenchError::Load(_)));
    let told = |result: &Result<_, BenchError>| matches!(result, Err(BenchError::Aborted(news)) if news.reason.contains("img_"));
    assert_eq!(results.iter().filter(|result| failed(result)).count(), 1);
    assert_eq!(results.iter().filter(|result| told(result)).count(), 2);
}

#[test]
fn q39_a_process_that_cannot_write_its_files_ends_the_others() {
    let mut world = World::new();
    world.data = Arc::new(FaultInjecting::new(Arc::clone(&world.data), Op::Write, 9, 28));
    let results = world.run(&[0, 0, 0]);
    let aborted = |result: &Result<_, _>| matches!(result, Err(BenchError::Aborted(_)));
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 3);
    assert_eq!(results.iter().filter(|result| aborted(result)).count(), 2);
}
