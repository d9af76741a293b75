//! The client's self-test under simulated time, where work costs only what preprocessing says.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{ACCELERATORS_MAX, BenchError, Bound, Burnt, Ceiling, Client, FrameworkPlan};
use feedline_clock::Clock;
use feedline_loader::{Curve, FrameworkCost, Often, WorkerStart};
use feedline_workload::{DataLoader, Framework, SampleFormat, TimeSpec, Workload};

/// One sample a batch, one reader, a second of computing.
fn workload(format: &str) -> Workload {
    let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
    workload.dataset.format = SampleFormat::find(format).unwrap();
    workload.dataset.record_length_bytes = 64.0;
    workload.reader.data_loader = DataLoader::Pytorch;
    workload.train.computation_time = TimeSpec::Constant { mean: 1.0 };
    workload
}

fn measure(workload: &Workload) -> Result<Ceiling, BenchError> {
    measure_with(workload, FrameworkPlan::Ignored)
}

fn measure_with(workload: &Workload, framework: FrameworkPlan) -> Result<Ceiling, BenchError> {
    let folder = tempfile::tempdir().unwrap();
    let client = Client {
        clock: Clock::simulated(),
        folder: &folder.path().join("runs"),
        stop: Arc::new(AtomicBool::new(false)),
        framework,
        seen: &|_| (),
    };
    client.measure(workload)
}

#[test]
fn a_reader_that_takes_longer_than_the_computation_feeds_nobody() {
    // 1.25 s of work on a sample that is needed every second: busy 80 %, and 90 % is the target.
    // A second reader (of the same accelerator) would do; more accelerators do not help.
    let mut slow = workload("npy");
    slow.reader.preprocess_time = TimeSpec::Constant { mean: 1.25 };
    let found = measure(&slow).unwrap();
    assert_eq!((found.accelerators, found.bound), (0, Bound::Readers));
    assert_eq!(found.alone.samples_per_s, 0.8);
    assert_eq!(found.alone.bytes_per_s, 0.8 * 64.0);
    assert_eq!(found.demand_samples_per_s, 1.0);
    let last = found.probes.last().unwrap();
    assert_eq!((last.accelerators, last.au_percent.round()), (1, 80.0));
}

#[test]
fn where_work_costs_nothing_the_search_ends_at_its_limit() {
    // Simulated processors do not run out: half a second of work a sample is enough for any number.
    let mut fast = workload("npz");
    fast.reader.preprocess_time = TimeSpec::Constant { mean: 0.5 };
    fast.dataset.record_length_bytes_stdev = 8.0;
    let found = measure(&fast).unwrap();
    assert_eq!((found.accelerators, found.bound), (ACCELERATORS_MAX, Bound::NotReached));
    assert_eq!(found.alone.samples_per_s, 2.0);
    assert!(found.probes.iter().all(|probe| probe.au_percent == 100.0), "{:?}", found.probes);
}

#[test]
fn files_too_large_for_memory_have_fewer_samples() {
    let mut large = workload("npy");
    large.dataset.record_length_bytes = 1024.0 * 1024.0;
    large.dataset.num_samples_per_file = 1000;
    large.reader.preprocess_time = TimeSpec::Constant { mean: 2.0 };
    let found = measure(&large).unwrap();
    assert_eq!(found.samples_per_file, 64, "64 MiB of 1 MiB each");
    assert_eq!(found.bound, Bound::Readers);
}

#[test]
fn a_stop_ends_the_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client {
        clock: Clock::simulated(),
        folder: &folder.path().join("runs"),
        stop: Arc::new(AtomicBool::new(true)),
        framework: FrameworkPlan::Ignored,
        seen: &|_| (),
    };
    let stopped = client.measure(&workload("npy"));
    assert!(matches!(stopped, Err(BenchError::Stopped)), "{stopped:?}");
}

#[test]
fn the_framework_is_answered_for_beside_our_own_reader() {
    // Our reader takes no time; the framework's takes 1.25 s for a sample that is needed every second.
    let start = WorkerStart { consumer_ns: 1 << 40, worker_ns: 1 << 40, often: Often::EachEpoch };
    let cost = FrameworkCost { sample: Curve::constant(1.25e9), start, ..FrameworkCost::default() };
    let burnt = FrameworkPlan::Burnt(Burnt {
        cost: Arc::new(cost),
        per_sample_ns: 1_250_000_000,
        held_bytes: 0,
        file: "c.json".into(),
        source: "Python 3.11.7".into(),
        caution: None,
    });
    let found = measure_with(&workload("npy"), burnt).unwrap();
    assert_eq!((found.accelerators, found.bound), (ACCELERATORS_MAX, Bound::Framework));
    let framework = found.framework.as_ref().unwrap();
    assert_eq!((framework.accelerators, framework.is_estimate()), (0, false));
    // Workers that take minutes to start are left out: 2 x cpus readers, each 0.8 a second.
    let readers = (2 * found.cpus).max(2);
    assert!((framework.samples_per_s - 0.8 * f64::from(readers)).abs() < 1e-9, "{framework:?}");
    let json = found.to_json("x");
    assert_eq!(json["bound"], "framework");
    assert_eq!(json["framework"]["per_sample_ms"], 1250.0);
    assert_eq!(json["framework"]["estimate"], false);
}
