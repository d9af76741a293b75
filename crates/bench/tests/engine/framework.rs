//! Runs in which the framework itself takes time.

use feedline_bench::{Assessment, Cause, Circumstances, Split, Verdict};
use feedline_loader::{Curve, FrameworkCost, HandOver, Often, WorkerStart};

use crate::scenario::{S, Scenario};
use crate::{check_rates, split_s};

const NS: f64 = S as f64;

fn with(files: u64, cost: FrameworkCost) -> Scenario {
    Scenario { cost: Some(cost), ..Scenario::new(files) }
}

/// A split of storage, framework and compute seconds.
fn split(storage: f64, framework: f64, compute: f64) -> Split {
    Split { framework_ns: (framework * 1e9).round() as u64, ..split_s(storage, 0.0, 0.0, compute) }
}

#[test]
fn the_interpreter_holds_the_accelerator_back() {
    // Samples of 64 bytes: 0.5 s to open, then 1 s + 64 / 128 s in the interpreter. Batch k is ready
    // at 2 (k + 1), so steps end at 3, 5, 7, 9, as when storage takes 2 s. The first wait is
    // 0.5 s of storage and 1.5 s of framework; later batches have 1 s of work behind them when they
    // are asked for, and what is left of them is framework.
    let sample = Curve::new([(0, NS), (128, 2.0 * NS)]);
    let cost = FrameworkCost { sample, ..FrameworkCost::default() };
    let (outcome, summary) = Scenario { open_s: |_| 0.5, ..with(4, cost) }.run();
    check_rates(&summary, 50.0, 2.0 / 6.0, 400.0 / 9.0, 4.0 / 9.0);
    assert_eq!(summary.strict.split, split(0.5, 1.5 + 3.0, 4.0));
    let workload = feedline_workload::Workload::default();
    let assessment = Assessment::new(Circumstances::default(), &workload, &outcome, &summary);
    let Verdict::Starved { by, share_percent, .. } = assessment.verdict else {
        panic!("{:?}", assessment.verdict)
    };
    assert_eq!((by, share_percent), (Cause::Framework, 50.0));
    // 4 samples of 0.5 s; what the framework takes is the plan's.
    let each = assessment.per_sample.unwrap();
    assert_eq!((each.framework_s, each.storage_s), (2.0, 0.5));
}

#[test]
fn two_workers_share_the_interpreters_work() {
    // 2 s a batch, two workers: batches are ready at 2, 2, 4, 4. Waits: 2, 0, then batches 2 and 3
    // are ready at 4, when the second step ends.
    let cost = FrameworkCost { sample: Curve::constant(2.0 * NS), ..FrameworkCost::default() };
    let mut scenario = with(4, cost);
    scenario.workload.reader.read_threads = 2;
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split(0.0, 2.0, 4.0));
}

#[test]
fn handing_over_is_paid_by_the_batchs_bytes_on_both_sides() {
    // Two samples of 64 bytes a batch, 128 bytes: 1 s in the worker, 0.5 s in the consumer. The
    // worker is ready in time, but the consumer's own part is in every step: 3 x (0.5 + 1) + 1.
    let hand_over = HandOver {
        collate: Curve::constant(9.0 * NS),
        worker: Curve::new([(0, 0.0), (128, NS)]),
        consumer: Curve::new([(64, 0.0), (128, 0.5 * NS)]),
    };
    let mut scenario = with(6, FrameworkCost { hand_over, ..FrameworkCost::default() });
    scenario.workload.reader.batch_size = 2;
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split(0.0, 1.0 + 1.5, 3.0));
}

#[test]
fn without_workers_a_batch_is_only_put_together() {
    let hand_over = HandOver {
        collate: Curve::constant(0.25 * NS),
        worker: Curve::constant(9.0 * NS),
        consumer: Curve::constant(9.0 * NS),
    };
    let start = WorkerStart { consumer_ns: 9 * S, worker_ns: 9 * S, often: Often::EachEpoch };
    let sample = Curve::constant(NS);
    let mut scenario = with(3, FrameworkCost { sample, hand_over, start, tensor_bytes: None });
    scenario.workload.reader.read_threads = 0;
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split(0.0, 3.0 * 1.25, 3.0));
}

#[test]
fn workers_start_for_every_epoch_or_once() {
    // Two workers: 2 x 0.5 s in the consumer, then 0.25 s in each; two epochs.
    let run = |often| {
        let start = WorkerStart { consumer_ns: S / 2, worker_ns: S / 4, often };
        let mut scenario = with(4, FrameworkCost { start, ..FrameworkCost::default() });
        scenario.workload.reader.read_threads = 2;
        scenario.workload.train.epochs = 2;
        scenario.run().1.strict.split
    };
    assert_eq!(run(Often::EachEpoch), split(0.0, 2.5, 8.0));
    assert_eq!(run(Often::Once), split(0.0, 1.25, 8.0));
}

#[test]
fn ranks_that_pay_the_same_do_not_wait_for_each_other() {
    // Both ranks pay 2 s a batch.
    let cost = FrameworkCost { sample: Curve::constant(2.0 * NS), ..FrameworkCost::default() };
    let (_, summary) = Scenario { ranks: 2, ..with(8, cost) }.run();
    // Per rank: 2 + 1 + 1 + 1 of waiting, 4 of compute.
    assert_eq!(summary.strict.split, split(0.0, 10.0, 8.0));
}
