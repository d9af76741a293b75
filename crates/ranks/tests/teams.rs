//! Ranks of one process and of several meet, exchange and abort.

use std::sync::{Arc, Mutex};

use feedline_clock::Clock;
use feedline_ranks::{Aborted, Member, Ranks, Team, rehearse};

/// Runs `body` on `ranks` ranks over processes on these machines, under simulated time; results in
/// rank order.
fn on_ranks<T: Send>(
    nodes: &[u32],
    ranks: u32,
    body: impl Fn(&Clock, &Member) -> T + Sync,
) -> Vec<T> {
    let clock = Clock::simulated();
    let results = Mutex::new(Vec::new());
    clock.scope(|scope| {
        for link in rehearse(&clock, nodes) {
            for member in Team::new(Arc::new(link), ranks).unwrap().members(&clock) {
                let (clock, body, results) = (clock.clone(), &body, &results);
                scope
                    .spawn(format!("rank {}", member.rank()), move || {
                        let result = body(&clock, &member);
                        results.lock().unwrap().push((member.rank(), result));
                    })
                    .unwrap();
            }
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Four ranks in one process, in two, in four, and in three.
const SPREADS: [&[u32]; 4] = [&[0], &[0, 1], &[0, 0, 1, 1], &[0, 1, 0]];

#[test]
fn a_barrier_ends_when_the_slowest_rank_comes() {
    for nodes in SPREADS {
        let left = on_ranks(nodes, 4, |clock, rank| {
            for _ in 0..3 {
                clock.sleep(10 * u64::from(rank.rank() + 1));
                rank.barrier().unwrap();
            }
            clock.now()
        });
        assert_eq!(left, [120, 120, 120, 120], "{nodes:?}");
    }
}

#[test]
fn the_largest_value_reaches_every_rank_and_rounds_do_not_mix() {
    for nodes in SPREADS {
        let seen = on_ranks(nodes, 4, |_, rank| {
            let first = rank.max(u64::from(rank.rank()) * 7).unwrap();
            let second = rank.max(1).unwrap();
            (first, second)
        });
        assert_eq!(seen, [(21, 1); 4], "{nodes:?}");
    }
}

#[test]
fn q40_a_rank_knows_its_place_on_its_machine() {
    let places = |nodes| on_ranks(nodes, 4, |_, rank| rank.on_node());
    assert_eq!(places(&[0]), [(0, 4), (1, 4), (2, 4), (3, 4)]);
    assert_eq!(places(&[0, 1, 0, 1]), [(0, 2), (0, 2), (1, 2), (1, 2)]);
    assert_eq!(places(&[0, 1, 0]), [(0, 3), (1, 3), (0, 1), (2, 3)]);
}

#[test]
fn q39_a_failing_rank_ends_every_other_rank_with_its_reason() {
    for nodes in SPREADS {
        let seen = on_ranks(nodes, 4, |clock, rank| {
            if rank.rank() == 1 {
                clock.sleep(50);
                rank.abort("disk on fire");
                rank.abort("and a second reason");
            }
            (rank.barrier(), rank.barrier())
        });
        let expected = Err(Aborted { rank: 1, reason: "disk on fire".into() });
        assert_eq!(seen, vec![(expected.clone(), expected.clone()); 4], "{nodes:?}");
    }
}

/// Runs `body` in as many processes as there are machines named; results in their order.
fn in_processes<T: Send>(nodes: &[u32], body: impl Fn(&Clock, &Team) -> T + Sync) -> Vec<T> {
    let clock = Clock::simulated();
    let results = Mutex::new(Vec::new());
    clock.scope(|scope| {
        for link in rehearse(&clock, nodes) {
            let team = Team::new(Arc::new(link), nodes.len() as u32).unwrap();
            let (clock, body, results) = (clock.clone(), &body, &results);
            scope
                .spawn(format!("process {}", team.process()), move || {
                    let result = body(&clock, &team);
                    results.lock().unwrap().push((team.process(), result));
                })
                .unwrap();
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(process, _)| *process);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn process_0_decides_and_collects() {
    let seen = in_processes(&[0, 1, 1], |clock, team| {
        clock.sleep(u64::from(10 - team.process()));
        let decided = team.decide(|| Ok::<_, Aborted>(vec![42 + team.process() as u8]));
        if !team.leads() {
            team.send(vec![team.process() as u8]).unwrap();
            team.send(vec![7]).unwrap();
            return (decided, Vec::new());
        }
        let received = [2, 1, 1, 2].map(|process| team.receive(process).unwrap());
        (decided, received.to_vec())
    });
    let collected = vec![vec![2], vec![1], vec![7], vec![7]];
    assert_eq!(seen, [(Ok(vec![42]), collected), (Ok(vec![42]), vec![]), (Ok(vec![42]), vec![])]);
}

#[test]
fn q39_a_failing_process_ends_the_others_wherever_they_wait() {
    let seen = in_processes(&[0, 0, 1], |clock, team| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&heard);
        team.on_abort(Box::new(move |news| listener.lock().unwrap().push(news.rank)));
        let result = match team.process() {
            0 => team.receive(1).map(drop),
            1 => team.max(1).map(drop),
            _ => {
                clock.sleep(9);
                team.abort("no such folder");
                team.max(1).map(drop)
            }
        };
        let heard = heard.lock().unwrap().clone();
        (result, heard)
    });
    let expected = Err(Aborted { rank: 2, reason: "no such folder".into() });
    assert_eq!(seen, vec![(expected, vec![2]); 3]);
}

#[test]
fn the_first_process_of_a_machine_leads_it() {
    let leads = in_processes(&[0, 1, 0, 1, 2], |_, team| (team.leads(), team.leads_node()));
    let first = [(true, true), (false, true), (false, false), (false, false), (false, true)];
    assert_eq!(leads, first);
}
