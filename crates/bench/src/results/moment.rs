//! Points in time for result files: local wall clock for people, monotonic for durations.

use feedline_clock::Clock;
use serde::{Deserialize, Serialize};

/// A moment of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Monotonic time on the run's clock.
    pub ns: u64,
    /// Local date and time with microseconds, as DLIO writes it.
    pub text: String,
}

impl Moment {
    /// Now.
    pub(crate) fn now(clock: &Clock) -> Self {
        let text = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
        Self { ns: clock.now(), text }
    }

    /// A moment that has passed.
    pub(crate) fn at(clock: &Clock, ns: u64) -> Self {
        let ago = std::time::Duration::from_nanos(clock.now().saturating_sub(ns));
        let then = jiff::Zoned::now().saturating_sub(ago);
        Self { ns, text: then.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string() }
    }

    /// Seconds since `earlier`.
    pub fn seconds_since(&self, earlier: &Moment) -> f64 {
        self.ns.saturating_sub(earlier.ns) as f64 / 1e9
    }
}
