//! The readers of a loader, lent to one epoch at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feedline_clock::{Clock, Thread};
use feedline_store::Meter;

use crate::cost::FrameworkCost;
use crate::error::{LoadError, Result};
use crate::interpreter::Receiver;
use crate::worker::{Preprocess, Worker};

/// What lives as long as the loader: buffers and kept files outlast an epoch, also one whose thread
/// could not be started or panicked. In an epoch each lock is held by the one thread that works with
/// what it guards, so nothing ever waits for one.
pub(crate) struct Readers {
    workers: Vec<Mutex<Worker>>,
    parsers: Vec<Mutex<Preprocess>>,
    receiver: Mutex<Receiver>,
    is_lent: AtomicBool,
}

impl Readers {
    pub(crate) fn new(
        workers: Vec<Worker>,
        parsers: Vec<Preprocess>,
        receiver: Receiver,
    ) -> Arc<Self> {
        Arc::new(Self {
            workers: workers.into_iter().map(Mutex::new).collect(),
            parsers: parsers.into_iter().map(Mutex::new).collect(),
            receiver: Mutex::new(receiver),
            is_lent: AtomicBool::new(false),
        })
    }

    /// Burns what the framework costs, too.
    pub(crate) fn set_cost(&self, cost: &Arc<FrameworkCost>) {
        self.workers().for_each(|mut worker| worker.set_cost(cost));
        self.receiver().set_cost(cost);
    }

    /// What the workers asked of the store so far; `None` while an epoch has them.
    pub(crate) fn meter(&self) -> Option<Meter> {
        if self.is_lent.load(Ordering::Acquire) {
            return None;
        }
        let mut total = Meter::default();
        self.workers().for_each(|mut worker| total.merge(worker.meter()));
        Some(total)
    }

    pub(crate) fn parser_count(&self) -> usize {
        self.parsers.len()
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn workers(&self) -> impl Iterator<Item = MutexGuard<'_, Worker>> {
        self.workers.iter().map(lock)
    }

    pub(crate) fn worker(&self, number: usize) -> MutexGuard<'_, Worker> {
        lock(&self.workers[number])
    }

    pub(crate) fn parser(&self, number: usize) -> MutexGuard<'_, Preprocess> {
        lock(&self.parsers[number])
    }

    pub(crate) fn receiver(&self) -> MutexGuard<'_, Receiver> {
        lock(&self.receiver)
    }
}

/// A panic elsewhere must not turn every later epoch into a second panic that hides the first.
fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loader's readers while an epoch has them, with the threads that they work in. Dropped, it waits
/// for those threads, which must have been told to end, and gives the readers back.
pub(crate) struct LentReaders {
    readers: Arc<Readers>,
    threads: Vec<Thread<()>>,
}

impl LentReaders {
    /// Takes the readers for an epoch; `None` while another epoch has them.
    pub(crate) fn take(readers: &Arc<Readers>) -> Option<Self> {
        let is_free = !readers.is_lent.swap(true, Ordering::AcqRel);
        is_free.then(|| Self { readers: Arc::clone(readers), threads: Vec::new() })
    }

    /// Starts the thread of one of the readers or parsers. The system may refuse.
    pub(crate) fn spawn(
        &mut self,
        clock: &Clock,
        (kind, number): (&str, usize),
        work: impl FnOnce(&Readers) + Send + 'static,
    ) -> Result<()> {
        let readers = Arc::clone(&self.readers);
        let started = clock.spawn(format!("{kind} {number}"), move || work(&readers));
        let refused = |source| LoadError::NoThread { reader: number, source };
        self.threads.push(started.map_err(refused)?);
        Ok(())
    }
}

impl std::ops::Deref for LentReaders {
    type Target = Readers;

    fn deref(&self) -> &Readers {
        &self.readers
    }
}

impl Drop for LentReaders {
    fn drop(&mut self) {
        // All must have ended before the readers go back.
        let ended: Vec<_> = self.threads.drain(..).map(Thread::join).collect();
        self.workers().for_each(|mut worker| worker.end_epoch());
        self.receiver().end_epoch();
        self.is_lent.store(false, Ordering::Release);
        if let Some(panic) = ended.into_iter().find_map(Result::err)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
