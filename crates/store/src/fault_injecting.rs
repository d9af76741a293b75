//! A store that fails on purpose.

use std::sync::Arc;

use crate::{
    Capabilities, Durability, FaultSpec, Faults, Object, Op, ReadQueue, Resident, Result, Store,
    Upload, When, Wrapper,
};

/// Wraps a store so that some operations fail and all others go through.
///
/// It never has a queue, so that every read is a counted operation that can fail. Readers that keep
/// many reads in flight fall back to threads.
#[derive(Clone)]
pub struct FaultInjecting<S> {
    inner: S,
    faults: Arc<Faults>,
}

impl<S: Store> FaultInjecting<S> {
    /// Makes the `nth` operation of kind `op`, counted from 1, fail with the system error `errno`.
    pub fn new(inner: S, op: Op, nth: u64, errno: i32) -> FaultInjecting<S> {
        let spec = FaultSpec { op, when: When::Nth(nth), errno };
        FaultInjecting::sharing(inner, Arc::new(Faults::new(vec![spec])))
    }

    /// Applies `faults`, which count the operations of all stores that share them.
    pub fn sharing(inner: S, faults: Arc<Faults>) -> FaultInjecting<S> {
        FaultInjecting { inner, faults }
    }
}

impl<S: Store> Wrapper for FaultInjecting<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn around<T>(&self, op: Op, key: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.faults.strike(op, || self.inner.locate(key))?;
        call()
    }

    fn object(&self, key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        let (faults, path) = (Arc::clone(&self.faults), self.inner.locate(key));
        Box::new(FaultInjectingObject { inner, faults, path })
    }

    fn upload(&self, key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        let (faults, path) = (Arc::clone(&self.faults), self.inner.locate(key));
        Box::new(FaultInjectingUpload { inner, faults, path })
    }

    fn offers(&self) -> Capabilities {
        Capabilities { queue: false, ..self.inner.capabilities() }
    }

    fn queue_of(&self, _depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        Ok(None)
    }
}

struct FaultInjectingObject {
    inner: Box<dyn Object>,
    faults: Arc<Faults>,
    path: String,
}

impl Object for FaultInjectingObject {
    fn len(&mut self) -> Result<u64> {
        self.faults.strike(Op::Stat, || self.path.clone())?;
        self.inner.len()
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.faults.strike(Op::Read, || self.path.clone())?;
        self.inner.read_exact_at(offset, buf)
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.faults.strike(Op::Read, || self.path.clone())?;
        self.inner.read_up_to(offset, buf)
    }

    fn preferred_bytes(&self) -> usize {
        self.inner.preferred_bytes()
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        self.inner.resident()
    }
}

struct FaultInjectingUpload {
    inner: Box<dyn Upload>,
    faults: Arc<Faults>,
    path: String,
}

impl Upload for FaultInjectingUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.faults.strike(Op::Write, || self.path.clone())?;
        self.inner.write_at(offset, bytes)
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<()> {
        self.faults.strike(Op::Publish, || self.path.clone())?;
        self.inner.publish(durability)
    }
}
