//! Many threads over the files of one manifest, while it is read.
//!
//! One thread reads the manifest and hands its entries over in small batches; it waits while
//! [`BATCHES_MAX`] of them lie ready, so memory does not grow with the number of files.

use std::collections::VecDeque;
use std::mem;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::{Clock, Monitor};

use crate::error::{DatasetError, Result};
use crate::manifest::{Entry, Head};
use crate::manifest_reader::ManifestReader;

/// Files of a batch; one thread handles them one after another.
const BATCH_FILES: usize = 64;
/// A batch of large files is smaller, so that every thread gets some.
const BATCH_BYTES: u64 = 4 << 20;
/// Batches that lie ready.
const BATCHES_MAX: usize = 64;

/// How a manifest's files are gone through.
pub(crate) struct ManifestScan<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) threads: usize,
    pub(crate) stop: &'a AtomicBool,
}

/// What the threads share.
#[derive(Default)]
struct Queue {
    batches: VecDeque<Vec<Entry>>,
    /// No further batches come.
    closed: bool,
    failure: Option<DatasetError>,
}

impl Queue {
    fn next(&mut self) -> Option<Option<Vec<Entry>>> {
        if self.failure.is_some() {
            return Some(None);
        }
        let batch = self.batches.pop_front();
        (batch.is_some() || self.closed).then_some(batch)
    }

    fn has_room(&mut self) -> Option<()> {
        (self.batches.len() < BATCHES_MAX || self.failure.is_some()).then_some(())
    }
}

impl ManifestScan<'_> {
    /// Calls `work` for every entry, unless `is_useful` rejects the head.
    /// Each thread brings a tool of its own, made by `tool`. The first error ends it; so does a
    /// stop request, which is not an error.
    pub(crate) fn run<T>(
        &self,
        reader: ManifestReader,
        is_useful: impl Fn(&Head) -> bool,
        tool: impl Fn() -> T + Sync,
        work: impl Fn(&mut T, Entry) -> Result<()> + Sync,
    ) -> Result<Head> {
        let queue = Monitor::new(self.clock, Queue::default());
        let (queue, tool, work) = (&queue, &tool, &work);
        let read = self.clock.scope(|scope| {
            for number in 0..self.threads.max(1) {
                let name = format!("checker-{number}");
                let started = scope.spawn(name.clone(), move || self.serve(queue, tool(), work));
                if let Err(source) = started {
                    queue.update(|queue| {
                        queue.failure = Some(DatasetError::NoThread { name, source })
                    });
                    break;
                }
            }
            let read = self.feed(reader, is_useful, queue);
            queue.update(|queue| queue.closed = true);
            read
        });
        match queue.with(|queue| queue.failure.take()) {
            Some(failure) => Err(failure),
            None => read,
        }
    }

    fn feed(
        &self,
        reader: ManifestReader,
        is_useful: impl Fn(&Head) -> bool,
        queue: &Monitor<Queue>,
    ) -> Result<Head> {
        let hand_over = |batch: Vec<Entry>| {
            queue.wait_for(Queue::has_room);
            queue.update(|queue| queue.batches.push_back(batch));
        };
        let (mut batch, mut batch_bytes, mut checked) = (Vec::new(), 0, false);
        let read = reader.read(&mut |head, entry| {
            let failed = queue.with(|queue| queue.failure.is_some());
            let useless = !checked && !is_useful(head);
            checked = true;
            if failed || useless || self.stop.load(Ordering::Relaxed) {
                return Ok(ControlFlow::Break(()));
            }
            batch_bytes += entry.sum.bytes;
            batch.push(entry);
            if batch.len() == BATCH_FILES || batch_bytes >= BATCH_BYTES {
                hand_over(mem::take(&mut batch));
                batch_bytes = 0;
            }
            Ok(ControlFlow::Continue(()))
        });
        hand_over(batch);
        read.map(|(head, _)| head)
    }

    fn serve<T>(
        &self,
        queue: &Monitor<Queue>,
        mut tool: T,
        work: &(impl Fn(&mut T, Entry) -> Result<()> + Sync),
    ) {
        while let Some(batch) = queue.wait_for(Queue::next) {
            // There is room now for who waits for it.
            queue.update(|_| ());
            for entry in batch {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                if let Err(error) = work(&mut tool, entry) {
                    queue.update(|queue| {
                        queue.failure.get_or_insert(error);
                    });
                    return;
                }
            }
        }
    }
}
