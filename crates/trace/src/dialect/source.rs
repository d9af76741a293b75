//! Traces of DFTracer as a source of events.
//!
//! Files are read twice, each a piece at a time: for what is said about the others, then for the
//! events. Memory grows with the number of distinct strings and processes, not with events.

use std::path::PathBuf;

use crate::dialect::chunk::{Chunk, Wanted};
use crate::dialect::join::{Joiner, Naming};
use crate::dialect::pieces::Pieces;
use crate::dialect::stretch::Stretch;
use crate::event::Batch;
use crate::flow::Source;
use crate::tables::Tables;
use crate::trouble::{ConvertError, Intake};

/// One or many files of one trace.
pub struct DftracerSource {
    stretches: Vec<Stretch>,
    joiner: Joiner,
    /// The file that is read, and what follows in it.
    file: usize,
    pieces: Option<Pieces>,
    wanted: Wanted,
}

impl DftracerSource {
    /// Reads what the files say about each other.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self, ConvertError> {
        Self::of(paths.into_iter().map(Stretch::from).collect())
    }

    /// The same for files that may be parts of others.
    pub fn of(stretches: Vec<Stretch>) -> Result<Self, ConvertError> {
        let mut joiner = Joiner::new(stretches.clone(), Naming::Known);
        for (file, stretch) in stretches.iter().enumerate() {
            let mut pieces = Pieces::open(stretch).map_err(|source| read_error(stretch, source))?;
            while let Some(bytes) = pieces.next().map_err(|source| read_error(stretch, source))? {
                let file = u32::try_from(file).unwrap_or(u32::MAX);
                joiner.directory.add(file, &Chunk::parse(bytes, Wanted::Metadata));
            }
        }
        joiner.directory.complete();
        Ok(Self { stretches, joiner, file: 0, pieces: None, wanted: Wanted::Everything })
    }

    /// Reads these lines only.
    #[must_use]
    pub fn only(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    /// What joins the files: what else it knows.
    pub fn joiner(&self) -> &Joiner {
        &self.joiner
    }

    /// What was met so far; complete after the last batch.
    pub fn intake(&self) -> &Intake {
        &self.joiner.intake
    }

    /// The next chunk, of this file or the next one.
    fn next_chunk(
        &mut self,
        tables: &mut Tables,
        batch: &mut Batch,
    ) -> Result<Option<Chunk>, ConvertError> {
        loop {
            let Some(stretch) = self.stretches.get(self.file) else { return Ok(None) };
            if self.pieces.is_none() {
                self.pieces =
                    Some(Pieces::open(stretch).map_err(|source| read_error(stretch, source))?);
            }
            let Some(pieces) = &mut self.pieces else { return Ok(None) };
            if let Some(bytes) = pieces.next().map_err(|source| read_error(stretch, source))? {
                return Ok(Some(Chunk::parse(bytes, self.wanted)));
            }
            self.joiner.damaged(pieces.damaged);
            self.joiner.end();
            self.pieces = None;
            self.file += 1;
            self.joiner.begin(tables, batch, self.file);
        }
    }
}

impl Source for DftracerSource {
    type Error = ConvertError;

    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, ConvertError> {
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
}

fn read_error(stretch: &Stretch, source: std::io::Error) -> ConvertError {
    ConvertError::Read { path: stretch.name.clone(), source }
}
