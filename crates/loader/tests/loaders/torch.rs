//! The loader against PyTorch's rules, under simulated time.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_loader::{
    DataSet, Deal, EpochOrder, LoadError, SampleSpace, Shuffle, TorchConfig, TorchLoader,
};
use feedline_store::Memory;

use crate::bed::{S, npy_files as data, share};

fn loader(clock: &Clock, data: &DataSet, workers: u32, prefetch: u64) -> TorchLoader {
    let config = TorchConfig { workers, prefetch, batch: 1, deal: Deal::InTurn };
    TorchLoader::new(clock, data, config, |_| Box::new(|| 0))
}

fn order(files: u64) -> EpochOrder {
    EpochOrder::new(SampleSpace { files, per_file: 1 }, Shuffle::None, 0)
}

#[test]
fn outstanding_batches_are_a_multiple_of_the_workers() {
    let outstanding = |workers, prefetch| {
        TorchConfig { workers, prefetch, batch: 1, deal: Deal::InTurn }.outstanding()
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
    let share = share(&order, 0, 8);
    loader(&clock, &data, 2, 4).epoch(share, |batches| {
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
    let share = share(&order, 0, 6);
    let times = loader(&clock, &data, 2, 2).epoch(share, |batches| {
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
    let share = share(&order, 3, 2);
    loader(&clock, &data, 1, 2)
        .epoch(share, |batches| while batches.next_batch().unwrap().is_some() {});
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
    let share = share(&order, 0, 4);
    let error =
        loader(&clock, &data, 1, 2).epoch(share, |batches| batches.next_batch().unwrap_err());
    let LoadError::Sample { file, index, source } = error else { panic!("{error}") };
    assert_eq!((file.as_str(), index), ("memory:0", 0));
    assert_eq!(source.to_string(), "not an npy: begins with [6e, 6f, 74, 20, 61, 20] at byte 0");
}

#[test]
fn a_panicking_reader_ends_the_epoch_instead_of_hanging() {
    let clock = Clock::real();
    let (data, _) = data(&clock, 4, |_| 0);
    let config = TorchConfig { workers: 2, prefetch: 2, batch: 1, deal: Deal::InTurn };
    let mut loader = TorchLoader::new(&clock, &data, config, |worker| {
        Box::new(move || if worker == 1 { panic!("on purpose") } else { 0 })
    });
    let order = order(4);
    let share = share(&order, 0, 4);
    let error = loader.epoch(share, |batches| {
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
    let share = share(&order, 0, 4);
    let error =
        loader(&clock, &data, 1, 2).epoch(share, |batches| batches.next_batch().unwrap_err());
    assert!(matches!(error, LoadError::Stopped));
    assert_eq!(*opens.lock().unwrap(), []);
}

#[test]
fn tf_generators_walk_through_blocks_of_their_own() {
    // Five batches for two threads: thread 0 has places 0-2, thread 1 places 3-4; batches are taken
    // from the threads in turn, so the third and fifth come from thread 0 again.
    let clock = Clock::simulated();
    let (data, opens) = data(&clock, 5, |_| 1);
    let config = TorchConfig { workers: 2, prefetch: 1, batch: 1, deal: Deal::InBlocks };
    assert_eq!(config.outstanding(), 3, "one of each thread and the prefetched one");
    let order = order(5);
    TorchLoader::new(&clock, &data, config, |_| Box::new(|| 0))
        .epoch(share(&order, 0, 5), |batches| while batches.next_batch().unwrap().is_some() {});
    let mut opens = opens.lock().unwrap().clone();
    opens.sort_unstable();
    assert_eq!(opens, [(0, 0), (0, 3), (1, 1), (1, 4), (2, 2)]);
}
