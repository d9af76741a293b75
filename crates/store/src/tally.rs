//! Requests that the current thread's storage calls took, as far as there is a network below.
//!
//! A remote store works on its caller's thread, so what it adds here between the begin and the end of
//! a call belongs to that call. [`Metered`](crate::Metered) takes the difference.

use std::cell::Cell;
use std::ops::Sub;

/// Requests sent over a network, and how many of them repeated one that had gone wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests, repeated ones included.
    pub requests: u64,
    /// Those that repeated one.
    pub retries: u64,
}

impl Tally {
    /// All requests of the calling thread's storage calls so far.
    pub fn of_thread() -> Tally {
        total()
    }
}

thread_local! {
    static TOTAL: Cell<Tally> = const { Cell::new(Tally { requests: 0, retries: 0 }) };
}

/// All requests of this thread so far.
pub(crate) fn total() -> Tally {
    TOTAL.get()
}

/// Adds to what this thread's current call took.
#[cfg(feature = "remote")]
pub(crate) fn add(tally: Tally) {
    let Tally { requests, retries } = TOTAL.get();
    TOTAL.set(Tally { requests: requests + tally.requests, retries: retries + tally.retries });
}

impl Sub for Tally {
    type Output = Tally;

    fn sub(self, earlier: Tally) -> Tally {
        Tally {
            requests: self.requests - earlier.requests,
            retries: self.retries - earlier.retries,
        }
    }
}
