//! Time, real or simulated, and blocking that both understand.
//!
//! Everything in Feedline that reads a clock, sleeps, waits for another thread or starts one does it
//! through this crate. With [`Clock::real`] that costs a monotonic clock read or a condition
//! variable. With [`Clock::simulated`] time stops while any thread works and jumps to the
//! next deadline when all of them wait, so an engine of many threads gives the same nanoseconds
//! every time and its numbers can be compared with a calculation done by hand.
//!
//! Never reads the wall clock: dates belong to the result files, durations come from here.
//!
//! ```
//! use feedline_clock::Clock;
//!
//! let clock = Clock::simulated();
//! clock.scope(|scope| {
//!     for nap_ns in [30, 10, 20] {
//!         let clock = clock.clone();
//!         scope.spawn(format!("nap {nap_ns}"), move || clock.sleep(nap_ns)).unwrap();
//!     }
//! });
//! // The threads slept at the same time, and no real time passed.
//! assert_eq!(clock.now(), 30);
//! ```
#![forbid(unsafe_code)]

mod cpu;
mod lineage;
mod monitor;
mod scope;
mod simulated;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use cpu::CpuMark;
pub use monitor::Monitor;
pub use scope::{Scope, Thread};
use simulated::Simulation;

/// Longest uninterrupted real sleep of [`Clock::sleep_unless`]; bounds how late a stop is noticed.
const NAP_NS: u64 = 50_000_000;

/// A source of monotonic time; clones share it.
#[derive(Clone, Debug)]
pub struct Clock {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Real { origin: Instant },
    Simulated(Arc<Simulation>),
}

impl Clock {
    /// The machine's monotonic clock; zero is the moment of this call.
    pub fn real() -> Self {
        Self { kind: Kind::Real { origin: Instant::now() } }
    }

    /// A clock that starts at zero and moves only when every thread that uses it waits.
    ///
    /// The calling thread counts as working; other threads must be started through [`Clock::scope`]
    /// or [`Clock::spawn`].
    pub fn simulated() -> Self {
        Self { kind: Kind::Simulated(Arc::new(Simulation::default())) }
    }

    /// Nanoseconds since the clock's origin.
    pub fn now(&self) -> u64 {
        match &self.kind {
            Kind::Real { origin } => origin.elapsed().as_nanos() as u64,
            Kind::Simulated(simulation) => simulation.now(),
        }
    }

    /// Blocks the calling thread for `duration_ns`.
    pub fn sleep(&self, duration_ns: u64) {
        match &self.kind {
            Kind::Real { .. } => std::thread::sleep(Duration::from_nanos(duration_ns)),
            Kind::Simulated(simulation) => simulation.sleep(duration_ns),
        }
    }

    /// Blocks for `duration_ns` unless `stop` is or becomes true; a stop is seen within 50 ms.
    pub fn sleep_unless(&self, duration_ns: u64, stop: &AtomicBool) {
        match &self.kind {
            Kind::Real { .. } => {
                let end = self.now() + duration_ns;
                while !stop.load(Ordering::Relaxed) {
                    let left = end.saturating_sub(self.now());
                    if left == 0 {
                        return;
                    }
                    std::thread::sleep(Duration::from_nanos(left.min(NAP_NS)));
                }
            }
            Kind::Simulated(simulation) => {
                if !stop.load(Ordering::Relaxed) {
                    simulation.sleep(duration_ns);
                }
            }
        }
    }
}
