//! Threads whose work and end the clock knows about.

use std::io;
use std::sync::Arc;
use std::thread::{JoinHandle, ScopedJoinHandle};

use crate::{Clock, Kind, Monitor, lineage};

/// Starts threads that end before the scope does; see [`Clock::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    threads: &'scope std::thread::Scope<'scope, 'env>,
    clock: Clock,
    alive: Arc<Monitor<usize>>,
}

impl Clock {
    /// Runs `body`, which may start threads, and waits for all of them. As `std::thread::scope`, but
    /// a simulated clock neither misses a thread nor lets time pass between its end and the return.
    pub fn scope<'env, T>(&self, body: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
        std::thread::scope(|threads| {
            let alive = Arc::new(Monitor::new(self, 0));
            let scope = Scope { threads, clock: self.clone(), alive };
            let result = body(&scope);
            scope.alive.wait_for(|count| (*count == 0).then_some(()));
            result
        })
    }
}

/// A thread that owns what it works on; see [`Clock::spawn`].
pub struct Thread<T> {
    handle: JoinHandle<T>,
    alive: Arc<Monitor<usize>>,
}

impl Clock {
    /// Starts a thread named `name` that may outlive its caller. As `std::thread::spawn`, but a
    /// simulated clock counts it as working until it ends.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: String,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Thread<T>> {
        let alive = Arc::new(Monitor::new(self, 0));
        let presence = Presence::announce(self, &alive);
        let lineage = lineage::of_child(&name);
        let handle = std::thread::Builder::new().name(name).spawn(move || {
            let _presence = presence;
            lineage::take_on(lineage);
            work()
        })?;
        Ok(Thread { handle, alive })
    }
}

impl<T> Thread<T> {
    /// Waits for the thread to end; gives what it returned, or what it panicked with.
    pub fn join(self) -> std::thread::Result<T> {
        self.alive.wait_for(|count| (*count == 0).then_some(()));
        self.handle.join()
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread named `name`. The system may refuse: the caller must then let go those
    /// threads that would wait for this one.
    pub fn spawn<T: Send + 'scope>(
        &self,
        name: String,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let presence = Presence::announce(&self.clock, &self.alive);
        let lineage = lineage::of_child(&name);
        std::thread::Builder::new().name(name).spawn_scoped(self.threads, move || {
            let _presence = presence;
            lineage::take_on(lineage);
            work()
        })
    }
}

/// Counts a thread as alive and working from before its start until its end, panics included.
struct Presence {
    clock: Clock,
    alive: Arc<Monitor<usize>>,
}

impl Presence {
    fn announce(clock: &Clock, alive: &Arc<Monitor<usize>>) -> Self {
        alive.with(|count| *count += 1);
        if let Kind::Simulated(simulation) = &clock.kind {
            simulation.thread_starts();
        }
        Self { clock: clock.clone(), alive: Arc::clone(alive) }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // First the notification, then the end of work: the waiting parent works again before this
        // thread stops, so simulated time cannot move in between.
        self.alive.update(|count| *count -= 1);
        if let Kind::Simulated(simulation) = &self.clock.kind {
            simulation.thread_ends();
        }
    }
}
