//! Pieces that are in order, merged into one stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use crate::row::Row;

use super::AnalyzeError;
use super::order::{Key, Layers, compare};
use super::spill::{Run, RunReader, Spill};

/// Rows that are handed out at once.
const SLICE_ROWS: usize = 8 * 1024;
/// Runs that are read at once; more are merged before.
const FAN_IN: usize = 64;

/// Memory for rows, and what became of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    /// How much there may be.
    pub(crate) bytes: u64,
    /// Where rows go that do not fit.
    pub(crate) folder: PathBuf,
}

/// Rows in order, one after the other.
#[derive(Debug)]
enum Feed<'a> {
    Slice(&'a [Row]),
    Owned(Vec<Row>, usize),
    Run(RunReader),
}

impl Feed<'_> {
    fn rest(&self) -> &[Row] {
        match self {
            Self::Slice(rows) => rows,
            Self::Owned(rows, at) => &rows[*at..],
            Self::Run(reader) => reader.rest(),
        }
    }

    fn advance(&mut self, count: usize) -> Result<(), AnalyzeError> {
        match self {
            Self::Slice(rows) => *rows = &rows[count..],
            Self::Owned(_, at) => *at += count,
            Self::Run(reader) => reader.advance(count)?,
        }
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        match self {
            // Counted by their owner.
            Self::Slice(_) => 0,
            Self::Owned(rows, _) => bytes_of(rows.capacity()),
            Self::Run(reader) => reader.held_bytes(),
        }
    }
}

pub(crate) fn bytes_of(rows: usize) -> u64 {
    (rows * size_of::<Row>()) as u64
}

/// The sort key of the next row of a feed, and the feed's number.
type Head = Reverse<(Key, usize)>;

/// Merges feeds that are in order.
#[derive(Debug, Default)]
pub(crate) struct Merger<'a> {
    layers: &'a Layers,
    feeds: Vec<Option<Feed<'a>>>,
    free: Vec<usize>,
    heads: BinaryHeap<Head>,
    held_bytes: u64,
    peak_bytes: u64,
    spill: Option<Spill>,
    budget: Budget,
    out: Vec<Row>,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(layers: &'a Layers, budget: Budget) -> Self {
        Self { layers, budget, ..Self::default() }
    }

    /// The most memory that rows took, those that were lent not counted.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Takes rows that are in order. If they are too many, all that wait go to a file.
    pub(crate) fn add(&mut self, rows: Vec<Row>) -> Result<(), AnalyzeError> {
        let is_too_much = self.held_bytes + bytes_of(rows.capacity()) > self.budget.bytes;
        if is_too_much && !self.heads.is_empty() {
            self.write_out()?;
        }
        self.add_feed(Feed::Owned(rows, 0));
        Ok(())
    }

    /// Lends rows that are in order.
    pub(crate) fn lend(&mut self, rows: &'a [Row]) {
        self.add_feed(Feed::Slice(rows));
    }

    /// Takes rows that are in a file.
    pub(crate) fn add_run(&mut self, mut reader: RunReader) -> Result<(), AnalyzeError> {
        reader.advance(0)?;
        self.add_feed(Feed::Run(reader));
        Ok(())
    }

    fn add_feed(&mut self, feed: Feed<'a>) {
        let Some(first) = feed.rest().first() else { return };
        self.held_bytes += feed.held_bytes();
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        let key = Key::new(first, self.layers);
        let place = self.free.pop().unwrap_or(self.feeds.len());
        if place == self.feeds.len() {
            self.feeds.push(None);
        }
        self.feeds[place] = Some(feed);
        self.heads.push(Reverse((key, place)));
    }

    /// Hands out all rows that begin before a moment, or all.
    pub(crate) fn emit(
        &mut self,
        before_ns: Option<i64>,
        take: &mut dyn FnMut(&[Row]) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        while let Some(Reverse((key, place))) = self.heads.pop() {
            let Some(feed) = &mut self.feeds[place] else { continue };
            let is_late = |row: &Row| before_ns.is_some_and(|before| row.start_ns >= before);
            if feed.rest().first().is_some_and(is_late) {
                self.heads.push(Reverse((key, place)));
                break;
            }
            let next = self.heads.peek().map(|Reverse((_, other))| *other);
            let rows = |place: usize| self.feeds[place].as_ref().map_or(&[][..], Feed::rest);
            let limit = next.and_then(|other| rows(other).first());
            let count = leading(rows(place), limit, before_ns, self.layers);
            self.pass_on(place, count, take)?;
        }
        if !self.out.is_empty() {
            take(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Hands out the next rows of a feed, and puts the feed back where it belongs.
    fn pass_on(
        &mut self,
        place: usize,
        count: usize,
        take: &mut dyn FnMut(&[Row]) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        let Some(feed) = &mut self.feeds[place] else { return Ok(()) };
        self.out.extend_from_slice(&feed.rest()[..count]);
        if self.out.len() >= SLICE_ROWS {
            take(&self.out)?;
            self.out.clear();
        }
        feed.advance(count)?;
        match feed.rest().first() {
            Some(first) => {
                let key = Key::new(first, self.layers);
                self.heads.push(Reverse((key, place)));
            }
            None => {
                self.held_bytes = self.held_bytes.saturating_sub(feed.held_bytes());
                self.feeds[place] = None;
                self.free.push(place);
            }
        }
        Ok(())
    }

    /// Writes everything that waits into one run, which is read from there.
    fn write_out(&mut self) -> Result<(), AnalyzeError> {
        let mut spill = match self.spill.take() {
            Some(spill) => spill,
            None => Spill::create(&self.budget.folder)?,
        };
        let mut waiting = Merger::new(self.layers, self.budget.clone());
        let mut runs = Vec::new();
        for feed in self.feeds.drain(..).flatten() {
            match feed {
                Feed::Run(_) if runs.len() + 1 < FAN_IN => runs.push(feed),
                feed => waiting.add_feed(feed),
            }
        }
        self.heads.clear();
        self.free.clear();
        self.held_bytes = 0;
        let run = spill.write(|put| waiting.emit(None, put))?;
        drop(waiting);
        for feed in runs {
            self.add_feed(feed);
        }
        let most = block_rows(self.budget.bytes, FAN_IN);
        self.add_run(spill.read(run, most))?;
        self.spill = Some(spill);
        Ok(())
    }
}

/// Rows that are read at once from each run, so that all together take a quarter of the memory.
pub(crate) fn block_rows(bytes: u64, runs: usize) -> usize {
    let each = bytes / 4 / runs.max(1) as u64 / size_of::<Row>() as u64;
    usize::try_from(each).unwrap_or(usize::MAX).clamp(1, SLICE_ROWS)
}

/// How many rows of a feed, whose first is the least of all, come before the first of another feed, in time
/// for `before_ns`. At least one.
fn leading(rows: &[Row], limit: Option<&Row>, before_ns: Option<i64>, layers: &Layers) -> usize {
    let most = rows.len().min(SLICE_ROWS);
    let belongs = |row: &Row| {
        before_ns.is_none_or(|before| row.start_ns < before)
            && limit.is_none_or(|limit| compare(row, limit, layers).is_le())
    };
    // Feeds that overlap change places after a row or two, others after thousands.
    let mut step = 1;
    while step < most && belongs(&rows[step]) {
        step = (step * 2).min(most);
    }
    let from = (step / 2).max(1).min(most);
    from + rows[from..step.min(most)].partition_point(belongs)
}

/// Merges runs until there are few enough to be read at once.
pub(crate) fn few_runs(
    spill: &mut Spill,
    mut runs: Vec<Run>,
    layers: &Layers,
    budget: &Budget,
) -> Result<Vec<Run>, AnalyzeError> {
    while runs.len() > FAN_IN {
        let mut merged = Vec::new();
        for some in runs.chunks(FAN_IN) {
            let mut merger = Merger::new(layers, budget.clone());
            for run in some {
                merger.add_run(spill.read(*run, block_rows(budget.bytes, FAN_IN)))?;
            }
            merged.push(spill.write(|put| merger.emit(None, put))?);
        }
        runs = merged;
    }
    Ok(runs)
}
