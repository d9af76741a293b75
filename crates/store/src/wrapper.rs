//! Stores that wrap another one, to count, throttle, fail or observe its calls.

use std::ops::ControlFlow;

use crate::{
    Capabilities, Durability, EntryKind, FolderEntry, Object, Op, ReadQueue, Result, Store,
    TraceSites, Upload,
};

/// A store that wraps another one. Every call goes through [`Wrapper::around`] to the inner store;
/// methods that are not overridden pass everything on unchanged.
pub trait Wrapper: Send + Sync {
    /// The type of the wrapped store.
    type Inner: Store + ?Sized;

    /// The wrapped store.
    fn inner(&self) -> &Self::Inner;

    /// Makes a call about `key`, or fails instead.
    fn around<T>(&self, _op: Op, _key: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        call()
    }

    /// Wraps an object that was opened.
    fn object(&self, _key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        inner
    }

    /// Wraps an object that is being written.
    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        inner
    }

    /// The capabilities of the inner store, less those that the wrapper cannot pass on.
    fn offers(&self) -> Capabilities {
        self.inner().capabilities()
    }

    /// Wraps the inner store's queue.
    fn queue_of(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        self.inner().queue(depth)
    }
}

impl<W: Wrapper> Store for W {
    fn open(&self, key: &str) -> Result<Box<dyn Object>> {
        let inner = self.around(Op::Open, key, || self.inner().open(key))?;
        Ok(self.object(key, inner))
    }

    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>> {
        let inner = self.around(Op::Open, key, || self.inner().open_whole(key))?;
        Ok(self.object(key, inner))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>> {
        let inner = self.around(Op::Create, key, || self.inner().create(key))?;
        Ok(self.upload(key, inner))
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.around(Op::List, folder, || self.inner().list(folder, visit))
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        self.around(Op::MakeFolder, folder, || self.inner().make_folder(folder))
    }

    fn replace_folder(&self, from: &str, to: &str, durability: Durability) -> Result<()> {
        self.around(Op::Publish, to, || self.inner().replace_folder(from, to, durability))
    }

    fn remove(&self, key: &str) -> Result<()> {
        self.around(Op::Remove, key, || self.inner().remove(key))
    }

    fn remove_tree(&self, folder: &str) -> Result<()> {
        self.around(Op::Remove, folder, || self.inner().remove_tree(folder))
    }

    fn remove_stale(&self, folder: &str) -> Result<u64> {
        self.around(Op::Remove, folder, || self.inner().remove_stale(folder))
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>> {
        self.around(Op::Stat, key, || self.inner().kind(key))
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        self.around(Op::Stat, key, || self.inner().size(key))
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>> {
        self.around(Op::Inspect, folder, || self.inner().free_bytes(folder))
    }

    fn evict(&self, key: &str) -> Result<()> {
        self.around(Op::Inspect, key, || self.inner().evict(key))
    }

    fn capabilities(&self) -> Capabilities {
        self.offers()
    }

    fn trace_sites(&self) -> &'static TraceSites {
        self.inner().trace_sites()
    }

    fn locate(&self, key: &str) -> String {
        self.inner().locate(key)
    }

    fn read_bytes(&self) -> usize {
        self.inner().read_bytes()
    }

    fn block_bytes(&self) -> usize {
        self.inner().block_bytes()
    }

    fn queue(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        self.queue_of(depth)
    }
}

impl<S: Store + ?Sized> Wrapper for std::sync::Arc<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self
    }
}

impl<S: Store + ?Sized> Wrapper for &S {
    type Inner = S;

    fn inner(&self) -> &S {
        self
    }
}
