//! Files read and written past the page cache.
//!
//! The kernel requires address, offset and length to be whole blocks. Aligned parts go straight to or
//! from the caller's memory; the rest goes through a window, a small aligned buffer that is reused.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::buffer::is_aligned;
use crate::lock::lock;
use crate::open_file::{OpenFile, failed};
use crate::partial::Partial;
use crate::{
    AlignedBuf, BLOCK_BYTES, Durability, Object, Op, Resident, Result, StoreError, Upload,
};

const WINDOW_BYTES: usize = 256 * 1024;
/// Idle windows kept; with more concurrent readers than this, the others allocate a window each time.
const WINDOWS_MAX: usize = 64;

/// Windows that no file uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct WindowPool {
    idle: Mutex<Vec<AlignedBuf>>,
}

impl WindowPool {
    fn take(&self) -> AlignedBuf {
        let idle = lock(&self.idle).pop();
        idle.unwrap_or_else(|| AlignedBuf::new(WINDOW_BYTES))
    }

    fn put_back(&self, window: AlignedBuf) {
        let mut idle = lock(&self.idle);
        if idle.len() < WINDOWS_MAX {
            idle.push(window);
        }
    }
}

/// A file open for direct reading.
pub(crate) struct DirectFile {
    source: OpenFile,
    windows: Arc<WindowPool>,
    /// Taken from the pool at the first unaligned read.
    window: Option<AlignedBuf>,
}

impl DirectFile {
    pub(crate) fn new(source: OpenFile, windows: Arc<WindowPool>) -> DirectFile {
        DirectFile { source, windows, window: None }
    }

    /// Reads up to `buf.len()` bytes through the window; fewer only at the end of the file.
    fn read_windowed(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let window = self.window.get_or_insert_with(|| self.windows.take());
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let skip = (at % BLOCK_BYTES as u64) as usize;
            let needed = (skip + buf.len() - done).next_multiple_of(BLOCK_BYTES);
            let part = &mut window[..needed.min(WINDOW_BYTES)];
            let found = read_up_to_end(&self.source, at - skip as u64, part)?;
            let useful = part[..found].get(skip..).unwrap_or_default();
            let count = useful.len().min(buf.len() - done);
            buf[done..done + count].copy_from_slice(&useful[..count]);
            done += count;
            if found < part.len() {
                break;
            }
        }
        Ok(done)
    }

    fn read_some(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let aligned = is_aligned(buf) && offset.is_multiple_of(BLOCK_BYTES as u64);
        let straight = if aligned { buf.len() - buf.len() % BLOCK_BYTES } else { 0 };
        let (front, back) = buf.split_at_mut(straight);
        let found = read_up_to_end(&self.source, offset, front)?;
        if found < front.len() || back.is_empty() {
            return Ok(found);
        }
        Ok(found + self.read_windowed(offset + found as u64, back)?)
    }
}

/// Reads until `buf` is full or the file ends. A read that stops inside a block counts as the end of
/// the file, since continuing from there would not be aligned.
fn read_up_to_end(source: &OpenFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        let count = source.read_some(offset + done as u64, &mut buf[done..])?;
        done += count;
        if count == 0 || !done.is_multiple_of(BLOCK_BYTES) {
            break;
        }
    }
    Ok(done)
}

impl Object for DirectFile {
    fn len(&mut self) -> Result<u64> {
        self.source.len()
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let found = self.read_some(offset, buf)?;
        self.source.check_full(offset, buf.len(), found)
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        self.source.resident()
    }
}

impl Drop for DirectFile {
    fn drop(&mut self) {
        if let Some(window) = self.window.take() {
            self.windows.put_back(window);
        }
    }
}

/// A file being written directly.
pub(crate) struct DirectUpload {
    file: File,
    partial: Partial,
    /// The file's final size, if its last block was padded.
    cut_at: Mutex<Option<u64>>,
}

impl DirectUpload {
    pub(crate) fn new(file: File, partial: Partial) -> DirectUpload {
        DirectUpload { file, partial, cut_at: Mutex::default() }
    }

    fn cut(&self) -> MutexGuard<'_, Option<u64>> {
        lock(&self.cut_at)
    }

    fn end(&self) -> Option<u64> {
        *self.cut()
    }

    fn unaligned(&self, offset: u64, len: usize) -> StoreError {
        let path = self.partial.path.display().to_string();
        StoreError::Unaligned { path, offset, len: len as u64 }
    }
}

impl Upload for DirectUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let begins_in_block = !offset.is_multiple_of(BLOCK_BYTES as u64);
        let past_the_end = self.end().is_some_and(|end| offset + bytes.len() as u64 > end);
        if !is_aligned(bytes) || begins_in_block || past_the_end {
            return Err(self.unaligned(offset, bytes.len()));
        }
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        let write = |bytes: &[u8], offset| {
            self.file
                .write_all_at(bytes, offset)
                .map_err(|source| failed(Op::Write, &self.partial.path, source))
        };
        write(blocks, offset)?;
        if !rest.is_empty() {
            let mut last = AlignedBuf::new(BLOCK_BYTES);
            last.fill(0);
            last[..rest.len()].copy_from_slice(rest);
            write(&last, offset + blocks.len() as u64)?;
            *self.cut() = Some(offset + bytes.len() as u64);
        }
        Ok(())
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<()> {
        if let Some(len) = self.end() {
            self.file
                .set_len(len)
                .map_err(|source| failed(Op::Publish, &self.partial.path, source))?;
        }
        self.partial.publish(&self.file, durability)
    }
}
