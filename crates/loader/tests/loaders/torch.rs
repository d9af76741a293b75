//! The loader against PyTorch's rules, under simulated time.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_dataset::{DataSet, DatasetError, EpochOrder, SampleSpace, Shuffle};
use feedline_loader::{
    BatchAssignment, Dealing, LastBatch, LoadError, Sharding, TorchConfig, TorchLoader,
};
use feedline_store::Memory;

use crate::bed::{Consume, Numbers, S, npy_files as data, record_files, share};

fn loader(clock: &Clock, data: &DataSet, workers: u32, prefetch: u64) -> TorchLoader {
    let config = TorchConfig { workers, prefetch, deal: BatchAssignment::InTurn, shuffle: None };
    TorchLoader::new(clock, data, config, |_| Box::new(|| 0))
}

fn order(files: u64) -> EpochOrder {
    EpochOrder::new(SampleSpace { files, per_file: 1 }, Shuffle::None, 0)
}

#[test]
fn outstanding_batches_are_a_multiple_of_the_workers() {
    let outstanding = |workers, prefetch| {
        TorchConfig { workers, prefetch, deal: BatchAssignment::InTurn, shuffle: None }
            .outstanding()
    };
    assert_eq!(outstanding(4, 2), 4);
    assert_eq!(outstanding(4, 4), 4);
    assert_eq!(outstanding(4, 5), 8);
    assert_eq!(outstanding(1, 2), 2);
    assert_eq!(outstanding(3, 0), 6, "PyTorch's default factor is two");
    assert_eq!(outstanding(0, 2), 0);
}

#[test]
fn workers_stop_at_the_outstanding_limit_until_a_batch_is_taken() {
    // Two workers, four batches ahead, one second a file. Nothing is taken for ten seconds: files
    // 0-3 are read at 0, 0, 1, 1; each take lets one more begin, by the worker whose turn it is.
    let clock = Clock::simulated();
    let (data, opens) = data(&clock, 8, |_| 1);
    let order = order(8);
    let share = share(&order, 1, 8);
    loader(&clock, &data, 2, 4).epoch(share).consume(|batches| {
        clock.sleep(10 * S);
        for _ in 0..3 {
            batches.next_batch().unwrap().unwrap();
            clock.sleep(10 * S);
        }
    });
    let mut opens = opens.lock().unwrap().clone();
    opens.sort_unstable();
    assert_eq!(opens, [(0, 0), (0, 1), (1, 2), (1, 3), (10, 4), (20, 5), (30, 6)]);
}

#[test]
fn batches_come_in_order_whoever_is_faster() {
    let clock = Clock::simulated();
    let (data, _) = data(&clock, 6, |file| if file % 2 == 0 { 5 } else { 1 });
    let order = order(6);
    let share = share(&order, 1, 6);
    let times = loader(&clock, &data, 2, 2).epoch(share).consume(|batches| {
        let mut times = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            times.push((clock.now() / S, batch.samples, batch.sample_bytes));
        }
        times
    });
    let (one, bytes) = (1, 64);
    assert_eq!(
        times,
        [5, 5, 10, 10, 15, 15].map(|second| (second, one, bytes)),
        "odd batches wait for the even one before them"
    );
}

#[test]
fn a_share_begins_at_its_first_place() {
    let clock = Clock::simulated();
    let (data, opens) = data(&clock, 6, |_| 0);
    let order = order(6);
    let mut share = share(&order, 1, 2);
    share.dealing = Dealing { ranks: 2, sharding: Sharding::Blocked, ..share.dealing };
    share.rank = 1;
    loader(&clock, &data, 1, 2)
        .epoch(share)
        .consume(|batches| while batches.next_batch().unwrap().is_some() {});
    assert_eq!(*opens.lock().unwrap(), [(0, 3), (0, 4)]);
}

#[test]
fn a_bad_file_is_an_error_of_its_own_batch_and_names_file_and_byte() {
    let clock = Clock::simulated();
    let (data, _) = data(&clock, 4, |_| 0);
    let memory = Memory::new(clock.clone());
    memory.put("0", &b"not a sample at all, whatever its name says"[..]);
    let data = DataSet { store: Arc::new(memory), ..data };
    let order = order(4);
    let share = share(&order, 1, 4);
    let error = loader(&clock, &data, 1, 2)
        .epoch(share)
        .consume(|batches| batches.next_batch().unwrap_err());
    let LoadError::Sample(DatasetError::Sample { file, index, source }) = error else {
        panic!("{error}")
    };
    assert_eq!((file.as_str(), index), ("memory:0", 0));
    assert_eq!(source.to_string(), "not an npy: begins with [6e, 6f, 74, 20, 61, 20] at byte 0");
}

#[test]
fn a_panicking_reader_ends_the_epoch_instead_of_hanging() {
    let clock = Clock::real();
    let (data, _) = data(&clock, 4, |_| 0);
    let config =
        TorchConfig { workers: 2, prefetch: 2, deal: BatchAssignment::InTurn, shuffle: None };
    let mut loader = TorchLoader::new(&clock, &data, config, |worker| {
        Box::new(move || if worker == 1 { panic!("on purpose") } else { 0 })
    });
    let order = order(4);
    let share = share(&order, 1, 4);
    let error = loader.epoch(share).consume(|batches| {
        batches.next_batch().unwrap().unwrap();
        batches.next_batch().unwrap_err()
    });
    assert_eq!(error.to_string(), "the reader of batch 1 panicked");
}

#[test]
fn a_stop_ends_reading_between_two_samples() {
    let clock = Clock::simulated();
    let (data, opens) = data(&clock, 4, |_| 1);
    data.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let order = order(4);
    let share = share(&order, 1, 4);
    let error = loader(&clock, &data, 1, 2)
        .epoch(share)
        .consume(|batches| batches.next_batch().unwrap_err());
    assert!(matches!(error, LoadError::Stopped));
    assert_eq!(*opens.lock().unwrap(), []);
}

#[test]
fn tf_generators_walk_through_blocks_of_their_own() {
    // Five batches for two threads: thread 0 has places 0-2, thread 1 places 3-4; batches are taken
    // from the threads in turn, so the third and fifth come from thread 0 again.
    let clock = Clock::simulated();
    let (data, opens) = data(&clock, 5, |_| 1);
    let config =
        TorchConfig { workers: 2, prefetch: 1, deal: BatchAssignment::InBlocks, shuffle: None };
    assert_eq!(config.outstanding(), 3, "one of each thread and the prefetched one");
    let order = order(5);
    TorchLoader::new(&clock, &data, config, |_| Box::new(|| 0))
        .epoch(share(&order, 1, 5))
        .consume(|batches| while batches.next_batch().unwrap().is_some() {});
    let mut opens = opens.lock().unwrap().clone();
    opens.sort_unstable();
    assert_eq!(opens, [(0, 0), (0, 3), (1, 1), (1, 4), (2, 2)]);
}

/// What a rank's workers make of shards: the samples of each batch, and the sum of its records' numbers.
fn shards(
    (files, per_file): (u64, u64),
    batch: u64,
    config: TorchConfig,
    dealing: impl FnOnce(Dealing) -> Dealing,
) -> Vec<(u64, u64)> {
    let clock = Clock::simulated();
    let data = record_files(&clock, files, per_file, 0);
    let order = EpochOrder::new(SampleSpace { files, per_file }, Shuffle::None, 0);
    let mut share = share(&order, batch, 0);
    let sharding = Sharding::WorkerFiles { workers: u64::from(config.workers.max(1)) };
    share.dealing = dealing(Dealing { sharding, ..share.dealing });
    share.batches = share.dealing.steps();
    TorchLoader::new(&clock, &data, config, |_| Box::new(|| 0)).epoch(share).consume(|batches| {
        let next = || batches.next_batch().unwrap();
        std::iter::from_fn(next).map(|batch| (batch.samples, batch.sample_bytes)).collect()
    })
}

const SHARDS: TorchConfig =
    TorchConfig { workers: 2, prefetch: 2, deal: BatchAssignment::InTurn, shuffle: None };

#[test]
fn a_batch_of_shards_is_one_workers() {
    // Three shards of three records: worker 0 has shards 0 and 2, worker 1 shard 1. Batches of two:
    // worker 0 makes [0, 1], [2, 200], [201, 202], worker 1 [100, 101], [102]; then it has ended.
    let came = shards((3, 3), 2, SHARDS, |dealing| dealing);
    assert_eq!(came, [(2, 1), (2, 201), (2, 202), (1, 102), (2, 403)]);
    // Without workers all shards are the consumer's.
    let inline = TorchConfig { workers: 0, ..SHARDS };
    let came = shards((3, 3), 2, inline, |dealing| dealing);
    assert_eq!(came, [(2, 1), (2, 102), (2, 203), (2, 401), (1, 202)]);
}

#[test]
fn a_worker_without_a_shard_makes_no_batch() {
    let config = TorchConfig { workers: 4, ..SHARDS };
    let came = shards((2, 3), 2, config, |dealing| dealing);
    assert_eq!(came, [(2, 1), (2, 201), (1, 2), (1, 102)]);
}

#[test]
fn every_worker_drops_its_own_last_batch() {
    let drop = |dealing| Dealing { last_batch: LastBatch::Drop, ..dealing };
    assert_eq!(shards((2, 3), 2, SHARDS, drop), [(2, 1), (2, 201)]);
}

#[test]
fn the_shuffle_buffer_of_shards_is_the_workers() {
    // Worker 0 has shards 0 and 2, worker 1 has 1 and 3: whatever the buffers do, even batches hold
    // records of even shards, and nothing is lost.
    let config = TorchConfig { shuffle: Some(3), ..SHARDS };
    let came = shards((4, 4), 1, config, |dealing| dealing);
    for (k, (samples, record)) in (0..).zip(&came) {
        assert_eq!((*samples, record / 100 % 2), (1, k % 2));
    }
    let mut records: Vec<u64> = came.iter().map(|&(_, record)| record).collect();
    assert_ne!(records[..3], [0, 100, 1], "this seed changes the order");
    records.sort_unstable();
    let expected = (0..4).flat_map(|shard| (0..4).map(move |index| 100 * shard + index));
    assert_eq!(records, expected.collect::<Vec<u64>>());
}

/// What PyTorch's loader makes of shards, written down again: every worker chunks the records of its
/// shards; the workers take turns until all have ended. Samples and sum of the records of each batch.
fn turns(
    (files, per_file): (u64, u64),
    (rank, ranks): (u64, u64),
    workers: u64,
    (batch, last_batch): (u64, LastBatch),
) -> Vec<(u64, u64)> {
    let mine: Vec<u64> = (0..files).filter(|file| file % ranks == rank).collect();
    let mut rows: Vec<std::collections::VecDeque<(u64, u64)>> = (0..workers)
        .map(|worker| {
            let shards = mine.iter().skip(worker as usize).step_by(workers as usize);
            let records: Vec<u64> = shards
                .flat_map(|file| (0..per_file).map(move |index| 100 * file + index))
                .collect();
            let chunks = records.chunks(batch as usize);
            let kept =
                |chunk: &&[u64]| last_batch == LastBatch::Keep || chunk.len() as u64 == batch;
            chunks.filter(kept).map(|chunk| (chunk.len() as u64, chunk.iter().sum())).collect()
        })
        .collect();
    let mut all = Vec::new();
    while rows.iter().any(|row| !row.is_empty()) {
        all.extend(rows.iter_mut().filter_map(std::collections::VecDeque::pop_front));
    }
    all
}

#[test]
fn any_shards_are_dealt_to_ranks_and_workers_as_torch_deals_them() {
    let mut numbers = Numbers(4);
    for _ in 0..60 {
        let set = (1 + numbers.below(12), 1 + numbers.below(7));
        let (ranks, workers, batch) =
            (1 + numbers.below(3), numbers.below(4), 1 + numbers.below(5));
        let last_batch = [LastBatch::Keep, LastBatch::Drop][numbers.below(2) as usize];
        let made = |rank| turns(set, (rank, ranks), workers.max(1), (batch, last_batch));
        let steps = (0..ranks).map(|rank| made(rank).len()).min().unwrap();
        let config = TorchConfig { workers: workers as u32, ..SHARDS };
        let came = shards(set, batch, config, |dealing| Dealing { ranks, last_batch, ..dealing });
        let case = (set, ranks, workers, batch, last_batch);
        assert_eq!(came, made(0)[..steps], "{case:?}");
    }
}
