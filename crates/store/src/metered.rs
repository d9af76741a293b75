//! A store that keeps its thread's accounts.

use std::sync::{Arc, Mutex, PoisonError};

use feedline_clock::Clock;

use crate::tally::{self, Tally};
use crate::{
    Call, Durability, Ended, Extent, Meter, Object, Op, Progress, ReadQueue, Store, StoreError,
    Upload, Wrapper,
};

/// Wraps a store for one worker: every call is timed and counted, and shown in its progress.
///
/// Make one for each worker; clones and everything opened through it share its meter.
#[derive(Clone)]
pub struct Metered<S> {
    inner: S,
    ledger: Ledger,
}

/// Where calls are entered.
#[derive(Clone)]
struct Ledger {
    clock: Clock,
    meter: Arc<Mutex<Meter>>,
    progress: Arc<Progress>,
}

impl<S: Store> Metered<S> {
    /// Counts what goes through to `inner` from now on.
    pub fn new(inner: S, clock: Clock) -> Metered<S> {
        Metered { inner, ledger: Ledger { clock, meter: Arc::default(), progress: Arc::default() } }
    }

    /// The worker's account of its current batch, to look at from elsewhere.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.ledger.progress)
    }

    /// What was counted since the last call of this; counting goes on from zero.
    pub fn take(&self) -> Meter {
        std::mem::take(&mut self.ledger.meter.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ledger {
    /// Enters a call that moves `bytes` if it succeeds.
    fn enter<T>(
        &self,
        op: Op,
        bytes: usize,
        call: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = tally::total();
        let start = self.clock.now();
        self.progress.enter_storage(start);
        let result = call();
        let end = self.clock.now();
        self.progress.leave_storage(end);
        let ended = match result {
            Ok(_) => Ended::Well { bytes: bytes as u64 },
            Err(_) => Ended::Badly,
        };
        let took = tally::total() - before;
        self.record(Call { op, duration_ns: end.saturating_sub(start), ended }, took);
        result
    }

    fn record(&self, call: Call, took: Tally) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.record(call.op, call.duration_ns, call.ended);
        meter.record_requests(call.op, took);
    }
}

/// The time of a listing includes the visits.
impl<S: Store> Wrapper for Metered<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn around<T>(
        &self,
        op: Op,
        _key: &str,
        call: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ledger.enter(op, 0, call)
    }

    fn object(&self, _key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        Box::new(MeteredObject { inner, ledger: self.ledger.clone() })
    }

    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(MeteredUpload { inner, ledger: self.ledger.clone() })
    }

    fn queue_of(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>, StoreError> {
        let inner = self.inner.queue(depth)?;
        let ledger = self.ledger.clone();
        Ok(inner.map(|inner| Box::new(MeteredQueue { inner, ledger }) as Box<dyn ReadQueue>))
    }
}

struct MeteredObject {
    inner: Box<dyn Object>,
    ledger: Ledger,
}

impl Object for MeteredObject {
    fn len(&mut self) -> Result<u64, StoreError> {
        self.ledger.enter(Op::Stat, 0, || self.inner.len())
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.ledger.enter(Op::Read, buf.len(), || self.inner.read_exact_at(offset, buf))
    }
}

struct MeteredUpload {
    inner: Box<dyn Upload>,
    ledger: Ledger,
}

impl Upload for MeteredUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.ledger.enter(Op::Write, bytes.len(), || self.inner.write_at(offset, bytes))
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        let MeteredUpload { inner, ledger } = *self;
        ledger.enter(Op::Publish, 0, || inner.publish(durability))
    }
}

struct MeteredQueue {
    inner: Box<dyn ReadQueue>,
    ledger: Ledger,
}

impl ReadQueue for MeteredQueue {
    /// Every call is counted with its own latency; the worker is in storage all the while.
    fn read(&mut self, extents: &[Extent], seen: &mut dyn FnMut(Call)) -> Result<u64, StoreError> {
        let Ledger { clock, progress, .. } = &self.ledger;
        progress.enter_storage(clock.now());
        let mut before = tally::total();
        let result = self.inner.read(extents, &mut |call| {
            let now = tally::total();
            self.ledger.record(call, now - before);
            before = now;
            seen(call);
        });
        progress.leave_storage(clock.now());
        result
    }
}
