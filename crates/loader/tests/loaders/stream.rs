//! Loaders that read samples in a row.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_dataset::{DataSet, DatasetError, EpochOrder, SampleSpace, Shuffle};
use feedline_loader::{
    Dealing, Delivered, Epoch, EpochShare, LoadError, Preprocess, ReaderSharding, Sharding,
    StreamConfig, StreamLoader, Wait,
};
use feedline_store::{Memory, Op};

use crate::bed::{Consume, Numbers, S, npy_files, record_files, share};

/// One reader, batches of one, nothing ahead.
const PLAIN: StreamConfig = StreamConfig {
    readers: 1,
    parsers: 1,
    prefetch: 0,
    shuffle: None,
    rows: ReaderSharding::ByFile,
};

fn loader(clock: &Clock, data: &DataSet, config: StreamConfig) -> StreamLoader {
    StreamLoader::new(clock, data, config, |_| None)
}

fn order(files: u64, per_file: u64, shuffle: Shuffle) -> EpochOrder {
    EpochOrder::new(SampleSpace { files, per_file }, shuffle, 3)
}

fn all(batches: &mut Epoch) -> Vec<Delivered> {
    std::iter::from_fn(|| batches.next_batch().unwrap()).collect()
}

/// The records that came, one a batch.
fn records(batches: &mut Epoch) -> Vec<u64> {
    all(batches).iter().map(|batch| batch.sample_bytes).collect()
}

#[test]
fn files_are_interleaved_record_by_record() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 5, 2, 0);
    let order = order(5, 2, Shuffle::None);
    let config = StreamConfig { readers: 2, prefetch: 2, ..PLAIN };
    let came = loader(&clock, &data, config).epoch(share(&order, 1, 10)).consume(records);
    // Two files at a time; the fifth has nobody to take turns with.
    assert_eq!(came, [0, 100, 1, 101, 200, 300, 201, 301, 400, 401]);
}

#[test]
fn shuffled_files_are_still_read_from_front_to_back() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 4, 3, 0);
    let order = order(4, 3, Shuffle::Files);
    let came = loader(&clock, &data, PLAIN).epoch(share(&order, 1, 12)).consume(records);
    assert_ne!(came[0], 0, "this seed moves the first file");
    for file in came.chunks(3) {
        assert_eq!(file, [file[0], file[0] + 1, file[0] + 2]);
    }
}

/// What every rank gets, batch by batch of `batch`, and that no record comes twice.
#[track_caller]
fn shares(
    sharding: Sharding,
    (files, per_file): (u64, u64),
    (ranks, batch): (u64, u64),
    config: StreamConfig,
) -> Vec<Vec<(u64, u64)>> {
    let clock = Clock::simulated();
    let data = record_files(&clock, files, per_file, 0);
    let order = order(files, per_file, Shuffle::None);
    let plain = share(&order, batch, 0);
    let dealing = Dealing { ranks, sharding, ..plain.dealing.clone() };
    let batches = dealing.steps();
    let came = |rank| {
        let share = EpochShare { dealing: dealing.clone(), rank, batches, ..plain.clone() };
        let came = loader(&clock, &data, config).epoch(share).consume(all);
        came.iter().map(|batch| (batch.samples, batch.sample_bytes)).collect::<Vec<_>>()
    };
    (0..ranks).map(came).collect()
}

#[test]
fn q9_ranks_read_files_of_their_own() {
    let config = StreamConfig { readers: 2, ..PLAIN };
    let came = shares(Sharding::Files, (4, 2), (2, 1), config);
    assert_eq!(came[0], [0, 200, 1, 201].map(|record| (1, record)));
    assert_eq!(came[1], [100, 300, 101, 301].map(|record| (1, record)));
}

#[test]
fn the_rank_with_the_fewest_files_ends_the_epoch_for_all() {
    // Six files of three records on four ranks: two files for ranks 0 and 1, one for 2 and 3. Batches
    // of two: ranks 2 and 3 have a full one and one of a single record, the others are cut short.
    let came = shares(Sharding::Files, (6, 3), (4, 2), PLAIN);
    assert_eq!(came[0], [(2, 1), (2, 2 + 400)]);
    assert_eq!(came[1], [(2, 100 + 101), (2, 102 + 500)]);
    assert_eq!(came[2], [(2, 200 + 201), (1, 202)]);
    assert_eq!(came[3], [(2, 300 + 301), (1, 302)]);
}

#[test]
fn records_are_dealt_in_the_order_in_which_they_come() {
    // Three files of three records on two ranks: record by record for one reader; two readers
    // interleave the first two files before they are dealt.
    let came = shares(Sharding::Records, (3, 3), (2, 1), PLAIN);
    assert_eq!(came[0], [0, 2, 101, 200].map(|record| (1, record)));
    assert_eq!(came[1], [1, 100, 102, 201].map(|record| (1, record)));
    let came = shares(Sharding::Records, (3, 3), (2, 1), StreamConfig { readers: 2, ..PLAIN });
    assert_eq!(came[0], [0, 1, 2, 200].map(|record| (1, record)));
    assert_eq!(came[1], [100, 101, 102, 201].map(|record| (1, record)));
}

#[test]
fn records_dealt_behind_a_shuffle_buffer_still_come_once() {
    let config = StreamConfig { shuffle: Some(4), ..PLAIN };
    let came = shares(Sharding::Records, (3, 4), (3, 1), config);
    let mut records: Vec<u64> = came.iter().flatten().map(|&(_, record)| record).collect();
    records.sort_unstable();
    assert_eq!(records, [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]);
}

/// What tf.data makes of files, written down again: a cycle of `readers` files of which each gives a
/// record in turn, an ended one making room for the next file.
fn interleaved(files: &[u64], per_file: u64, readers: usize) -> Vec<u64> {
    let mut waiting = files.iter();
    let mut cycle: Vec<Option<(u64, u64)>> =
        (0..readers).map(|_| waiting.next().map(|&file| (file, 0))).collect();
    let mut all = Vec::new();
    while cycle.iter().any(Option::is_some) {
        for slot in &mut cycle {
            let Some((file, index)) = slot else { continue };
            all.push(100 * *file + *index);
            *index += 1;
            if *index == per_file {
                *slot = waiting.next().map(|&file| (file, 0));
            }
        }
    }
    all
}

#[test]
fn any_files_are_dealt_to_ranks_as_tf_data_deals_them() {
    let mut numbers = Numbers(6);
    for _ in 0..60 {
        let (files, per_file) = (1 + numbers.below(9), 1 + numbers.below(6));
        let (ranks, readers, batch) =
            (1 + numbers.below(4), 1 + numbers.below(3), 1 + numbers.below(4));
        let sharding = [Sharding::Files, Sharding::Records][numbers.below(2) as usize];
        let made = |rank: u64| {
            let listed: Vec<u64> = (0..files)
                .filter(|file| sharding == Sharding::Records || file % ranks == rank)
                .collect();
            let all = interleaved(&listed, per_file, readers as usize);
            let mine: Vec<u64> = match sharding {
                Sharding::Records => {
                    all.into_iter().skip(rank as usize).step_by(ranks as usize).collect()
                }
                _ => all,
            };
            let sums = mine.chunks(batch as usize);
            sums.map(|chunk| (chunk.len() as u64, chunk.iter().sum())).collect::<Vec<(u64, u64)>>()
        };
        let steps = (0..ranks).map(|rank| made(rank).len()).min().unwrap();
        let config = StreamConfig { readers: readers as u32, ..PLAIN };
        let came = shares(sharding, (files, per_file), (ranks, batch), config);
        for (rank, came) in (0..).zip(came) {
            let case = (files, per_file, ranks, readers, batch, sharding);
            assert_eq!(came, made(rank)[..steps], "rank {rank} of {case:?}");
        }
    }
}

#[test]
fn the_shuffle_buffer_is_full_before_the_first_record_leaves_it() {
    // One record a second, a buffer of three: the first comes at 3 s, then one each second; the last
    // two are in the buffer when the file ends.
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 5, S);
    let order = order(1, 5, Shuffle::None);
    let config = StreamConfig { shuffle: Some(3), ..PLAIN };
    let (mut times, mut came) = (Vec::new(), Vec::new());
    loader(&clock, &data, config).epoch(share(&order, 1, 5)).consume(|batches| {
        while let Some(batch) = batches.next_batch().unwrap() {
            times.push(clock.now() / S);
            came.push(batch.sample_bytes);
        }
    });
    assert_eq!(times, [3, 4, 5, 5, 5]);
    assert_ne!(came, [0, 1, 2, 3, 4], "this seed changes the order");
    came.sort_unstable();
    assert_eq!(came, [0, 1, 2, 3, 4]);
}

#[test]
fn readers_run_ahead_only_as_far_as_the_queues_allow() {
    // Batches of two, two of them prefetched, and two samples held by the reader: six records are
    // read while nobody takes any. Each batch taken makes room for two more.
    let clock = Clock::simulated();
    let store = Memory::new(clock.clone());
    let data = DataSet { store: Arc::new(store.clone()), ..record_files(&clock, 1, 100, 0) };
    let bytes = (0..100u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>();
    store.put("0", bytes);
    let order = order(1, 100, Shuffle::None);
    let config = StreamConfig { prefetch: 2, ..PLAIN };
    let mut stream = loader(&clock, &data, config);
    let mut reads = |take: u64| {
        let before = stream.meter().unwrap().op(Op::Read).calls;
        stream.epoch(share(&order, 2, 50)).consume(|batches| {
            clock.sleep(S);
            for _ in 0..take {
                batches.next_batch().unwrap().unwrap();
                clock.sleep(S);
            }
        });
        stream.meter().unwrap().op(Op::Read).calls - before
    };
    assert_eq!(reads(0), 6);
    assert_eq!(reads(3), 12);
}

#[test]
fn a_wait_is_split_at_the_reader_that_comes_last_and_the_parse_step() {
    // A record takes 2 s to read, a batch of one 3 s to parse, one parser, nothing prefetched: the
    // first batch is read until 2 and parsed until 5. Meanwhile nothing more is put together (that
    // happens when it is asked for), so the second batch, read long ago, is parsed from 5 to 8.
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 3, 2 * S);
    let order = order(1, 3, Shuffle::None);
    let work = |_| Some(Box::new(|| 3 * S) as Preprocess);
    let mut stream = StreamLoader::new(&clock, &data, PLAIN, work);
    let waits = stream.epoch(share(&order, 1, 2)).consume(|batches| {
        let waits: Vec<Wait> = all(batches).iter().map(|batch| batch.wait).collect();
        waits
    });
    let wait = |storage_s, decode_s| Wait {
        storage_ns: storage_s * S,
        decode_ns: decode_s * S,
        ..Wait::default()
    };
    assert_eq!(waits, [wait(2, 3), wait(0, 3)]);
}

#[test]
fn waits_of_later_epochs_are_split_like_those_of_the_first() {
    // Two seconds of storage for each of two records, nothing else; in every epoch the first wait is
    // 2 s of storage and so is the second.
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 2, 2 * S);
    let order = order(1, 2, Shuffle::None);
    let mut stream = loader(&clock, &data, PLAIN);
    for epoch in 0..3 {
        let waits: Vec<(u64, u64)> = stream.epoch(share(&order, 1, 2)).consume(|batches| {
            all(batches).iter().map(|b| (b.wait.storage_ns / S, b.wait.worker_ns)).collect()
        });
        assert_eq!(waits, [(2, 0), (2, 0)], "epoch {epoch}");
    }
}

#[test]
fn dali_on_demand_opens_the_file_for_every_sample() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 2, 4, 0);
    let order = order(2, 4, Shuffle::None);
    let config = StreamConfig { rows: ReaderSharding::BySample, ..PLAIN };
    let mut stream = loader(&clock, &data, config);
    stream.epoch(share(&order, 4, 2)).consume(|batches| all(batches).len());
    assert_eq!(stream.meter().unwrap().op(Op::Open).calls, 8);
}

#[test]
fn nothing_is_read_behind_the_last_batch() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 100, 0);
    let order = order(1, 100, Shuffle::None);
    let mut stream = loader(&clock, &data, PLAIN);
    stream.epoch(share(&order, 1, 3)).consume(|batches| {
        assert_eq!(all(batches).len(), 3);
        clock.sleep(S);
    });
    // Two more were held ready while the third was asked for.
    assert!(stream.meter().unwrap().op(Op::Read).calls <= 5);
}

#[test]
fn a_panicking_parser_ends_the_epoch_instead_of_hanging() {
    let clock = Clock::real();
    let data = record_files(&clock, 1, 4, 0);
    let work = |_| Some(Box::new(|| -> u64 { panic!("on purpose") }) as Preprocess);
    let mut stream = StreamLoader::new(&clock, &data, PLAIN, work);
    let order = order(1, 4, Shuffle::None);
    let error =
        stream.epoch(share(&order, 1, 4)).consume(|batches| batches.next_batch().unwrap_err());
    assert_eq!(error.to_string(), "the reader of batch 0 panicked");
}

#[test]
fn parsers_work_on_several_batches_at_a_time() {
    // Reading costs nothing, parsing a batch 3 s; with three parsers three batches are ready at 3 s,
    // and the next three are begun as the consumer takes them: six batches in 6 s.
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 6, 0);
    let order = order(1, 6, Shuffle::None);
    let config = StreamConfig { parsers: 3, prefetch: 3, ..PLAIN };
    let work = |_| Some(Box::new(|| 3 * S) as Preprocess);
    let mut stream = StreamLoader::new(&clock, &data, config, work);
    let times = stream.epoch(share(&order, 1, 6)).consume(|batches| {
        let times: Vec<u64> =
            std::iter::from_fn(|| batches.next_batch().unwrap().map(|_| clock.now() / S)).collect();
        times
    });
    assert_eq!(times, [3, 3, 3, 6, 6, 6]);
}

#[test]
fn dali_readers_share_the_samples_of_a_batch() {
    // Two readers, a second a sample, batches of four: one every two seconds, and the work on a
    // sample is the reader's.
    let clock = Clock::simulated();
    let data = record_files(&clock, 8, 1, S);
    let order = order(8, 1, Shuffle::None);
    let config = StreamConfig { readers: 2, rows: ReaderSharding::BySample, ..PLAIN };
    let mut stream = loader(&clock, &data, config);
    let came = stream.epoch(share(&order, 4, 2)).consume(|batches| {
        let mut came = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            came.push((clock.now() / S, batch.sample_bytes));
        }
        came
    });
    // The readers have each read two samples of the second batch when it is asked for at 2 s.
    assert_eq!(came, [(2, 100 + 200 + 300), (4, 400 + 500 + 600 + 700)]);
}

#[test]
fn a_file_with_too_few_records_is_named() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 2, 2, 0);
    let order = order(2, 3, Shuffle::None);
    let error = loader(&clock, &data, PLAIN).epoch(share(&order, 1, 6)).consume(|batches| {
        batches.next_batch().unwrap();
        batches.next_batch().unwrap();
        batches.next_batch().unwrap_err()
    });
    let LoadError::Sample(DatasetError::Sample { file, index, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((file.as_str(), index), ("memory:0", 2));
}

#[test]
fn a_panicking_reader_ends_the_epoch_instead_of_hanging() {
    let clock = Clock::real();
    let (data, _) = npy_files(&clock, 4, |_| 0);
    let config = StreamConfig { rows: ReaderSharding::BySample, ..PLAIN };
    let work = |_| Some(Box::new(|| -> u64 { panic!("on purpose") }) as Preprocess);
    let mut stream = StreamLoader::new(&clock, &data, config, work);
    let order = order(4, 1, Shuffle::None);
    let error =
        stream.epoch(share(&order, 1, 4)).consume(|batches| batches.next_batch().unwrap_err());
    assert_eq!(error.to_string(), "the reader of batch 0 panicked");
}

#[test]
fn a_stop_ends_reading_between_two_samples() {
    let clock = Clock::simulated();
    let data = record_files(&clock, 1, 4, S);
    data.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let order = order(1, 4, Shuffle::None);
    let error = loader(&clock, &data, PLAIN)
        .epoch(share(&order, 1, 4))
        .consume(|batches| batches.next_batch().unwrap_err());
    assert!(matches!(error, LoadError::Stopped));
}
