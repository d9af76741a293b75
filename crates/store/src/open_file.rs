//! A file that is open for reading, by plain calls or through io_uring.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::os;
use crate::ring::RingPool;
use crate::{BLOCK_BYTES, Object, Op, Resident, Result, StoreError};

/// An open file and how it is read: one system call per read, or a ring.
pub(crate) struct OpenFile {
    file: File,
    path: PathBuf,
    rings: Option<Arc<RingPool>>,
}

impl OpenFile {
    pub(crate) fn new(file: File, path: PathBuf, rings: Option<Arc<RingPool>>) -> OpenFile {
        OpenFile { file, path, rings }
    }

    pub(crate) fn len(&self) -> Result<u64> {
        file_len(&self.file, &self.path)
    }

    pub(crate) fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map_err(|source| failed(Op::Stat, &self.path, source))
    }

    /// Reads once and returns how many bytes came; none only past the end.
    pub(crate) fn read_some(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        loop {
            let read = match &self.rings {
                None => self.file.read_at(buf, offset),
                Some(rings) => rings.read_at(&self.file, offset, buf)?,
            };
            match read {
                Err(err) if err.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(|source| failed(Op::Read, &self.path, source)),
            }
        }
    }

    pub(crate) fn resident(&self) -> Result<Option<Resident>> {
        file_resident(&self.file, &self.path)
    }

    /// Fails if fewer bytes were found than needed.
    pub(crate) fn check_full(&self, offset: u64, needed: usize, found: usize) -> Result<()> {
        if found == needed {
            return Ok(());
        }
        Err(short(&self.path, offset, needed as u64, found as u64))
    }
}

pub(crate) fn file_len(file: &File, path: &Path) -> Result<u64> {
    Ok(file.metadata().map_err(|source| failed(Op::Stat, path, source))?.len())
}

/// How much of an open file is in the page cache, if the system can tell.
pub(crate) fn file_resident(file: &File, path: &Path) -> Result<Option<Resident>> {
    let look = || {
        if let Some(cached) = os::cached_bytes(file) {
            let mut place = file;
            let total = place.seek(SeekFrom::End(0))?;
            return Ok(Some(Resident { resident: cached.min(total), total }));
        }
        if !os::tells_residency(file, path)? {
            return Ok(None);
        }
        let total = file.metadata()?.len();
        Ok(Some(Resident { resident: os::resident_bytes(file, total)?, total }))
    };
    look().map_err(|source| failed(Op::Inspect, path, source))
}

pub(crate) fn failed(op: Op, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { op, path: path.display().to_string(), source }
}

pub(crate) fn short(path: &Path, offset: u64, needed: u64, found: u64) -> StoreError {
    StoreError::Short { path: path.display().to_string(), offset, needed, found }
}

/// A file open for reading through the page cache.
pub(crate) struct BufferedFile {
    source: OpenFile,
    preferred_bytes: usize,
}

impl BufferedFile {
    pub(crate) fn new(source: OpenFile) -> BufferedFile {
        BufferedFile { source, preferred_bytes: BLOCK_BYTES }
    }
}

impl Object for BufferedFile {
    fn len(&mut self) -> Result<u64> {
        let found = self.source.metadata()?;
        self.preferred_bytes = usize::try_from(found.blksize()).unwrap_or(BLOCK_BYTES).max(1);
        Ok(found.len())
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.source.read_some(offset, buf)
    }

    fn preferred_bytes(&self) -> usize {
        self.preferred_bytes
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match self.source.read_some(offset.saturating_add(done as u64), &mut buf[done..])? {
                0 => break,
                count => done += count,
            }
        }
        self.source.check_full(offset, buf.len(), done)
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        self.source.resident()
    }
}
