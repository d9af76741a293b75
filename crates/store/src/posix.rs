//! Files below a folder, through the page cache or past it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::direct::{DirectFile, DirectUpload, WindowPool};
use crate::{
    BUFFERED_READ_BYTES, DIRECT_READ_BYTES, Durability, Entry, Kind, Object, Op, Resident, Store,
    StoreError, Upload, key, os,
};

/// In the names of files that are not published yet: `.NAME.partial-PID-NUMBER`.
const PARTIAL: &str = ".partial-";

/// Whether files go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Through the page cache, as programs do by default.
    Buffered,
    /// Past it, with `O_DIRECT`. A file system that refuses is an error, never a fallback.
    Direct,
}

/// A folder of the operating system as a store.
#[derive(Debug)]
pub struct Posix {
    root: PathBuf,
    mode: Mode,
    windows: Arc<WindowPool>,
}

impl Posix {
    /// The store of everything below `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>, mode: Mode) -> Posix {
        Posix { root: root.into(), mode, windows: Arc::default() }
    }

    fn folder_path(&self, folder: &str) -> Result<PathBuf, StoreError> {
        Ok(self.below_root(key::folder(folder)?))
    }

    /// The root itself for an empty key: joined with nothing it would get a slash at its end, and a
    /// file with a slash does not exist.
    fn below_root(&self, key: impl AsRef<Path>) -> PathBuf {
        match key.as_ref().as_os_str().is_empty() {
            true => self.root.clone(),
            false => self.root.join(key),
        }
    }

    fn object_path(&self, key: &str) -> Result<PathBuf, StoreError> {
        Ok(self.root.join(key::object(key)?))
    }

    /// Opens with the flags of the store's mode.
    fn open_file(
        &self,
        op: Op,
        path: &Path,
        options: &mut OpenOptions,
    ) -> Result<File, StoreError> {
        if self.mode == Mode::Direct {
            options.custom_flags(libc::O_DIRECT);
        }
        options.open(path).map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL) if self.mode == Mode::Direct => {
                StoreError::DirectRefused { path: path.display().to_string(), source }
            }
            _ => failed(op, path, source),
        })
    }
}

impl Store for Posix {
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        let path = self.object_path(key)?;
        let file = self.open_file(Op::Open, &path, OpenOptions::new().read(true))?;
        Ok(match self.mode {
            Mode::Buffered => Box::new(BufferedFile { file, path }),
            Mode::Direct => Box::new(DirectFile::new(file, path, Arc::clone(&self.windows))),
        })
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError> {
        let path = self.object_path(key)?;
        let partial = Partial::new(path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = match self.open_file(Op::Create, &partial.temporary, &mut options) {
            Ok(file) => file,
            Err(StoreError::Io { op, source, .. }) => {
                return Err(failed(op, &partial.path, source));
            }
            Err(refused) => return Err(refused),
        };
        Ok(match self.mode {
            Mode::Buffered => Box::new(BufferedUpload { file, partial }),
            Mode::Direct => Box::new(DirectUpload::new(file, partial)),
        })
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let path = self.folder_path(folder)?;
        let entries = fs::read_dir(&path).map_err(|source| failed(Op::List, &path, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| failed(Op::List, &path, source))?;
            let name = entry.file_name();
            let Some(text) = name.to_str() else {
                return Err(StoreError::NotUtf8 { folder: path.display().to_string(), name });
            };
            if text.starts_with('.') && text.contains(PARTIAL) {
                continue;
            }
            let kind = kind_of(&entry).map_err(|source| failed(Op::List, &entry.path(), source))?;
            if visit(Entry { name: text, kind }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn make_folder(&self, folder: &str) -> Result<(), StoreError> {
        let path = self.folder_path(folder)?;
        fs::create_dir_all(&path).map_err(|source| failed(Op::MakeFolder, &path, source))
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        let path = self.folder_path(key)?;
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        let stays = [ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty];
        match removed {
            Err(source) if !stays.contains(&source.kind()) => {
                Err(failed(Op::Remove, &path, source))
            }
            _ => Ok(()),
        }
    }

    fn kind(&self, key: &str) -> Result<Option<Kind>, StoreError> {
        let path = self.folder_path(key)?;
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Some(Kind::Folder)),
            Ok(_) => Ok(Some(Kind::File)),
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(source) => Err(failed(Op::Stat, &path, source)),
        }
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>, StoreError> {
        let path = self.folder_path(folder)?;
        let mut nearest = path.as_path();
        while let (false, Some(parent)) = (nearest.exists(), nearest.parent()) {
            nearest = parent;
        }
        let nearest = if nearest.as_os_str().is_empty() { Path::new(".") } else { nearest };
        os::free_bytes(nearest).map(Some).map_err(|source| failed(Op::Inspect, nearest, source))
    }

    fn resident_bytes(&self, key: &str) -> Result<Option<Resident>, StoreError> {
        let path = self.object_path(key)?;
        let look = || {
            let file = File::open(&path)?;
            if !os::tells_residency(&file, &path)? {
                return Ok(None);
            }
            let total = file.metadata()?.len();
            Ok(Some(Resident { resident: os::resident_bytes(&file, total)?, total }))
        };
        look().map_err(|source| failed(Op::Inspect, &path, source))
    }

    fn evict(&self, key: &str) -> Result<(), StoreError> {
        let path = self.object_path(key)?;
        let drop_pages = || {
            let file = File::open(&path)?;
            // Pages that are not written yet would stay.
            file.sync_data()?;
            os::drop_pages(&file)
        };
        drop_pages().map_err(|source| failed(Op::Inspect, &path, source))
    }

    fn locate(&self, key: &str) -> String {
        self.below_root(key).display().to_string()
    }

    fn read_bytes(&self) -> usize {
        match self.mode {
            Mode::Buffered => BUFFERED_READ_BYTES,
            Mode::Direct => DIRECT_READ_BYTES,
        }
    }
}

/// What an entry is, links followed; a link to nowhere is a file that cannot be opened.
fn kind_of(entry: &fs::DirEntry) -> io::Result<Kind> {
    let kind = entry.file_type()?;
    let is_folder = match kind.is_symlink() {
        true => fs::metadata(entry.path()).is_ok_and(|target| target.is_dir()),
        false => kind.is_dir(),
    };
    Ok(if is_folder { Kind::Folder } else { Kind::File })
}

pub(crate) fn failed(op: Op, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { op, path: path.display().to_string(), source }
}

/// Reads until `buf` is full or the file ends; how much was read.
pub(crate) fn read_up_to(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(err) if err.kind() == ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    Ok(done)
}

struct BufferedFile {
    file: File,
    path: PathBuf,
}

impl Object for BufferedFile {
    fn len(&mut self) -> Result<u64, StoreError> {
        let found = self.file.metadata().map_err(|source| failed(Op::Stat, &self.path, source))?;
        Ok(found.len())
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let found = read_up_to(&self.file, offset, buf)
            .map_err(|source| failed(Op::Read, &self.path, source))?;
        check_full(&self.path, offset, buf.len(), found)
    }
}

pub(crate) fn check_full(
    path: &Path,
    offset: u64,
    wanted: usize,
    found: usize,
) -> Result<(), StoreError> {
    if found == wanted {
        return Ok(());
    }
    let path = path.display().to_string();
    Err(StoreError::Short { path, offset, wanted: wanted as u64, found: found as u64 })
}

struct BufferedUpload {
    file: File,
    partial: Partial,
}

impl Upload for BufferedUpload {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|source| failed(Op::Write, &self.partial.path, source))
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        self.partial.publish(&self.file, durability)
    }
}

/// A file under its temporary name, which is removed unless it is published.
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
    temporary: PathBuf,
    published: bool,
}

impl Partial {
    fn new(path: PathBuf) -> Partial {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!(".{name}{PARTIAL}{}-{number}", std::process::id());
        let temporary = path.with_file_name(name);
        Partial { path, temporary, published: false }
    }

    pub(crate) fn publish(mut self, file: &File, durability: Durability) -> Result<(), StoreError> {
        let mut publish = || {
            if durability == Durability::Fsync {
                file.sync_all()?;
            }
            fs::rename(&self.temporary, &self.path)?;
            self.published = true;
            match (durability, self.path.parent()) {
                (Durability::Fsync, Some(folder)) => File::open(folder)?.sync_all(),
                _ => Ok(()),
            }
        };
        publish().map_err(|source| failed(Op::Publish, &self.path, source))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        // If this fails, a hidden file stays that no listing shows; nobody is left to be told.
        let _ = fs::remove_file(&self.temporary);
    }
}
