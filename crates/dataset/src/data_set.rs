//! What is read: the files, their format, and how a reader goes about it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_formats::Format;
use feedline_store::Store;

use crate::cache_look::CacheLook;
use crate::names::FileNames;

/// Where the samples are and how they are laid out.
#[derive(Clone)]
pub struct DataSet {
    /// The store that holds the files.
    pub store: Arc<dyn Store>,
    /// The key of every file, by its number.
    pub names: Arc<dyn FileNames>,
    /// The format of all files: a data set has only one.
    pub format: Arc<dyn Format>,
    /// How readers open, read and keep files.
    pub reading: Reading,
    /// Ends reading between two samples.
    pub stop: Arc<AtomicBool>,
    /// Where readers note what of the files was in the page cache, if that is measured.
    pub look: Option<Arc<CacheLook>>,
}

/// How readers open, read and keep files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What a reader does for a sample.
    pub model: ReadMethod,
    /// Files that a reader keeps open between samples; the least recently used one is closed first. Of
    /// formats that are read whole, a kept file has been read and decoded and costs nothing more.
    pub kept_files: usize,
    /// How long a kept file stays open.
    pub kept_for: KeptFor,
}

/// How long a reader keeps what it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptFor {
    /// To the end of the epoch: the next one reads everything again.
    #[default]
    Epoch,
    /// To the end of the run.
    Run,
}

/// What a reader does for a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMethod {
    /// What the framework's reader does: one sample after the other, its calls, decoding included. The
    /// data set's format makes them (`feedline_formats::as_framework`).
    #[default]
    Framework,
    /// One sample after the other with few large reads, decoding included.
    Native,
    /// Moves the bytes of a whole batch with up to `depth` reads under way and decodes nothing.
    Deep {
        /// Reads of one reader that are under way together.
        depth: usize,
    },
}

impl ReadMethod {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Native => "native",
            Self::Deep { .. } => "deep",
        }
    }
}
