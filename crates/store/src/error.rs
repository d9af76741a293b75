//! What can go wrong between a key and its bytes.

use std::io;

use crate::Op;

/// Why a store could not do what it was asked for. `path` is the name the user knows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused an operation.
    #[error("cannot {op} {path}")]
    Io {
        /// What was asked for.
        op: Op,
        /// Of which object or folder.
        path: String,
        /// The system's words.
        source: io::Error,
    },
    /// The object ends before the bytes that were asked for.
    #[error("{path} is too short: expected {wanted} bytes at byte {offset}, found {found}")]
    Short {
        /// The object.
        path: String,
        /// Where the read began.
        offset: u64,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes there were.
        found: u64,
    },
    /// Direct I/O was asked for where there is none.
    #[error("the file system of {path} refuses direct I/O")]
    DirectRefused {
        /// The object.
        path: String,
        /// The system's words.
        source: io::Error,
    },
    /// The kernel, or the container around the process, offers no io_uring.
    #[error("the kernel refuses io_uring")]
    RingRefused {
        /// The system's words.
        source: io::Error,
    },
    /// io_uring was asked for together with a mapping, which reads without any call.
    #[error(
        "files of {root} are mapped into memory, expected buffered or direct reads for io_uring"
    )]
    RingMapped {
        /// The store's root.
        root: String,
    },
    /// A store that makes up what it is asked for was asked for something else.
    #[error("cannot {op} {path}: its store makes up objects that are read, and holds none")]
    MadeUp {
        /// What was asked for.
        op: Op,
        /// Of which object or folder.
        path: String,
    },
    /// A write that direct I/O cannot do.
    #[error("direct write of {len} bytes at byte {offset} of {path} does not begin at a block")]
    Unaligned {
        /// The object.
        path: String,
        /// Where the write begins.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// A change to bytes that cannot be changed any more.
    #[error("change of bytes {offset} to {end} of {path}, expected within the first {bound}")]
    Patch {
        /// The object.
        path: String,
        /// First byte to change.
        offset: u64,
        /// One past the last.
        end: u64,
        /// Bytes that can still be changed.
        bound: u64,
    },
    /// A key that would lead out of the store or to nothing.
    #[error("{key:?} is not a key: expected a relative path without `..`")]
    Key {
        /// The key as it was given.
        key: String,
    },
    /// A name in a folder that no key can hold.
    #[error("{folder} contains {name:?}, expected names in UTF-8")]
    NotUtf8 {
        /// The folder.
        folder: String,
        /// The name.
        name: std::ffi::OsString,
    },
}

impl StoreError {
    /// Whether the object or folder does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The system's error number, if it gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            StoreError::Io { source, .. }
            | StoreError::DirectRefused { source, .. }
            | StoreError::RingRefused { source } => source.raw_os_error(),
            _ => None,
        }
    }
}
