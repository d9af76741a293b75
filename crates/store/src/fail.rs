//! A store that fails on purpose, where a test or a user wants it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{
    Durability, Entry, FaultSpec, Faults, Kind, Object, Op, Resident, Store, StoreError, Upload,
    When,
};

/// Wraps a store so that some operations fail and all others go through.
///
/// Has no queue, whatever the store has: a queue does not say which of its objects a call was for, and
/// a fault names its object. Readers that want many reads under way use threads then, and each of
/// their reads counts.
#[derive(Clone)]
pub struct Failing<S> {
    inner: S,
    faults: Arc<Faults>,
}

impl<S: Store> Failing<S> {
    /// Lets the `nth` operation of kind `op`, counted from 1, fail with the system error `errno`.
    pub fn new(inner: S, op: Op, nth: u64, errno: i32) -> Failing<S> {
        let spec = FaultSpec { op, when: When::Nth(nth), errno };
        Failing::sharing(inner, Arc::new(Faults::new(vec![spec])))
    }

    /// Counts operations towards `faults`, together with all who share them.
    pub fn sharing(inner: S, faults: Arc<Faults>) -> Failing<S> {
        Failing { inner, faults }
    }

    fn strike(&self, op: Op, key: &str) -> Result<(), StoreError> {
        self.faults.strike(op, || self.inner.locate(key))
    }
}

impl<S: Store> Store for Failing<S> {
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.strike(Op::Open, key)?;
        let (inner, faults) = (self.inner.open(key)?, Arc::clone(&self.faults));
        Ok(Box::new(FailingObject { inner, faults, path: self.locate(key) }))
    }

    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.strike(Op::Open, key)?;
        let (inner, faults) = (self.inner.open_whole(key)?, Arc::clone(&self.faults));
        Ok(Box::new(FailingObject { inner, faults, path: self.locate(key) }))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError> {
        self.strike(Op::Create, key)?;
        let (inner, faults) = (self.inner.create(key)?, Arc::clone(&self.faults));
        Ok(Box::new(FailingUpload { inner, faults, path: self.locate(key) }))
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

    fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        self.strike(Op::Stat, key)?;
        self.inner.size(key)
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
    faults: Arc<Faults>,
    path: String,
}

impl Object for FailingObject {
    fn len(&mut self) -> Result<u64, StoreError> {
        self.faults.strike(Op::Stat, || self.path.clone())?;
        self.inner.len()
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.faults.strike(Op::Read, || self.path.clone())?;
        self.inner.read_exact_at(offset, buf)
    }
}

struct FailingUpload {
    inner: Box<dyn Upload>,
    faults: Arc<Faults>,
    path: String,
}

impl Upload for FailingUpload {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.faults.strike(Op::Write, || self.path.clone())?;
        self.inner.write_at(offset, bytes)
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        self.faults.strike(Op::Publish, || self.path.clone())?;
        self.inner.publish(durability)
    }
}
