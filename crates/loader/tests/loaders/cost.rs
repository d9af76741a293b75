//! What the framework costs, burnt where it arises: every time is worked out by hand beside it.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_dataset::{DataSet, EpochOrder, SampleSpace, Shuffle};
use feedline_loader::{
    BatchAssignment, Curve, Epoch, FrameworkCost, HandOver, Often, ReaderSharding, StreamConfig,
    StreamLoader, TorchConfig, TorchLoader, Wait, WorkerStart,
};

use crate::bed::{Consume, S, npy_files, record_files, share};

const NS: f64 = S as f64;

/// A data set, and what the framework costs besides.
struct Costly {
    data: DataSet,
    cost: Arc<FrameworkCost>,
}

fn torch(clock: &Clock, costly: &Costly, workers: u32) -> TorchLoader {
    let config = TorchConfig { workers, prefetch: 0, deal: BatchAssignment::InTurn, shuffle: None };
    TorchLoader::new(clock, &costly.data, config, |_| Box::new(|| 0)).with_cost(&costly.cost)
}

fn order(files: u64) -> EpochOrder {
    EpochOrder::new(SampleSpace { files, per_file: 1 }, Shuffle::None, 0)
}

/// Files of 64 bytes that open in `open_s` seconds.
fn data(clock: &Clock, files: u64, open_s: fn(u64) -> u64, cost: FrameworkCost) -> Costly {
    Costly { data: npy_files(clock, files, open_s).0, cost: Arc::new(cost) }
}

/// Seconds of storage, framework and the rest of every wait, with `compute_s` between them.
fn waits(clock: &Clock, batches: &mut Epoch, compute_s: u64) -> Vec<(u64, u64, u64)> {
    let mut waits = Vec::new();
    while let Some(batch) = batches.next_batch().unwrap() {
        let Wait { storage_ns, framework_ns, decode_ns, worker_ns, .. } = batch.wait;
        waits.push((storage_ns / S, framework_ns / S, (decode_ns + worker_ns) / S));
        clock.sleep(compute_s * S);
    }
    waits
}

#[test]
fn a_sample_costs_by_its_bytes() {
    // 1 s of storage, then 1 s + 64 bytes of 1/64 s each. The next batch is begun when the first one
    // is ready, so 1 s of it has passed when it is asked for; prefetch 2.
    let clock = Clock::simulated();
    let sample = Curve::new([(0, NS), (64, 2.0 * NS)]);
    let data = data(&clock, 3, |_| 1, FrameworkCost { sample, ..FrameworkCost::default() });
    let order = order(3);
    let share = share(&order, 1, 3);
    let found =
        torch(&clock, &data, 1).epoch(share.clone()).consume(|batches| waits(&clock, batches, 1));
    assert_eq!(found, [(1, 2, 0), (0, 2, 0), (0, 2, 0)]);
    // Without workers all of it is waited for.
    let found =
        torch(&clock, &data, 0).epoch(share.clone()).consume(|batches| waits(&clock, batches, 1));
    assert_eq!(found, [(1, 2, 0); 3]);
}

#[test]
fn handing_over_costs_the_worker_and_the_consumer_by_the_batchs_bytes() {
    // Batches of 2 files of 64 bytes. The worker takes 1 s a batch of 128 bytes, the consumer 2 s,
    // which is longer: the worker has the next batch ready by then.
    let clock = Clock::simulated();
    let hand_over = HandOver {
        collate: Curve::new([(0, 0.0), (128, 3.0 * NS)]),
        worker: Curve::new([(0, 0.0), (256, 2.0 * NS)]),
        consumer: Curve::new([(128, 2.0 * NS), (256, 9.0 * NS)]),
    };
    let cost = FrameworkCost { hand_over, ..FrameworkCost::default() };
    let set = data(&clock, 6, |_| 0, cost.clone());
    let order = order(6);
    let share = share(&order, 2, 3);
    let found =
        torch(&clock, &set, 1).epoch(share.clone()).consume(|batches| waits(&clock, batches, 0));
    assert_eq!(found, [(0, 3, 0), (0, 2, 0), (0, 2, 0)]);
    // Without workers the batch is put together and stays where it is.
    let found =
        torch(&clock, &set, 0).epoch(share.clone()).consume(|batches| waits(&clock, batches, 0));
    assert_eq!(found, [(0, 3, 0); 3]);
    // Tensors that are smaller than their files cost what they are: 2 x 64 / 2 bytes, 0.5 s and,
    // on the line through (128, 2) and (256, 9), nothing.
    let small = data(&clock, 6, |_| 0, FrameworkCost { tensor_bytes: Some(32), ..cost });
    let begin = clock.now();
    torch(&clock, &small, 1).epoch(share.clone()).consume(|batches| waits(&clock, batches, 0));
    assert_eq!(clock.now() - begin, 3 * S / 2);
}

#[test]
fn a_worker_is_told_to_read_on_when_its_batch_was_received() {
    // One worker, two batches ahead, 1 s a file, 10 s to receive a batch. Batches 0 and 1 are ready
    // at 1 and 2; 0 is received at 11, and only then is batch 2 begun.
    let clock = Clock::simulated();
    let hand_over = HandOver { consumer: Curve::constant(10.0 * NS), ..HandOver::default() };
    let (set, opens) = npy_files(&clock, 4, |_| 1);
    let cost = FrameworkCost { hand_over, ..FrameworkCost::default() };
    let set = Costly { data: set, cost: Arc::new(cost) };
    let order = order(4);
    let share = share(&order, 1, 4);
    let found =
        torch(&clock, &set, 1).epoch(share.clone()).consume(|batches| waits(&clock, batches, 0));
    assert_eq!(found, [(1, 10, 0), (0, 10, 0), (0, 10, 0), (0, 10, 0)]);
    assert_eq!(*opens.lock().unwrap(), [(0, 0), (1, 1), (11, 2), (21, 3)]);
}

#[test]
fn workers_are_started_for_every_epoch_or_once() {
    // Two workers: 2 x 3 s in the consumer, then 2 s in both at a time, then 1 s of storage.
    let clock = Clock::simulated();
    let start = |often| {
        let start = WorkerStart { consumer_ns: 3 * S, worker_ns: 2 * S, often };
        FrameworkCost { start, ..FrameworkCost::default() }
    };
    let order = order(2);
    let share = share(&order, 1, 2);
    let check = |often, second: [(u64, u64, u64); 2]| {
        let mut loader = torch(&clock, &data(&clock, 2, |_| 1, start(often)), 2);
        let found = loader.epoch(share.clone()).consume(|batches| waits(&clock, batches, 5));
        assert_eq!(found, [(1, 8, 0), (0, 0, 0)], "{often:?}");
        let found = loader.epoch(share.clone()).consume(|batches| waits(&clock, batches, 5));
        assert_eq!(found, second, "{often:?}");
    };
    check(Often::EachEpoch, [(1, 8, 0), (0, 0, 0)]);
    check(Often::Once, [(1, 0, 0), (0, 0, 0)]);
}

#[test]
fn finished_batches_hold_memory_until_the_consumer_drops_them() {
    // Two workers, four batches ahead of two tensors of 1000 bytes, and one with the consumer.
    let clock = Clock::simulated();
    let hand_over = HandOver { worker: Curve::constant(1.0), ..HandOver::default() };
    let tensor_bytes = Some(1000);
    let cost = FrameworkCost { hand_over, tensor_bytes, ..FrameworkCost::default() };
    let set = data(&clock, 24, |_| 0, cost.clone());
    let order = order(24);
    let mut loader = torch(&clock, &set, 2);
    loader.epoch(share(&order, 2, 12)).consume(|batches| waits(&clock, batches, 5));
    assert_eq!(loader.held_bytes_max(), (4 + 1) * 2 * 1000);
    // A consumer that is always waiting has one batch, and drops it when it has the next.
    let slow = FrameworkCost { sample: Curve::constant(NS), ..cost.clone() };
    let mut loader = torch(&clock, &data(&clock, 24, |_| 0, slow), 1);
    loader.epoch(share(&order, 2, 12)).consume(|batches| waits(&clock, batches, 0));
    assert_eq!(loader.held_bytes_max(), 2 * 2 * 1000);
    // Where nothing is handed over, nothing is held.
    let alone = FrameworkCost { hand_over: HandOver::default(), ..cost };
    let mut loader = torch(&clock, &data(&clock, 24, |_| 0, alone), 2);
    loader.epoch(share(&order, 2, 12)).consume(|batches| waits(&clock, batches, 5));
    assert_eq!(loader.held_bytes_max(), 0);
}

#[test]
fn samples_in_a_row_cost_the_same() {
    // One reader, records that read in no time, 2 s of interpreter each, and a share of 1/2 of the
    // 2 s that a batch of two takes to hand over; 4 s to start, 1 s to receive.
    let clock = Clock::simulated();
    let cost = FrameworkCost {
        sample: Curve::constant(2.0 * NS),
        hand_over: HandOver {
            worker: Curve::constant(2.0 * NS),
            consumer: Curve::constant(NS),
            ..HandOver::default()
        },
        start: WorkerStart { consumer_ns: 3 * S, worker_ns: S, often: Often::EachEpoch },
        tensor_bytes: None,
    };
    let data = record_files(&clock, 1, 6, 0);
    let config = StreamConfig {
        readers: 1,
        parsers: 1,
        prefetch: 1,
        shuffle: None,
        rows: ReaderSharding::ByFile,
    };
    let loader = StreamLoader::new(&clock, &data, config, |_| None);
    let mut loader = loader.with_cost(&Arc::new(cost));
    let order = EpochOrder::new(SampleSpace { files: 1, per_file: 6 }, Shuffle::None, 0);
    let found = loader.epoch(share(&order, 2, 3)).consume(|batches| waits(&clock, batches, 0));
    // 3 + 1 to start, 2 x 3 for the samples, 1 to receive; then 6 - 1 + 1 a batch.
    assert_eq!(found, [(0, 11, 0), (0, 6, 0), (0, 6, 0)]);
}
