//! A store that is slower than it could be: what if my storage were?

use std::sync::Arc;

use crate::limited_queue::LimitedQueue;
use crate::{
    Durability, Object, Op, Pace, ReadQueue, Resident, Store, StoreError, Upload, Wrapper,
};

/// Wraps a store so that it keeps to a pace. Clones, and stores with the same pace, share its rates.
///
/// Every call is an operation with its latency; reads and writes take their bytes of one bandwidth
/// as well. What the page cache would answer is held to it too. Looking into the page cache, emptying
/// it and asking for free space are no operations of a storage and go through; so does what a dropped
/// upload cleans up.
#[derive(Clone)]
pub struct Limited<S> {
    inner: S,
    pace: Arc<Pace>,
}

impl<S: Store> Limited<S> {
    /// Holds `inner` to `pace`.
    pub fn new(inner: S, pace: Arc<Pace>) -> Limited<S> {
        Limited { inner, pace }
    }
}

/// A listing is one operation, however many entries there are.
impl<S: Store> Wrapper for Limited<S> {
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
        if op == Op::Inspect { call() } else { self.pace.call(0, call) }
    }

    fn object(&self, _key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        Box::new(LimitedObject { inner, pace: Arc::clone(&self.pace) })
    }

    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(LimitedUpload { inner, pace: Arc::clone(&self.pace) })
    }

    fn queue_of(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>, StoreError> {
        let inner = self.inner.queue(depth)?;
        let pace = || Arc::clone(&self.pace);
        Ok(inner.map(|inner| Box::new(LimitedQueue::new(inner, pace(), depth)) as Box<_>))
    }
}

struct LimitedObject {
    inner: Box<dyn Object>,
    pace: Arc<Pace>,
}

impl Object for LimitedObject {
    fn len(&mut self) -> Result<u64, StoreError> {
        self.pace.call(0, || self.inner.len())
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.pace.call(buf.len(), || self.inner.read_exact_at(offset, buf))
    }

    /// How many bytes there are is known only afterwards, and those are what the rate counts.
    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, StoreError> {
        let found = self.inner.read_up_to(offset, buf)?;
        Ok(self.pace.call(found, || found))
    }

    fn preferred_bytes(&self) -> usize {
        self.inner.preferred_bytes()
    }

    fn resident(&mut self) -> Result<Option<Resident>, StoreError> {
        self.inner.resident()
    }
}

struct LimitedUpload {
    inner: Box<dyn Upload>,
    pace: Arc<Pace>,
}

impl Upload for LimitedUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.pace.call(bytes.len(), || self.inner.write_at(offset, bytes))
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        let LimitedUpload { inner, pace } = *self;
        pace.call(0, || inner.publish(durability))
    }
}

#[cfg(test)]
mod tests;
