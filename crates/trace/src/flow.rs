//! The two ends of every conversion.

use std::path::PathBuf;

use crate::error::Result;
use crate::event::Batch;
use crate::read_stats::ReadStats;
use crate::tables::Tables;

/// A trace that is read from its beginning to its end.
pub trait EventSource {
    /// Puts the next events into `batch`, which it empties first, and what they refer to into `tables`.
    /// False, with an empty batch, when there are no more. Batches are bounded: some ten thousand events.
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool>;

    /// What reading has met so far; complete after the last batch.
    fn read_stats(&self) -> &ReadStats;
}

/// A trace that is being written.
pub trait EventSink {
    /// Writes the events of a batch, whose rows refer to `tables`.
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()>;

    /// Takes what is known after the last event. No output file gets its final name before this.
    fn finish(&mut self, tables: &Tables) -> Result<()>;

    /// After [`finish`](Self::finish): false if all events must come once more, from the first one on.
    fn is_complete(&self) -> bool {
        true
    }

    /// After the last [`finish`](Self::finish): what was written.
    fn output(&self) -> Output;
}

/// What a sink has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The files, or the folder, that now have their final names.
    pub paths: Vec<PathBuf>,
    /// For formats that merge events: what became of them.
    pub slices: Option<Slices>,
}

/// Slices of a timeline, which may cover several events each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// Slices in the file.
    pub slices: u64,
    /// Events that were merged into some of them.
    pub merged: u64,
}

/// Copies all events once.
pub fn copy_events(source: &mut dyn EventSource, sink: &mut dyn EventSink) -> Result<()> {
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    while source.next_batch(&mut tables, &mut batch)? {
        sink.write(&tables, &batch)?;
    }
    sink.finish(&tables)
}

/// Copies all events as often as the sink needs them. `open` opens the trace from its beginning.
pub fn convert<'s>(
    mut open: impl FnMut() -> Result<Box<dyn EventSource + 's>>,
    sink: &mut dyn EventSink,
) -> Result<ReadStats> {
    loop {
        let mut source = open()?;
        copy_events(&mut *source, sink)?;
        if sink.is_complete() {
            return Ok(source.read_stats().clone());
        }
    }
}
