//! Thread ranks meet, exchange and abort.

use std::sync::Mutex;

use feedline_clock::Clock;
use feedline_ranks::{Aborted, Ranks, ThreadRank, threads};

/// Runs `body` on `size` ranks under simulated time; results in rank order.
fn on_ranks<T: Send>(size: u32, body: impl Fn(&Clock, &ThreadRank) -> T + Sync) -> Vec<T> {
    let clock = Clock::simulated();
    let results = Mutex::new(Vec::new());
    clock.scope(|scope| {
        for rank in threads(&clock, size) {
            let (clock, body, results) = (clock.clone(), &body, &results);
            scope
                .spawn(format!("rank {}", rank.rank()), move || {
                    let result = body(&clock, &rank);
                    results.lock().unwrap().push((rank.rank(), result));
                })
                .unwrap();
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn a_barrier_ends_when_the_slowest_rank_comes() {
    let left = on_ranks(4, |clock, rank| {
        for _ in 0..3 {
            clock.sleep(10 * u64::from(rank.rank() + 1));
            rank.barrier().unwrap();
        }
        clock.now()
    });
    assert_eq!(left, [120, 120, 120, 120]);
}

#[test]
fn the_largest_value_reaches_every_rank_and_rounds_do_not_mix() {
    let seen = on_ranks(3, |_, rank| {
        let first = rank.max(u64::from(rank.rank()) * 7).unwrap();
        let second = rank.max(1).unwrap();
        (first, second)
    });
    assert_eq!(seen, [(14, 1), (14, 1), (14, 1)]);
}

#[test]
fn gather_comes_to_rank_0_in_rank_order_and_broadcast_comes_from_it() {
    let seen = on_ranks(3, |clock, rank| {
        clock.sleep(u64::from(10 - rank.rank()));
        let gathered = rank.gather(vec![rank.rank() as u8]).unwrap();
        let word = rank.broadcast(vec![42 + rank.rank() as u8]).unwrap();
        (gathered, word)
    });
    assert_eq!(seen[0], (Some(vec![vec![0], vec![1], vec![2]]), vec![42]));
    assert_eq!(seen[1], (None, vec![42]));
    assert_eq!(seen[2], (None, vec![42]));
}

#[test]
fn q39_a_failing_rank_ends_every_other_rank_with_its_reason() {
    let seen = on_ranks(3, |clock, rank| {
        if rank.rank() == 1 {
            clock.sleep(50);
            rank.abort("disk on fire");
            rank.abort("and a second reason");
            return Err(Aborted { rank: 1, reason: "disk on fire".into() });
        }
        rank.barrier()
    });
    let expected = Err(Aborted { rank: 1, reason: "disk on fire".into() });
    assert_eq!(seen, [expected.clone(), expected.clone(), expected]);
}
