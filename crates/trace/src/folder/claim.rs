//! Who writes a part of a trace: a number of its own, and a lock for as long as it lives.
//!
//! Several processes, on several machines, write one folder without meeting. Each takes a number by
//! making `writers/NUMBER.json`, which only one of them can; rows that it writes have that number in
//! their upper bits. The lock on that file ends with its process, however that ends, so that a later
//! command can see that the writer is gone and continue in its place.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::at::At as _;
use crate::alive;
use crate::error::Result;

/// The folder of claims.
pub(crate) const WRITERS: &str = "writers";
/// Numbers of rows take the lower 32 bits of an id, those of writers the next 20: ids stay below 2^52,
/// so that they are exact where a program turns them into real numbers, as pandas does with columns
/// that have nulls.
const MOST: u32 = 1 << 20;

/// What a writer says about itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct WriterFacts {
    /// Begins the names of its files.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) boot: String,
    pub(crate) pid: u32,
    /// The wall clock less the monotonic clock.
    pub(crate) wall_offset_ns: i64,
    /// Folders in which processes record for this writer.
    pub(crate) folders: Vec<PathBuf>,
}

/// A number that is this process's.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) number: u32,
    pub(crate) facts: WriterFacts,
    /// Holds the lock as long as it is open.
    file: File,
    path: PathBuf,
}

impl Claim {
    /// Takes a number that no other writer has. The first writer of a trace has 0, so that most ids are small.
    pub(crate) fn new(dir: &Path, facts: WriterFacts) -> Result<Self> {
        let folder = dir.join(WRITERS);
        fs::create_dir_all(&folder).at(&folder)?;
        let mut number = numbers(&folder)?.last().map_or(0, |(last, _)| last + 1);
        for attempt in 0_u32.. {
            let path = folder.join(format!("{number:07}.json"));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    // Where files cannot be locked there is the number of the process to go by.
                    let _ = file.lock();
                    let mut claim = Self { number, facts, file, path };
                    claim.write()?;
                    return Ok(claim);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    // Many processes of a job start at once: the next numbers are spread, wider each time.
                    let spread = hash(&facts.name, attempt) % (64_u32 << attempt.min(10));
                    number = (number + 1 + spread) % MOST;
                }
                Err(error) => return Err(error).at(&path),
            }
        }
        unreachable!("attempts continue until one succeeds")
    }

    /// Goes on in the place of a writer that is gone. `None` if it is there, or is just coming.
    pub(crate) fn resume(number: u32, path: PathBuf) -> Result<Option<Self>> {
        let mut file = File::options().read(true).write(true).open(&path).at(&path)?;
        let is_locked = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(_)) => false,
        };
        let mut text = String::new();
        file.read_to_string(&mut text).at(&path)?;
        let Ok(facts) = serde_json::from_str::<WriterFacts>(&text) else { return Ok(None) };
        let is_here = facts.host == alive::host();
        if !is_here || (!is_locked && facts.boot == alive::boot() && alive::exists(facts.pid)) {
            return Ok(None);
        }
        Ok(Some(Self { number, facts, file, path }))
    }

    /// Changes what is said about this writer.
    pub(crate) fn set_folders(&mut self, folders: Vec<PathBuf>) -> Result<()> {
        self.facts.folders = folders;
        self.write()
    }

    /// Written in place: another name would be another file, which is not locked. Whoever reads half of
    /// it takes the writer for one that is just coming.
    fn write(&mut self) -> Result<()> {
        let text = serde_json::to_string(&self.facts).unwrap_or_default();
        let mut put = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(text.as_bytes())
        };
        put().at(&self.path)
    }

    /// The id of this writer's first row.
    pub(crate) fn first_id(&self) -> i64 {
        i64::from(self.number) << 32
    }
}

/// Numbers that are taken, and their files.
pub(crate) fn numbers(folder: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries.at(folder)?,
    };
    for entry in entries {
        let path = entry.at(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(number) = name.strip_suffix(".json").and_then(|n| n.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn hash(name: &str, attempt: u32) -> u32 {
    let bytes = name.bytes().chain(attempt.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
