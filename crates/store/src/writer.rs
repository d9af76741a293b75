//! The buffer in front of an upload.

use std::borrow::BorrowMut;

use crc32fast::Hasher;

use crate::{AlignedBuf, BLOCK_BYTES, Durability, Result, Store, StoreError, Upload};

/// Collects the bytes of a new object in a buffer and writes it whenever it is full.
///
/// The buffer is the writer's own, or a `&mut AlignedBuf` that a thread uses for all its objects. The
/// first block of the object is remembered, so that it can be changed until the end, with direct I/O
/// too. Dropped before [`Writer::publish`], a writer leaves nothing behind.
pub struct Writer<B = AlignedBuf> {
    upload: Box<dyn Upload>,
    path: String,
    buf: B,
    /// Bytes in the buffer.
    filled: usize,
    /// Bytes before those in the buffer.
    flushed: u64,
    head: Head,
    /// Over everything after the first block, which can still change; `None` if it was not asked for.
    checksum: Option<Hasher>,
}

/// Size and checksum of a published object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the object.
    pub bytes: u64,
    /// CRC-32 of them with zlib's polynomial, if [`Writer::with_checksum`] asked for it.
    pub crc32: Option<u32>,
}

/// What of the first block has left the buffer.
#[derive(Default)]
struct Head {
    /// Empty until the first flush, and without cost for objects that never have one before the end.
    block: Option<AlignedBuf>,
    changed: bool,
}

impl<B: BorrowMut<AlignedBuf>> Writer<B> {
    /// Starts the object `key` of `store` and collects its bytes in `buf`.
    ///
    /// # Panics
    /// If the buffer's length is not a positive multiple of [`BLOCK_BYTES`].
    pub fn create(store: &dyn Store, key: &str, buf: B) -> Result<Writer<B>> {
        let len = buf.borrow().len();
        assert!(len > 0 && len.is_multiple_of(BLOCK_BYTES), "buffer of whole blocks");
        let upload = store.create(key)?;
        let path = store.locate(key);
        let head = Head::default();
        Ok(Writer { upload, path, buf, filled: 0, flushed: 0, head, checksum: None })
    }

    /// Computes a checksum of the object on the way.
    ///
    /// # Panics
    /// If something was written.
    #[must_use]
    pub fn with_checksum(self) -> Writer<B> {
        assert_eq!(self.written(), 0, "a checksum is over the whole object");
        Writer { checksum: Some(Hasher::new()), ..self }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.flushed + self.filled as u64
    }

    /// Between 1 and `want` bytes of the buffer for the caller to fill; they count as written.
    /// `want` is at least 1.
    pub fn space(&mut self, want: usize) -> Result<&mut [u8]> {
        if self.filled == self.buf.borrow().len() {
            self.flush()?;
        }
        let (buf, start) = (self.buf.borrow_mut(), self.filled);
        self.filled = buf.len().min(start + want);
        Ok(&mut buf[start..self.filled])
    }

    /// Appends `bytes`.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let space = self.space(bytes.len())?;
            let (now, later) = bytes.split_at(space.len());
            space.copy_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Changes bytes that were written before, all within the first [`BLOCK_BYTES`].
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        let bound = self.written().min(BLOCK_BYTES as u64);
        if end > bound {
            return Err(StoreError::Patch { path: self.path.clone(), offset, end, bound });
        }
        let block = match &mut self.head.block {
            Some(block) => {
                self.head.changed = true;
                block
            }
            None => self.buf.borrow_mut(),
        };
        block[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes what is left and makes the object visible.
    pub fn publish(mut self, durability: Durability) -> Result<Written> {
        if self.filled > 0 {
            self.flush()?;
        }
        let written = Written { bytes: self.written(), crc32: self.crc32() };
        if let Head { block: Some(block), changed: true } = &self.head {
            self.upload.write_at(0, block)?;
        }
        self.upload.publish(durability)?;
        Ok(written)
    }

    /// The checksum once everything is flushed.
    fn crc32(&self) -> Option<u32> {
        let rest = self.checksum.as_ref()?;
        let head = match &self.head.block {
            Some(block) => &block[..],
            // All of it left the buffer at once, at the end, and is still there.
            None => &self.buf.borrow()[..(self.flushed as usize).min(BLOCK_BYTES)],
        };
        let mut whole = Hasher::new();
        whole.update(head);
        whole.combine(rest);
        Some(whole.finalize())
    }

    fn flush(&mut self) -> Result<()> {
        let buf = self.buf.borrow();
        let bytes = &buf[..self.filled];
        self.upload.write_at(self.flushed, bytes)?;
        if self.head.block.is_none() && self.filled == buf.len() {
            let mut block = AlignedBuf::new(BLOCK_BYTES);
            block.copy_from_slice(&bytes[..BLOCK_BYTES]);
            self.head.block = Some(block);
        }
        if let Some(rest) = &mut self.checksum {
            let head = if self.flushed == 0 { self.filled.min(BLOCK_BYTES) } else { 0 };
            rest.update(&bytes[head..]);
        }
        self.flushed += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}
