//! Storage calls in a trace: their category, their names, and the files they are about.
//!
//! Only a program that records its own trace reports them. The preload library sees the system calls
//! below, so these would count twice.

use std::sync::{Arc, Mutex};

use feedline_recorder::{CallFacts, Site, TextKind, UNNAMED, recorder};

use crate::lock::lock;
use crate::{Durability, Op, StoreError};

/// The names of a store's calls in a trace. Every store has one, as a `static`.
#[derive(Debug)]
pub struct TraceSites {
    /// One per kind of call, in the order of [`Op`].
    calls: [Site; Op::ALL.len()],
    /// Publishing with [`Durability::Fsync`].
    fsync: Site,
    names: TextKind,
}

impl TraceSites {
    /// For a store whose objects are paths of the file system.
    pub const fn of_paths(category: &'static str) -> TraceSites {
        TraceSites::new(category, TextKind::Path)
    }

    /// For a store whose objects have URLs or other names. They are recorded as they are: as paths,
    /// URLs would lose one of their slashes.
    pub const fn of_objects(category: &'static str) -> TraceSites {
        TraceSites::new(category, TextKind::Object)
    }

    /// Calls are named by the system call that does most of the work, which analyzers know.
    const fn new(category: &'static str, names: TextKind) -> TraceSites {
        let calls = [
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
        ];
        TraceSites { calls, fsync: Site::new(category, "fsync"), names }
    }

    pub(crate) fn site(&self, op: Op, durability: Durability) -> &Site {
        match (op, durability) {
            (Op::Publish, Durability::Fsync) => &self.fsync,
            _ => &self.calls[op as usize],
        }
    }
}

/// What a trace records of a call, besides its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) op: Op,
    /// The id of the file's name.
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

    /// Adds the result: bytes, or the error.
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
    pub(crate) sites: &'static TraceSites,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug)]
struct Known {
    /// The id of the root's name.
    root: u32,
    /// The last file and its id: reads of a file follow each other.
    last: (String, u32),
}

impl Known {
    /// The id of the root's name, which paths are recorded relative to.
    fn root(&mut self, locate: impl Fn(&str) -> String) -> u32 {
        if self.root == UNNAMED {
            self.root = recorder().file_text(TextKind::Path, UNNAMED, locate("").as_bytes());
        }
        self.root
    }
}

impl Names {
    pub(crate) fn new(sites: &'static TraceSites) -> Names {
        let known = Known { root: UNNAMED, last: (String::new(), UNNAMED) };
        Names { sites, known: Arc::new(Mutex::new(known)) }
    }

    /// The id of a file's name. `locate` gives the full name.
    pub(crate) fn number(&self, key: &str, locate: impl Fn(&str) -> String) -> u32 {
        if !recorder().is_on() {
            return UNNAMED;
        }
        let mut known = lock(&self.known);
        if known.last.1 != UNNAMED && known.last.0 == key {
            return known.last.1;
        }
        let number = match (self.sites.names, key) {
            (TextKind::Path, "") => known.root(locate),
            (TextKind::Path, key) => {
                recorder().file_text(TextKind::Path, known.root(locate), key.as_bytes())
            }
            (names, key) => recorder().file_text(names, UNNAMED, locate(key).as_bytes()),
        };
        known.last.0.clear();
        known.last.0.push_str(key);
        known.last.1 = number;
        number
    }
}
