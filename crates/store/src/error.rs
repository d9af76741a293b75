//! Errors of stores.

use std::io;

use feedline_location::SCHEMES;

use crate::{Op, RemoteFault};

/// What a storage operation returns.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a storage operation failed. `path` is the object's path or URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused an operation.
    #[error("cannot {op} {path}")]
    Io {
        /// The operation.
        op: Op,
        /// The object or folder.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The object ends before the bytes that were asked for.
    #[error("{path} is too short: expected {needed} bytes at byte {offset}, found {found}")]
    Short {
        /// The object.
        path: String,
        /// Where the read began.
        offset: u64,
        /// Length of the read.
        needed: u64,
        /// Bytes found.
        found: u64,
    },
    /// The file system does not support direct I/O.
    #[error("the file system of {path} refuses direct I/O")]
    DirectRefused {
        /// The object.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel, or the container around the process, offers no io_uring.
    #[error("the kernel refuses io_uring")]
    RingRefused {
        /// The system's error.
        source: io::Error,
    },
    /// io_uring was combined with mapped files, which are read without system calls.
    #[error(
        "files of {root} are mapped into memory, expected buffered or direct reads for io_uring"
    )]
    RingMapped {
        /// The store's root.
        root: String,
    },
    /// A synthetic store was asked to do something other than read.
    #[error("cannot {op} {path}: this is a read-only synthetic store")]
    ReadOnly {
        /// The operation.
        op: Op,
        /// The object or folder.
        path: String,
    },
    /// A direct write that is not aligned to blocks.
    #[error("direct write of {len} bytes at byte {offset} of {path} does not begin at a block")]
    Unaligned {
        /// The object.
        path: String,
        /// Where the write begins.
        offset: u64,
        /// Length of the write.
        len: u64,
    },
    /// A patch outside of the bytes that can still be changed.
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
    /// A key that is empty or would lead out of the store.
    #[error("{key:?} is not a key: expected a relative path without `..`")]
    Key {
        /// The key as it was given.
        key: String,
    },
    /// A server, or the way to it, refused an operation.
    #[error("cannot {op} {path}: {fault}{}", Detail(message))]
    Remote {
        /// The operation.
        op: Op,
        /// The object or folder.
        path: String,
        /// The kind of fault.
        fault: RemoteFault,
        /// The server's words, on one line; may be empty.
        message: String,
    },
    /// A URL with an unknown scheme.
    #[error("cannot connect to {url}: unknown scheme `{scheme}`")]
    UnknownScheme {
        /// The URL, without what may be secret in it.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// A URL of an object store or a web server, which this build cannot reach.
    #[error("cannot connect to {url}: this build has no support for object stores")]
    RemoteLeftOut {
        /// The URL, without what may be secret in it.
        url: String,
    },
    /// A path that was probably meant to be a URL.
    #[error("{path} is a path, expected a URL after `{scheme}:`")]
    MissingSlash {
        /// The path.
        path: String,
        /// The scheme it begins with.
        scheme: &'static str,
        /// The URL that was probably meant, for the hint.
        url: String,
    },
    /// A URL that does not name a remote store.
    #[error("{root:?} is not the URL of a remote store: {reason}")]
    RemoteRoot {
        /// The text, without what may be secret in it.
        root: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An invalid setting of a remote store.
    #[error("{option} of {root}: {reason}")]
    RemoteOption {
        /// The store's root.
        root: String,
        /// Which setting; never its value, which may be secret.
        option: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An object that is longer than its store or its buffer takes.
    #[error("{path} is too long: expected up to {bound} bytes, found {found}")]
    TooLong {
        /// The object.
        path: String,
        /// Its largest possible size in bytes.
        bound: u64,
        /// Its size in bytes.
        found: u64,
    },
    /// A file name that is not UTF-8, which no key can hold.
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
        match self {
            StoreError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            StoreError::Remote { fault, .. } => *fault == RemoteFault::Missing,
            _ => false,
        }
    }

    /// What to type instead, if there is a likely fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            StoreError::UnknownScheme { .. } => {
                let names: Vec<_> =
                    SCHEMES.iter().flat_map(|scheme| scheme.names).copied().collect();
                Some(format!("use a path, or a URL with one of {}", names.join(", ")))
            }
            StoreError::RemoteLeftOut { .. } => {
                Some("build `feedline-store` with the feature `remote`".to_owned())
            }
            StoreError::MissingSlash { url, .. } => Some(format!("did you mean {url}?")),
            _ => None,
        }
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

/// A server's message in parentheses, unless it is empty.
struct Detail<'a>(&'a str);

impl std::fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            "" => Ok(()),
            message => write!(f, " ({message})"),
        }
    }
}
