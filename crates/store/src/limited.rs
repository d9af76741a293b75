//! A store that is slower than it could be: what if my storage were?

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::limited_queue::LimitedQueue;
use crate::{
    Durability, Entry, Kind, Object, Pace, ReadQueue, Resident, Store, StoreError, Upload,
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

impl<S: Store> Store for Limited<S> {
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        let inner = self.pace.call(0, || self.inner.open(key))?;
        Ok(Box::new(LimitedObject { inner, pace: Arc::clone(&self.pace) }))
    }

    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        let inner = self.pace.call(0, || self.inner.open_whole(key))?;
        Ok(Box::new(LimitedObject { inner, pace: Arc::clone(&self.pace) }))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError> {
        let inner = self.pace.call(0, || self.inner.create(key))?;
        Ok(Box::new(LimitedUpload { inner, pace: Arc::clone(&self.pace) }))
    }

    /// One operation, however many entries there are.
    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.pace.call(0, || self.inner.list(folder, visit))
    }

    fn make_folder(&self, folder: &str) -> Result<(), StoreError> {
        self.pace.call(0, || self.inner.make_folder(folder))
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.pace.call(0, || self.inner.remove(key))
    }

    fn remove_stale(&self, folder: &str) -> Result<u64, StoreError> {
        self.pace.call(0, || self.inner.remove_stale(folder))
    }

    fn kind(&self, key: &str) -> Result<Option<Kind>, StoreError> {
        self.pace.call(0, || self.inner.kind(key))
    }

    fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        self.pace.call(0, || self.inner.size(key))
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>, StoreError> {
        self.inner.free_bytes(folder)
    }

    fn resident_bytes(&self, key: &str) -> Result<Option<Resident>, StoreError> {
        self.inner.resident_bytes(key)
    }

    fn evict(&self, key: &str) -> Result<(), StoreError> {
        self.inner.evict(key)
    }

    fn locate(&self, key: &str) -> String {
        self.inner.locate(key)
    }

    fn block_bytes(&self) -> usize {
        self.inner.block_bytes()
    }

    fn read_bytes(&self) -> usize {
        self.inner.read_bytes()
    }

    fn queue(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>, StoreError> {
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
}

struct LimitedUpload {
    inner: Box<dyn Upload>,
    pace: Arc<Pace>,
}

impl Upload for LimitedUpload {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.pace.call(bytes.len(), || self.inner.write_at(offset, bytes))
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        let LimitedUpload { inner, pace } = *self;
        pace.call(0, || inner.publish(durability))
    }
}

#[cfg(test)]
mod tests;
