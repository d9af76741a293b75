//! A store in memory, for tests, with an optional latency model.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feedline_clock::Clock;
use feedline_location::MEMORY;

use crate::lock::lock;
use crate::{
    Capabilities, Durability, EntryKind, FolderEntry, Object, Op, Result, Store, StoreError,
    TraceSites, Upload, key, partial,
};

pub(crate) static TRACE_SITES: TraceSites = TraceSites::of_objects("MEMORY");

/// Latency of an operation in nanoseconds, by kind, key, offset and number of bytes.
type Latency = dyn Fn(Op, &str, u64, usize) -> u64 + Send + Sync;

/// Objects in memory. Clones share them.
#[derive(Clone)]
pub struct Memory {
    clock: Clock,
    latency: Option<Arc<Latency>>,
    content: Arc<Mutex<Content>>,
}

/// Objects and folders by key. The root folder always exists.
#[derive(Default)]
struct Content {
    objects: BTreeMap<String, Arc<[u8]>>,
    folders: BTreeSet<String>,
}

impl Memory {
    /// Makes an empty store without latency.
    pub fn new(clock: Clock) -> Memory {
        Memory { clock, latency: None, content: Arc::default() }
    }

    /// Lets every operation sleep on the clock for the nanoseconds that `latency_ns` returns.
    #[must_use]
    pub fn with_latency(
        self,
        latency_ns: impl Fn(Op, &str, u64, usize) -> u64 + Send + Sync + 'static,
    ) -> Memory {
        Memory { latency: Some(Arc::new(latency_ns)), ..self }
    }

    /// Stores an object and makes the folders above it, without latency.
    ///
    /// # Panics
    /// If `key` is not a key.
    pub fn put(&self, key: &str, bytes: impl Into<Arc<[u8]>>) {
        let clean = key::object(key).expect("the caller's key names an object");
        let mut content = self.content();
        content.add_folders(key::split(&clean).0);
        content.objects.insert(clean, bytes.into());
    }

    /// Returns the bytes of an object, without latency.
    pub fn get(&self, key: &str) -> Option<Arc<[u8]>> {
        self.content().objects.get(&key::object(key).ok()?).cloned()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }

    fn pause(&self, op: Op, key: &str, offset: u64, len: usize) {
        let pause_ns = self.latency.as_ref().map_or(0, |latency| latency(op, key, offset, len));
        if pause_ns > 0 {
            self.clock.sleep(pause_ns);
        }
    }

    fn failed(&self, op: Op, key: &str, kind: io::ErrorKind) -> StoreError {
        StoreError::Io { op, path: self.locate(key), source: kind.into() }
    }
}

impl Content {
    fn add_folders(&mut self, folder: &str) {
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        self.folders.extend(ends.filter(|&end| end > 0).map(|end| folder[..end].to_owned()));
    }

    fn kind(&self, clean: &str) -> Option<EntryKind> {
        if self.objects.contains_key(clean) {
            return Some(EntryKind::File);
        }
        (clean.is_empty() || self.folders.contains(clean)).then_some(EntryKind::Folder)
    }

    /// Swaps the contents of two folders.
    fn exchange(&mut self, one: &str, other: &str) {
        let renamed = |path: &str| {
            let below = |folder: &str| {
                path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            match (below(one), below(other)) {
                (Some(rest), _) => format!("{other}{rest}"),
                (_, Some(rest)) => format!("{one}{rest}"),
                _ => path.to_owned(),
            }
        };
        let objects = std::mem::take(&mut self.objects);
        self.objects = objects.into_iter().map(|(path, bytes)| (renamed(&path), bytes)).collect();
        self.folders = std::mem::take(&mut self.folders).iter().map(|path| renamed(path)).collect();
    }

    /// The first name after `last` in the folder that `prefix` ends with, and the size if it is an
    /// object.
    fn name_after(&self, prefix: &str, last: Option<&str>) -> Option<(String, Option<u64>)> {
        let from = format!("{prefix}{}", last.unwrap_or_default());
        let from = (Bound::Excluded(from.as_str()), Bound::Unbounded);
        let direct = |(path, _): &(&String, _)| !path[prefix.len()..].contains('/');
        let below = |(path, _): &(&String, _)| path.starts_with(prefix);
        let files = self.objects.range::<str, _>(from);
        let files = files.map(|(path, bytes)| (path, Some(bytes.len() as u64)));
        let folders = self.folders.range::<str, _>(from).map(|path| (path, None));
        let file = files.take_while(below).find(direct);
        let folder = folders.take_while(below).find(direct);
        let (path, size) = [file, folder].into_iter().flatten().min_by_key(|(path, _)| *path)?;
        Some((path[prefix.len()..].to_owned(), size))
    }
}

impl Store for Memory {
    fn open(&self, key: &str) -> Result<Box<dyn Object>> {
        let clean = key::object(key)?;
        self.pause(Op::Open, key, 0, 0);
        let found = self.content().objects.get(&clean).cloned();
        let bytes = found.ok_or_else(|| self.failed(Op::Open, key, io::ErrorKind::NotFound))?;
        Ok(Box::new(MemoryObject { store: self.clone(), key: clean, bytes }))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>> {
        let clean = key::object(key)?;
        self.pause(Op::Create, key, 0, 0);
        if self.content().kind(key::split(&clean).0) != Some(EntryKind::Folder) {
            return Err(self.failed(Op::Create, key, io::ErrorKind::NotFound));
        }
        Ok(Box::new(MemoryUpload { store: self.clone(), key: clean, bytes: Mutex::default() }))
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let clean = key::folder(folder)?;
        self.pause(Op::List, folder, 0, 0);
        if self.content().kind(&clean) != Some(EntryKind::Folder) {
            return Err(self.failed(Op::List, folder, io::ErrorKind::NotFound));
        }
        let prefix = if clean.is_empty() { clean } else { format!("{clean}/") };
        let mut last: Option<String> = None;
        loop {
            // The lock is not held during the visit, which may use the store.
            let next = self.content().name_after(&prefix, last.as_deref());
            let Some((name, size_bytes)) = next else { return Ok(()) };
            let kind = size_bytes.map_or(EntryKind::Folder, |_| EntryKind::File);
            let entry = FolderEntry { name: &name, kind, size_bytes };
            if !partial::is_partial(&name) && visit(entry).is_break() {
                return Ok(());
            }
            last = Some(name);
        }
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        let clean = key::folder(folder)?;
        self.pause(Op::MakeFolder, folder, 0, 0);
        self.content().add_folders(&clean);
        Ok(())
    }

    fn replace_folder(&self, from: &str, to: &str, _durability: Durability) -> Result<()> {
        let (from, to) = (key::folder(from)?, key::folder(to)?);
        self.pause(Op::Publish, &to, 0, 0);
        let mut content = self.content();
        if content.kind(&from) != Some(EntryKind::Folder) {
            return Err(self.failed(Op::Publish, &from, io::ErrorKind::NotFound));
        }
        content.exchange(&from, &to);
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<()> {
        let clean = key::folder(key)?;
        self.pause(Op::Remove, key, 0, 0);
        let mut content = self.content();
        content.objects.remove(&clean);
        let below = format!("{clean}/");
        let Content { objects, folders } = &mut *content;
        if !objects.keys().chain(folders.iter()).any(|path| path.starts_with(&below)) {
            folders.remove(&clean);
        }
        Ok(())
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>> {
        let clean = key::folder(key)?;
        self.pause(Op::Stat, key, 0, 0);
        Ok(self.content().kind(&clean))
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let clean = key::folder(key)?;
        self.pause(Op::Stat, key, 0, 0);
        Ok(self.content().objects.get(&clean).map(|bytes| bytes.len() as u64))
    }

    fn free_bytes(&self, _folder: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    fn capabilities(&self) -> Capabilities {
        MEMORY.capabilities
    }

    fn locate(&self, key: &str) -> String {
        format!("memory:{key}")
    }
}

struct MemoryObject {
    store: Memory,
    key: String,
    bytes: Arc<[u8]>,
}

impl Object for MemoryObject {
    fn len(&mut self) -> Result<u64> {
        self.store.pause(Op::Stat, &self.key, 0, 0);
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store.pause(Op::Read, &self.key, offset, buf.len());
        read_exact(&self.bytes, offset, buf, || self.store.locate(&self.key))
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let found = read_up_to(&self.bytes, offset, buf);
        self.store.pause(Op::Read, &self.key, offset, found);
        Ok(found)
    }
}

/// Copies what `bytes` has at `offset`; returns how much that is.
pub(crate) fn read_up_to(bytes: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let len = buf.len().min(bytes.len() - start);
    buf[..len].copy_from_slice(&bytes[start..start + len]);
    len
}

/// Like [`read_up_to`], but fewer bytes than `buf` holds are an error that names the object.
pub(crate) fn read_exact(
    bytes: &[u8],
    offset: u64,
    buf: &mut [u8],
    name: impl FnOnce() -> String,
) -> Result<()> {
    let (needed, found) = (buf.len() as u64, read_up_to(bytes, offset, buf) as u64);
    match found == needed {
        true => Ok(()),
        false => Err(StoreError::Short { path: name(), offset, needed, found }),
    }
}

struct MemoryUpload {
    store: Memory,
    key: String,
    bytes: Mutex<Vec<u8>>,
}

impl Upload for MemoryUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.store.pause(Op::Write, &self.key, offset, bytes.len());
        let start = usize::try_from(offset).expect("what is in memory has an address");
        let end = start + bytes.len();
        let mut written = lock(&self.bytes);
        if written.len() < end {
            written.resize(end, 0);
        }
        written[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn publish(self: Box<Self>, _durability: Durability) -> Result<()> {
        self.store.pause(Op::Publish, &self.key, 0, 0);
        let bytes = self.bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.store.content().objects.insert(self.key, bytes.into());
        Ok(())
    }
}
