//! Columns of traces of other tools, kept for the next time they are read.
//!
//! An entry is a trace folder of ours with the columns that rows are made of, and beside it what was found out
//! while the source was read. It is written under a hidden name by a thread of its own, and gets its name when
//! it is complete. Nothing that goes wrong here stops an analysis: there is no entry then.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use feedline_trace::{
    Batch, Event, EventKind, EventSink as _, FileSlice, FolderWriter, Tables, TraceError,
};
use serde::{Deserialize, Serialize};

use crate::analysis::Problem;
use crate::layer::EventType;
use crate::row::Lane;

use super::tar::UNPACKED;

/// Counts up when rows are made in another way, or entries look different.
const LAYOUT: u32 = 3;
/// What was found out while the source was read.
const FACTS_FILE: &str = "analysis.json";
/// Bytes of a file that are looked at in one place.
const SAMPLE_BYTES: usize = 64 * 1024;
/// Places between the beginning and the end of a file that are looked at.
const SAMPLES: u64 = 6;
/// Events that go to the writing thread together.
const PARCEL: usize = 4096;
/// Entries that were used so recently may be in use.
const IN_USE: Duration = Duration::from_secs(3600);
/// Hidden things in which nothing was written for so long were left by a program that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// What is kept beside the columns.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct CachedFacts {
    pub(crate) source: String,
    pub(crate) lanes: Vec<Lane>,
    /// Kind, category and name.
    pub(crate) event_types: Vec<(u8, String, String)>,
    pub(crate) events: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) problems: Vec<Problem>,
}

/// A kind of event as it is kept.
pub(crate) fn cached_event_type(what: &EventType) -> (u8, String, String) {
    (what.kind as u8, what.category.clone(), what.name.clone())
}

/// The reverse; none if no such kind is known.
pub(crate) fn event_type_of((kind, category, name): &(u8, String, String)) -> Option<EventType> {
    Some(EventType::new(*EventKind::ALL.get(usize::from(*kind))?, category, name))
}

/// Where the columns of some files are, or will be.
#[derive(Clone, Debug)]
pub(crate) struct CacheEntry {
    folder: PathBuf,
    key: String,
    most_bytes: u64,
}

impl CacheEntry {
    /// The entry of files, by what is in them.
    pub(crate) fn for_files(
        folder: &Path,
        slices: &[FileSlice],
        most_bytes: u64,
    ) -> io::Result<Self> {
        let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
        1_u8.hash(&mut hashers[1]);
        for hasher in &mut hashers {
            (LAYOUT, feedline_trace::VERSION, env!("CARGO_PKG_VERSION")).hash(hasher);
        }
        let mut sample = Vec::new();
        for slice in slices {
            let file = File::open(&slice.path)?;
            let (facts, size) = (file.metadata()?, slice.size()?);
            for hasher in &mut hashers {
                (size, facts.mtime(), facts.mtime_nsec()).hash(hasher);
            }
            for number in 0..=SAMPLES + 1 {
                let last = size.saturating_sub(SAMPLE_BYTES as u64);
                let at = last / (SAMPLES + 1) * number
                    + last % (SAMPLES + 1) * u64::from(number > SAMPLES);
                sample.resize(SAMPLE_BYTES.min(usize::try_from(size).unwrap_or(SAMPLE_BYTES)), 0);
                file.read_exact_at(&mut sample, slice.start + at)?;
                hashers.iter_mut().for_each(|hasher| sample.hash(hasher));
            }
        }
        let key = format!("{:016x}{:016x}", hashers[0].finish(), hashers[1].finish());
        Ok(Self { folder: folder.to_owned(), key, most_bytes })
    }

    /// Where it is when it is complete.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.key)
    }

    /// What is kept, if there is an entry; one that cannot be read is removed.
    pub(crate) fn facts(&self) -> Option<CachedFacts> {
        let text = fs::read(self.path().join(FACTS_FILE)).ok()?;
        match serde_json::from_slice(&text) {
            Ok(facts) => {
                self.touch();
                Some(facts)
            }
            Err(_) => {
                self.drop();
                None
            }
        }
    }

    /// Says that it was used.
    fn touch(&self) {
        if let Ok(file) = File::options().append(true).open(self.path().join(FACTS_FILE)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    pub(crate) fn drop(&self) {
        let _ = fs::remove_dir_all(self.path());
    }

    /// Removes the entries that were not used for longest until all fit.
    fn make_room(&self) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_abandoned(&path) {
                let _ = fs::remove_dir_all(&path);
                continue;
            }
            if let Ok(used) = fs::metadata(path.join(FACTS_FILE)).and_then(|facts| facts.modified())
            {
                entries.push((used, size_of_folder(&path), path));
            }
        }
        entries.sort();
        let mut all: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (used, bytes, path) in entries {
            let is_idle = used.elapsed().is_ok_and(|idle| idle > IN_USE);
            if all <= self.most_bytes || path == self.path() || !is_idle {
                continue;
            }
            if fs::remove_dir_all(&path).is_ok() {
                all -= bytes;
            }
        }
    }
}

/// Whether a folder is one of ours that never got its name and is not in use.
fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let key = name.strip_prefix('.').and_then(|name| name.split('-').next()).unwrap_or_default();
    let is_key = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_key || name.starts_with(UNPACKED))
        && path.is_dir()
        && last_change(path).is_some_and(|at| at.elapsed().is_ok_and(|idle| idle > ABANDONED))
}

/// When something was written in a folder for the last time.
fn last_change(path: &Path) -> Option<SystemTime> {
    let own = fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok()?;
    if !path.is_dir() || path.is_symlink() {
        return Some(own);
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    Some(entries.filter_map(|entry| last_change(&entry.path())).fold(own, SystemTime::max))
}

fn size_of_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(facts) if facts.is_dir() => size_of_folder(&entry.path()),
            Ok(facts) => facts.len(),
            Err(_) => 0,
        })
        .sum()
}

enum Parcel {
    /// Events, and names that came since the last ones.
    Events(Vec<String>, Batch),
    /// The tables as they are at the end, and the facts.
    Finish(Box<Tables>, Box<CachedFacts>),
}

/// Writes an entry. Dropped before its end, it leaves nothing.
pub(crate) struct CacheWriter {
    entry: CacheEntry,
    names: usize,
    batch: Batch,
    send: Option<SyncSender<Parcel>>,
    thread: Option<JoinHandle<()>>,
}

impl CacheWriter {
    pub(crate) fn new(entry: CacheEntry) -> Option<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let hidden = entry.folder.join(format!(".{}-{}-{number}", entry.key, std::process::id()));
        fs::create_dir_all(&hidden).ok()?;
        let (send, receive) = sync_channel::<Parcel>(16);
        let own = entry.clone();
        let thread = std::thread::spawn(move || {
            let hidden = Hidden(hidden);
            let written = write(&hidden.0, receive.iter());
            if let Ok(true) = written {
                // Another run may have been faster; its entry is as good.
                let _ = fs::rename(&hidden.0, own.path());
                own.make_room();
            }
        });
        let (batch, thread) = (Batch::default(), Some(thread));
        Some(Self { entry, names: 0, batch, send: Some(send), thread })
    }

    /// Forgets everything and begins again.
    pub(crate) fn restarted(mut self) -> Option<Self> {
        let entry = self.entry.clone();
        self.close();
        Self::new(entry)
    }

    /// Keeps of an event what rows are made of.
    pub(crate) fn put(&mut self, tables: &Tables, event: &Event, window_ns: Option<u64>) {
        let extra = window_ns.map(|window| {
            self.batch.texts.push(format!("{{\"window_ns\":{window}}}"));
            self.batch.texts.len() as u32 - 1
        });
        self.batch.events.push(Event {
            other_file: None,
            arg: None,
            sample: None,
            shortest_ns: None,
            longest_ns: None,
            extra,
            ..*event
        });
        if self.batch.events.len() >= PARCEL {
            self.pass_on(tables);
        }
    }

    fn pass_on(&mut self, tables: &Tables) {
        let names = tables.names()[self.names..].to_vec();
        self.names = tables.names().len();
        let batch = std::mem::take(&mut self.batch);
        // A writer that is gone has met an error; there is no entry then.
        if let Some(send) = &self.send {
            let _ = send.send(Parcel::Events(names, batch));
        }
    }

    pub(crate) fn finish(mut self, tables: &Tables, facts: CachedFacts) {
        self.pass_on(tables);
        if let Some(send) = &self.send {
            let _ = send.send(Parcel::Finish(Box::new(tables.clone()), Box::new(facts)));
        }
        self.close();
    }

    fn close(&mut self) {
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for CacheWriter {
    fn drop(&mut self) {
        self.close();
    }
}

/// A folder that is removed if it still has its hidden name.
struct Hidden(PathBuf);

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes what comes. False if it ends before its end.
fn write(folder: &Path, parcels: impl Iterator<Item = Parcel>) -> Result<bool, TraceError> {
    let mut writer = FolderWriter::create(folder)?;
    let mut known = Tables::default();
    for parcel in parcels {
        match parcel {
            Parcel::Events(names, batch) => {
                for name in &names {
                    known.name_row(name);
                }
                writer.append(&known, &batch)?;
            }
            Parcel::Finish(tables, facts) => {
                writer.finish(&tables)?;
                let path = folder.join(FACTS_FILE);
                let text = serde_json::to_vec(&facts).unwrap_or_default();
                fs::write(&path, text).map_err(|source| TraceError::Io { path, source })?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}
