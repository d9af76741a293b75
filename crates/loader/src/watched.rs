//! A reader's account, seen by the consumer that waits for it.

use std::sync::Arc;

use feedline_store::{BatchTimer, BatchTimes};

/// The account of a reader, and how many batches (or samples) it had begun before this epoch.
pub(crate) struct Watched {
    progress: Arc<BatchTimer>,
    before: u64,
}

impl Watched {
    pub(crate) fn new(progress: Arc<BatchTimer>) -> Self {
        let before = progress.snapshot(0).batch_no;
        Self { progress, before }
    }

    /// The account as of `now`; its number counts from the beginning of the epoch.
    pub(crate) fn snapshot(&self, now: u64) -> BatchTimes {
        let spent = self.progress.snapshot(now);
        BatchTimes { batch_no: spent.batch_no - self.before, ..spent }
    }
}
