//! Files that do not have their names yet.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{Result, TraceError};

/// Whether bytes are compressed on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    /// Every appended piece is a gzip member of its own.
    Gzip,
}

impl Packing {
    /// By the end of a file's name.
    pub(crate) fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|extension| extension == "gz") {
            Self::Gzip
        } else {
            Self::Plain
        }
    }
}

/// A file that is written under a hidden name, and removed if it is never finished. It is open only
/// while something is appended: a trace may have more processes than a process may have files.
#[derive(Debug)]
pub(crate) struct PartialFile {
    path: PathBuf,
    hidden: PathBuf,
    packing: Packing,
    is_finished: bool,
}

impl PartialFile {
    pub(crate) fn create(path: PathBuf, packing: Packing) -> Result<Self> {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let hidden = path.with_file_name(format!(".{name}.partial"));
        let made = Self { path, hidden, packing, is_finished: false };
        made.check(File::create(&made.hidden))?;
        Ok(made)
    }

    fn check<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|source| TraceError::Write { path: self.path.clone(), source })
    }

    /// Its final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds bytes at the end.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<()> {
        let appended = || {
            let mut file = OpenOptions::new().append(true).open(&self.hidden)?;
            match self.packing {
                Packing::Plain => file.write_all(bytes),
                Packing::Gzip => {
                    let mut encoder = GzEncoder::new(file, Compression::default());
                    encoder.write_all(bytes)?;
                    encoder.finish().map(|_| ())
                }
            }
        };
        self.check(appended())
    }

    /// Gives it its name.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.check(fs::rename(&self.hidden, &self.path))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nothing can be done about one that stays; its name is hidden and says what it is.
            let _ = fs::remove_file(&self.hidden);
        }
    }
}

/// A single file that is written from its beginning to its end, compressed as one gzip member.
#[derive(Debug)]
pub(crate) struct PartialStream {
    place: PartialFile,
    buffer: Vec<u8>,
    file: Output,
}

#[derive(Debug)]
enum Output {
    Plain(File),
    Gzip(Box<GzEncoder<File>>),
}

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 18;

impl PartialStream {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let packing = Packing::of(path);
        let place = PartialFile::create(path.to_owned(), packing)?;
        let file = place.check(OpenOptions::new().append(true).open(&place.hidden))?;
        let file = match packing {
            Packing::Plain => Output::Plain(file),
            Packing::Gzip => Output::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
        };
        Ok(Self { place, buffer: Vec::with_capacity(2 * BUFFER_BYTES), file })
    }

    /// Its final name.
    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Where to put the next bytes; [`flush`](Self::flush) now and then.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer if it is full.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.buffer.len() < BUFFER_BYTES { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<()> {
        let written = match &mut self.file {
            Output::Plain(file) => file.write_all(&self.buffer),
            Output::Gzip(encoder) => encoder.write_all(&self.buffer),
        };
        self.buffer.clear();
        self.place.check(written)
    }

    /// Writes the rest and gives the file its name.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.write()?;
        let finished = match &mut self.file {
            Output::Plain(_) => Ok(()),
            Output::Gzip(encoder) => encoder.try_finish(),
        };
        self.place.check(finished)?;
        self.place.finish()
    }
}
