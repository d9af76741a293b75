//! Saving: a rank's files, all streams at once, either while the caller waits or in the background.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::{Clock, Monitor, Scope};
use feedline_store::{AlignedBuf, Durability, Meter, Store};

use crate::writing::{Chunk, Writing};
use crate::{Body, CheckpointError, FileSpec, Image, Part, Pool, Source, StateKind};

/// A file of a rank, with all that is known of it before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankFile {
    /// Its name, without the folder.
    pub name: String,
    /// The tensors in it.
    pub spec: FileSpec,
    /// Its bytes.
    pub image: Image,
}

impl RankFile {
    /// A file that holds these bytes and no tensor.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> RankFile {
        let spec = FileSpec { stem: name.to_owned(), state: StateKind::Blob, tensors: Vec::new() };
        let body = Body::Bytes { bytes: bytes.into(), holes: Vec::new() };
        RankFile { name: name.to_owned(), spec, image: Image::new(vec![Part { at: 0, body }]) }
    }
}

/// What a rank has saved.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    /// Its files that hold tensors.
    pub files: Vec<SavedFile>,
    /// Bytes of the tensors in them.
    pub tensor_bytes: u64,
    /// When the last of them was done, on the engine's clock.
    pub ended_ns: u64,
    /// Time in which they were made safe and given their names, added up.
    pub publish_ns: u64,
    /// The calls to the storage.
    pub meter: Meter,
}

/// One file that was saved or loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedFile {
    /// Bytes of the file.
    pub bytes: u64,
    /// From starting it to having it published, or read.
    pub duration_ns: u64,
}

/// What saves and loads have in common: one for each rank.
pub struct Engine {
    /// The clock that times saves; simulated in tests.
    pub clock: Clock,
    /// The store that holds the checkpoints.
    pub store: Arc<dyn Store>,
    /// Threads that write or read at a time.
    pub streams: usize,
    /// The buffers.
    pub pool: Pool,
    /// Whether files are on the device before they count as saved.
    pub durability: Durability,
    /// Set to break off.
    pub stop: Arc<AtomicBool>,
}

impl Engine {
    /// Writes `files` into `folder`, which must exist, and returns when they are published.
    pub fn save(
        &self,
        folder: &str,
        files: &[Arc<RankFile>],
        source: &dyn Source,
    ) -> Result<Saved, CheckpointError> {
        let writing = self.writing(folder, files);
        self.on_streams(writing.chunks(), || {
            let mut buffer = self.pool.take();
            while let Some((_, chunk)) = writing.next_chunk() {
                if self.stopped() {
                    writing.fail(CheckpointError::Stopped);
                }
                if writing.has_failed() {
                    break;
                }
                writing.fill(chunk, source, &mut buffer);
                writing.write(chunk, &mut buffer);
            }
            self.pool.put_back(buffer);
        })?;
        writing.outcome()
    }

    fn writing(&self, folder: &str, files: &[Arc<RankFile>]) -> Writing {
        let (store, chunk_bytes) = (Arc::clone(&self.store), self.pool.chunk_bytes());
        Writing::new(&self.clock, store, self.durability, chunk_bytes, (folder, files))
    }

    /// Runs `work` on as many threads as there are streams, and chunks for them.
    pub(crate) fn on_streams(
        &self,
        chunks: u64,
        work: impl Fn() + Sync,
    ) -> Result<(), CheckpointError> {
        let threads = self.streams.min(usize::try_from(chunks).unwrap_or(usize::MAX));
        let work = &work;
        self.clock.scope(|scope| {
            let mut refused = None;
            for number in 1..threads {
                if let Err(source) = scope.spawn(format!("stream {number}"), work) {
                    // The others do its share; without it, it is slower than was asked for.
                    refused = Some(CheckpointError::Thread { source });
                    break;
                }
            }
            work();
            refused.map_or(Ok(()), Err)
        })
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Saves in the background: what is to be saved is copied into the pool while the caller
/// waits, and written while it goes on.
///
/// With a pool that is smaller than what is saved, copying waits for buffers to become free.
pub struct Background<'a> {
    engine: &'a Engine,
    queue: Monitor<Queue>,
}

/// Chunks that are filled and not written, by save and number.
#[derive(Default)]
struct Queue {
    saves: Vec<Arc<InFlight>>,
    ready: BTreeMap<(u64, u64), (Chunk, AlignedBuf)>,
    /// The chunk that is written next: they leave in order, because each may have to wait for the one
    /// before.
    next: (u64, u64),
    begun: u64,
    closed: bool,
}

/// A save that is under way.
struct InFlight {
    number: u64,
    writing: Writing,
    /// Chunks that are not written.
    left: Monitor<u64>,
}

/// A save that runs in the background.
pub struct Ticket {
    save: Arc<InFlight>,
}

impl Ticket {
    /// Whether everything is written, or has failed.
    pub fn is_done(&self) -> bool {
        self.save.left.with(|left| *left == 0)
    }

    /// Waits for the end.
    pub fn wait(self) -> Result<Saved, CheckpointError> {
        self.save.left.wait_for(|left| (*left == 0).then_some(()));
        self.save.writing.outcome()
    }
}

impl<'a> Background<'a> {
    /// Nothing is under way yet.
    pub fn new(engine: &'a Engine) -> Background<'a> {
        Background { engine, queue: Monitor::new(&engine.clock, Queue::default()) }
    }

    /// Starts the writers; they end after [`Background::close`].
    pub fn start<'scope, 'env: 'scope>(
        &'env self,
        scope: &Scope<'scope, 'env>,
    ) -> Result<(), CheckpointError> {
        for number in 0..self.engine.streams {
            let spawned = scope.spawn(format!("saver {number}"), || self.serve());
            if let Err(source) = spawned {
                self.close();
                return Err(CheckpointError::Thread { source });
            }
        }
        Ok(())
    }

    /// Copies what is to be saved and returns; the files appear in `folder` later.
    pub fn save(
        &self,
        folder: &str,
        files: &[Arc<RankFile>],
        source: &dyn Source,
    ) -> Result<Ticket, CheckpointError> {
        let writing = self.engine.writing(folder, files);
        let chunks = writing.chunks();
        let left = Monitor::new(&self.engine.clock, chunks);
        if chunks == 0 {
            // A rank that has nothing to save; no thread would ever take it off the queue.
            return Ok(Ticket { save: Arc::new(InFlight { number: 0, writing, left }) });
        }
        let save = self.queue.with(|queue| {
            let save = Arc::new(InFlight { number: queue.begun, writing, left });
            queue.begun += 1;
            queue.saves.push(Arc::clone(&save));
            save
        });
        self.engine.on_streams(chunks, || {
            loop {
                let mut buffer = self.engine.pool.take();
                let Some((number, chunk)) = save.writing.next_chunk() else {
                    self.engine.pool.put_back(buffer);
                    break;
                };
                // A save that has failed still passes every chunk on, so that its end is seen.
                if !save.writing.has_failed() {
                    save.writing.fill(chunk, source, &mut buffer);
                }
                let place = (save.number, number);
                self.queue.update(|queue| queue.ready.insert(place, (chunk, buffer)));
            }
        })?;
        Ok(Ticket { save })
    }

    /// Lets the writers end once everything that was begun is written.
    pub fn close(&self) {
        self.queue.update(|queue| queue.closed = true);
    }

    fn serve(&self) {
        while let Some((save, chunk, mut buffer)) = self.next() {
            if self.engine.stopped() {
                save.writing.fail(CheckpointError::Stopped);
            }
            if !save.writing.has_failed() {
                save.writing.write(chunk, &mut buffer);
            }
            self.engine.pool.put_back(buffer);
            save.left.update(|left| *left -= 1);
        }
    }

    /// The next chunk to write, once it is there; none after the last.
    fn next(&self) -> Option<(Arc<InFlight>, Chunk, AlignedBuf)> {
        let found = self.queue.wait_for(|queue| {
            if let Some((chunk, buffer)) = queue.ready.remove(&queue.next) {
                return Some(Some(queue.pass_on(chunk, buffer)));
            }
            (queue.closed && queue.saves.is_empty()).then_some(None)
        });
        // The others may go on with the next chunk.
        self.queue.update(|_| ());
        found
    }
}

impl Queue {
    fn pass_on(&mut self, chunk: Chunk, buffer: AlignedBuf) -> (Arc<InFlight>, Chunk, AlignedBuf) {
        let save = Arc::clone(&self.saves[0]);
        self.next.1 += 1;
        if self.next.1 == save.writing.chunks() {
            self.saves.remove(0);
            self.next = (self.next.0 + 1, 0);
        }
        (save, chunk, buffer)
    }
}
