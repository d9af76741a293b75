//! Draining: from segments that programs write to a trace folder, while they run.
//!
//! A drainer watches the folders in which processes record. In each round it takes segments that are
//! full, and what ended processes left; when enough of them have come together they become a file of the
//! trace, and only then are they deleted. Processes that run get copied ones back before, see [`copies`].
//! So at any moment every event is in a segment or in a complete file, or in both, in which case the file
//! says so: it lists the segments that it was made of. Nothing here waits or starts threads: the caller
//! has the rounds.

mod convert;
mod copies;
mod journal;
mod processes;
#[cfg(test)]
mod tests;
mod texts;
mod untraced;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use feedline_recorder::{
    ClockPair, PROCESS_SUFFIX, ProcessFile, ReadError, SEGMENT_SUFFIX, SegmentFile,
};

use self::convert::{Context, Converter, Moved};
use self::copies::{Filling, filling, may_copy, original};
use self::journal::Journal;
use self::processes::Processes;
use crate::alive;
use crate::clocks::Clocks;
use crate::error::TraceError;
use crate::event::Batch;
use crate::folder::{
    At as _, Claim, EVENTS, FILE_EVENTS, FolderWriter, SEGMENTS_KEY, TableReader, parts,
};
use crate::process::Process;
use crate::tables::Tables;

/// The folder of recordings in a trace folder.
pub(crate) const SEGMENTS: &str = "segments";
/// Bytes of a record in a segment: with that many bytes of segments a file of events is full.
const SLOT_BYTES: u64 = 64;
/// The drainer looks at both clocks of its machine so often.
const CLOCKS_NS: u64 = 1_000_000_000;
/// The longest time between two rounds, when nothing happens.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The shortest, when segments become full.
const SHORTEST_PAUSE: Duration = Duration::from_millis(3);
/// Looking for new files takes at most one part in this many of the time, unless it was long ago.
const LOOKING_SHARE: u32 = 200;

/// What a drainer has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// Processes that recorded events.
    pub processes: u64,
    /// Processes that are known but recorded nothing.
    pub untraced: u64,
    /// Events in the trace.
    pub events: u64,
    /// Bytes of the trace's files.
    pub bytes: u64,
    /// Bytes that the events read.
    pub read_bytes: u64,
    /// Bytes that the events wrote.
    pub written_bytes: u64,
    /// Events that were lost.
    pub dropped: u64,
    /// Calls that filters left out.
    pub filtered: u64,
    /// Calls that sampling left out.
    pub skipped: u64,
    /// Processes that were still running at the end, and may have recorded more since.
    pub running: u64,
    /// Processes that lost events or were not traced at all.
    pub process_problems: Vec<ProcessProblem>,
    /// Files in the watched folders that could not be read, each with the reason.
    pub problems: Vec<String>,
}

/// A process that lost events or was not traced at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProcessProblem {
    /// Path of the executable.
    pub program: String,
    /// Whether it recorded anything.
    #[serde(rename = "traced")]
    pub is_traced: bool,
    /// Events that it lost.
    pub dropped: u64,
    /// Why events were lost, or why the process was not traced.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Whose segments are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everybody's: full ones at once, the others when their process is gone or the trace ends.
    Everyone,
    /// Those of processes that are gone.
    Gone,
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// As many files as are full.
    FullFiles,
    /// What is left, too.
    Everything,
}

#[derive(Debug)]
struct Tracked {
    file: SegmentFile,
    /// Waits for the next commit.
    is_pending: bool,
}

/// Drains recordings into a trace folder.
#[derive(Debug)]
pub struct Drainer {
    writer: FolderWriter,
    tables: Tables,
    scope: Scope,
    /// The folders that are watched.
    folders: Vec<PathBuf>,
    processes: Processes,
    segments: HashMap<String, Tracked>,
    /// Files that will not be opened again.
    ignored: HashSet<String>,
    /// Bytes of the segments that wait for the next commit.
    pending_bytes: u64,
    /// The number of events at which a file is full.
    file_bytes: u64,
    /// Bytes of copies among them.
    copied_bytes: u64,
    /// Whether there was room for every copy when it was last tried.
    has_room: bool,
    /// Fillings that are in files already.
    done: HashSet<Filling>,
    /// Fillings of which an earlier drainer left a copy.
    copied: HashSet<Filling>,
    clocks: HashMap<String, Clocks>,
    looked_ns: u64,
    /// When folders and processes were last looked at, and what that took.
    look: Option<(Instant, Duration)>,
    pause: Duration,
    converter: Converter,
    journal: Journal,
    batch: Batch,
    moved: Moved,
    expected: Option<(u32, PathBuf)>,
    problems: Vec<String>,
}

impl Drainer {
    /// Begins a part of the trace in `dir`, from what processes record in `memory`, a folder of their
    /// own in a file system in memory, and in [`Self::overflow`], when that is full. Both are made.
    pub fn start(dir: &Path, memory: &Path) -> Result<Self, TraceError> {
        let writer = FolderWriter::create(dir)?;
        let overflow = dir.join(SEGMENTS).join(&writer.claim.facts.name);
        let folders = vec![memory.to_owned(), overflow.clone()];
        for folder in &folders {
            fs::create_dir_all(folder).at(folder)?;
        }
        let mut drainer =
            Self::with(writer, Tables::default(), Scope::Everyone, folders, &overflow);
        drainer.writer.claim.set_folders(drainer.folders.clone())?;
        Ok(drainer)
    }

    pub(crate) fn with(
        writer: FolderWriter,
        mut tables: Tables,
        scope: Scope,
        folders: Vec<PathBuf>,
        notes: &Path,
    ) -> Self {
        let facts = &writer.claim.facts;
        let clocks = HashMap::from([(facts.boot.clone(), Clocks::new(facts.wall_offset_ns))]);
        Self {
            converter: Converter::new(&mut tables),
            writer,
            tables,
            scope,
            folders,
            processes: Processes::default(),
            segments: HashMap::new(),
            ignored: HashSet::new(),
            pending_bytes: 0,
            file_bytes: FILE_EVENTS * SLOT_BYTES,
            copied_bytes: 0,
            has_room: scope == Scope::Everyone,
            done: HashSet::new(),
            copied: HashSet::new(),
            clocks,
            looked_ns: 0,
            look: None,
            pause: SHORTEST_PAUSE,
            journal: Journal::new(notes),
            batch: Batch::default(),
            moved: Moved::default(),
            expected: None,
            problems: Vec::new(),
        }
    }

    /// Goes on where a drainer that is gone stopped.
    pub(crate) fn resume(dir: &Path, claim: Claim) -> Result<Self, TraceError> {
        let folders = claim.facts.folders.clone();
        let notes = dir.join(SEGMENTS).join(&claim.facts.name);
        let (writer, tables) = FolderWriter::resume(dir, claim)?;
        let mut drainer = Self::with(writer, tables, Scope::Gone, folders, &notes);
        let name = drainer.writer.claim.facts.name.clone();
        for (_, _, path) in parts(dir, EVENTS)?.into_iter().filter(|(writer, ..)| *writer == name) {
            let reader = TableReader::open(EVENTS, &path)?;
            let list = reader.fact(SEGMENTS_KEY).unwrap_or_default();
            let each = list.lines().filter_map(|line| line.rsplit_once(' '));
            let known =
                each.filter_map(|(name, filling)| Some((name.to_owned(), filling.parse().ok()?)));
            drainer.done.extend(known);
        }
        drainer.journal.replay(&mut drainer.processes, &mut drainer.tables)?;
        Ok(drainer)
    }

    /// Where processes record when memory is full.
    pub fn overflow(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The folder of the trace.
    pub fn dir(&self) -> &Path {
        self.writer.dir()
    }

    /// Events in complete files so far.
    pub fn events(&self) -> u64 {
        self.writer.written().events
    }

    /// Says which process the caller started itself, and from which file: if it never records, the trace
    /// says why.
    pub fn expect(&mut self, pid: u32, program: &Path) {
        self.expected = Some((pid, program.to_owned()));
    }

    /// The row of the expected process if it never recorded.
    fn add_expected(&mut self) {
        let Some((pid, program)) = self.expected.take() else { return };
        if self.tables.processes.iter().any(|process| process.is_traced && process.pid == pid) {
            return;
        }
        self.tables.add_process(Process {
            host: alive::host().to_owned(),
            pid,
            program: program.to_string_lossy().into_owned(),
            trouble: Some(untraced::reason(&program).to_owned()),
            ..Process::default()
        });
    }

    /// Processes that are running now.
    pub fn running(&mut self) -> Result<usize, TraceError> {
        self.look_at_folders()?;
        self.processes.look_after(true);
        Ok(self.processes.alive())
    }

    /// Looks what is new, takes what is full, and writes a file if that is enough for one. To be called
    /// again after [`pause`](Self::pause).
    pub fn round(&mut self) -> Result<(), TraceError> {
        let known = self.segments.len();
        self.look_if_due()?;
        let is_busy = self.relieve() || self.segments.len() > known;
        self.take(false);
        if self.pending_bytes >= self.file_bytes {
            self.commit(Extent::FullFiles)?;
        }
        self.pause = if is_busy { SHORTEST_PAUSE } else { (self.pause * 2).min(LONGEST_PAUSE) };
        Ok(())
    }

    /// How long the next round can wait: programs that record much get their segments back soon,
    /// those that do not are left alone.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Looks at folders, clocks and processes: in most rounds of a few processes, less often if there are
    /// so many that it takes its time.
    fn look_if_due(&mut self) -> Result<(), TraceError> {
        let start = Instant::now();
        let is_early = self.look.is_some_and(|(last, took)| {
            start.duration_since(last) < (took * LOOKING_SHARE).min(LONGEST_PAUSE)
        });
        if is_early {
            return Ok(());
        }
        self.look_at_folders()?;
        self.look_at_clocks();
        self.processes.look_after(false);
        self.look = Some((start, start.elapsed()));
        Ok(())
    }

    /// Takes everything that is there, writes what is not written, and tidies up.
    pub fn finish(mut self) -> Result<DrainReport, TraceError> {
        self.drain_all()?;
        self.processes.add_untraced(&mut self.tables);
        self.add_expected();
        self.writer.commit(&self.tables, "")?;
        self.processes.delete_files(self.scope == Scope::Everyone);
        let is_left = self.tidy();
        if !is_left {
            self.writer.claim.set_folders(Vec::new())?;
            self.journal.delete();
        }
        Ok(self.report())
    }

    /// Takes everything that may be taken: once more for what processes left that ended while the
    /// folders were looked at.
    fn drain_all(&mut self) -> Result<(), TraceError> {
        for _ in 0..2 {
            self.processes.look_after(true);
            self.look_at_folders()?;
            self.take(self.scope == Scope::Everyone);
            self.commit(Extent::Everything)?;
        }
        Ok(())
    }

    /// Removes what is left in the folders; whether something is that must stay.
    fn tidy(&mut self) -> bool {
        let is_left =
            self.scope == Scope::Gone && (self.processes.alive() > 0 || !self.segments.is_empty());
        if is_left || self.scope == Scope::Gone && self.folders.is_empty() {
            return is_left;
        }
        let notes = self.overflow().to_owned();
        for folder in &self.folders {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_ours = name.ends_with(SEGMENT_SUFFIX) || name.ends_with(PROCESS_SUFFIX);
                // A copy that is still here was never completed.
                if is_ours && (self.scope == Scope::Everyone || original(&name).is_some()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
            if *folder != notes {
                let _ = fs::remove_dir(folder);
            }
        }
        false
    }

    fn report(self) -> DrainReport {
        let written = self.writer.written();
        let all = &self.tables.processes;
        let sum = |count: fn(&crate::Process) -> u64| all.iter().map(count).sum();
        let problem = |process: &Process| {
            Some(ProcessProblem {
                program: process.program.clone(),
                is_traced: process.is_traced,
                dropped: process.dropped,
                reason: process.trouble.clone()?,
            })
        };
        DrainReport {
            processes: all.iter().filter(|process| process.is_traced).count() as u64,
            untraced: all.iter().filter(|process| !process.is_traced).count() as u64,
            events: written.events,
            bytes: written.bytes,
            read_bytes: self.moved.read,
            written_bytes: self.moved.written,
            dropped: sum(|process| process.dropped),
            filtered: sum(|process| process.filtered),
            skipped: sum(|process| process.skipped),
            running: self.processes.alive() as u64,
            process_problems: all.iter().filter_map(problem).collect(),
            problems: self.problems,
        }
    }

    /// Opens files that were not seen before.
    fn look_at_folders(&mut self) -> Result<(), TraceError> {
        self.processes.settle();
        let (mut processes, mut segments) = (Vec::new(), Vec::new());
        for folder in &self.folders {
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.at(folder)?,
            };
            for entry in entries {
                let entry = entry.at(folder)?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if self.ignored.contains(&name) {
                    continue;
                }
                if name.ends_with(SEGMENT_SUFFIX) {
                    if !self.segments.contains_key(&name) {
                        segments.push((name, entry.path()));
                    }
                } else if name.ends_with(PROCESS_SUFFIX) {
                    processes.push((name, entry.path()));
                }
            }
        }
        self.open_processes(processes)?;
        for (name, path) in segments {
            match SegmentFile::open(&path) {
                Ok(file) => self.track(name, file),
                Err(error) => self.complain(name, path, error)?,
            }
        }
        Ok(())
    }

    /// In the order of their starts, which is that of rows.
    fn open_processes(&mut self, found: Vec<(String, PathBuf)>) -> Result<(), TraceError> {
        let mut opened = Vec::new();
        for (name, path) in found {
            match ProcessFile::open(&path) {
                Ok(file) => {
                    self.ignored.insert(name);
                    opened.push((file.facts(), file));
                }
                Err(error) => self.complain(name, path, error)?,
            }
        }
        opened.sort_by_key(|(facts, _)| facts.started);
        for (facts, file) in opened {
            let offset = || {
                let monotonic_ns = i64::try_from(facts.start.monotonic_ns).unwrap_or(0);
                Clocks::new(i64::try_from(facts.wall_ns).unwrap_or(0) - monotonic_ns)
            };
            let clocks = self.clocks.entry(facts.boot.clone()).or_insert_with(offset);
            clocks.add(facts.start);
            if facts.counter && facts.boot == alive::boot() {
                clocks.add(ClockPair::by_counter(true));
            }
            self.processes.add(facts, Some(file), None, &mut self.tables);
        }
        Ok(())
    }

    fn complain(
        &mut self,
        name: String,
        path: PathBuf,
        error: ReadError,
    ) -> Result<(), TraceError> {
        match error {
            // Its writer is at it; or it is gone by now, which is as well.
            ReadError::Unfinished => {}
            ReadError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            error @ ReadError::OtherBuild => {
                return Err(TraceError::Recording { path, source: error });
            }
            error => {
                self.problems.push(format!("{}: {error}", path.display()));
                self.ignored.insert(name);
            }
        }
        Ok(())
    }

    fn track(&mut self, name: String, file: SegmentFile) {
        if let Some(index) = self.processes.index(file.process()) {
            self.processes.get_mut(index).segments += 1;
        } else if self.scope == Scope::Everyone {
            // Its process made its own file before: it comes with the next look.
            return;
        } else {
            self.problems
                .push(format!("{}: no process file for this recording", file.path().display()));
            self.ignored.insert(name);
            return;
        }
        if original(&name).is_some() {
            self.copied.insert(filling(&name, &file));
        }
        self.segments.insert(name, Tracked { file, is_pending: false });
    }

    /// Reads both clocks once per second.
    fn look_at_clocks(&mut self) {
        let pair = ClockPair::by_counter(true);
        if pair.monotonic_ns.saturating_sub(self.looked_ns) >= CLOCKS_NS {
            self.looked_ns = pair.monotonic_ns;
            self.add_pair();
        }
    }

    fn add_pair(&mut self) {
        if let Some(clocks) = self.clocks.get_mut(alive::boot()) {
            clocks.add(ClockPair::by_counter(true));
        }
    }

    /// Chooses the segments of the next commit.
    fn take(&mut self, is_all: bool) {
        let mut given_back = Vec::new();
        for (name, tracked) in &mut self.segments {
            if tracked.is_pending {
                continue;
            }
            let file = &tracked.file;
            let Some(index) = self.processes.index(file.process()) else { continue };
            let process = self.processes.get_mut(index);
            if file.is_drained() {
                if process.is_gone {
                    given_back.push(name.clone());
                }
                continue;
            }
            let is_last = is_all || process.is_gone;
            if !is_last && (self.scope == Scope::Gone || !file.is_full()) {
                continue;
            }
            // Full since segments were last given back: the next round does that.
            if !is_last && self.has_room && may_copy(file, &self.folders) {
                continue;
            }
            let filling = filling(name, file);
            let is_elsewhere = original(name).is_none() && self.copied.contains(&filling);
            if is_elsewhere || self.done.contains(&filling) {
                given_back.push(name.clone());
                continue;
            }
            let texts = &mut process.texts;
            let is_whole =
                file.texts(|number, base, kind, text| texts.add(number, base, kind, text));
            if is_whole || is_last {
                tracked.is_pending = true;
                self.pending_bytes += file.bytes();
            }
        }
        for name in given_back {
            self.give_back(&name);
        }
    }

    /// Writes pending segments, the oldest first, in full files; at the end what is left, too. Then, or
    /// before, what is known about processes.
    fn commit(&mut self, extent: Extent) -> Result<(), TraceError> {
        let mut pending: Vec<(u64, String)> = Vec::new();
        for (name, tracked) in self.segments.iter().filter(|(_, tracked)| tracked.is_pending) {
            pending.push((tracked.file.pairs().0.ticks, name.clone()));
        }
        pending.sort_unstable();
        self.look_at_texts()?;
        self.add_pair();
        let mut rest = pending.as_slice();
        loop {
            let (now, later) = rest.split_at(self.enough(rest));
            let is_enough = self.bytes(now) >= self.file_bytes;
            if !is_enough && extent == Extent::FullFiles {
                break;
            }
            self.commit_some(now, extent)?;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let waiting = self.segments.values().filter(|tracked| tracked.is_pending);
        self.pending_bytes = waiting.map(|tracked| tracked.file.bytes()).sum();
        self.processes.delete_files(false);
        Ok(())
    }

    fn bytes(&self, pending: &[(u64, String)]) -> u64 {
        let tracked = pending.iter().filter_map(|(_, name)| self.segments.get(name));
        tracked.map(|tracked| tracked.file.bytes()).sum()
    }

    /// How many segments are enough for a file.
    fn enough(&self, pending: &[(u64, String)]) -> usize {
        let mut bytes = 0;
        let full = pending.iter().position(|(_, name)| {
            bytes += self.segments.get(name).map_or(0, |tracked| tracked.file.bytes());
            bytes >= self.file_bytes
        });
        full.map_or(pending.len(), |last| last + 1)
    }

    /// Sees texts in all segments, also in those that are being written: an event in a segment that was
    /// taken may use a text in one that was not, but the text was there before.
    fn look_at_texts(&mut self) -> Result<(), TraceError> {
        self.look_at_folders()?;
        for tracked in self.segments.values_mut().filter(|tracked| !tracked.is_pending) {
            if let Some(index) = self.processes.index(tracked.file.process()) {
                let texts = &mut self.processes.get_mut(index).texts;
                tracked.file.texts(|number, base, kind, text| texts.add(number, base, kind, text));
            }
        }
        self.processes.resolve(&mut self.tables);
        Ok(())
    }

    fn commit_some(&mut self, pending: &[(u64, String)], extent: Extent) -> Result<(), TraceError> {
        let mut list = String::new();
        let mut ordered: Vec<(Order, &str)> = Vec::new();
        for (_, name) in pending {
            let Some(tracked) = self.segments.get(name) else { continue };
            let Some(index) = self.processes.index(tracked.file.process()) else { continue };
            let row = self.processes.get(index).row;
            ordered.push((Order::of(row, &tracked.file), name));
        }
        ordered.sort_unstable();
        for (_, name) in ordered {
            let Some(tracked) = self.segments.get(name) else { continue };
            let (original, generation) = filling(name, &tracked.file);
            list += &format!("{original} {generation}\n");
            self.write_segment(name)?;
            // Writing a file takes longer than filling segments.
            if extent == Extent::FullFiles {
                self.relieve();
            }
        }
        self.processes.describe(&self.clocks, &mut self.tables);
        self.journal.note(&mut self.processes, &self.tables)?;
        self.writer.commit(&self.tables, &list)?;
        for (_, name) in pending {
            self.give_back(name);
        }
        Ok(())
    }

    fn write_segment(&mut self, name: &str) -> Result<(), TraceError> {
        let Some(tracked) = self.segments.get(name) else { return Ok(()) };
        let file = &tracked.file;
        let Some(index) = self.processes.index(file.process()) else { return Ok(()) };
        let process = self.processes.get(index);
        let Some(clocks) = self.clocks.get_mut(&process.facts.boot) else { return Ok(()) };
        if process.facts.counter {
            let (from, to) = file.pairs();
            clocks.add(from);
            to.into_iter().for_each(|pair| clocks.add(pair));
        }
        let context = Context {
            row: process.row,
            is_counter: process.facts.counter,
            clocks,
            file: &|number| self.processes.file(index, number),
            site: &|number| self.processes.site(index, number),
        };
        self.batch.clear();
        let gleaned = self.converter.convert(file, &context, &mut self.batch);
        let skipped = file.skipped();
        self.moved.add(gleaned.moved);
        self.processes.learn(index, gleaned.launches, gleaned.last_ns, skipped);
        self.writer.append(&self.tables, &self.batch)
    }

    /// A segment is in a complete file: its process may reuse it, or it is removed.
    fn give_back(&mut self, name: &str) {
        let Some(tracked) = self.segments.get_mut(name) else { return };
        let Some(index) = self.processes.index(tracked.file.process()) else { return };
        let process = self.processes.get_mut(index);
        tracked.is_pending = false;
        if !process.is_gone && !tracked.file.is_full() {
            // Still written, and the trace ends here.
            self.done.insert(filling(name, &tracked.file));
        } else if tracked.file.is_kept() && !process.is_gone {
            tracked.file.mark_drained();
        } else {
            process.segments = process.segments.saturating_sub(1);
            if original(name).is_some() {
                self.copied_bytes = self.copied_bytes.saturating_sub(tracked.file.bytes());
            }
            let _ = fs::remove_file(tracked.file.path());
            self.segments.remove(name);
        }
    }
}

/// Segments of one thread one after the other, so that their events are neighbors in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    row: u32,
    thread: u32,
    ticks: u64,
}

impl Order {
    fn of(row: u32, file: &SegmentFile) -> Self {
        let thread = file.entries().find_map(|entry| match entry {
            feedline_recorder::SegmentEntry::Call(_, record)
            | feedline_recorder::SegmentEntry::Summary(_, record, _) => Some(record.thread),
            feedline_recorder::SegmentEntry::Text { .. } => None,
        });
        Self { row, thread: thread.unwrap_or(0), ticks: file.pairs().0.ticks }
    }
}
