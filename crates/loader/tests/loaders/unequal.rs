//! Files that have different numbers of samples, in every loader.

use feedline_clock::Clock;
use feedline_dataset::{EpochOrder, SampleIndex, Shuffle};
use feedline_loader::{
    BatchAssignment, Dealing, EpochShare, LastBatch, Loader, ReaderSharding, Sharding,
    StreamConfig, StreamLoader, TorchConfig, TorchLoader,
};

use crate::bed::{Consume, Numbers, counted_files, share};

const TORCH: TorchConfig =
    TorchConfig { workers: 2, prefetch: 2, deal: BatchAssignment::InTurn, shuffle: None };

const STREAM: StreamConfig = StreamConfig {
    readers: 2,
    parsers: 1,
    prefetch: 2,
    shuffle: None,
    rows: ReaderSharding::ByFile,
};

/// Which loader reads.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Torch(TorchConfig),
    Stream(StreamConfig),
}

/// What the ranks get of files with these numbers of records: the samples of each batch, and the sum of
/// its records' numbers. Record r of file f has the number 100 f + r.
fn batches(
    counts: &[u64],
    (kind, sharding, shuffle): (Kind, Sharding, Shuffle),
    rules: impl FnOnce(Dealing) -> Dealing,
) -> Vec<Vec<(u64, u64)>> {
    let clock = Clock::simulated();
    let data = counted_files(&clock, counts, 0);
    let index = SampleIndex::from_counts(counts.iter().copied());
    let order = EpochOrder::new(index, shuffle, 5);
    let plain = share(&order, 1, 0);
    let dealing = rules(Dealing { sharding, ..plain.dealing.clone() });
    // Dealt by the plan, before the order of the epoch is known.
    let batches = dealing.in_order(&order).steps();
    let came = |rank| {
        let share = EpochShare { dealing: dealing.clone(), rank, batches, ..plain.clone() };
        let mut loader = match kind {
            Kind::Torch(config) => {
                Loader::Torch(TorchLoader::new(&clock, &data, config, |_| Box::new(|| 0)))
            }
            Kind::Stream(config) => {
                Loader::Stream(StreamLoader::new(&clock, &data, config, |_| None))
            }
        };
        loader.epoch(share).consume(|batches| {
            let next = || batches.next_batch().unwrap();
            std::iter::from_fn(next).map(|batch| (batch.samples, batch.sample_bytes)).collect()
        })
    };
    (0..dealing.ranks).map(came).collect()
}

#[test]
fn places_are_dealt_over_unequal_files() {
    // Records 0, 1, 2 | 100 | 200, 201 to two ranks in turn: 0, 2, 200 and 1, 100, 201.
    let rules = |dealing| Dealing { ranks: 2, batch: 2, ..dealing };
    let kind = (Kind::Torch(TORCH), Sharding::Strided, Shuffle::None);
    let came = batches(&[3, 1, 2], kind, rules);
    assert_eq!(came, [[(2, 2), (1, 200)], [(2, 101), (1, 201)]]);
}

#[test]
fn the_rank_with_the_fewest_records_ends_the_epoch() {
    // Rank 0 has files 0 and 2, 5 records; rank 1 has file 1, one record: one step of two.
    let rules = |dealing| Dealing { ranks: 2, batch: 2, ..dealing };
    let kind = (Kind::Stream(STREAM), Sharding::Files, Shuffle::None);
    // Two readers take turns: records 0 and 200 come first.
    assert_eq!(batches(&[3, 1, 2], kind, rules), [[(2, 200)], [(1, 100)]]);
    // The first rank can be that one, too.
    assert_eq!(batches(&[1, 3, 0, 2], kind, rules), [[(1, 0)], [(2, 400)]]);
    let rules = |dealing| Dealing { ranks: 2, batch: 2, last_batch: LastBatch::Drop, ..dealing };
    assert_eq!(batches(&[3, 1, 2], kind, rules), [[], []]);
}

#[test]
fn readers_of_unequal_files_take_turns_until_they_have_ended() {
    // Reader 0 has files 0 and 2, reader 1 file 1: 0, 100, 1, 101, 200, 102, 201, 202.
    let came =
        batches(&[2, 3, 3], (Kind::Stream(STREAM), Sharding::Files, Shuffle::None), |dealing| {
            dealing
        });
    assert_eq!(came, [[0, 100, 1, 101, 200, 102, 201, 202].map(|record| (1, record))]);
}

#[test]
fn records_of_unequal_files_are_dealt_in_the_order_in_which_they_come() {
    let config = StreamConfig { readers: 1, ..STREAM };
    let rules = |dealing| Dealing { ranks: 2, ..dealing };
    let came = batches(&[3, 0, 2], (Kind::Stream(config), Sharding::Records, Shuffle::None), rules);
    assert_eq!(came, [[(1, 0), (1, 2)], [(1, 1), (1, 200)]]);
}

#[test]
fn workers_of_unequal_shards_make_batches_of_their_own() {
    // Worker 0 has shards 0 and 2: [0, 1], [2, 200], [201]; worker 1 has shard 1: [100].
    let sharding = Sharding::WorkerFiles { workers: 2 };
    let rules = |dealing| Dealing { batch: 2, ..dealing };
    let came = batches(&[3, 1, 2], (Kind::Torch(TORCH), sharding, Shuffle::None), rules);
    assert_eq!(came, [[(2, 1), (1, 100), (2, 202), (1, 201)]]);
}

/// Whatever deals, shuffles and reads: a rank that is alone gets every record once.
#[test]
fn every_record_of_unequal_files_comes_once() {
    let mut numbers = Numbers(16);
    for _ in 0..60 {
        let files = 1 + numbers.below(7);
        let counts: Vec<u64> = (0..files).map(|_| numbers.below(5)).collect();
        let expected: Vec<u64> =
            (0..).zip(&counts).flat_map(|(file, n)| (0..*n).map(move |r| 100 * file + r)).collect();
        let workers = 1 + numbers.below(3) as u32;
        let torch = Kind::Torch(TorchConfig { workers, ..TORCH });
        let buffered = Kind::Torch(TorchConfig { workers, shuffle: Some(3), ..TORCH });
        let stream = Kind::Stream(StreamConfig { readers: workers, ..STREAM });
        let shards = Sharding::WorkerFiles { workers: u64::from(workers) };
        for shuffle in [Shuffle::None, Shuffle::Files] {
            for kind in [
                (torch, Sharding::Strided, shuffle),
                (torch, Sharding::Strided, Shuffle::Samples),
                (torch, Sharding::Blocked, shuffle),
                (torch, shards, shuffle),
                (buffered, shards, shuffle),
                (stream, Sharding::Files, shuffle),
                (stream, Sharding::Records, shuffle),
            ] {
                let mut came: Vec<u64> =
                    batches(&counts, kind, |dealing| dealing)[0].iter().map(|one| one.1).collect();
                came.sort_unstable();
                assert_eq!(came, expected, "{counts:?} {kind:?}");
            }
        }
    }
}
