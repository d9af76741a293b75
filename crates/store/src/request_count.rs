//! Network requests of the current thread's storage calls.
//!
//! A remote store works on its caller's thread, so what it adds here during a call belongs to that
//! call. [`Metered`](crate::Metered) takes the difference.

use std::cell::Cell;
use std::ops::Sub;

/// Requests sent over a network, and how many of them were retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCount {
    /// Requests sent, with every retry counted.
    pub requests: u64,
    /// Requests that retried a failed one.
    pub retries: u64,
}

impl RequestCount {
    /// All requests of this thread's storage calls so far.
    pub fn of_thread() -> RequestCount {
        TOTAL.get()
    }
}

thread_local! {
    static TOTAL: Cell<RequestCount> = const { Cell::new(RequestCount { requests: 0, retries: 0 }) };
}

/// Adds requests of this thread's current call.
#[cfg(feature = "remote")]
pub(crate) fn add(count: RequestCount) {
    let RequestCount { requests, retries } = TOTAL.get();
    TOTAL.set(RequestCount {
        requests: requests + count.requests,
        retries: retries + count.retries,
    });
}

impl Sub for RequestCount {
    type Output = RequestCount;

    fn sub(self, earlier: RequestCount) -> RequestCount {
        RequestCount {
            requests: self.requests - earlier.requests,
            retries: self.retries - earlier.retries,
        }
    }
}
