//! A file of DFTracer: a file by itself, or a part of one, such as an archive's.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where a DFTracer file is, and what people call it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSlice {
    /// Its name in messages.
    pub name: PathBuf,
    /// The file that it is, or is a part of.
    pub path: PathBuf,
    /// Where it begins there.
    pub start: u64,
    /// How long it is; to the end of the file if that is not said.
    pub bytes: Option<u64>,
}

impl From<PathBuf> for FileSlice {
    fn from(path: PathBuf) -> Self {
        Self { name: path.clone(), path, start: 0, bytes: None }
    }
}

impl FileSlice {
    /// Opens it.
    pub(crate) fn open(&self) -> io::Result<Region> {
        let file = File::open(&self.path)?;
        let all = file.metadata()?.len();
        let end = self.bytes.map_or(all, |bytes| all.min(self.start.saturating_add(bytes)));
        Ok(Region { file, start: self.start, at: self.start, end })
    }

    /// How many bytes it has.
    pub fn size(&self) -> io::Result<u64> {
        let all = std::fs::metadata(&self.path)?.len().saturating_sub(self.start);
        Ok(self.bytes.map_or(all, |bytes| bytes.min(all)))
    }

    /// What is read: the whole file, or nothing but a path.
    pub(crate) fn of(path: &Path) -> Self {
        path.to_owned().into()
    }
}

/// An open slice; places count from its beginning.
#[derive(Debug)]
pub(crate) struct Region {
    file: File,
    start: u64,
    at: u64,
    end: u64,
}

impl Read for Region {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.at);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Region {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let at = match to {
            SeekFrom::Start(at) => self.start.checked_add(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        self.at = at.filter(|at| *at >= self.start).ok_or_else(outside)?;
        Ok(self.at - self.start)
    }
}
