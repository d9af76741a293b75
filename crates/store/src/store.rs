//! The seam between storage and everyone else. Every implementation passes `conformance`.

use std::ops::ControlFlow;

use crate::{Capabilities, Layer, Op, ReadQueue, StoreError, memory};

/// What direct I/O is aligned to, and how much of a file [`Writer::patch`](crate::Writer::patch)
/// may change after it was written.
pub const BLOCK_BYTES: usize = 4096;

/// Best size of a read that the page cache or memory answers. Into a buffer of huge pages, 1 MiB costs
/// a quarter less CPU time than 128 KiB (measured), though it does not stay in the L2 cache.
pub const BUFFERED_READ_BYTES: usize = 1 << 20;
/// Best size of a read that goes to the device: half the CPU time of reads of 256 KiB.
pub const DIRECT_READ_BYTES: usize = 1 << 20;

/// Where bytes live.
pub trait Store: Send + Sync {
    /// Opens an object for reading.
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError>;

    /// Opens an object that will be read once, from its beginning to its end. Reads elsewhere work,
    /// and may cost more than those of [`Store::open`].
    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.open(key)
    }

    /// Starts an object. It appears under `key` when it is published, in place of what was there;
    /// dropped before that, it leaves nothing behind. Its folder must exist.
    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError>;

    /// Shows every entry of a folder to `visit`, in no order, until it breaks off. Memory does not
    /// grow with the number of entries; objects that are not published yet do not appear.
    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Makes a folder and the folders above it, as far as they are missing.
    fn make_folder(&self, folder: &str) -> Result<(), StoreError>;

    /// With [`Capabilities::folder_renames`], puts the folder `from` in the place of `to` in one step: whoever looks finds the old one or the
    /// new one, whole. What stood there before stands under `from` afterwards.
    fn replace_folder(
        &self,
        _from: &str,
        to: &str,
        _durability: Durability,
    ) -> Result<(), StoreError> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(StoreError::Io { op: Op::Publish, path: self.locate(to), source })
    }

    /// Removes an object, or a folder that is empty. What is not there counts as removed; a folder
    /// with something in it stays.
    fn remove(&self, key: &str) -> Result<(), StoreError>;

    /// Removes a folder with everything in it; one that is not there counts as removed.
    fn remove_tree(&self, folder: &str) -> Result<(), StoreError> {
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
                Kind::File => self.remove(&key)?,
                Kind::Folder => self.remove_tree(&key)?,
            }
        }
        self.remove(folder)
    }

    /// Removes what processes of this machine that are gone have left unpublished in a folder; how
    /// many that were. What other machines or living processes write there stays, and a folder that
    /// is not there holds nothing.
    fn remove_stale(&self, _folder: &str) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// What stands under `key`, if anything does.
    fn kind(&self, key: &str) -> Result<Option<Kind>, StoreError>;

    /// The size of the object under `key`, if there is one: what is needed of the question what stands
    /// there and of opening it.
    fn size(&self, key: &str) -> Result<Option<u64>, StoreError> {
        match self.kind(key)? {
            Some(Kind::File) => self.open(key)?.len().map(Some),
            _ => Ok(None),
        }
    }

    /// Whether anything stands under `key`.
    fn exists(&self, key: &str) -> Result<bool, StoreError> {
        Ok(self.kind(key)?.is_some())
    }

    /// Bytes that can still be written where the folder is or would be; `None` if nobody knows.
    fn free_bytes(&self, folder: &str) -> Result<Option<u64>, StoreError>;

    /// Drops an object's pages from the page cache, written ones included; a store without one has
    /// nothing to do. File systems that live in memory keep them.
    fn evict(&self, _key: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// What it can do beyond objects, with the settings it was made with.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// What its calls are called in a trace.
    fn layer(&self) -> &'static Layer {
        &memory::LAYER
    }

    /// The name a user knows the object by, for messages.
    fn locate(&self, key: &str) -> String;

    /// How many bytes an object is best asked for at a time.
    fn read_bytes(&self) -> usize {
        BUFFERED_READ_BYTES
    }

    /// What offsets and sizes of reads are best multiples of: with direct I/O whole blocks go straight
    /// into the caller's memory, and others are copied.
    fn block_bytes(&self) -> usize {
        1
    }

    /// A queue that keeps up to `depth` reads of [`Store::read_bytes`] each under way, which needs
    /// the memory for as many; `None` if the store has none, and threads must do.
    fn queue(&self, _depth: usize) -> Result<Option<Box<dyn ReadQueue>>, StoreError> {
        Ok(None)
    }
}

/// An object that is open for reading.
#[expect(clippy::len_without_is_empty, reason = "asking costs a call, and nobody needs it")]
pub trait Object: Send {
    /// Its size in bytes, now.
    fn len(&mut self) -> Result<u64, StoreError>;

    /// Fills `buf` with the bytes at `offset`; fewer of them are a [`StoreError::Short`].
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError>;

    /// Reads what the object has of the bytes at `offset`, with one call of the storage: fewer than
    /// `buf` holds only at the end of the object, none after it.
    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, StoreError> {
        let left = self.len()?.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.read_exact_at(offset, &mut buf[..len])?;
        Ok(len)
    }

    /// The size that the storage prefers for I/O (`st_blksize`), as the last [`Object::len`] found
    /// it; asking costs no call.
    fn preferred_bytes(&self) -> usize {
        BLOCK_BYTES
    }

    /// How much of it is in the page cache; `None` where there is none to look into, or nobody tells.
    /// Reads nothing, and is no call that is counted, slowed down or failed.
    fn resident(&mut self) -> Result<Option<Resident>, StoreError> {
        Ok(None)
    }
}

/// An object that is being written.
///
/// The plain seam below [`Writer`](crate::Writer): every call is one write to the storage. Several
/// threads may write at a time, apart from each other.
pub trait Upload: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    ///
    /// A store with direct I/O takes only offsets and addresses that are multiples of
    /// [`BLOCK_BYTES`], and such lengths too except at the end of the object.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Whether every write has to begin where the one before it ended.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Makes the object visible under its key.
    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError>;
}

/// What a published object survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    None,
    /// The end of the machine: bytes and name are on the device.
    Fsync,
}

/// One name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name, without the folder.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
    /// The size of an object, where the listing brings it; asking for it would cost a call per entry.
    pub size_bytes: Option<u64>,
}

/// What a key leads to; links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    File,
    /// A folder.
    Folder,
}

/// The share of an object that is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Bytes in the page cache.
    pub resident: u64,
    /// Bytes of the object.
    pub total: u64,
}
