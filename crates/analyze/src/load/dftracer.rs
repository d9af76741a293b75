//! DFTracer's files as rows: read once, by many threads, and put together in the order of the files.

use feedline_trace::dftracer::{
    Chunk, DftracerSource, Joiner, Member, Naming, Next, ParseScope, Pieces, member_starts,
    read_member,
};
use feedline_trace::{Batch, EventSource as _, FileSlice, ReadStats, Tables, TraceError};

use super::ordered::{Workforce, ordered};
use super::row_ingest::RowIngest;
use super::{AnalyzeError, LoadOptions, LoadProgress};

/// A piece of a file, before (`T` and `M` say where it is) and after it was parsed.
enum Piece<T, M> {
    Begin(usize),
    /// Whole lines, and where they end.
    Lines(T, u64),
    /// A member of a compressed file, and where it begins.
    Member(M, u64),
    /// The end of a file, and damaged places in it.
    End(u64),
    Broken(usize, std::io::Error),
}

/// Text, or the number of the file that a member is in.
type Task = Piece<Vec<u8>, usize>;
type Done = Piece<Box<Chunk>, Member>;

/// What is known about the files after they were read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) intake: ReadStats,
    /// Units of time, in nanoseconds.
    pub(crate) units_ns: Vec<u64>,
    /// Processes that began and never said that they ended.
    pub(crate) unended: Vec<u32>,
}

/// Reads files. Once, unless something that was assumed turns out to be wrong: then once more, from the
/// beginning, with all that is known.
pub(crate) fn read(
    slices: &[FileSlice],
    options: &LoadOptions,
    tables: &mut Tables,
    progress: &dyn LoadProgress,
    ingest: &mut RowIngest,
) -> Result<Findings, AnalyzeError> {
    if let Some(findings) = read_once(slices, options, tables, progress, ingest)? {
        return Ok(findings);
    }
    *tables = Tables::default();
    ingest.restart();
    let mut source = DftracerSource::of(slices.to_vec())?.only(ParseScope::Rows);
    let mut batch = Batch::default();
    let mut events = 0;
    while source.next_batch(tables, &mut batch)? {
        ingest.take(tables, &batch)?;
        events += batch.events.len() as u64;
        progress.update("reading again", events, 0);
    }
    Ok(findings(source.joiner(), tables))
}

fn findings(joiner: &Joiner, tables: &Tables) -> Findings {
    Findings {
        intake: joiner.read_stats().clone(),
        units_ns: joiner.units_ns().iter().copied().collect(),
        unended: joiner.unended(tables),
    }
}

fn read_once(
    slices: &[FileSlice],
    options: &LoadOptions,
    tables: &mut Tables,
    progress: &dyn LoadProgress,
    ingest: &mut RowIngest,
) -> Result<Option<Findings>, AnalyzeError> {
    let mut sizes = vec![0];
    for slice in slices {
        let size = slice.size().map_err(|source| read_error(slice, source))?;
        sizes.push(sizes.last().copied().unwrap_or(0) + size);
    }
    let mut reading = Reading {
        joiner: Joiner::new(slices.to_vec(), Naming::Late),
        tables,
        batch: Batch::default(),
        ingest,
        expected: Next::At(0),
        tail: Vec::new(),
    };
    let threads = options.threads;
    let crew = Workforce { threads, ahead: threads.get() + 1 };
    let is_single = threads.get() == 1;
    let (mut file, all) = (0, sizes.last().copied().unwrap_or(0));
    ordered(
        crew,
        &|| (),
        |give| produce(slices, is_single, give),
        &|(), task| work(slices, task),
        &mut |done| {
            let at = match &done {
                Done::Begin(next) => {
                    file = *next;
                    0
                }
                Done::Lines(_, at) | Done::Member(_, at) => *at,
                Done::End(_) | Done::Broken(..) => u64::MAX,
            };
            reading.take(slices, done)?;
            let before = sizes[file];
            progress.update("reading", before.saturating_add(at).min(sizes[file + 1]), all);
            Ok::<(), AnalyzeError>(())
        },
    )?;
    reading.pass_on()?;
    let Reading { mut joiner, tables, .. } = reading;
    if !joiner.finish(tables) {
        return Ok(None);
    }
    Ok(Some(findings(&joiner, tables)))
}

fn read_error(slice: &FileSlice, source: std::io::Error) -> AnalyzeError {
    TraceError::Read { path: slice.name.clone(), source }.into()
}

/// Takes files apart: by their members if they have many, else by lines.
fn produce(slices: &[FileSlice], is_single: bool, give: &mut dyn FnMut(Task) -> bool) {
    for (file, slice) in slices.iter().enumerate() {
        let continues = give(Task::Begin(file))
            && match pieces(file, slice, is_single, give) {
                Ok(continues) => continues,
                Err(error) => give(Task::Broken(file, error)),
            };
        if !continues {
            return;
        }
    }
}

fn pieces(
    file: usize,
    slice: &FileSlice,
    is_single: bool,
    give: &mut dyn FnMut(Task) -> bool,
) -> std::io::Result<bool> {
    let starts = if is_single { Vec::new() } else { member_starts(slice)? };
    if starts.len() > 1 {
        let continues = starts.into_iter().all(|start| give(Task::Member(file, start)));
        return Ok(continues && give(Task::End(0)));
    }
    let mut pieces = Pieces::open(slice)?;
    while let Some(bytes) = pieces.next()? {
        let bytes = bytes.to_vec();
        let at = pieces.position();
        if !give(Task::Lines(bytes, at)) {
            return Ok(false);
        }
    }
    Ok(give(Task::End(pieces.damaged)))
}

fn work(slices: &[FileSlice], task: Task) -> Done {
    match task {
        Task::Begin(file) => Done::Begin(file),
        Task::Lines(bytes, at) => Done::Lines(Box::new(Chunk::parse(&bytes, ParseScope::Rows)), at),
        Task::Member(file, start) => match read_member(&slices[file], start, ParseScope::Rows) {
            Ok(member) => Done::Member(member, start),
            Err(error) => Done::Broken(file, error),
        },
        Task::End(damaged) => Done::End(damaged),
        Task::Broken(file, error) => Done::Broken(file, error),
    }
}

/// Files that are being joined.
struct Reading<'a> {
    joiner: Joiner,
    tables: &'a mut Tables,
    batch: Batch,
    ingest: &'a mut RowIngest,
    /// Where the next member must begin to be one.
    expected: Next,
    /// A line that was begun in a member and goes on in the next one.
    tail: Vec<u8>,
}

impl Reading<'_> {
    fn take(&mut self, slices: &[FileSlice], done: Done) -> Result<(), AnalyzeError> {
        match done {
            Done::Begin(file) => {
                self.joiner.begin(self.tables, &mut self.batch, file);
                self.expected = Next::At(0);
            }
            Done::Lines(chunk, _) => self.join(*chunk)?,
            Done::Member(member, start) => self.member(start, member)?,
            Done::End(damaged) => {
                // What looked like a member's beginning and was none.
                let is_open = matches!(self.expected, Next::At(at) if at > 0);
                self.joiner.damaged(damaged + u64::from(is_open));
                self.close_line()?;
                self.joiner.end();
            }
            Done::Broken(file, error) => return Err(read_error(&slices[file], error)),
        }
        Ok(())
    }

    fn member(&mut self, start: u64, member: Member) -> Result<(), AnalyzeError> {
        match self.expected {
            // Compressed bytes of another member that look like a beginning.
            Next::At(at) if start < at => return Ok(()),
            Next::End => return Ok(()),
            Next::At(at) if start > at => {
                self.joiner.damaged(1);
                self.close_line()?;
            }
            Next::At(_) | Next::Any => {}
        }
        if !member.head.is_empty() {
            self.tail.extend_from_slice(&member.head);
            self.close_line()?;
        }
        for chunk in member.chunks {
            self.join(chunk)?;
        }
        self.tail.extend_from_slice(&member.tail);
        self.joiner.damaged(member.damaged);
        self.expected = member.next;
        if !matches!(self.expected, Next::At(_)) {
            self.close_line()?;
        }
        Ok(())
    }

    /// Nothing more comes of the line.
    fn close_line(&mut self) -> Result<(), AnalyzeError> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.tail);
        self.join(Chunk::parse(&line, ParseScope::Rows))
    }

    fn join(&mut self, chunk: Chunk) -> Result<(), AnalyzeError> {
        self.joiner.join(self.tables, &mut self.batch, chunk);
        self.pass_on()
    }

    fn pass_on(&mut self) -> Result<(), AnalyzeError> {
        self.ingest.take(self.tables, &self.batch)?;
        self.batch.clear();
        Ok(())
    }
}
