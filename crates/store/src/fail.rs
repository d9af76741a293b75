//! A store that fails on purpose, once, where a test wants it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Durability, Entry, Kind, Object, Op, Resident, Store, StoreError, Upload};

/// Wraps a store so that one operation fails and all others go through.
///
/// Has no queue, whatever the store has: a queue's calls do not come by here.
#[derive(Clone)]
pub struct Failing<S> {
    inner: S,
    fault: Arc<Fault>,
}

/// Which operation fails, and how.
struct Fault {
    op: Op,
    nth: u64,
    errno: i32,
    seen: AtomicU64,
}

impl<S: Store> Failing<S> {
    /// Lets the `nth` operation of kind `op`, counted from 1, fail with the system error `errno`.
    pub fn new(inner: S, op: Op, nth: u64, errno: i32) -> Failing<S> {
        Failing { inner, fault: Arc::new(Fault { op, nth, errno, seen: AtomicU64::new(0) }) }
    }

    fn strike(&self, op: Op, key: &str) -> Result<(), StoreError> {
        self.fault.strike(op, || self.inner.locate(key))
    }
}

impl Fault {
    fn strike(&self, op: Op, path: impl FnOnce() -> String) -> Result<(), StoreError> {
        if op != self.op || self.seen.fetch_add(1, Ordering::Relaxed) + 1 != self.nth {
            return Ok(());
        }
        Err(StoreError::Io { op, path: path(), source: io::Error::from_raw_os_error(self.errno) })
    }
}

impl<S: Store> Store for Failing<S> {
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.strike(Op::Open, key)?;
        let (inner, fault) = (self.inner.open(key)?, Arc::clone(&self.fault));
        Ok(Box::new(FailingObject { inner, fault, path: self.locate(key) }))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError> {
        self.strike(Op::Create, key)?;
        let (inner, fault) = (self.inner.create(key)?, Arc::clone(&self.fault));
        Ok(Box::new(FailingUpload { inner, fault, path: self.locate(key) }))
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.strike(Op::List, folder)?;
        self.inner.list(folder, visit)
    }

    fn make_folder(&self, folder: &str) -> Result<(), StoreError> {
        self.strike(Op::MakeFolder, folder)?;
        self.inner.make_folder(folder)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.strike(Op::Remove, key)?;
        self.inner.remove(key)
    }

    fn remove_stale(&self, folder: &str) -> Result<u64, StoreError> {
        self.strike(Op::Remove, folder)?;
        self.inner.remove_stale(folder)
    }

    fn kind(&self, key: &str) -> Result<Option<Kind>, StoreError> {
        self.strike(Op::Stat, key)?;
        self.inner.kind(key)
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>, StoreError> {
        self.strike(Op::Inspect, folder)?;
        self.inner.free_bytes(folder)
    }

    fn resident_bytes(&self, key: &str) -> Result<Option<Resident>, StoreError> {
        self.strike(Op::Inspect, key)?;
        self.inner.resident_bytes(key)
    }

    fn evict(&self, key: &str) -> Result<(), StoreError> {
        self.strike(Op::Inspect, key)?;
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
}

struct FailingObject {
    inner: Box<dyn Object>,
    fault: Arc<Fault>,
    path: String,
}

impl Object for FailingObject {
    fn len(&mut self) -> Result<u64, StoreError> {
        self.fault.strike(Op::Stat, || self.path.clone())?;
        self.inner.len()
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.fault.strike(Op::Read, || self.path.clone())?;
        self.inner.read_exact_at(offset, buf)
    }
}

struct FailingUpload {
    inner: Box<dyn Upload>,
    fault: Arc<Fault>,
    path: String,
}

impl Upload for FailingUpload {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.fault.strike(Op::Write, || self.path.clone())?;
        self.inner.write_at(offset, bytes)
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        self.fault.strike(Op::Publish, || self.path.clone())?;
        self.inner.publish(durability)
    }
}
