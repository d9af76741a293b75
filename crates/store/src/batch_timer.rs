//! The time that a worker has spent on its current batch, visible to other threads meanwhile.

use std::sync::{Mutex, MutexGuard};

use crate::lock::lock;

/// Times a worker's current batch. One thread writes, any thread reads.
///
/// The mutex is almost never contended: readers come once per step, and the time in storage dwarfs
/// the two lock operations around it.
#[derive(Debug, Default)]
pub struct BatchTimer {
    account: Mutex<Account>,
}

/// The times of a batch up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchTimes {
    /// Number of batches the worker has begun; 0 before the first.
    pub batch_no: u64,
    /// Time in storage, including the operation in progress.
    pub storage_ns: u64,
    /// Time of the framework's own work (interpreter, hand-over, start), including what is in progress.
    pub framework_ns: u64,
    /// Time since the batch began, both included; fixed once it has ended.
    pub busy_ns: u64,
}

#[derive(Debug, Default)]
struct Account {
    spent: BatchTimes,
    began_at: Option<u64>,
    /// What the worker is doing, and since when.
    inside: Option<(Part, u64)>,
}

/// What a worker can be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Storage,
    Framework,
}

impl BatchTimer {
    /// The worker begins its next batch.
    pub fn begin_batch(&self, now: u64) {
        let mut account = self.account();
        let batch_no = account.spent.batch_no + 1;
        *account = Account {
            spent: BatchTimes { batch_no, ..BatchTimes::default() },
            began_at: Some(now),
            inside: None,
        };
    }

    /// The worker calls the store. Not counted outside of a batch.
    pub fn enter_storage(&self, now: u64) {
        self.account().enter(Part::Storage, now);
    }

    /// The store has answered.
    pub fn leave_storage(&self, now: u64) {
        self.account().settle(now);
    }

    /// The worker begins work of the framework, which calls no store. Not counted outside of a batch.
    pub fn enter_framework(&self, now: u64) {
        self.account().enter(Part::Framework, now);
    }

    /// The framework's work is done.
    pub fn leave_framework(&self, now: u64) {
        self.account().settle(now);
    }

    /// The batch is complete. Its times stay until the next one begins.
    pub fn end_batch(&self, now: u64) {
        let mut account = self.account();
        account.settle(now);
        if let Some(began_at) = account.began_at.take() {
            account.spent.busy_ns = now.saturating_sub(began_at);
        }
    }

    /// The times of the current or last batch as of `now`.
    pub fn snapshot(&self, now: u64) -> BatchTimes {
        let account = self.account();
        let mut spent = account.spent;
        if let Some((part, entered_at)) = account.inside {
            spent.add(part, now.saturating_sub(entered_at));
        }
        if let Some(began_at) = account.began_at {
            spent.busy_ns = now.saturating_sub(began_at);
        }
        spent
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.account)
    }
}

impl BatchTimes {
    /// The times since `before`, an earlier snapshot; keeps the batch number.
    pub fn since(&self, before: &BatchTimes) -> BatchTimes {
        BatchTimes {
            batch_no: self.batch_no,
            storage_ns: self.storage_ns.saturating_sub(before.storage_ns),
            framework_ns: self.framework_ns.saturating_sub(before.framework_ns),
            busy_ns: self.busy_ns.saturating_sub(before.busy_ns),
        }
    }

    /// Adds the times of further work; keeps the batch number.
    pub fn extend(&mut self, more: &BatchTimes) {
        self.storage_ns += more.storage_ns;
        self.framework_ns += more.framework_ns;
        self.busy_ns += more.busy_ns;
    }

    fn add(&mut self, part: Part, ns: u64) {
        match part {
            Part::Storage => self.storage_ns += ns,
            Part::Framework => self.framework_ns += ns,
        }
    }
}

impl Account {
    fn enter(&mut self, part: Part, now: u64) {
        self.inside = self.began_at.map(|_| (part, now));
    }

    fn settle(&mut self, now: u64) {
        if let Some((part, entered_at)) = self.inside.take() {
            self.spent.add(part, now.saturating_sub(entered_at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(batch_no: u64, storage_ns: u64, busy_ns: u64) -> BatchTimes {
        BatchTimes { batch_no, storage_ns, busy_ns, framework_ns: 0 }
    }

    #[test]
    fn an_operation_in_flight_counts_up_to_now() {
        let progress = BatchTimer::default();
        assert_eq!(progress.snapshot(50), spent(0, 0, 0));
        progress.begin_batch(100);
        assert_eq!(progress.snapshot(110), spent(1, 0, 10));
        progress.enter_storage(120);
        assert_eq!(progress.snapshot(150), spent(1, 30, 50));
        progress.leave_storage(160);
        assert_eq!(progress.snapshot(200), spent(1, 40, 100));
        progress.enter_storage(210);
        progress.leave_storage(215);
        progress.end_batch(230);
        assert_eq!(progress.snapshot(900), spent(1, 45, 130));
        progress.begin_batch(1000);
        assert_eq!(progress.snapshot(1001), spent(2, 0, 1));
    }

    #[test]
    fn the_frameworks_work_is_a_part_of_its_own() {
        let progress = BatchTimer::default();
        progress.begin_batch(0);
        progress.enter_storage(10);
        progress.leave_storage(30);
        progress.enter_framework(40);
        let found = progress.snapshot(45);
        assert_eq!(found, BatchTimes { framework_ns: 5, ..spent(1, 20, 45) });
        progress.leave_framework(70);
        progress.end_batch(75);
        assert_eq!(progress.snapshot(99), BatchTimes { framework_ns: 30, ..spent(1, 20, 75) });
    }

    #[test]
    fn storage_outside_of_a_batch_is_nobodys() {
        let progress = BatchTimer::default();
        progress.enter_storage(10);
        progress.leave_storage(20);
        assert_eq!(progress.snapshot(30), spent(0, 0, 0));
        progress.begin_batch(30);
        progress.end_batch(40);
        progress.enter_storage(50);
        assert_eq!(progress.snapshot(60), spent(1, 0, 10));
    }
}
