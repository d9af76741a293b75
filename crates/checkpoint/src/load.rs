//! Loading: stretches of files into tensors, large aligned reads, all streams at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use feedline_store::{AlignedBuf, BLOCK_BYTES, Metered, Object, Store};

use crate::{
    CheckpointError, Container, Engine, FileSpec, Found, RankFile, Saved, SavedFile, Sink, Slot,
};

/// Gaps between extents are read along if they are smaller than this: a separate read
/// costs as much.
const GAP_BYTES_MAX: u64 = 256 << 10;

/// What a rank reads, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadPlan {
    /// The tensors that are filled, as the rank's files would hold them.
    pub specs: Vec<FileSpec>,
    /// The files that are read.
    pub files: Vec<LoadFile>,
}

/// A file and what is read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFile {
    /// Key of the file in the store.
    pub key: String,
    /// The stretches, in the order of their places.
    pub extents: Vec<LoadExtent>,
}

/// A stretch of a file that belongs to one tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadExtent {
    /// Where it begins in the file.
    pub at: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Index in [`LoadPlan::specs`] of the file that has the tensor.
    pub file: usize,
    /// Index of the tensor in that file.
    pub index: usize,
    /// Where in the tensor it belongs.
    pub offset: u64,
}

impl LoadPlan {
    /// Finds a rank's own tensors in its own files below `folder`.
    pub fn of_files(
        store: &dyn Store,
        container: &dyn Container,
        folder: &str,
        files: &[Arc<RankFile>],
    ) -> Result<LoadPlan, CheckpointError> {
        let mut plan = LoadPlan { specs: Vec::new(), files: Vec::new() };
        for (number, file) in files.iter().enumerate() {
            let key = format!("{folder}/{}", file.name);
            let mut object = store.open(&key)?;
            let found = container.index(&mut *object).map_err(|source| {
                CheckpointError::Container { file: store.locate(&key), source }
            })?;
            let extents = extents(&file.spec, number, &found)
                .map_err(|wrong| wrong.into_error(store.locate(&key)))?;
            plan.files.push(LoadFile { key, extents });
            plan.specs.push(file.spec.clone());
        }
        Ok(plan)
    }

    /// Bytes of all extents, without what reads of whole blocks add.
    pub fn bytes(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.extents).map(|extent| extent.bytes).sum()
    }
}

/// A tensor that is not there as the model says.
pub(crate) struct Wrong {
    pub(crate) tensor: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Wrong {
    pub(crate) fn into_error(self, file: String) -> CheckpointError {
        let Wrong { tensor, expected, found } = self;
        CheckpointError::Tensor { file, tensor, expected, found }
    }
}

/// Where the tensors of a file are in it.
fn extents(spec: &FileSpec, file: usize, found: &[Found]) -> Result<Vec<LoadExtent>, Wrong> {
    // A format without dictionaries joins the keys.
    let by_name: std::collections::HashMap<String, &Found> =
        found.iter().map(|found| (found.path.join("."), found)).collect();
    let mut extents = Vec::with_capacity(spec.tensors.len());
    for (index, tensor) in spec.tensors.iter().enumerate() {
        let name = tensor.path.join(".");
        let expected = format!("{} of {:?}", tensor.len, tensor.dtype);
        let Some(found) = by_name.get(&name) else {
            return Err(Wrong { tensor: name, expected, found: "none".into() });
        };
        if found.dtype != tensor.dtype || found.shape != [tensor.len] {
            let found = format!("{:?} of {:?}", found.shape, found.dtype);
            return Err(Wrong { tensor: name, expected, found });
        }
        extents.push(LoadExtent { at: found.at, bytes: tensor.bytes(), file, index, offset: 0 });
    }
    extents.sort_by_key(|extent| extent.at);
    Ok(extents)
}

/// A read: which file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    file: usize,
    range: Range<u64>,
}

/// Cuts the needed extents of a file into reads of whole blocks, none longer than `chunk_bytes`.
fn reads(file: usize, extents: &[LoadExtent], chunk_bytes: u64) -> Vec<Read> {
    let mut reads: Vec<Read> = Vec::new();
    for extent in extents.iter().filter(|extent| extent.bytes > 0) {
        let mut at = extent.at;
        let end = extent.at + extent.bytes;
        if let Some(last) = reads.last_mut()
            && at <= last.range.end + GAP_BYTES_MAX
            && at < last.range.start + chunk_bytes
        {
            let room = last.range.start + chunk_bytes;
            last.range.end = last.range.end.max(end.min(room));
            at = at.max(last.range.end);
        }
        while at < end {
            let start = at - at % BLOCK_BYTES as u64;
            let stop = end.min(start + chunk_bytes);
            reads.push(Read { file, range: start..stop });
            at = stop;
        }
    }
    reads
}

impl Engine {
    /// Reads what a plan says and gives it to `sink`. The plan's own reads are not in the result.
    pub fn load(&self, plan: &LoadPlan, sink: &dyn Sink) -> Result<Saved, CheckpointError> {
        let loading = Loading::new(self, plan);
        self.on_streams(loading.reads.len() as u64, || loading.work(sink))?;
        loading.outcome()
    }
}

/// A load under way.
struct Loading<'a> {
    engine: &'a Engine,
    plan: &'a LoadPlan,
    store: Metered<Arc<dyn Store>>,
    reads: Vec<Read>,
    next: AtomicU64,
    /// By file: reads that are left, and the times.
    progress: Vec<FileProgress>,
    failure: Mutex<Option<CheckpointError>>,
}

#[derive(Default)]
struct FileProgress {
    left: AtomicU64,
    bytes: AtomicU64,
    /// Begin, plus one so that zero means that it has not begun.
    began: AtomicU64,
    ended_ns: AtomicU64,
}

impl<'a> Loading<'a> {
    fn new(engine: &'a Engine, plan: &'a LoadPlan) -> Loading<'a> {
        let chunk_bytes = engine.pool.chunk_bytes() as u64;
        let mut all = Vec::new();
        let mut progress = Vec::new();
        for (number, file) in plan.files.iter().enumerate() {
            let reads = reads(number, &file.extents, chunk_bytes);
            let left = AtomicU64::new(reads.len() as u64);
            progress.push(FileProgress { left, ..FileProgress::default() });
            all.extend(reads);
        }
        Loading {
            engine,
            plan,
            store: Metered::new(Arc::clone(&engine.store), engine.clock.clone()),
            reads: all,
            next: AtomicU64::default(),
            progress,
            failure: Mutex::default(),
        }
    }

    fn work(&self, sink: &dyn Sink) {
        let mut buffer = self.engine.pool.take();
        // Every stream has a handle of its own.
        let mut open: Option<(usize, Box<dyn Object>)> = None;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(read) = self.reads.get(number as usize) else { break };
            if self.engine.stopped() {
                self.fail(CheckpointError::Stopped);
            }
            if self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                break;
            }
            if let Err(error) = self.read(read, &mut open, &mut buffer, sink) {
                self.fail(error);
                break;
            }
        }
        self.engine.pool.put_back(buffer);
    }

    fn read(
        &self,
        read: &Read,
        open: &mut Option<(usize, Box<dyn Object>)>,
        buffer: &mut AlignedBuf,
        sink: &dyn Sink,
    ) -> Result<(), CheckpointError> {
        let progress = &self.progress[read.file];
        let now = self.engine.clock.now() + 1;
        let _ = progress.began.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let key = &self.plan.files[read.file].key;
        let object = match open {
            Some((file, object)) if *file == read.file => object,
            _ => &mut open.insert((read.file, self.store.open(key)?)).1,
        };
        let buffer = &mut buffer[..(read.range.end - read.range.start) as usize];
        object.read_exact_at(read.range.start, buffer)?;
        self.hand_over(read, buffer, sink)?;
        progress.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        if progress.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            progress.ended_ns.store(self.engine.clock.now(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the tensors what a read has brought of them.
    fn hand_over(
        &self,
        read: &Read,
        buffer: &[u8],
        sink: &dyn Sink,
    ) -> Result<(), CheckpointError> {
        let LoadFile { key, extents } = &self.plan.files[read.file];
        let first = extents.partition_point(|extent| extent.at + extent.bytes <= read.range.start);
        for extent in &extents[first..] {
            if extent.at >= read.range.end {
                break;
            }
            let start = extent.at.max(read.range.start);
            let end = (extent.at + extent.bytes).min(read.range.end);
            let bytes = (start - read.range.start) as usize..(end - read.range.start) as usize;
            let tensor = &self.plan.specs[extent.file].tensors[extent.index];
            let place = Slot { file: extent.file, index: extent.index, tensor };
            let at = extent.offset + start - extent.at;
            if !sink.take(place, at, &buffer[bytes]) {
                let (file, tensor) = (self.engine.store.locate(key), tensor.path.join("."));
                return Err(CheckpointError::Differs { file, tensor, at });
            }
        }
        Ok(())
    }

    fn fail(&self, error: CheckpointError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn outcome(self) -> Result<Saved, CheckpointError> {
        if let Some(error) = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let time = |time: &AtomicU64| time.load(Ordering::Relaxed);
        let ended_ns = self.progress.iter().map(|file| time(&file.ended_ns)).max().unwrap_or(0);
        let file = |progress: FileProgress| {
            let began_ns = progress.began.into_inner().saturating_sub(1);
            SavedFile {
                bytes: progress.bytes.into_inner(),
                duration_ns: progress.ended_ns.into_inner().saturating_sub(began_ns),
            }
        };
        Ok(Saved {
            files: self.progress.into_iter().map(file).collect(),
            tensor_bytes: self.plan.bytes(),
            ended_ns,
            publish_ns: 0,
            meter: self.store.take(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(at: u64, bytes: u64) -> LoadExtent {
        LoadExtent { at, bytes, file: 0, index: 0, offset: 0 }
    }

    #[test]
    fn reads_are_aligned_bounded_and_bridge_small_gaps() {
        type Case<'a> = (&'a [LoadExtent], &'a [(u64, u64)]);
        let cases: [Case<'_>; 5] = [
            (&[extent(5000, 100)], &[(4096, 5100)]),
            (&[extent(64, 100), extent(200, 50), extent(250, 0)], &[(0, 250)]),
            // Two reads of a chunk, and what is left.
            (
                &[extent(64, 2 * 1_048_576)],
                &[(0, 1_048_576), (1_048_576, 2_097_152), (2_097_152, 2_097_216)],
            ),
            // A gap too large to be read over.
            (&[extent(0, 10), extent(1_000_000, 10)], &[(0, 10), (999_424, 1_000_010)]),
            // The second begins in the first read and continues after it.
            (
                &[extent(0, 1_000_000), extent(1_000_000, 100_000)],
                &[(0, 1_048_576), (1_048_576, 1_100_000)],
            ),
        ];
        for (extents, expected) in cases {
            let found: Vec<_> =
                reads(0, extents, 1 << 20).iter().map(|r| (r.range.start, r.range.end)).collect();
            assert_eq!(found, expected);
        }
    }
}
