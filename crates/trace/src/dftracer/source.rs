//! Traces of DFTracer as a source of events.
//!
//! Files are read twice, each a piece at a time: for what is said about the others, then for the
//! events. Memory grows with the number of distinct strings and processes, not with events.

use std::path::PathBuf;

use crate::dftracer::chunk::{Chunk, ParseScope};
use crate::dftracer::join::{Joiner, Naming};
use crate::dftracer::pieces::Pieces;
use crate::error::{Result, TraceError};
use crate::event::Batch;
use crate::file_slice::FileSlice;
use crate::flow::EventSource;
use crate::read_stats::ReadStats;
use crate::tables::Tables;

/// One or many files of one trace.
pub struct DftracerSource {
    slices: Vec<FileSlice>,
    joiner: Joiner,
    /// The file that is read, and what follows in it.
    file: usize,
    pieces: Option<Pieces>,
    scope: ParseScope,
}

impl DftracerSource {
    /// Reads what the files say about each other.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self> {
        Self::of(paths.into_iter().map(FileSlice::from).collect())
    }

    /// The same for files that may be parts of others.
    pub fn of(slices: Vec<FileSlice>) -> Result<Self> {
        let mut joiner = Joiner::new(slices.clone(), Naming::Known);
        for (file, slice) in slices.iter().enumerate() {
            let mut pieces = Pieces::open(slice).map_err(|source| read_error(slice, source))?;
            while let Some(bytes) = pieces.next().map_err(|source| read_error(slice, source))? {
                let file = u32::try_from(file).unwrap_or(u32::MAX);
                joiner.directory.add(file, &Chunk::parse(bytes, ParseScope::Metadata));
            }
        }
        joiner.directory.complete();
        Ok(Self { slices, joiner, file: 0, pieces: None, scope: ParseScope::Everything })
    }

    /// Reads these lines only.
    #[must_use]
    pub fn only(mut self, scope: ParseScope) -> Self {
        self.scope = scope;
        self
    }

    /// What joins the files: what else it knows.
    pub fn joiner(&self) -> &Joiner {
        &self.joiner
    }

    /// The next chunk, of this file or the next one.
    fn next_chunk(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<Option<Chunk>> {
        loop {
            let Some(slice) = self.slices.get(self.file) else { return Ok(None) };
            if self.pieces.is_none() {
                self.pieces =
                    Some(Pieces::open(slice).map_err(|source| read_error(slice, source))?);
            }
            let Some(pieces) = &mut self.pieces else { return Ok(None) };
            if let Some(bytes) = pieces.next().map_err(|source| read_error(slice, source))? {
                return Ok(Some(Chunk::parse(bytes, self.scope)));
            }
            self.joiner.damaged(pieces.damaged);
            self.joiner.end();
            self.pieces = None;
            self.file += 1;
            self.joiner.begin(tables, batch, self.file);
        }
    }
}

impl EventSource for DftracerSource {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while batch.events.is_empty() {
            let Some(chunk) = self.next_chunk(tables, batch)? else { break };
            self.joiner.join(tables, batch, chunk);
        }
        self.joiner.intake.events += batch.events.len() as u64;
        if batch.events.is_empty() {
            self.joiner.finish(tables);
        }
        Ok(!batch.events.is_empty())
    }

    fn read_stats(&self) -> &ReadStats {
        &self.joiner.intake
    }
}

fn read_error(slice: &FileSlice, source: std::io::Error) -> TraceError {
    TraceError::Read { path: slice.name.clone(), source }
}
