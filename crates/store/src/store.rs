//! The interface of all stores. Every implementation passes `conformance`.

use std::ops::ControlFlow;

use crate::{Capabilities, Op, ReadQueue, Result, StoreError, TraceSites, memory};

/// The alignment of direct I/O, and how much of an object's beginning
/// [`Writer::patch`](crate::Writer::patch) may change after it was written.
pub const BLOCK_BYTES: usize = 4096;

/// Best size of a read from the page cache or memory. With a buffer in huge pages, 1 MiB takes a
/// quarter less CPU time than 128 KiB (measured), although it does not stay in the L2 cache.
pub const BUFFERED_READ_BYTES: usize = 1 << 20;
/// Best size of a read that goes to the device: half the CPU time of reads of 256 KiB.
pub const DIRECT_READ_BYTES: usize = 1 << 20;

/// A place for objects: a folder, a bucket, memory. Keys are relative paths with `/`.
pub trait Store: Send + Sync {
    /// Opens an object for reading.
    fn open(&self, key: &str) -> Result<Box<dyn Object>>;

    /// Opens an object that will be read once, from beginning to end. Other reads work, but may cost
    /// more than with [`Store::open`].
    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>> {
        self.open(key)
    }

    /// Starts writing an object. It appears under `key` when it is published and replaces what was
    /// there; dropped before that, it leaves nothing behind. Its folder must exist.
    fn create(&self, key: &str) -> Result<Box<dyn Upload>>;

    /// Calls `visit` with every entry of a folder, in no particular order, until it breaks. Memory does
    /// not grow with the number of entries; unpublished objects do not appear.
    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Makes a folder and all missing folders above it.
    fn make_folder(&self, folder: &str) -> Result<()>;

    /// With [`Capabilities::folder_renames`], atomically replaces the folder `to` with `from`: readers
    /// find either the old or the new one, complete. The old folder is then under `from`.
    fn replace_folder(&self, _from: &str, to: &str, _durability: Durability) -> Result<()> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(StoreError::Io { op: Op::Publish, path: self.locate(to), source })
    }

    /// Removes an object or an empty folder. A missing one is not an error; a folder that is not empty
    /// stays.
    fn remove(&self, key: &str) -> Result<()>;

    /// Removes a folder with everything in it; a missing one is not an error.
    fn remove_tree(&self, folder: &str) -> Result<()> {
        if self.kind(folder)?.is_none() {
            return Ok(());
        }
        let mut entries = Vec::new();
        self.list(folder, &mut |entry| {
            entries.push((format!("{folder}/{}", entry.name), entry.kind));
            ControlFlow::Continue(())
        })?;
        for (key, kind) in entries {
            match kind {
                EntryKind::File => self.remove(&key)?,
                EntryKind::Folder => self.remove_tree(&key)?,
            }
        }
        self.remove(folder)
    }

    /// Removes unpublished objects that dead processes of this machine have left in a folder, and
    /// returns how many. Those of other machines and living processes stay.
    fn remove_stale(&self, _folder: &str) -> Result<u64> {
        Ok(0)
    }

    /// What `key` names, if it exists.
    fn kind(&self, key: &str) -> Result<Option<EntryKind>>;

    /// The size of the object under `key` in bytes, if there is one. Cheaper than [`Store::kind`] and
    /// [`Store::open`].
    fn size(&self, key: &str) -> Result<Option<u64>> {
        match self.kind(key)? {
            Some(EntryKind::File) => self.open(key)?.len().map(Some),
            _ => Ok(None),
        }
    }

    /// Whether `key` names an object or a folder.
    fn exists(&self, key: &str) -> Result<bool> {
        Ok(self.kind(key)?.is_some())
    }

    /// Free bytes where the folder is or would be; `None` if unknown.
    fn free_bytes(&self, folder: &str) -> Result<Option<u64>>;

    /// Evicts an object from the page cache, after writing back its dirty pages; does nothing for a
    /// store without one. File systems in memory keep their pages.
    fn evict(&self, _key: &str) -> Result<()> {
        Ok(())
    }

    /// What it can do beyond objects, with its current settings.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// The names of its calls in a trace.
    fn trace_sites(&self) -> &'static TraceSites {
        &memory::TRACE_SITES
    }

    /// The object's name for messages: a path or a URL.
    fn locate(&self, key: &str) -> String;

    /// The best size of a read in bytes.
    fn read_bytes(&self) -> usize {
        BUFFERED_READ_BYTES
    }

    /// The best alignment of reads: with direct I/O, whole blocks go straight into the caller's memory
    /// and other bytes are copied.
    fn block_bytes(&self) -> usize {
        1
    }

    /// Makes a queue that keeps up to `depth` reads of [`Store::read_bytes`] in flight, and has memory
    /// for as many. `None` if the store has no queue: use threads, or a
    /// [`SequentialQueue`](crate::SequentialQueue).
    fn queue(&self, _depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        Ok(None)
    }
}

/// An object that is open for reading.
#[expect(clippy::len_without_is_empty, reason = "asking costs a call")]
pub trait Object: Send {
    /// Its current size in bytes.
    fn len(&mut self) -> Result<u64>;

    /// Fills `buf` with the bytes at `offset`; fewer are a [`StoreError::Short`].
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Reads the bytes at `offset` with one storage call, and returns how many: fewer than `buf` holds
    /// only at the end of the object, none past it.
    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let left = self.len()?.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.read_exact_at(offset, &mut buf[..len])?;
        Ok(len)
    }

    /// The I/O size that the storage prefers (`st_blksize`), as of the last [`Object::len`]; costs no
    /// call.
    fn preferred_bytes(&self) -> usize {
        BLOCK_BYTES
    }

    /// How much of it is in the page cache; `None` without a page cache, or if the system cannot tell.
    /// Reads nothing, and is never counted, throttled or failed.
    fn resident(&mut self) -> Result<Option<Resident>> {
        Ok(None)
    }
}

/// An object that is being written.
///
/// The unbuffered interface below [`Writer`](crate::Writer): every call is one write to the storage.
/// Several threads may write disjoint ranges concurrently.
pub trait Upload: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    ///
    /// With direct I/O, offset and address must be multiples of [`BLOCK_BYTES`], and so must the
    /// length, except at the end of the object.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Whether every write must begin where the last one ended.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Makes the object visible under its key.
    fn publish(self: Box<Self>, durability: Durability) -> Result<()>;
}

/// What a published object survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the process.
    None,
    /// A crash of the machine: bytes and name are on the device.
    Fsync,
}

/// An entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderEntry<'a> {
    /// The name, without the folder.
    pub name: &'a str,
    /// Whether the entry is an object or a folder.
    pub kind: EntryKind,
    /// The size of an object, if the listing includes it; asking would cost a call per entry.
    pub size_bytes: Option<u64>,
}

/// What a key names; links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// An object: a file, or a value of an object store.
    File,
    /// A folder; object stores show one for each prefix up to a slash.
    Folder,
}

/// How much of an object is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Bytes in the page cache.
    pub resident: u64,
    /// Bytes of the object.
    pub total: u64,
}
