//! Objects being written: one request for small ones, parts sent side by side for others.
//!
//! The first part is held back until the end, because its beginning may still be changed. Parts run
//! on the runtime that all uploads share; at most [`IN_FLIGHT_BYTES`] of them are under way, and with
//! the first part and the one being filled that is all an upload takes of memory.
//!
//! A part is 8 MiB unless said otherwise, and every 75 parts it becomes larger by as much, because no
//! object has more than 10,000: together they hold 5.1 TiB, and S3 takes 5 TiB. What a killed process
//! has left in the middle is removed by a rule of the bucket's life cycle, if the bucket has one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartId, ObjectStoreExt, PutPayload};
use tokio::task::JoinHandle;

use super::attempts::Attempts;
use super::failure;
use super::{Inner, Service};
use crate::lock::lock;
use crate::{Durability, Op, RemoteFault, StoreError, Upload};

/// Parts under way, in bytes; one part may be larger.
const IN_FLIGHT_BYTES: usize = 32 << 20;
/// Parts of one size.
const PARTS_A_STEP: usize = 75;
/// Most parts an object may have.
const PARTS_MAX: usize = 10_000;
/// Longest object that is written by one request where there are no parts: it is held in memory.
const SINGLE_BYTES_MAX: usize = 64 << 20;
/// How long a process waits for the server to forget an upload that came to nothing.
const ABORT_TIME_MAX: Duration = Duration::from_secs(5);

/// How large part `index` is, counted from 0.
fn part_bytes(first: usize, index: usize) -> usize {
    first.saturating_mul(1 + index / PARTS_A_STEP)
}

/// An object that is being written.
pub(crate) struct RemoteUpload {
    inner: Arc<Inner>,
    path: Path,
    /// The name the user knows.
    name: String,
    /// The first part.
    first: Vec<u8>,
    /// The part being filled.
    part: Vec<u8>,
    written: u64,
    parts: Option<Parts>,
}

/// Parts that were sent.
struct Parts {
    store: Arc<dyn MultipartStore>,
    id: MultipartId,
    under_way: VecDeque<Sending>,
    under_way_bytes: usize,
    /// By their place in the object; the first is still to come.
    done: Vec<Option<PartId>>,
}

/// A part that is being sent.
struct Sending {
    index: usize,
    len: usize,
    attempts: Arc<Attempts>,
    task: JoinHandle<object_store::Result<PartId>>,
}

impl RemoteUpload {
    pub(crate) fn new(inner: Arc<Inner>, path: Path, name: String) -> RemoteUpload {
        let (first, part) = (Vec::new(), Vec::new());
        RemoteUpload { inner, path, name, first, part, written: 0, parts: None }
    }

    /// Adds bytes at the end; full parts go out.
    fn append(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        let first_bytes = match self.inner.control.parts {
            Some(_) => self.inner.part_bytes,
            None => SINGLE_BYTES_MAX,
        };
        let room = first_bytes - self.first.len();
        let (now, later) = bytes.split_at(bytes.len().min(room));
        self.first.extend_from_slice(now);
        self.written += now.len() as u64;
        bytes = later;
        while !bytes.is_empty() {
            let index = self.parts.as_ref().map_or(1, |parts| parts.done.len());
            if index >= PARTS_MAX || self.inner.control.parts.is_none() {
                let (path, bound) = (self.name.clone(), self.written);
                return Err(StoreError::TooLong { path, bound, found: bound + bytes.len() as u64 });
            }
            let size = part_bytes(first_bytes, index);
            self.part.reserve_exact(size - self.part.len());
            let (now, later) = bytes.split_at(bytes.len().min(size - self.part.len()));
            self.part.extend_from_slice(now);
            self.written += now.len() as u64;
            bytes = later;
            if self.part.len() == size {
                let part = std::mem::take(&mut self.part);
                self.send(Op::Write, index, part)?;
            }
        }
        Ok(())
    }

    /// Sends a part, and waits for earlier ones if too many are under way.
    fn send(&mut self, op: Op, index: usize, part: Vec<u8>) -> Result<(), StoreError> {
        if self.parts.is_none() {
            self.begin(op)?;
        }
        let len = part.len();
        while let Some(parts) = &self.parts
            && parts.under_way_bytes > 0
            && parts.under_way_bytes + len > IN_FLIGHT_BYTES
        {
            self.settle_one(op)?;
        }
        let parts = self.parts.as_mut().expect("begun above");
        let attempts = Arc::new(Attempts::default());
        let (store, path, id) = (Arc::clone(&parts.store), self.path.clone(), parts.id.clone());
        let counted = Arc::clone(&attempts);
        let sent = async move {
            counted.over(store.put_part(&path, &id, index, PutPayload::from(part))).await
        };
        let task = self.inner.runtime.spawn(sent);
        if parts.done.len() <= index {
            parts.done.resize_with(index + 1, || None);
        }
        parts.under_way.push_back(Sending { index, len, attempts, task });
        parts.under_way_bytes += len;
        Ok(())
    }

    fn begin(&mut self, op: Op) -> Result<(), StoreError> {
        let store = self.inner.control.parts.as_ref().expect("asked before anything was sent");
        let attempts = Arc::new(Attempts::default());
        let begun = self.inner.run_shared(&attempts, store.create_multipart(&self.path));
        let id = begun.map_err(|error| self.error(op, &attempts, &error))?;
        let store = Arc::clone(store);
        let (under_way, done) = (VecDeque::new(), vec![None]);
        self.parts = Some(Parts { store, id, under_way, under_way_bytes: 0, done });
        Ok(())
    }

    /// Waits for the part that was sent first.
    fn settle_one(&mut self, op: Op) -> Result<(), StoreError> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let Some(sending) = parts.under_way.pop_front() else { return Ok(()) };
        let Sending { index, len, attempts, task } = sending;
        parts.under_way_bytes -= len;
        let sent = self.inner.runtime.block_on(task);
        attempts.charge();
        let sent = sent.unwrap_or_else(|source| Err(object_store::Error::JoinError { source }));
        let id =
            sent.map_err(|error| failure::of_error(op, &self.name, attempts.failure(), &error))?;
        parts.done[index] = Some(id);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        let op = Op::Publish;
        if self.parts.is_none() && self.part.is_empty() {
            let payload = PutPayload::from(std::mem::take(&mut self.first));
            let attempts = Arc::new(Attempts::default());
            let put = self.put(&attempts, &payload);
            return put.map_err(|error| self.error(op, &attempts, &error));
        }
        if !self.part.is_empty() {
            let index = self.parts.as_ref().map_or(1, |parts| parts.done.len());
            let part = std::mem::take(&mut self.part);
            self.send(op, index, part)?;
        }
        let first = std::mem::take(&mut self.first);
        self.send(op, 0, first)?;
        while self.parts.as_ref().is_some_and(|parts| !parts.under_way.is_empty()) {
            self.settle_one(op)?;
        }
        let parts = self.parts.as_mut().expect("the last part was sent above");
        let done = parts.done.drain(..).map(|id| id.expect("all parts are done")).collect();
        let (store, id) = (Arc::clone(&parts.store), parts.id.clone());
        let attempts = Arc::new(Attempts::default());
        let completed =
            self.inner.run_shared(&attempts, store.complete_multipart(&self.path, &id, done));
        if let Err(error) = completed
            && !self.is_complete_after_all(&attempts)?
        {
            return Err(self.error(op, &attempts, &error));
        }
        self.parts = None;
        Ok(())
    }

    /// Writes the object by one request. Where folders are real, `object_store` makes those that are
    /// missing above it; another upload may make the same ones at the same time, and then the server
    /// says (405) that one is there. Every round finds at least one more of them made.
    fn put(&self, attempts: &Arc<Attempts>, payload: &PutPayload) -> object_store::Result<()> {
        let mut rounds = match self.inner.root.service {
            Service::Http => self.path.parts().count(),
            _ => 1,
        };
        loop {
            let put = self.inner.control.objects.put(&self.path, payload.clone());
            let put = self.inner.run_shared(attempts, put);
            rounds -= 1;
            let fault = attempts.failure().map(|failure| failure.fault);
            if put.is_ok() || rounds == 0 || fault != Some(RemoteFault::Status(405)) {
                return put.map(drop);
            }
        }
    }

    /// Whether an upload is unknown because it was completed by a request whose answer was lost. Some
    /// servers do not answer the same request a second time.
    fn is_complete_after_all(&self, attempts: &Attempts) -> Result<bool, StoreError> {
        let unknown =
            attempts.failure().is_some_and(|failure| failure.fault == RemoteFault::Missing);
        if !unknown || !attempts.was_retried() {
            return Ok(false);
        }
        let asked = Arc::new(Attempts::default());
        let found = self.inner.run_shared(&asked, self.inner.control.objects.head(&self.path));
        match found {
            Ok(found) => Ok(found.size == self.written),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.error(Op::Publish, &asked, &error)),
        }
    }

    fn error(&self, op: Op, attempts: &Attempts, error: &object_store::Error) -> StoreError {
        failure::of_error(op, &self.name, attempts.failure(), error)
    }
}

impl RemoteUpload {
    /// Takes what follows what was written, and changes of the first part.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        if offset == self.written {
            return self.append(bytes);
        }
        let end = offset.saturating_add(bytes.len() as u64);
        let bound = self.first.len() as u64;
        if end > bound {
            return Err(StoreError::Patch { path: self.name.clone(), offset, end, bound });
        }
        self.first[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }
}

/// Parts are numbered in the order in which they are filled, so there is one writer at a time.
impl Upload for Mutex<RemoteUpload> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        lock(self).write_at(offset, bytes)
    }

    fn is_in_order(&self) -> bool {
        true
    }

    /// Servers answer when the object is safe, whatever durability is asked for.
    fn publish(mut self: Box<Self>, _durability: Durability) -> Result<(), StoreError> {
        self.get_mut().unwrap_or_else(PoisonError::into_inner).finish()
    }
}

/// Takes back what was sent, if it was not published. What goes wrong there stays unsaid, because an
/// error is on its way already, or there is no caller left to tell.
impl Drop for RemoteUpload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let tasks: Vec<_> = parts.under_way.drain(..).map(|sending| sending.task).collect();
        tasks.iter().for_each(JoinHandle::abort);
        let forgotten = async {
            for task in tasks {
                let _ = task.await;
            }
            let _ = parts.store.abort_multipart(&self.path, &parts.id).await;
        };
        let bounded = async { tokio::time::timeout(ABORT_TIME_MAX, forgotten).await };
        let _ = self.inner.runtime.block_on(bounded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_so_that_the_largest_object_fits() {
        let sizes = |first| (0..PARTS_MAX).map(move |index| part_bytes(first, index) as u64);
        assert_eq!(part_bytes(8 << 20, 0), 8 << 20);
        assert_eq!(part_bytes(8 << 20, 74), 8 << 20);
        assert_eq!(part_bytes(8 << 20, 75), 16 << 20);
        assert!(sizes(8 << 20).sum::<u64>() >= 5 << 40, "5 TiB");
        assert!(sizes(8 << 20).max().unwrap() <= 5 << 30, "a part has at most 5 GiB");
    }
}
