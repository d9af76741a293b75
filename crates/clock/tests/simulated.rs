//! Simulated time: exact, shared by threads, and loud about deadlocks.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use feedline_clock::{Clock, Monitor};

#[test]
fn sleeping_moves_the_clock_by_exactly_that_much() {
    let clock = Clock::simulated();
    assert_eq!(clock.now(), 0);
    clock.sleep(5);
    clock.sleep(0);
    clock.sleep_unless(7, &AtomicBool::new(false));
    clock.sleep_unless(1_000, &AtomicBool::new(true));
    assert_eq!(clock.now(), 12);
}

#[test]
fn threads_sleep_at_the_same_time_not_one_after_the_other() {
    let clock = Clock::simulated();
    let woken = Mutex::new(Vec::new());
    clock.scope(|scope| {
        for nap in [30, 10, 20] {
            let (clock, woken) = (clock.clone(), &woken);
            scope
                .spawn(format!("nap {nap}"), move || {
                    clock.sleep(nap);
                    woken.lock().unwrap().push(clock.now());
                })
                .unwrap();
        }
    });
    assert_eq!(*woken.lock().unwrap(), [10, 20, 30]);
    assert_eq!(clock.now(), 30, "no time passes between a thread's end and the scope's");
}

#[test]
fn a_waiter_goes_on_at_the_instant_of_the_update() {
    let clock = Clock::simulated();
    let ready = Monitor::new(&clock, false);
    let seen = clock.scope(|scope| {
        let (setter, ready) = (clock.clone(), &ready);
        scope
            .spawn("setter".into(), move || {
                setter.sleep(40);
                ready.update(|ready| *ready = true);
                setter.sleep(60);
            })
            .unwrap();
        ready.wait_for(|ready| ready.then_some(()));
        clock.now()
    });
    assert_eq!(seen, 40);
    assert_eq!(clock.now(), 100);
}

#[test]
fn a_deadlock_panics_instead_of_hanging() {
    let clock = Clock::simulated();
    let never = Monitor::new(&clock, ());
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        never.wait_for(|()| None::<()>);
    }));
    let message = *outcome.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message, "every simulated thread waits and none sleeps: deadlock");
}

#[test]
fn a_panicking_thread_does_not_keep_the_scope_waiting() {
    let clock = Clock::simulated();
    let ended = clock.scope(|scope| {
        scope.spawn("panics".into(), || panic!("on purpose")).unwrap().join().is_err()
    });
    assert!(ended);
}

#[test]
fn the_real_clock_waits_and_wakes_too() {
    let clock = Clock::real();
    let ready = Monitor::new(&clock, 0);
    let got = clock.scope(|scope| {
        let ready = &ready;
        scope.spawn("setter".into(), move || ready.update(|value| *value = 7)).unwrap();
        ready.wait_for(|value| (*value != 0).then_some(*value))
    });
    assert_eq!(got, 7);
    let before = clock.now();
    clock.sleep(1_000_000);
    assert!(clock.now() - before >= 1_000_000);
}
