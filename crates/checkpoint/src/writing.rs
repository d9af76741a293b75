//! One rank's files of one checkpoint on their way to the storage, chunk by chunk.
//!
//! Chunks are numbered over all files. They are filled in any order, by any thread, and written in
//! any order too, but for two things that need a turn: checksums that come after their tensor, which
//! may have begun chunks earlier, and storage that takes bytes only in order. A file is published by
//! the thread that writes the last of its chunks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crc32fast::Hasher;
use feedline_clock::{Clock, Monitor};
use feedline_store::{AlignedBuf, Durability, Metered, Store, Upload};

use crate::{Body, CheckpointError, Image, Part, RankFile, Saved, SavedFile, Slot, Source};

/// A rank's files while they are written.
pub(crate) struct Writing {
    clock: Clock,
    store: Metered<Arc<dyn Store>>,
    durability: Durability,
    chunk_bytes: u64,
    files: Vec<FileWriting>,
    next: AtomicU64,
    failure: Mutex<Option<CheckpointError>>,
}

struct FileWriting {
    key: String,
    file: Arc<RankFile>,
    /// Number of its first chunk, over all files.
    first: u64,
    chunks: u64,
    has_holes: bool,
    /// Chunks that are not written yet.
    left: AtomicU64,
    stage: Monitor<Stage>,
    /// There from the first chunk on until it is published.
    upload: RwLock<Option<Box<dyn Upload>>>,
    turn: Monitor<Turn>,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    publish_ns: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotBegun,
    Beginning,
    Open,
    Failed,
}

/// What has to happen chunk after chunk.
#[derive(Default)]
struct Turn {
    /// Whose turn it is.
    next: u64,
    failed: bool,
    /// Of the tensor that the chunks so far have not ended.
    running: Hasher,
    /// Of the tensors that have ended.
    sums: Vec<u32>,
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    file: usize,
    /// Counted within the file.
    index: u64,
}

impl Writing {
    /// Prepares to write `files` into `folder`; does nothing yet.
    pub(crate) fn new(
        clock: &Clock,
        store: Arc<dyn Store>,
        durability: Durability,
        chunk_bytes: usize,
        (folder, files): (&str, &[Arc<RankFile>]),
    ) -> Writing {
        let chunk_bytes = chunk_bytes as u64;
        let mut first = 0;
        let files = files.iter().map(|file| {
            let chunks = file.image.len.div_ceil(chunk_bytes).max(1);
            first += chunks;
            FileWriting {
                key: format!("{folder}/{}", file.name),
                has_holes: file.image.has_holes(),
                file: Arc::clone(file),
                first: first - chunks,
                chunks,
                left: AtomicU64::new(chunks),
                stage: Monitor::new(clock, Stage::NotBegun),
                upload: RwLock::default(),
                turn: Monitor::new(clock, Turn::default()),
                began_ns: AtomicU64::default(),
                ended_ns: AtomicU64::default(),
                publish_ns: AtomicU64::default(),
            }
        });
        Writing {
            clock: clock.clone(),
            store: Metered::new(store, clock.clone()),
            durability,
            chunk_bytes,
            files: files.collect(),
            next: AtomicU64::default(),
            failure: Mutex::default(),
        }
    }

    /// Chunks of all files.
    pub(crate) fn chunks(&self) -> u64 {
        self.files.last().map_or(0, |file| file.first + file.chunks)
    }

    /// The next chunk to be filled, and its number; no other thread gets it. To be asked for with a buffer
    /// at hand, so that the chunk which everybody waits for never waits for one.
    pub(crate) fn next_chunk(&self) -> Option<(u64, Chunk)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.chunks() {
            return None;
        }
        let file = self.files.partition_point(|file| file.first <= number) - 1;
        Some((number, Chunk { file, index: number - self.files[file].first }))
    }

    /// Puts the bytes of a chunk into `buffer`, all but checksums.
    pub(crate) fn fill(&self, chunk: Chunk, source: &dyn Source, buffer: &mut AlignedBuf) {
        let file = &self.files[chunk.file];
        let range = self.range(chunk);
        file.parts(&range, |body, inside, at| match body {
            Body::Bytes { bytes, .. } => buffer[at].copy_from_slice(&bytes[as_usize(inside)]),
            Body::Tensor { index, .. } => {
                let tensor = &file.file.spec.tensors[*index];
                let place = Slot { file: chunk.file, index: *index, tensor };
                source.fill(place, inside.start, &mut buffer[at]);
            }
        });
    }

    /// Writes a chunk that was filled; the last one of a file publishes it.
    pub(crate) fn write(&self, chunk: Chunk, buffer: &mut AlignedBuf) {
        if let Err(error) = self.try_write(chunk, buffer) {
            self.fail(error);
        }
    }

    fn try_write(&self, chunk: Chunk, buffer: &mut AlignedBuf) -> Result<(), CheckpointError> {
        let file = &self.files[chunk.file];
        let range = self.range(chunk);
        let buffer = &mut buffer[..(range.end - range.start) as usize];
        if !self.begin(file)? {
            return Ok(());
        }
        let guard = file.upload.read().unwrap_or_else(PoisonError::into_inner);
        let upload = guard.as_ref().expect("it was begun and its last chunk is not written");
        let in_order = upload.is_in_order();
        if in_order || file.has_holes {
            let sums = file.sums(&range, buffer);
            if !file.wait_for_turn(chunk.index) {
                return Ok(());
            }
            file.turn.with(|turn| file.seal(turn, &range, sums, buffer));
            if in_order {
                upload.write_at(range.start, buffer)?;
            }
            file.turn.update(|turn| turn.next += 1);
        }
        if !in_order {
            upload.write_at(range.start, buffer)?;
        }
        drop(guard);
        self.end_chunk(file)
    }

    /// Starts the object, or waits until another has; false if that failed.
    fn begin(&self, file: &FileWriting) -> Result<bool, CheckpointError> {
        let mine = file.stage.with(|stage| {
            let mine = *stage == Stage::NotBegun;
            if mine {
                *stage = Stage::Beginning;
            }
            mine
        });
        if mine {
            file.began_ns.store(self.clock.now(), Ordering::Relaxed);
            let upload = self.store.create(&file.key)?;
            *file.upload.write().unwrap_or_else(PoisonError::into_inner) = Some(upload);
            file.stage.update(|stage| *stage = Stage::Open);
        }
        Ok(file.stage.wait_for(|stage| match stage {
            Stage::Open => Some(true),
            Stage::Failed => Some(false),
            _ => None,
        }))
    }

    fn end_chunk(&self, file: &FileWriting) -> Result<(), CheckpointError> {
        if file.left.fetch_sub(1, Ordering::AcqRel) > 1 || self.has_failed() {
            return Ok(());
        }
        let upload = file.upload.write().unwrap_or_else(PoisonError::into_inner).take();
        let begin_ns = self.clock.now();
        upload.expect("only one thread ends the last chunk").publish(self.durability)?;
        let end_ns = self.clock.now();
        file.publish_ns.store(end_ns - begin_ns, Ordering::Relaxed);
        file.ended_ns.store(end_ns, Ordering::Relaxed);
        Ok(())
    }

    fn range(&self, chunk: Chunk) -> Range<u64> {
        let start = chunk.index * self.chunk_bytes;
        start..(start + self.chunk_bytes).min(self.files[chunk.file].file.image.len)
    }

    /// Ends the writing for everybody; the first reason counts.
    pub(crate) fn fail(&self, error: CheckpointError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        for file in &self.files {
            file.stage.update(|stage| *stage = Stage::Failed);
            file.turn.update(|turn| turn.failed = true);
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What was written, once no thread is at it any more.
    pub(crate) fn outcome(&self) -> Result<Saved, CheckpointError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = failure {
            // Takes back what was begun, while its folder is still there.
            for file in &self.files {
                file.upload.write().unwrap_or_else(PoisonError::into_inner).take();
            }
            return Err(error);
        }
        let time = |time: &AtomicU64| time.load(Ordering::Relaxed);
        let with_tensors = || self.files.iter().filter(|file| !file.file.spec.tensors.is_empty());
        let files = with_tensors().map(|file| SavedFile {
            bytes: file.file.image.len,
            duration_ns: time(&file.ended_ns).saturating_sub(time(&file.began_ns)),
        });
        Ok(Saved {
            files: files.collect(),
            tensor_bytes: self.files.iter().map(|file| file.file.spec.tensor_bytes()).sum(),
            publish_ns: with_tensors().map(|file| time(&file.publish_ns)).sum(),
            ended_ns: self.files.iter().map(|file| time(&file.ended_ns)).max().unwrap_or(0),
            meter: self.store.take(),
        })
    }
}

impl FileWriting {
    /// Shows the parts that overlap a range of the file: which of their bytes, and where those are
    /// in the range.
    fn parts(&self, range: &Range<u64>, visit: impl FnMut(&Body, Range<u64>, Range<usize>)) {
        self.file.image.visit(range, visit);
    }

    /// The checksums of the stretches of tensors in a chunk, in their order.
    fn sums(&self, range: &Range<u64>, buffer: &[u8]) -> Vec<Hasher> {
        let mut sums = Vec::new();
        if self.has_holes {
            self.parts(range, |body, _, at| {
                if let Body::Tensor { .. } = body {
                    let mut sum = Hasher::new();
                    sum.update(&buffer[at]);
                    sums.push(sum);
                }
            });
        }
        sums
    }

    fn wait_for_turn(&self, index: u64) -> bool {
        self.turn.wait_for(|turn| match turn.failed {
            true => Some(false),
            false => (turn.next == index).then_some(true),
        })
    }

    /// Adds the chunk's stretches to the checksums, and puts those that are whole into their places.
    fn seal(&self, turn: &mut Turn, range: &Range<u64>, sums: Vec<Hasher>, buffer: &mut [u8]) {
        if !self.has_holes {
            return;
        }
        turn.sums.resize(self.file.spec.tensors.len(), 0);
        let mut sums = sums.into_iter();
        self.parts(range, |body, inside, at| match body {
            Body::Tensor { index, bytes } => {
                turn.running.combine(&sums.next().expect("one for each stretch"));
                if inside.end == *bytes {
                    turn.sums[*index] = std::mem::take(&mut turn.running).finalize();
                }
            }
            Body::Bytes { holes, .. } => {
                for hole in holes {
                    // A hole may lie across the boundary of two chunks.
                    for (byte, place) in turn.sums[hole.tensor].to_le_bytes().iter().zip(hole.at..)
                    {
                        if inside.contains(&(place as u64)) {
                            buffer[at.start + place - inside.start as usize] = *byte;
                        }
                    }
                }
            }
        });
    }
}

fn as_usize(range: Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl Image {
    /// Whether checksums are missing.
    fn has_holes(&self) -> bool {
        let holes =
            |part: &Part| matches!(&part.body, Body::Bytes { holes, .. } if !holes.is_empty());
        // The end of an archive has one for each of its members, so the first look mostly tells.
        self.parts.iter().rev().any(holes)
    }

    /// Shows the parts that overlap a range of the file: which of their bytes, and where those are
    /// in the range.
    fn visit(&self, range: &Range<u64>, mut visit: impl FnMut(&Body, Range<u64>, Range<usize>)) {
        for part in self.overlapping(range.clone()) {
            let (start, end) = (part.at.max(range.start), part.end().min(range.end));
            let at = (start - range.start) as usize..(end - range.start) as usize;
            visit(&part.body, start - part.at..end - part.at, at);
        }
    }
}
