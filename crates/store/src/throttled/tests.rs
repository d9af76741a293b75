//! Under simulated time, every duration is worked out by hand beside it.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use feedline_clock::Clock;

use super::*;
use crate::{Latency, Limit, Memory, Metered, Mode, Op, Posix, conformance};

fn limiter(limit: &str, clock: &Clock) -> Arc<RateLimiter> {
    Arc::new(RateLimiter::new(Limit::parse(limit).unwrap(), clock.clone()))
}

/// A store with one object of 10 000 bytes that answers at once.
fn memory(clock: &Clock) -> Memory {
    let memory = Memory::new(clock.clone());
    memory.put("it", vec![0; 10_000]);
    memory
}

fn read(store: &dyn Store, bytes: usize) {
    store.open("it").unwrap().read_exact_at(0, &mut vec![0; bytes]).unwrap();
}

/// How long a call takes on a limited store.
#[track_caller]
fn check(limit: &str, call: impl FnOnce(&dyn Store), expected_ns: u64) {
    let clock = Clock::simulated();
    let store = Throttled::new(memory(&clock), limiter(limit, &clock));
    call(&store);
    assert_eq!(clock.now(), expected_ns, "{limit}");
}

#[test]
fn every_part_of_a_limit_takes_its_time() {
    // An open, then a read of 5000 bytes.
    check("1GB/s", |store| read(store, 5_000), 5_000);
    check("1Miops", |store| read(store, 5_000), 1_000 + 1_000);
    check("3us", |store| read(store, 5_000), 3_000 + 3_000);
    check("1GB/s,3us", |store| read(store, 5_000), 3_000 + 8_000);
    check("1Miops,3us", |store| read(store, 5_000), 4_000 + 4_000);
    // The place of 1000 ns and the bytes begin together; the longer one counts.
    check("1GB/s,1Miops", |store| read(store, 5_000), 1_000 + 5_000);
    check("1GB/s,1Miops", |store| read(store, 500), 1_000 + 1_000);
    check("1GB/s,1Miops,3us", |store| read(store, 5_000), 4_000 + 8_000);
}

#[test]
fn every_operation_is_held_to_it() {
    let limit = "1GB/s,1Miops,3us";
    let mut go_on = |_: crate::FolderEntry<'_>| std::ops::ControlFlow::Continue(());
    check(limit, |store| drop(store.open("it").unwrap()), 4_000);
    check(limit, |store| drop(store.open("none").map(drop).unwrap_err()), 4_000);
    check(limit, |store| assert_eq!(store.open("it").unwrap().len().unwrap(), 10_000), 8_000);
    check(limit, |store| store.list("", &mut go_on).unwrap(), 4_000);
    check(limit, |store| store.make_folder("a/b").unwrap(), 4_000);
    check(limit, |store| store.remove("it").unwrap(), 4_000);
    check(limit, |store| assert_eq!(store.remove_stale("").unwrap(), 0), 4_000);
    check(limit, |store| assert!(store.exists("it").unwrap()), 4_000);
    // Created at 4000, written from 7000 to 9000, and published.
    let write = |store: &dyn Store| {
        let upload = store.create("new").unwrap();
        upload.write_at(0, &[1; 2_000]).unwrap();
        upload.publish(Durability::None).unwrap();
    };
    check(limit, write, 4_000 + 5_000 + 4_000);
    let inspect = |store: &dyn Store| {
        assert_eq!(store.free_bytes("").unwrap(), None);
        store.evict("it").unwrap();
    };
    check(limit, inspect, 0);
    let look = |store: &dyn Store| assert_eq!(store.open("it").unwrap().resident().unwrap(), None);
    check(limit, look, 4_000);
}

#[test]
fn the_time_of_the_store_counts_toward_the_rates_and_not_the_latency() {
    let check = |limit, store_ns, expected_ns| {
        let clock = Clock::simulated();
        let memory = memory(&clock).with_latency(move |op, _, _, _| match op {
            Op::Read => store_ns,
            _ => 0,
        });
        let store = Throttled::new(memory, limiter(limit, &clock));
        let mut object = store.open("it").unwrap();
        let opened_ns = clock.now();
        object.read_exact_at(0, &mut [0; 5_000]).unwrap();
        object.read_exact_at(0, &mut [0; 5_000]).unwrap();
        assert_eq!(clock.now() - opened_ns, expected_ns, "{limit}, {store_ns} ns in the store");
    };
    check("1GB/s", 2_000, 2 * 5_000);
    check("1GB/s", 5_000, 2 * 5_000);
    check("1GB/s", 7_000, 2 * 7_000);
    check("1GB/s,3us", 2_000, 2 * 8_000);
    check("1GB/s,3us", 7_000, 2 * 10_000);
}

/// When each of four threads has made its call, in the order of time.
fn ends(limit: &str, call: impl Fn(&dyn Store, usize) + Sync) -> Vec<u64> {
    let clock = Clock::simulated();
    let store = Throttled::new(memory(&clock), limiter(limit, &clock));
    let ended = std::sync::Mutex::new(Vec::new());
    clock.scope(|scope| {
        for thread in 0..4 {
            let (store, ended, call, clock) = (&store, &ended, &call, &clock);
            let work = move || {
                call(store, thread);
                ended.lock().unwrap().push(clock.now());
            };
            scope.spawn(format!("thread {thread}"), work).unwrap();
        }
    });
    let mut ended = ended.into_inner().unwrap();
    ended.sort_unstable();
    ended
}

#[test]
fn threads_share_the_rates_and_spend_latencies_side_by_side() {
    let one_kb = |store: &dyn Store, _| read(store, 1_000);
    assert_eq!(ends("1GB/s", one_kb), [1_000, 2_000, 3_000, 4_000]);
    assert_eq!(ends("5us", one_kb), [10_000; 4]);
    assert_eq!(ends("1GB/s,5us", one_kb), [11_000, 12_000, 13_000, 14_000]);
    // Opens end at 1, 2, 3, 4 us. The read of the first is ready at 1 us, but places are given up
    // to 4 us; reads have those after, in the order of their opens.
    assert_eq!(ends("1Miops", one_kb), [5_000, 6_000, 7_000, 8_000]);
}

#[test]
fn reads_and_writes_share_the_bandwidth() {
    let mixed = |store: &dyn Store, thread: usize| match thread {
        0 | 1 => read(store, 1_000),
        _ => store.create("new").unwrap().write_at(0, &[0; 1_000]).unwrap(),
    };
    assert_eq!(ends("1GB/s", mixed), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn stores_of_one_pace_share_its_rates() {
    let clock = Clock::simulated();
    let limiter = limiter("1GB/s", &clock);
    let stores = [0, 1].map(|_| Throttled::new(memory(&clock), Arc::clone(&limiter)));
    clock.scope(|scope| {
        for store in &stores {
            scope.spawn("reader".to_owned(), || read(store, 3_000)).unwrap();
        }
    });
    assert_eq!(clock.now(), 6_000);
}

#[test]
fn a_share_has_that_part_of_the_rates_and_all_of_the_latency() {
    let clock = Clock::simulated();
    let [one, four] = [1, 4].map(|number| NonZeroU32::new(number).unwrap());
    let limiter = RateLimiter::new(Limit::parse("1GB/s,1Miops,3us").unwrap(), clock.clone());
    let store = Throttled::new(memory(&clock), Arc::new(limiter.with_share(one, four)));
    read(&store, 5_000);
    assert_eq!(clock.now(), (3_000 + 4_000) + (3_000 + 20_000));
}

#[test]
fn latencies_are_drawn_by_the_number_of_the_call() {
    let clock = Clock::simulated();
    let limit = Limit::parse("0.2ms@p50+5ms@p99").unwrap();
    let latency: Latency = limit.latency.unwrap();
    let store = Throttled::new(
        memory(&clock),
        Arc::new(RateLimiter::new(limit, clock.clone()).with_seed(7)),
    );
    for _ in 0..10 {
        drop(store.open("it").unwrap());
    }
    assert_eq!(clock.now(), (0..10).map(|number| latency.draw(7, number)).sum::<u64>());
}

/// Two threads draw two latencies; who has the longer one does not hold up the other.
#[test]
fn a_long_latency_is_in_nobodys_way() {
    let clock = Clock::simulated();
    let limit = Limit::parse("1GB/s,0us-100us").unwrap();
    let mut drawn = [0, 1, 2, 3].map(|number| limit.latency.unwrap().draw(1, number));
    let store = Throttled::new(
        memory(&clock),
        Arc::new(RateLimiter::new(limit, clock.clone()).with_seed(1)),
    );
    let (mut first, mut second) = (store.open("it").unwrap(), store.open("it").unwrap());
    assert_eq!(clock.now(), drawn[0] + drawn[1]);
    let began_ns = clock.now();
    let ended = std::sync::Mutex::new(Vec::new());
    clock.scope(|scope| {
        for object in [&mut first, &mut second] {
            let (ended, clock) = (&ended, &clock);
            let work = move || {
                object.read_exact_at(0, &mut [0; 1_000]).unwrap();
                ended.lock().unwrap().push(clock.now() - began_ns);
            };
            scope.spawn("reader".to_owned(), work).unwrap();
        }
    });
    drawn[2..].sort_unstable();
    let [.., short_ns, long_ns] = drawn;
    assert!(long_ns - short_ns > 1_000, "the seed gives two that differ: {drawn:?}");
    assert_eq!(ended.into_inner().unwrap(), [short_ns + 1_000, long_ns + 1_000]);
}

#[test]
fn who_is_asked_to_stop_is_not_held_up() {
    let clock = Clock::simulated();
    let stop = Arc::new(AtomicBool::new(true));
    let limit = Limit::parse("1B/s,1iops,100s").unwrap();
    let store = Throttled::new(
        memory(&clock),
        Arc::new(RateLimiter::new(limit, clock.clone()).with_stop(stop)),
    );
    read(&store, 10_000);
    assert_eq!(clock.now(), 0);
}

#[test]
fn limited_stores_conform() {
    let limit = "1TB/s,1Miops,1us";
    let clock = Clock::simulated();
    conformance::check(&Throttled::new(Memory::new(clock.clone()), limiter(limit, &clock)));
    let clock = Clock::real();
    for mode in [Mode::Buffered, Mode::Direct] {
        let folder = tempfile::tempdir().unwrap();
        let plain = Posix::new(folder.path(), mode);
        let ring = plain.clone().with_ring().unwrap();
        for store in [plain, ring] {
            let has_queue = store.queue(1).unwrap().is_some();
            let store = Throttled::new(store, limiter(limit, &clock));
            assert_eq!(store.queue(1).unwrap().is_some(), has_queue);
            conformance::check(&Metered::new(store, clock.clone()));
        }
    }
}
