//! The buffer in front of an upload.

use crate::{AlignedBuf, BLOCK_BYTES, Durability, Store, StoreError, Upload};

/// Collects bytes in the caller's buffer and writes it whenever it is full.
///
/// The buffer is borrowed, so that a thread uses one for all its files. The first block of the
/// object is remembered, so that it can be changed until the end, with direct I/O too.
pub struct Writer<'a> {
    upload: Box<dyn Upload>,
    path: String,
    buf: &'a mut AlignedBuf,
    /// Bytes in the buffer.
    filled: usize,
    /// Bytes before those in the buffer.
    flushed: u64,
    head: Head,
}

/// What of the first block has left the buffer.
#[derive(Default)]
struct Head {
    /// Empty until the first flush, and without cost for objects that never have one before the end.
    block: Option<AlignedBuf>,
    changed: bool,
}

impl<'a> Writer<'a> {
    /// Starts the object `key` of `store` and collects its bytes in `buf`.
    ///
    /// # Panics
    /// If the buffer's length is not a positive multiple of [`BLOCK_BYTES`].
    pub fn create(
        store: &dyn Store,
        key: &str,
        buf: &'a mut AlignedBuf,
    ) -> Result<Writer<'a>, StoreError> {
        assert!(!buf.is_empty() && buf.len().is_multiple_of(BLOCK_BYTES), "buffer of whole blocks");
        let upload = store.create(key)?;
        let path = store.locate(key);
        Ok(Writer { upload, path, buf, filled: 0, flushed: 0, head: Head::default() })
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.flushed + self.filled as u64
    }

    /// Between 1 and `want` bytes of the buffer for the caller to fill; they count as written.
    /// `want` is at least 1.
    pub fn space(&mut self, want: usize) -> Result<&mut [u8], StoreError> {
        if self.filled == self.buf.len() {
            self.flush()?;
        }
        let start = self.filled;
        self.filled = self.buf.len().min(start + want);
        Ok(&mut self.buf[start..self.filled])
    }

    /// Appends `bytes`.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            let space = self.space(bytes.len())?;
            let (now, later) = bytes.split_at(space.len());
            space.copy_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Changes bytes that were written before, all within the first [`BLOCK_BYTES`].
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
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
            None => &mut *self.buf,
        };
        block[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes what is left and makes the object visible.
    pub fn publish(mut self, durability: Durability) -> Result<(), StoreError> {
        if self.filled > 0 {
            self.flush()?;
        }
        if let Head { block: Some(block), changed: true } = &self.head {
            self.upload.write_at(0, block)?;
        }
        self.upload.publish(durability)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let bytes = &self.buf[..self.filled];
        self.upload.write_at(self.flushed, bytes)?;
        if self.head.block.is_none() && self.filled == self.buf.len() {
            let mut block = AlignedBuf::new(BLOCK_BYTES);
            block.copy_from_slice(&bytes[..BLOCK_BYTES]);
            self.head.block = Some(block);
        }
        self.flushed += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}
