//! A store that is slowed down on purpose, to emulate slower storage.

use std::sync::Arc;

use crate::throttled_queue::ThrottledQueue;
use crate::{
    Durability, Object, Op, RateLimiter, ReadQueue, Resident, Result, Store, Upload, Wrapper,
};

/// Wraps a store so that it obeys a rate limiter. Clones, and stores with the same limiter, share its
/// rates.
///
/// Every call is an operation with its latency, even if the page cache answers it; reads and writes
/// also share the bandwidth. Inspecting the page cache, evicting from it, asking for free space and
/// the cleanup of a dropped upload are not throttled.
#[derive(Clone)]
pub struct Throttled<S> {
    inner: S,
    limiter: Arc<RateLimiter>,
}

impl<S: Store> Throttled<S> {
    /// Throttles `inner` by `limiter`.
    pub fn new(inner: S, limiter: Arc<RateLimiter>) -> Throttled<S> {
        Throttled { inner, limiter }
    }
}

/// A listing is one operation, however many entries there are.
impl<S: Store> Wrapper for Throttled<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn around<T>(&self, op: Op, _key: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op == Op::Inspect { call() } else { self.limiter.call(0, call) }
    }

    fn object(&self, _key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        Box::new(ThrottledObject { inner, limiter: Arc::clone(&self.limiter) })
    }

    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(ThrottledUpload { inner, limiter: Arc::clone(&self.limiter) })
    }

    fn queue_of(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        let inner = self.inner.queue(depth)?;
        let limiter = || Arc::clone(&self.limiter);
        Ok(inner.map(|inner| Box::new(ThrottledQueue::new(inner, limiter(), depth)) as Box<_>))
    }
}

struct ThrottledObject {
    inner: Box<dyn Object>,
    limiter: Arc<RateLimiter>,
}

impl Object for ThrottledObject {
    fn len(&mut self) -> Result<u64> {
        self.limiter.call(0, || self.inner.len())
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.limiter.call(buf.len(), || self.inner.read_exact_at(offset, buf))
    }

    /// Charges the bytes that were found, which are known only after the call.
    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let found = self.inner.read_up_to(offset, buf)?;
        Ok(self.limiter.call(found, || found))
    }

    fn preferred_bytes(&self) -> usize {
        self.inner.preferred_bytes()
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        self.inner.resident()
    }
}

struct ThrottledUpload {
    inner: Box<dyn Upload>,
    limiter: Arc<RateLimiter>,
}

impl Upload for ThrottledUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.limiter.call(bytes.len(), || self.inner.write_at(offset, bytes))
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<()> {
        let ThrottledUpload { inner, limiter } = *self;
        limiter.call(0, || inner.publish(durability))
    }
}

#[cfg(test)]
mod tests;
