//! The simulated clock: a count of working threads and a heap of deadlines.
//!
//! A thread is *working* unless it sleeps or waits on a monitor. When the last one stops working,
//! time jumps to the earliest deadline and every sleeper of that instant works again. If no thread
//! sleeps then, no thread can ever go on, and the simulation panics in every waiting thread instead
//! of hanging.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Shared state of one simulated clock.
#[derive(Debug)]
pub(crate) struct Simulation {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    now_ns: u64,
    working: usize,
    next_id: u64,
    sleepers: BinaryHeap<Reverse<(u64, u64)>>,
    /// `(monitor, waiter)` of every thread that waits on a monitor.
    waiters: Vec<(u64, u64)>,
    /// Sleepers and waiters that may go on but have not noticed yet; they already count as working.
    released: HashSet<u64>,
    deadlocked: bool,
}

impl Default for Simulation {
    fn default() -> Self {
        Self { state: Mutex::new(State { working: 1, ..State::default() }), wake: Condvar::new() }
    }
}

impl Simulation {
    pub(crate) fn now(&self) -> u64 {
        self.lock().now_ns
    }

    pub(crate) fn sleep(&self, duration_ns: u64) {
        let mut state = self.lock();
        if duration_ns == 0 {
            return;
        }
        let id = state.issue_id();
        let deadline = state.now_ns + duration_ns;
        state.sleepers.push(Reverse((deadline, id)));
        self.stop_working(&mut state);
        self.until_released(state, id);
    }

    /// A name for a new monitor.
    pub(crate) fn monitor_id(&self) -> u64 {
        self.lock().issue_id()
    }

    /// Enters the calling thread as waiting on `monitor`; the caller still holds the monitor's lock,
    /// so no notification can fall between its look at the value and this call.
    pub(crate) fn enter_wait(&self, monitor: u64) -> u64 {
        let mut state = self.lock();
        let id = state.issue_id();
        state.waiters.push((monitor, id));
        self.stop_working(&mut state);
        id
    }

    /// Blocks until the wait entered as `id` is notified.
    pub(crate) fn finish_wait(&self, id: u64) {
        self.until_released(self.lock(), id);
    }

    pub(crate) fn notify(&self, monitor: u64) {
        let mut state = self.lock();
        let State { waiters, released, working, .. } = &mut *state;
        waiters.retain(|&(of, id)| {
            if of == monitor {
                released.insert(id);
                *working += 1;
            }
            of != monitor
        });
        self.wake.notify_all();
    }

    pub(crate) fn thread_starts(&self) {
        self.lock().working += 1;
    }

    pub(crate) fn thread_ends(&self) {
        let mut state = self.lock();
        self.stop_working(&mut state);
    }

    fn stop_working(&self, state: &mut State) {
        state.working -= 1;
        if state.working > 0 {
            return;
        }
        if let Some(&Reverse((deadline, _))) = state.sleepers.peek() {
            state.now_ns = deadline;
            while let Some(&Reverse((at, id))) = state.sleepers.peek() {
                if at != deadline {
                    break;
                }
                state.sleepers.pop();
                state.released.insert(id);
                state.working += 1;
            }
        } else if !state.waiters.is_empty() {
            state.deadlocked = true;
        }
        self.wake.notify_all();
    }

    fn until_released(&self, mut state: MutexGuard<'_, State>, id: u64) {
        while !state.released.remove(&id) {
            assert!(!state.deadlocked, "every simulated thread waits and none sleeps: deadlock");
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn issue_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}
