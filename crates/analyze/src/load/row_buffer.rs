//! Rows that were read before they are needed, in memory or in a file, in pieces that are in order.

use crate::row::Row;

use super::AnalyzeError;
use super::merge::{Budget, Merger, block_rows, bytes_of, few_runs};
use super::order::{Layers, sort};
use super::spill::{Run, Spill};

const PIECE_ROWS: usize = 64 * 1024;

/// Rows of a trace of another tool.
#[derive(Debug, Default)]
pub(crate) struct RowBuffer {
    budget: Budget,
    piece_rows: usize,
    /// Rows that are not in order yet.
    open: Vec<Row>,
    pieces: Vec<Vec<Row>>,
    pieces_bytes: u64,
    spill: Option<Spill>,
    runs: Vec<Run>,
    peak_bytes: u64,
    rows: u64,
}

impl RowBuffer {
    pub(crate) fn new(budget: Budget) -> Self {
        // A piece is a small part of the memory, so that what is sorted and what waits both fit.
        let part = budget.bytes / 8 / size_of::<Row>() as u64;
        let piece_rows = usize::try_from(part).unwrap_or(PIECE_ROWS).clamp(1, PIECE_ROWS);
        Self { budget, piece_rows, ..Self::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows
    }

    /// The most memory that rows took while they came.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Takes a row. `layers` are those of all kinds of events that were met.
    pub(crate) fn push(&mut self, row: Row, layers: &Layers) -> Result<(), AnalyzeError> {
        self.rows += 1;
        if self.open.capacity() == 0 {
            self.open.reserve_exact(self.piece_rows);
        }
        self.open.push(row);
        if self.open.len() == self.piece_rows {
            self.close_piece(layers)?;
        }
        Ok(())
    }

    /// Takes the last rows.
    pub(crate) fn finish(&mut self, layers: &Layers) -> Result<(), AnalyzeError> {
        self.open.shrink_to_fit();
        self.close_piece(layers)?;
        if let Some(spill) = &mut self.spill {
            self.runs = few_runs(spill, std::mem::take(&mut self.runs), layers, &self.budget)?;
        }
        Ok(())
    }

    fn close_piece(&mut self, layers: &Layers) -> Result<(), AnalyzeError> {
        let mut rows = std::mem::take(&mut self.open);
        if rows.is_empty() {
            return Ok(());
        }
        sort(&mut rows, layers);
        self.pieces_bytes += bytes_of(rows.capacity());
        self.peak_bytes = self.peak_bytes.max(self.pieces_bytes);
        self.pieces.push(rows);
        // Room for the piece that comes next, and for reading what is in the file.
        let room = bytes_of(self.piece_rows) + self.budget.bytes / 4;
        if self.pieces_bytes + room > self.budget.bytes {
            let spill = match &mut self.spill {
                Some(spill) => spill,
                None => self.spill.insert(Spill::create(&self.budget.folder)?),
            };
            let mut merger = Merger::new(layers, self.budget.clone());
            self.pieces.iter().for_each(|piece| merger.lend(piece));
            self.runs.push(spill.write(|put| merger.emit(None, put))?);
            self.pieces.clear();
            self.pieces_bytes = 0;
        }
        Ok(())
    }

    /// All rows in their order. The most memory that they took.
    pub(crate) fn stream(
        &self,
        layers: &Layers,
        take: &mut dyn FnMut(&[Row]) -> Result<(), AnalyzeError>,
    ) -> Result<u64, AnalyzeError> {
        let mut merger = Merger::new(layers, self.budget.clone());
        self.pieces.iter().for_each(|piece| merger.lend(piece));
        if let Some(spill) = &self.spill {
            let most = block_rows(self.budget.bytes, self.runs.len());
            for run in &self.runs {
                merger.add_run(spill.read(*run, most))?;
            }
        }
        merger.emit(None, take)?;
        Ok(self.pieces_bytes + merger.peak_bytes())
    }

    /// Rows in parts that can be read on many threads, in no order.
    pub(crate) fn parts(&self) -> usize {
        self.pieces.len() + self.runs.len()
    }

    /// Rows of a part.
    pub(crate) fn part(
        &self,
        part: usize,
        take: &mut dyn FnMut(&[Row]),
    ) -> Result<(), AnalyzeError> {
        if let Some(piece) = self.pieces.get(part) {
            take(piece);
        } else if let (Some(spill), Some(run)) =
            (&self.spill, self.runs.get(part - self.pieces.len()))
        {
            let mut reader = spill.read(*run, block_rows(self.budget.bytes, self.runs.len()));
            reader.advance(0)?;
            while !reader.rest().is_empty() {
                take(reader.rest());
                let done = reader.rest().len();
                reader.advance(done)?;
            }
        }
        Ok(())
    }
}
