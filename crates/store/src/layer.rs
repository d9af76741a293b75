//! Storage calls in a trace: which layer they belong to, what they are called, and on which file.
//!
//! Only a program that records its own trace reports them. Under the preload library the system calls
//! below are seen, and these would count them twice.

use std::sync::{Arc, Mutex, PoisonError};

use feedline_recorder::{CallFacts, Site, TextKind, UNNAMED, recorder};

use crate::{Durability, Op, StoreError};

/// The layer that a store's calls belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Files, however they are read.
    Posix,
    /// Amazon's protocol.
    S3,
    /// Google's.
    Google,
    /// Azure's.
    Azure,
    /// Plain HTTP.
    Http,
    /// Nothing but memory.
    Memory,
}

/// Sites of a layer: one for each kind of call, and one for publishing what must be on the device.
type Sites = [Site; Op::ALL.len() + 1];

static SITES: [Sites; 6] =
    [sites("POSIX"), sites("S3"), sites("GCS"), sites("AZURE"), sites("HTTP"), sites("MEMORY")];

/// Named, in the order of [`Op`], by the system call that does most of it, which analyzers know.
const fn sites(category: &'static str) -> Sites {
    [
        Site::new(category, "open"),
        Site::new(category, "stat"),
        Site::new(category, "read"),
        Site::new(category, "creat"),
        Site::new(category, "write"),
        Site::new(category, "rename"),
        Site::new(category, "scandir"),
        Site::new(category, "mkdir"),
        Site::new(category, "unlink"),
        Site::new(category, "statfs"),
        Site::new(category, "fsync"),
    ]
}

impl Layer {
    pub(crate) fn site(self, op: Op, durability: Durability) -> &'static Site {
        let sites = &SITES[self as usize];
        match (op, durability) {
            (Op::Publish, Durability::Fsync) => &sites[Op::ALL.len()],
            _ => &sites[op as usize],
        }
    }
}

/// What a trace is told of a call, beside its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) op: Op,
    /// The number of the file's name.
    pub(crate) file: u32,
    pub(crate) offset: Option<u64>,
    /// Bytes that the call moves if it succeeds.
    pub(crate) bytes: u64,
    pub(crate) durability: Durability,
}

impl Asked {
    pub(crate) fn new(op: Op, file: u32) -> Asked {
        Asked { op, file, offset: None, bytes: 0, durability: Durability::None }
    }

    pub(crate) fn moving(op: Op, file: u32, (offset, bytes): (u64, u64)) -> Asked {
        Asked { offset: Some(offset), bytes, ..Asked::new(op, file) }
    }

    /// Whether the call moves bytes.
    pub(crate) fn moves(&self) -> bool {
        matches!(self.op, Op::Read | Op::Write)
    }

    /// With what came of it: bytes, or the error.
    pub(crate) fn facts(&self, result: Result<u64, Option<&StoreError>>) -> CallFacts {
        let errno = result.err().flatten().and_then(StoreError::errno).unwrap_or(0);
        CallFacts {
            file: self.file,
            offset: self.offset.and_then(|offset| i64::try_from(offset).ok()),
            size: self.moves().then_some(self.bytes),
            result: result.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            errno: u16::try_from(errno).unwrap_or(0),
        }
    }
}

/// The names of a store's files in the trace. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) layer: Layer,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug)]
struct Known {
    /// The number of the root's name.
    root: u32,
    /// The file that was asked for last: a call that opens it comes before those that read it.
    last: (String, u32),
}

impl Names {
    pub(crate) fn new(layer: Layer) -> Names {
        let known = Known { root: UNNAMED, last: (String::new(), UNNAMED) };
        Names { layer, known: Arc::new(Mutex::new(known)) }
    }

    /// The number of a file's name. `locate` gives the name that a user knows.
    pub(crate) fn number(&self, key: &str, locate: impl Fn(&str) -> String) -> u32 {
        if !recorder().is_on() {
            return UNNAMED;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.last.1 != UNNAMED && known.last.0 == key {
            return known.last.1;
        }
        let number = match self.layer {
            // Names of URLs are no paths, which would lose one of their slashes.
            Layer::S3 | Layer::Google | Layer::Azure | Layer::Http | Layer::Memory => {
                recorder().file_text(TextKind::Object, UNNAMED, locate(key).as_bytes())
            }
            Layer::Posix => {
                if known.root == UNNAMED {
                    let root = locate("");
                    known.root = recorder().file_text(TextKind::Path, UNNAMED, root.as_bytes());
                }
                match key {
                    "" => known.root,
                    key => recorder().file_text(TextKind::Path, known.root, key.as_bytes()),
                }
            }
        };
        known.last.0.clear();
        known.last.0.push_str(key);
        known.last.1 = number;
        number
    }
}
