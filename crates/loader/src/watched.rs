//! A reader's account, seen by the consumer that waits for it.

use std::sync::Arc;

use feedline_store::{Progress, Spent};

/// The account of a reader, and how many batches (or samples) it had begun before this epoch.
pub(crate) struct Watched {
    progress: Arc<Progress>,
    before: u64,
}

impl Watched {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        let before = progress.snapshot(0).batch_no;
        Self { progress, before }
    }

    /// The account as of `now`; its number counts from the beginning of the epoch.
    pub(crate) fn snapshot(&self, now: u64) -> Spent {
        let spent = self.progress.snapshot(now);
        Spent { batch_no: spent.batch_no - self.before, ..spent }
    }
}
