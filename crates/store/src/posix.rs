//! Files below a folder, through the page cache, past it, or mapped into memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use feedline_location::FILE;

use crate::direct::{DirectFile, DirectUpload, WindowPool};
use crate::mapped::MappedFile;
use crate::open_file::{BufferedFile, OpenFile, failed};
use crate::partial::{self, Partial};
use crate::ring::RingPool;
use crate::ring_queue::RingQueue;
use crate::{
    BLOCK_BYTES, BUFFERED_READ_BYTES, Capabilities, DIRECT_READ_BYTES, Durability, EntryKind,
    FolderEntry, Object, Op, ReadQueue, Result, Store, StoreError, TraceSites, Upload, key, os,
};

static TRACE_SITES: TraceSites = TraceSites::of_paths("POSIX");

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Through the page cache, as programs do by default.
    #[default]
    Buffered,
    /// Past it, with `O_DIRECT`. A file system that refuses is an error, never a fallback.
    Direct,
    /// Read by mapping them into memory, which brings pages in one after the other and copies what
    /// was asked for; written through the page cache.
    Mapped,
}

/// A folder of the operating system as a store. Clones share their buffers and rings.
#[derive(Debug, Clone)]
pub struct Posix {
    root: PathBuf,
    mode: Mode,
    read_bytes: usize,
    windows: Arc<WindowPool>,
    /// What reads go through, if not through a call each.
    rings: Option<Arc<RingPool>>,
}

impl Posix {
    /// The store of everything below `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>, mode: Mode) -> Posix {
        let read_bytes = match mode {
            Mode::Buffered | Mode::Mapped => BUFFERED_READ_BYTES,
            Mode::Direct => DIRECT_READ_BYTES,
        };
        Posix { root: root.into(), mode, read_bytes, windows: Arc::default(), rings: None }
    }

    /// Lets reads go through io_uring, which also gives the store a queue.
    ///
    /// Tests io_uring at once: if the kernel or the container forbids it, this fails before anything
    /// is read or written. There is no fallback.
    pub fn with_ring(self) -> Result<Posix> {
        if self.mode == Mode::Mapped {
            return Err(StoreError::RingMapped { root: self.root.display().to_string() });
        }
        Ok(Posix { rings: Some(Arc::new(RingPool::new()?)), ..self })
    }

    /// Sets the size of reads; 0 counts as 1. Direct reads of a queue are rounded up to whole blocks.
    #[must_use]
    pub fn with_read_bytes(self, read_bytes: usize) -> Posix {
        Posix { read_bytes: read_bytes.max(1), ..self }
    }

    /// Whether the file system of the root, or of the nearest folder above it, takes direct I/O.
    /// A folder without write permission cannot be tested and counts as one that does not.
    pub fn takes_direct(&self) -> Result<bool> {
        let nearest = nearest(&self.root);
        let mut options = OpenOptions::new();
        // A file without a name, which never becomes visible.
        options.write(true).custom_flags(libc::O_DIRECT | libc::O_TMPFILE);
        match options.open(nearest).or_else(|refused| match refused.raw_os_error() {
            // Not every file system has such files.
            Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EISDIR) => try_direct(nearest),
            _ => Err(refused),
        }) {
            Ok(_) => Ok(true),
            Err(source) => match source.raw_os_error() {
                Some(libc::EINVAL | libc::EOPNOTSUPP) => Ok(false),
                Some(libc::EACCES | libc::EROFS | libc::ENOENT | libc::ENOTDIR) => Ok(false),
                _ => Err(failed(Op::Inspect, nearest, source)),
            },
        }
    }

    /// Whether reads must be whole blocks.
    pub(crate) fn is_direct(&self) -> bool {
        self.mode == Mode::Direct
    }

    /// The file of an object, open for reading.
    pub(crate) fn open_to_read(&self, key: &str) -> Result<(File, PathBuf)> {
        let path = self.object_path(key)?;
        let file = self.open_file(Op::Open, &path, OpenOptions::new().read(true))?;
        Ok((file, path))
    }

    /// What the file system knows of a path, if anything is there.
    fn look_up(&self, key: &str) -> Result<Option<fs::Metadata>> {
        let path = self.folder_path(key)?;
        match fs::metadata(&path) {
            Ok(found) => Ok(Some(found)),
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(source) => Err(failed(Op::Stat, &path, source)),
        }
    }

    fn folder_path(&self, folder: &str) -> Result<PathBuf> {
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

    fn object_path(&self, key: &str) -> Result<PathBuf> {
        Ok(self.root.join(key::object(key)?))
    }

    /// Opens with the flags of the store's mode.
    fn open_file(&self, op: Op, path: &Path, options: &mut OpenOptions) -> Result<File> {
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
    fn open(&self, key: &str) -> Result<Box<dyn Object>> {
        let (file, path) = self.open_to_read(key)?;
        let source = |file, path| OpenFile::new(file, path, self.rings.clone());
        Ok(match self.mode {
            Mode::Buffered => Box::new(BufferedFile::new(source(file, path))),
            Mode::Direct => {
                Box::new(DirectFile::new(source(file, path), Arc::clone(&self.windows)))
            }
            Mode::Mapped => Box::new(MappedFile::new(file, path)),
        })
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>> {
        let path = self.object_path(key)?;
        let partial = Partial::new(path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = match self.open_file(Op::Create, partial.temporary(), &mut options) {
            Ok(file) => file,
            Err(StoreError::Io { op, source, .. }) => {
                return Err(failed(op, &partial.path, source));
            }
            Err(StoreError::DirectRefused { source, .. }) => {
                let path = partial.path.display().to_string();
                return Err(StoreError::DirectRefused { path, source });
            }
            Err(refused) => return Err(refused),
        };
        Ok(match self.mode {
            Mode::Buffered | Mode::Mapped => Box::new(BufferedUpload { file, partial }),
            Mode::Direct => Box::new(DirectUpload::new(file, partial)),
        })
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let path = self.folder_path(folder)?;
        let entries = fs::read_dir(&path).map_err(|source| failed(Op::List, &path, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| failed(Op::List, &path, source))?;
            let name = entry.file_name();
            let Some(text) = name.to_str() else {
                return Err(StoreError::NotUtf8 { folder: path.display().to_string(), name });
            };
            if partial::is_partial(text) {
                continue;
            }
            let kind = kind_of(&entry).map_err(|source| failed(Op::List, &entry.path(), source))?;
            if visit(FolderEntry { name: text, kind, size_bytes: None }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        let path = self.folder_path(folder)?;
        fs::create_dir_all(&path).map_err(|source| failed(Op::MakeFolder, &path, source))
    }

    fn replace_folder(&self, from: &str, to: &str, durability: Durability) -> Result<()> {
        let (from, to) = (self.folder_path(from)?, self.folder_path(to)?);
        let replace = || {
            if durability == Durability::Fsync {
                // The names in it, before the name of it.
                File::open(&from)?.sync_all()?;
            }
            partial::replace_folder(&from, &to)?;
            match (durability, to.parent()) {
                (Durability::Fsync, Some(parent)) => File::open(parent)?.sync_all(),
                _ => Ok(()),
            }
        };
        replace().map_err(|source| failed(Op::Publish, &to, source))
    }

    fn remove_tree(&self, folder: &str) -> Result<()> {
        let path = self.folder_path(folder)?;
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(failed(Op::Remove, &path, source))
            }
            _ => Ok(()),
        }
    }

    fn remove(&self, key: &str) -> Result<()> {
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

    fn remove_stale(&self, folder: &str) -> Result<u64> {
        let path = self.folder_path(folder)?;
        match partial::remove_stale(&path) {
            Err(source) if source.kind() == ErrorKind::NotFound => Ok(0),
            removed => removed.map_err(|source| failed(Op::Remove, &path, source)),
        }
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>> {
        let kind =
            |found: fs::Metadata| if found.is_dir() { EntryKind::Folder } else { EntryKind::File };
        Ok(self.look_up(key)?.map(kind))
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.look_up(key)?.filter(|found| !found.is_dir()).map(|found| found.len()))
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>> {
        let path = self.folder_path(folder)?;
        let nearest = nearest(&path);
        os::free_bytes(nearest).map_err(|source| failed(Op::Inspect, nearest, source))
    }

    fn evict(&self, key: &str) -> Result<()> {
        let path = self.object_path(key)?;
        let drop_pages = || {
            let file = File::open(&path)?;
            // Pages that are not written yet would stay.
            file.sync_data()?;
            os::drop_pages(&file)
        };
        drop_pages().map_err(|source| failed(Op::Inspect, &path, source))
    }

    fn capabilities(&self) -> Capabilities {
        let ring = self.rings.is_some();
        let (direct, mapped) = (self.mode == Mode::Direct, self.mode == Mode::Mapped);
        Capabilities { direct, mapped, ring, queue: ring, ..FILE.capabilities }
    }

    fn trace_sites(&self) -> &'static TraceSites {
        &TRACE_SITES
    }

    fn locate(&self, key: &str) -> String {
        self.below_root(key).display().to_string()
    }

    fn block_bytes(&self) -> usize {
        if self.is_direct() { BLOCK_BYTES } else { 1 }
    }

    fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    fn queue(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        if self.rings.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(RingQueue::new(self.clone(), depth)?)))
    }
}

/// The path itself if something is there, else the nearest folder above it that is.
fn nearest(path: &Path) -> &Path {
    let found = path.ancestors().find(|above| above.exists()).unwrap_or(path);
    // Above a relative path is the folder that we are in.
    if path.is_relative() && !found.exists() { Path::new(".") } else { found }
}

/// Creates a file for direct I/O and removes it again.
fn try_direct(folder: &Path) -> io::Result<File> {
    let path = folder.join(partial::partial_name("direct"));
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).custom_flags(libc::O_DIRECT).open(&path);
    // Some file systems make the file and refuse then.
    let _ = fs::remove_file(&path);
    opened
}

/// What an entry is, links followed; a link to nowhere is a file that cannot be opened.
fn kind_of(entry: &fs::DirEntry) -> io::Result<EntryKind> {
    let kind = entry.file_type()?;
    let is_folder = match kind.is_symlink() {
        true => fs::metadata(entry.path()).is_ok_and(|target| target.is_dir()),
        false => kind.is_dir(),
    };
    Ok(if is_folder { EntryKind::Folder } else { EntryKind::File })
}

struct BufferedUpload {
    file: File,
    partial: Partial,
}

impl Upload for BufferedUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|source| failed(Op::Write, &self.partial.path, source))
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<()> {
        self.partial.publish(&self.file, durability)
    }
}
