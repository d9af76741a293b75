//! Any trace as rows, in the order of their starts.
//!
//! A trace is read once to know what is in it ([`Trace`]: processes, threads, names, first and last moment),
//! and then as often as needed as a stream of rows ([`Trace::stream`]). Folders of ours are read again for
//! every stream, a few row groups at a time; rows of other tools wait in memory, and in a file where there are
//! too many.

mod cache;
mod chrome;
mod dftracer;
mod folder;
mod inputs;
mod merge;
mod numbering;
mod order;
mod ordered;
mod possible;
mod problem_log;
mod row_buffer;
mod row_ingest;
mod spill;
mod tar;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use feedline_trace::{
    Access, FORMATS, FileSlice, RecognizedTrace, Tables, TraceError, TraceFormat, recover,
};

use crate::analysis::Problem;
use crate::layer::{EventType, StackLayer};
use crate::row::{Lane, Row};

use cache::{CacheEntry, CacheWriter, CachedFacts};
use folder::{Groups, Known};
use inputs::Inputs;
use merge::{Budget, Merger};
use numbering::Numbering;
use ordered::{Workforce, ordered};
use problem_log::ProblemLog;
use row_buffer::RowBuffer;
use row_ingest::{RowIngest, ZeroTimestamp};

/// How a trace is read.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Threads that decode.
    pub threads: NonZeroUsize,
    /// How much memory rows may take, and what [is set aside](Trace::set_aside); what does not fit is sorted
    /// in files.
    pub memory_bytes: u64,
    /// Where columns of traces of other tools are kept for the next time; nowhere if there is none.
    pub cache: Option<PathBuf>,
    /// How large all that is kept there may become.
    pub cache_bytes: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            memory_bytes: 512 << 20,
            cache: None,
            cache_bytes: 20 << 30,
        }
    }
}

impl LoadOptions {
    /// The folder for temporary files: the cache if it is writable, else the system's.
    fn scratch(&self) -> PathBuf {
        let made = self.cache.clone().filter(|folder| {
            std::fs::create_dir_all(folder).is_ok()
                && probe(folder).is_some_and(|file| std::fs::remove_file(file).is_ok())
        });
        made.unwrap_or_else(std::env::temp_dir)
    }

    fn budget(&self) -> Budget {
        Budget { bytes: self.memory_bytes, folder: self.scratch() }
    }
}

/// A file that was made in a folder, to see whether that can be done.
fn probe(folder: &std::path::Path) -> Option<PathBuf> {
    let file = folder.join(format!(".feedline-probe-{}", std::process::id()));
    std::fs::write(&file, []).ok().map(|()| file)
}

/// Receives the progress of loading a trace.
pub trait LoadProgress: Sync {
    /// `done` of `all` bytes or rows have been read; `all` is 0 if it is not known.
    fn update(&self, stage: &'static str, done: u64, all: u64);
}

/// Ignores progress.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl LoadProgress for NoProgress {
    fn update(&self, _stage: &'static str, _done: u64, _all: u64) {}
}

/// Why a trace is not read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages show what fields mean")]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The trace itself cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Nothing was named that holds events.
    #[error("no events in {}", .path.display())]
    Empty { path: PathBuf },
    /// A folder in which no trace is.
    #[error("no trace in {}: expected a trace folder, .pfw files or JSON with events", .path.display())]
    NoTrace { path: PathBuf },
    /// A pattern to which no file belongs.
    #[error("no file matches {}", .pattern.display())]
    NoMatch { pattern: PathBuf },
    /// Traces of different formats in one call.
    #[error(
        "cannot read {} ({first_format}) and {} ({second_format}) together",
        .first.display(),
        .second.display()
    )]
    Mixed {
        first: PathBuf,
        first_format: &'static str,
        second: PathBuf,
        second_format: &'static str,
    },
    /// Files whose times have nothing to do with each other.
    #[error(
        "{} has a start time and {} does not: they cannot share a time axis",
        .known.display(),
        .unknown.display()
    )]
    Clocks { known: PathBuf, unknown: PathBuf },
    /// An archive that is damaged, or that holds no trace.
    #[error("{}: {what}", .path.display())]
    Archive { path: PathBuf, what: &'static str },
    /// A file for rows that do not fit into memory.
    #[error("cannot store rows in {}", .path.display())]
    Spill { path: PathBuf, source: std::io::Error },
}

/// A state that takes rows in any order. Merging two gives what one would have been that took all rows.
pub trait RowTally: Send {
    /// Takes rows.
    fn add(&mut self, rows: &[Row]);
    /// Takes what another one took.
    fn merge(&mut self, other: Self);
}

/// Nothing is tallied.
impl RowTally for () {
    fn add(&mut self, _rows: &[Row]) {}
    fn merge(&mut self, _other: Self) {}
}

/// A trace whose rows can be read.
#[derive(Debug)]
pub struct Trace {
    /// The name of its format: `feedline`, `dftracer`, `chrome`.
    pub source: &'static str,
    /// Names, files and processes.
    pub tables: Tables,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The kinds of events.
    pub event_types: Vec<EventType>,
    /// Events that are no metadata.
    pub events: u64,
    /// When the first event began.
    pub start_ns: i64,
    /// When the last one ended.
    pub end_ns: i64,
    /// What was found wrong.
    pub problems: Vec<Problem>,
    layers: Vec<StackLayer>,
    rows: Rows,
    options: LoadOptions,
    /// Whether rows may have times that cannot be; they are left out then.
    checks_times: bool,
    peak_bytes: AtomicU64,
    /// Memory that is not for rows.
    set_aside_bytes: AtomicU64,
    /// What was unpacked of archives; removed with the trace.
    _unpacked: Vec<tar::Unpacked>,
}

/// Where rows come from.
#[derive(Debug)]
enum Rows {
    RowBuffer(RowBuffer),
    Groups(Groups, Known),
}

impl Trace {
    /// Opens what the user named: trace folders, files of other tools, folders of them, patterns, archives.
    pub fn open(
        inputs: &[PathBuf],
        options: &LoadOptions,
        progress: &dyn LoadProgress,
    ) -> Result<Self, AnalyzeError> {
        // What is kept of an archive spares unpacking it.
        let kept = Inputs::archives(inputs)
            .and_then(|archives| Self::entry(&archives, options))
            .and_then(|entry| Self::kept(&entry, options));
        let trace = match kept {
            Some(trace) => trace,
            None => Self::find(inputs, options, progress)?,
        };
        if trace.events == 0 {
            return Err(AnalyzeError::Empty { path: inputs.first().cloned().unwrap_or_default() });
        }
        Ok(trace)
    }

    fn find(
        inputs: &[PathBuf],
        options: &LoadOptions,
        progress: &dyn LoadProgress,
    ) -> Result<Self, AnalyzeError> {
        let Inputs { found, origins, unpacked } = Inputs::find(inputs, &options.scratch())?;
        let entry = Self::entry(&origins, options);
        let mut trace = match found.format.access {
            Access::RowGroups => Self::open_folders(&found, options, progress)?,
            _ => Self::open_others(&found, entry, options, progress)?,
        };
        trace._unpacked = unpacked;
        Ok(trace)
    }

    /// Where columns of files are kept; `None` without a cache.
    fn entry(origins: &[FileSlice], options: &LoadOptions) -> Option<CacheEntry> {
        let folder = options.cache.as_deref()?;
        (!origins.is_empty())
            .then(|| CacheEntry::for_files(folder, origins, options.cache_bytes).ok())
            .flatten()
    }

    fn open_folders(
        found: &RecognizedTrace<'static>,
        options: &LoadOptions,
        progress: &dyn LoadProgress,
    ) -> Result<Self, AnalyzeError> {
        let mut problems = ProblemLog::default();
        let paths: Vec<PathBuf> = found.files.iter().map(|file| file.path.clone()).collect();
        for path in &paths {
            problems.recovered(&recover(path)?);
        }
        let mut tables = Tables::default();
        let groups = Groups::open(&paths, &mut tables)?;
        let surveyed = folder::survey(&groups, options, progress)?;
        problems.processes(&tables);
        let mut numbering = surveyed.numbering;
        let known = Known::new(&groups, &numbering.lanes, &numbering.event_types);
        let is_odd = possible::is_odd(numbering.extent);
        if is_odd {
            let (impossible, extent) =
                possible::scan(&groups, &known, &numbering.layers, options, progress)?;
            problems.impossible(impossible);
            numbering.extent = extent;
        }
        problems.rows(&numbering, surveyed.zero_times, 0);
        // What summaries say of their windows is not part of what was looked at.
        let checks_times = is_odd || numbering.summaries[0] > 0;
        let (extent, rows) = (numbering.whole_extent(), Rows::Groups(groups, known));
        let Numbering { lanes, event_types, events, .. } = numbering;
        Ok(Self {
            events,
            start_ns: extent.start_ns,
            end_ns: extent.end_ns,
            problems: problems.problems(),
            checks_times,
            ..Self::of(found.format, tables, (lanes, event_types), rows, options)
        })
    }

    /// Reads files of another tool, or what was kept of them the last time.
    fn open_others(
        found: &RecognizedTrace<'static>,
        entry: Option<CacheEntry>,
        options: &LoadOptions,
        progress: &dyn LoadProgress,
    ) -> Result<Self, AnalyzeError> {
        if let Some(trace) = entry.as_ref().and_then(|entry| Self::kept(entry, options)) {
            return Ok(trace);
        }
        let mut tables = Tables::default();
        let mut problems = ProblemLog::default();
        let slices = &found.files;
        let zero = match found.format.access {
            Access::Lines => ZeroTimestamp::Missing,
            _ => ZeroTimestamp::Valid,
        };
        let mut ingest = RowIngest::new(options.budget(), zero, entry.and_then(CacheWriter::new));
        let mut records = None;
        match found.format.access {
            Access::Lines => {
                let met = dftracer::read(slices, options, &mut tables, progress, &mut ingest)?;
                problems.intake(&met.intake);
                problems.unended(&tables, &met.unended);
                problems.units(&met.units_ns);
                problems.clocks(&ingest.numbering, &tables);
                records = Some(met.intake.records);
            }
            Access::ClockedFiles => {
                let met = chrome::read(slices, &mut tables, progress, &mut ingest)?;
                problems.intake(&met.intake);
                problems.unanchored(met.unanchored);
            }
            Access::Stream | Access::RowGroups => {
                let mut source = found.open()?;
                ingest.read(&mut *source, &mut tables, progress)?;
                problems.intake(source.read_stats());
            }
        }
        problems.processes(&tables);
        problems.rows(&ingest.numbering, ingest.zero_times, ingest.too_long);
        problems.impossible(ingest.impossible);
        let RowIngest { numbering, mut buffer, cache_writer, .. } = ingest;
        buffer.finish(&numbering.layers)?;
        let (extent, peak_bytes) = (numbering.whole_extent(), buffer.peak_bytes());
        let Numbering { lanes, event_types, events, .. } = numbering;
        let rows = Rows::RowBuffer(buffer);
        let trace = Self {
            events: records.unwrap_or(events),
            start_ns: extent.start_ns,
            end_ns: extent.end_ns,
            problems: problems.problems(),
            peak_bytes: AtomicU64::new(peak_bytes),
            ..Self::of(found.format, tables, (lanes, event_types), rows, options)
        };
        if let Some(cache_writer) = cache_writer {
            cache_writer.finish(&trace.tables, trace.facts());
        }
        Ok(trace)
    }

    /// A trace of which nothing but its rows is known.
    fn of(
        format: &'static TraceFormat,
        mut tables: Tables,
        (lanes, event_types): (Vec<Lane>, Vec<EventType>),
        rows: Rows,
        options: &LoadOptions,
    ) -> Self {
        for what in &event_types {
            tables.name_row(&what.category);
            tables.name_row(&what.name);
        }
        Self {
            source: format.name,
            tables,
            lanes,
            layers: event_types.iter().map(|what| what.layer).collect(),
            event_types,
            events: 0,
            start_ns: 0,
            end_ns: 0,
            problems: Vec::new(),
            rows,
            options: options.clone(),
            checks_times: false,
            peak_bytes: AtomicU64::new(0),
            set_aside_bytes: AtomicU64::new(0),
            _unpacked: Vec::new(),
        }
    }

    fn facts(&self) -> CachedFacts {
        CachedFacts {
            source: self.source.to_owned(),
            lanes: self.lanes.clone(),
            event_types: self.event_types.iter().map(cache::cached_event_type).collect(),
            events: self.events,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            problems: self.problems.clone(),
        }
    }

    /// What was kept of files that were read before. What is damaged is removed.
    fn kept(entry: &CacheEntry, options: &LoadOptions) -> Option<Self> {
        let facts = entry.facts()?;
        let format = FORMATS.iter().find(|format| format.name == facts.source)?;
        let mut tables = Tables::default();
        let whole = Groups::open(&[entry.path()], &mut tables).and_then(|groups| {
            groups.verify()?;
            Ok(groups)
        });
        let event_types: Option<Vec<EventType>> =
            facts.event_types.iter().map(cache::event_type_of).collect();
        let (Ok(groups), Some(event_types)) = (whole, event_types) else {
            entry.drop();
            return None;
        };
        let known = Known::new(&groups, &facts.lanes, &event_types);
        let (kinds, rows) = ((facts.lanes, event_types), Rows::Groups(groups, known));
        Some(Self {
            events: facts.events,
            start_ns: facts.start_ns,
            end_ns: facts.end_ns,
            problems: facts.problems,
            ..Self::of(format, tables, kinds, rows, options)
        })
    }

    /// The most memory that rows took so far, as the loader counts it.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Says what the caller will hold beside rows: those get the rest of the memory, and a quarter at least.
    pub fn set_aside(&self, bytes: u64) {
        self.set_aside_bytes.store(bytes, Ordering::Relaxed);
    }

    /// All rows of selected lanes, in [their order](Row::order), some at a time; and what tallies,
    /// one per decoding thread, made of them before they were in order.
    ///
    /// Rows that begin and end at the same time come by lane, and on one lane by layer, so that the sequence
    /// is the same whatever the number of threads and the memory.
    pub fn stream<T: RowTally>(
        &self,
        progress: &dyn LoadProgress,
        is_selected: &(dyn Fn(u32) -> bool + Sync),
        tally: &(dyn Fn() -> T + Sync),
        take: &mut dyn FnMut(&[Row]),
    ) -> Result<T, AnalyzeError> {
        let tallies = match &self.rows {
            Rows::RowBuffer(buffer) => {
                self.stream_buffer(buffer, progress, is_selected, tally, take)?
            }
            Rows::Groups(groups, known) => {
                self.stream_groups(groups, known, progress, is_selected, tally, take)?
            }
        };
        let mut tallies = tallies.into_iter();
        let mut all = tallies.next().unwrap_or_else(tally);
        tallies.for_each(|other| all.merge(other));
        Ok(all)
    }

    fn stream_groups<T: RowTally>(
        &self,
        groups: &Groups,
        known: &Known,
        progress: &dyn LoadProgress,
        is_selected: &(dyn Fn(u32) -> bool + Sync),
        tally: &(dyn Fn() -> T + Sync),
        take: &mut dyn FnMut(&[Row]),
    ) -> Result<Vec<T>, AnalyzeError> {
        let turns = folder::turns(groups, known, is_selected);
        // What is under way takes memory too: about half of it is for that.
        let threads = self.options.threads.get();
        let budget = self.options.budget();
        let spent = self.set_aside_bytes.load(Ordering::Relaxed).min(budget.bytes / 4 * 3);
        let budget = Budget { bytes: budget.bytes - spent, ..budget };
        let group_bytes = folder::largest_bytes(groups).max(1);
        let most = usize::try_from(budget.bytes / 2 / group_bytes).unwrap_or(usize::MAX);
        let ahead = most.saturating_sub(1).clamp(1, threads + 1);
        let under_way = group_bytes * if threads == 1 { 1 } else { ahead as u64 + 1 };
        let left = budget.bytes.saturating_sub(under_way).max(budget.bytes / 4);
        let budget = Budget { bytes: left, ..budget };
        let mut merger = Merger::new(&self.layers, budget);
        let (mut turn, mut done, all) = (0, 0, groups.rows());
        let mut pass_on = |rows: &[Row]| {
            done += rows.len() as u64;
            take(rows);
            progress.update("analyzing", done, all);
            Ok(())
        };
        let tallies = ordered(
            Workforce { threads: self.options.threads, ahead },
            tally,
            |give| {
                let _ = turns.iter().all(|(_, index)| give(*index));
            },
            &|tally: &mut T, index| {
                let mut rows = folder::rows(groups, index, known, &self.layers, is_selected)?;
                if self.checks_times {
                    rows.retain(possible::is_possible);
                }
                tally.add(&rows);
                Ok(rows)
            },
            &mut |rows: Result<Vec<Row>, TraceError>| {
                merger.add(rows?)?;
                turn += 1;
                match turns.get(turn) {
                    Some((least, _)) => merger.emit(Some(*least), &mut pass_on),
                    None => Ok(()),
                }
            },
        )?;
        merger.emit(None, &mut pass_on)?;
        self.peak_bytes.fetch_max(merger.peak_bytes() + under_way, Ordering::Relaxed);
        Ok(tallies)
    }

    fn stream_buffer<T: RowTally>(
        &self,
        buffer: &RowBuffer,
        progress: &dyn LoadProgress,
        is_selected: &(dyn Fn(u32) -> bool + Sync),
        tally: &(dyn Fn() -> T + Sync),
        take: &mut dyn FnMut(&[Row]),
    ) -> Result<Vec<T>, AnalyzeError> {
        let filter = Filter::new(self.lanes.len(), is_selected);
        let threads = self.options.threads.get();
        let next = AtomicUsize::new(0);
        let mut single = (threads == 1).then(tally);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..if threads == 1 { 0 } else { threads })
                .map(|_| {
                    scope.spawn(|| {
                        let mut own = tally();
                        let mut kept = Vec::new();
                        loop {
                            let part = next.fetch_add(1, Ordering::Relaxed);
                            if part >= buffer.parts() {
                                return Ok::<T, AnalyzeError>(own);
                            }
                            buffer.part(part, &mut |rows| own.add(filter.keep(rows, &mut kept)))?;
                        }
                    })
                })
                .collect();
            let (mut kept, mut done) = (Vec::new(), 0);
            let peak = buffer.stream(&self.layers, &mut |rows| {
                done += rows.len() as u64;
                let selected = filter.keep(rows, &mut kept);
                if let Some(tally) = &mut single {
                    tally.add(selected);
                }
                if !selected.is_empty() {
                    take(selected);
                }
                progress.update("analyzing", done, buffer.len());
                Ok(())
            })?;
            self.peak_bytes.fetch_max(peak, Ordering::Relaxed);
            let mut tallies: Vec<T> = single.take().into_iter().collect();
            for worker in workers {
                match worker.join() {
                    Ok(tally) => tallies.push(tally?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(tallies)
        })
    }
}

/// Leaves out rows of lanes that are not selected.
struct Filter {
    is_selected: Vec<bool>,
    keeps_all: bool,
}

impl Filter {
    fn new(lanes: usize, is_selected: &dyn Fn(u32) -> bool) -> Self {
        let is_selected: Vec<bool> = (0..lanes as u32).map(is_selected).collect();
        let keeps_all = is_selected.iter().all(|is_selected| *is_selected);
        Self { is_selected, keeps_all }
    }

    fn keep<'r>(&self, rows: &'r [Row], kept: &'r mut Vec<Row>) -> &'r [Row] {
        if self.keeps_all {
            return rows;
        }
        kept.clear();
        kept.extend(rows.iter().filter(|row| self.is_selected[row.lane as usize]));
        kept
    }
}
