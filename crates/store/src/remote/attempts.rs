//! What the attempts of one operation came to.
//!
//! The HTTP layer is called by `object_store`, which repeats a request that went wrong and resumes a
//! body that broke off, and does not tell. So an operation's future carries its [`Attempts`] along,
//! and every attempt enters itself there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::failure::Failure;
use super::raw::Tap;
use crate::lock::lock;
use crate::request_count::{self, RequestCount};

tokio::task_local! {
    static CURRENT: Arc<Attempts>;
}

/// The attempts of one operation, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    requests: AtomicU64,
    retries: AtomicU64,
    /// The last one went wrong in a way that passes.
    failed: AtomicBool,
    retried: AtomicBool,
    last: Mutex<Option<Failure>>,
    /// For operations that read the bytes of an object themselves.
    pub(crate) tap: Option<Tap>,
}

impl Attempts {
    /// Those of an operation that reads the bytes of an object with a [`BodyReader`](super::raw::BodyReader).
    pub(crate) fn tapped() -> Arc<Attempts> {
        Arc::new(Attempts { tap: Some(Tap::default()), ..Attempts::default() })
    }

    /// Those of the operation whose future is being polled; none for requests that fetch credentials.
    pub(crate) fn current() -> Option<Arc<Attempts>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Lets the requests of a future enter themselves here.
    pub(crate) fn over<F: Future>(
        self: &Arc<Self>,
        future: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(Arc::clone(self), future)
    }

    pub(crate) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.failed.swap(false, Ordering::Relaxed) {
            self.retries.fetch_add(1, Ordering::Relaxed);
            self.retried.store(true, Ordering::Relaxed);
        }
        *self.last() = None;
    }

    pub(crate) fn fail(&self, failure: Failure) {
        self.failed.store(failure.is_passing(), Ordering::Relaxed);
        *self.last() = Some(failure);
    }

    /// Why the last attempt went wrong, if it did.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.last().clone()
    }

    /// Whether anything was sent twice.
    pub(crate) fn was_retried(&self) -> bool {
        self.retried.load(Ordering::Relaxed)
    }

    /// Charges what was counted since the last call of this to the storage call of this thread.
    pub(crate) fn charge(&self) {
        let requests = self.requests.swap(0, Ordering::Relaxed);
        let retries = self.retries.swap(0, Ordering::Relaxed);
        request_count::add(RequestCount { requests, retries });
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        lock(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::Refusal;
    use super::*;

    #[test]
    fn a_retry_is_an_attempt_after_one_that_may_pass() {
        let attempts = Attempts::default();
        let before = RequestCount::of_thread();
        for status in [503, 404, 500, 500] {
            attempts.begin();
            attempts.fail(Failure::of_answer(Refusal { status, ..Refusal::default() }));
        }
        attempts.begin();
        assert_eq!(attempts.failure(), None);
        attempts.charge();
        attempts.charge();
        // After the 503 and after each 500; what follows a 404 is another question.
        assert_eq!(RequestCount::of_thread() - before, RequestCount { requests: 5, retries: 3 });
    }
}
