//! Who reads what, against the frameworks' rules.

use std::collections::BTreeMap;

use feedline_dataset::{EpochOrder, SampleIndex, SampleSpace, Shuffle};
use feedline_loader::{Dealing, EpochTally, LastBatch, Remainder, Sharding};

use crate::bed::Numbers;

/// PyTorch's defaults.
const TORCH: Dealing = Dealing {
    index: SampleIndex::Uniform(SampleSpace { files: 61, per_file: 1 }),
    ranks: 1,
    batch: 4,
    sharding: Sharding::Strided,
    remainder: Remainder::Pad,
    last_batch: LastBatch::Keep,
};

/// `DistributedSampler(drop_last=True)` and `DataLoader(drop_last=True)`.
fn torch_drops() -> Dealing {
    Dealing { remainder: Remainder::Cut, last_batch: LastBatch::Drop, ..TORCH }
}

/// DLIO's blocks.
fn dlio() -> Dealing {
    Dealing { sharding: Sharding::WholeSteps, last_batch: LastBatch::Drop, ..TORCH }
}

/// The batches of a rank as places, of dealings that deal places.
fn batches(dealing: &Dealing, rank: u64) -> Vec<Vec<u64>> {
    let samples: Vec<u64> =
        (0..dealing.read(rank, dealing.steps())).map(|n| dealing.place(rank, n)).collect();
    samples.chunks(dealing.batch as usize).map(<[u64]>::to_vec).collect()
}

/// Steps, reads, samples read again, and samples that are missing.
fn counts(dealing: &Dealing) -> (u64, u64, u64, u64) {
    let steps = dealing.steps();
    let EpochTally { read, repeated, left_out } = dealing.tally(steps);
    (steps, read, repeated, left_out)
}

#[test]
fn sixty_one_samples_are_dealt_as_torch_and_dlio_deal_them() {
    // Ranks x batch, then steps, reads, read twice, missing: of PyTorch's defaults, of `drop_last` in
    // sampler and loader, and of DLIO. The last two leave the same number out, not the same samples.
    let rows = [
        ((1, 4), (16, 61, 0, 0), (15, 60, 0, 1)),
        ((2, 4), (8, 62, 1, 0), (7, 56, 0, 5)),
        ((3, 4), (6, 63, 2, 0), (5, 60, 0, 1)),
        ((4, 4), (4, 64, 3, 0), (3, 48, 0, 13)),
        ((2, 8), (4, 62, 1, 0), (3, 48, 0, 13)),
        ((4, 1), (16, 64, 3, 0), (15, 60, 0, 1)),
    ];
    for ((ranks, batch), torch, dropping) in rows {
        let of = |dealing: Dealing| counts(&Dealing { ranks, batch, ..dealing.clone() });
        assert_eq!(of(TORCH), torch, "{ranks} x {batch}, PyTorch's defaults");
        assert_eq!(of(torch_drops()), dropping, "{ranks} x {batch}, PyTorch with drop_last");
        assert_eq!(of(dlio()), dropping, "{ranks} x {batch}, DLIO");
    }
}

#[test]
fn torch_deals_places_in_turn_and_repeats_the_first_ones() {
    let dealing = Dealing { ranks: 2, ..TORCH };
    let (first, second) = (batches(&dealing, 0), batches(&dealing, 1));
    assert_eq!(first[0], [0, 2, 4, 6]);
    assert_eq!(first[7], [56, 58, 60]);
    assert_eq!(second[0], [1, 3, 5, 7]);
    assert_eq!(second[7], [57, 59, 0], "the last one is the first one again");
}

#[test]
fn a_sampler_that_cuts_may_still_keep_a_short_batch() {
    // 60 of 61 places, 30 each: 7 batches of 4 and one of 2.
    let dealing = Dealing { ranks: 2, remainder: Remainder::Cut, ..TORCH };
    assert_eq!(counts(&dealing), (8, 60, 0, 1));
    assert_eq!(batches(&dealing, 1)[7], [57, 59]);
    // 62 places, 31 each, of which the loader drops 3.
    let dealing = Dealing { ranks: 2, last_batch: LastBatch::Drop, ..TORCH };
    assert_eq!(counts(&dealing), (7, 56, 0, 5));
}

#[test]
fn dlio_deals_blocks_of_whole_batches() {
    let dealing = Dealing { ranks: 2, ..dlio() };
    let all = |rank| batches(&dealing, rank).concat();
    assert_eq!(all(0), (0..28).collect::<Vec<_>>());
    assert_eq!(all(1), (28..56).collect::<Vec<_>>());
}

#[test]
fn dlio_2_0_0_shuffles_inside_the_blocks_of_ranks() {
    // 60 samples, two ranks: blocks of 30, of which the loader drops two.
    let index = SampleSpace { files: 60, per_file: 1 }.into();
    let dealing = Dealing {
        index,
        ranks: 2,
        sharding: Sharding::Blocked,
        last_batch: LastBatch::Drop,
        ..TORCH
    };
    assert_eq!(counts(&dealing), (7, 56, 0, 4));
    let order = EpochOrder::new(dealing.index.clone(), Shuffle::Blocks { len: 30 }, 3);
    for rank in 0..2 {
        let places = batches(&dealing, rank).concat();
        let samples: Vec<u64> = places.iter().map(|&place| order.sample(place).file).collect();
        assert_ne!(samples, places);
        assert!(samples.iter().all(|sample| sample / 30 == rank), "{samples:?}");
    }
    // One rank, 61 samples: 15 steps of a shuffled block.
    let dealing = Dealing { ranks: 1, index: TORCH.index, ..dealing.clone() };
    assert_eq!(counts(&dealing), (15, 60, 0, 1));
}

#[test]
fn blocks_that_reach_beyond_the_end_go_on_at_the_start() {
    let dealing = Dealing { ranks: 2, sharding: Sharding::Blocked, ..TORCH };
    assert_eq!(counts(&dealing), (8, 62, 1, 0));
    assert_eq!(batches(&dealing, 1)[7], [59, 60, 0]);
}

#[test]
fn tf_data_deals_files_and_the_shortest_rank_ends_the_epoch() {
    // Six files of 10 on four ranks: 20, 20, 10 and 10 samples. Batches of 4: three steps, the last of
    // which has 2 samples on ranks 2 and 3.
    let index = SampleSpace { files: 6, per_file: 10 }.into();
    let dealing = Dealing { index, ranks: 4, sharding: Sharding::Files, ..TORCH };
    let samples: Vec<u64> = (0..4).map(|rank| dealing.samples(rank)).collect();
    assert_eq!(samples, [20, 20, 10, 10]);
    assert_eq!(counts(&dealing), (3, 12 + 12 + 10 + 10, 0, 16));
    let dropping = Dealing { last_batch: LastBatch::Drop, ..dealing.clone() };
    assert_eq!(counts(&dropping), (2, 32, 0, 28));
    let records = Dealing { sharding: Sharding::Records, ..dealing.clone() };
    assert_eq!(counts(&records), (4, 60, 0, 0));
}

#[test]
fn webdataset_workers_make_batches_of_their_own() {
    // Five shards of 6 on one rank with two workers: 18 and 12 samples. Batches of 4: worker 0 makes
    // 4, 4, 4, 4 and 2, worker 1 makes three of 4; they take turns until worker 1 has ended.
    let index = SampleSpace { files: 5, per_file: 6 }.into();
    let sharding = Sharding::WorkerFiles { workers: 2 };
    let dealing = Dealing { index, sharding, ..TORCH };
    assert_eq!(counts(&dealing), (8, 30, 0, 0));
    assert_eq!((dealing.read(0, 6), dealing.read(0, 7), dealing.read(0, 8)), (24, 28, 30));
    let dropping = Dealing { last_batch: LastBatch::Drop, ..dealing.clone() };
    assert_eq!(counts(&dropping), (7, 28, 0, 2), "each worker drops its own");
}

/// What PyTorch's `DistributedSampler` gives a rank, written down again: the list, padded or cut, and
/// every R-th of it.
fn distributed_sampler(all: u64, (rank, ranks): (u64, u64), remainder: Remainder) -> Vec<u64> {
    let mut list: Vec<u64> = (0..all).collect();
    if remainder == Remainder::Cut {
        list.truncate((all / ranks * ranks) as usize);
    }
    let mut next = 0;
    while !(list.len() as u64).is_multiple_of(ranks) {
        list.push(list[next]);
        next += 1;
    }
    list.into_iter().skip(rank as usize).step_by(ranks as usize).collect()
}

/// PyTorch's `BatchSampler`.
fn batch_sampler(list: &[u64], batch: u64, last_batch: LastBatch) -> Vec<Vec<u64>> {
    let chunks = list.chunks(batch as usize).map(<[u64]>::to_vec);
    chunks.filter(|chunk| last_batch == LastBatch::Keep || chunk.len() as u64 == batch).collect()
}

#[test]
fn any_dealing_of_places_is_that_of_torchs_samplers() {
    let mut numbers = Numbers(15);
    for _ in 0..2000 {
        let (files, per_file) = (1 + numbers.below(90), 1 + numbers.below(3));
        let (ranks, batch) = (1 + numbers.below(9), 1 + numbers.below(12));
        let (cuts, drops) = (numbers.below(2) == 1, numbers.below(2) == 1);
        let dealing = Dealing {
            index: SampleSpace { files, per_file }.into(),
            ranks,
            batch,
            remainder: if cuts { Remainder::Cut } else { Remainder::Pad },
            last_batch: if drops { LastBatch::Drop } else { LastBatch::Keep },
            ..TORCH
        };
        let mut seen = BTreeMap::new();
        for rank in 0..ranks {
            let list = distributed_sampler(files * per_file, (rank, ranks), dealing.remainder);
            let expected = batch_sampler(&list, batch, dealing.last_batch);
            let found = batches(&dealing, rank);
            assert_eq!(found, expected, "rank {rank} of {dealing:?}");
            found.iter().flatten().for_each(|place| *seen.entry(*place).or_insert(0) += 1);
        }
        check_tally(&dealing, &seen);
    }
}

#[test]
fn any_blocks_are_tallied_as_they_are_read() {
    let mut numbers = Numbers(16);
    for _ in 0..2000 {
        let dealing = Dealing {
            index: SampleSpace { files: 1 + numbers.below(60), per_file: 1 }.into(),
            ranks: 1 + numbers.below(12),
            batch: 1 + numbers.below(9),
            sharding: Sharding::Blocked,
            remainder: if numbers.below(2) == 1 { Remainder::Cut } else { Remainder::Pad },
            last_batch: if numbers.below(2) == 1 { LastBatch::Drop } else { LastBatch::Keep },
        };
        let mut seen = BTreeMap::new();
        for place in (0..dealing.ranks).flat_map(|rank| batches(&dealing, rank)).flatten() {
            *seen.entry(place).or_insert(0) += 1;
        }
        check_tally(&dealing, &seen);
    }
}

/// The tally is what one gets by counting.
#[track_caller]
fn check_tally(dealing: &Dealing, seen: &BTreeMap<u64, u64>) {
    let read = seen.values().sum();
    let distinct = seen.len() as u64;
    let left_out = dealing.index.len() - distinct;
    let expected = EpochTally { read, repeated: read - distinct, left_out };
    assert_eq!(dealing.tally(dealing.steps()), expected, "{dealing:?}");
}
