//! A locked value whose changes threads can wait for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Clock, Kind};

/// A shared value; every update wakes those who wait for it to satisfy a condition.
#[derive(Debug)]
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
    clock: Clock,
    id: u64,
}

impl<T> Monitor<T> {
    /// Puts `value` under watch; waiting counts as idle time on `clock`.
    pub fn new(clock: &Clock, value: T) -> Self {
        let id = match &clock.kind {
            Kind::Real { .. } => 0,
            Kind::Simulated(simulation) => simulation.monitor_id(),
        };
        Self { value: Mutex::new(value), changed: Condvar::new(), clock: clock.clone(), id }
    }

    /// Looks at or changes the value without waking anybody.
    pub fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.lock())
    }

    /// Changes the value and wakes every thread that waits on it.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        match &self.clock.kind {
            Kind::Real { .. } => self.changed.notify_all(),
            Kind::Simulated(simulation) => simulation.notify(self.id),
        }
        result
    }

    /// Blocks until `ready` finds what it looks for. `ready` may change the value; other waiters
    /// learn of that change from a later [`Monitor::update`], not by this call.
    pub fn wait_for<R>(&self, mut ready: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut value = self.lock();
        loop {
            if let Some(found) = ready(&mut value) {
                return found;
            }
            value = match &self.clock.kind {
                Kind::Real { .. } => {
                    self.changed.wait(value).unwrap_or_else(PoisonError::into_inner)
                }
                Kind::Simulated(simulation) => {
                    let waiter = simulation.enter_wait(self.id);
                    drop(value);
                    simulation.finish_wait(waiter);
                    self.lock()
                }
            };
        }
    }

    /// A panic elsewhere must not turn every later wait into a second panic that hides the first.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
