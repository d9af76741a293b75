//! Events of other tools on their way to rows, and to the cache if there is one.

use feedline_trace::{Batch, Event, EventKind, EventSource, Tables};

use super::cache::CacheWriter;
use super::folder::window_ns;
use super::merge::Budget;
use super::numbering::{LONGEST_NS, Numbering};
use super::possible::is_moment;
use super::row_buffer::RowBuffer;
use super::{AnalyzeError, LoadProgress};

/// Whether a timestamp of 0 is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZeroTimestamp {
    /// Clocks start at an arbitrary moment.
    Valid,
    /// Timestamps are wall-clock time.
    Missing,
}

/// Turns events into rows, and passes them to the cache.
pub(crate) struct RowIngest {
    pub(crate) numbering: Numbering,
    pub(crate) buffer: RowBuffer,
    pub(crate) cache_writer: Option<CacheWriter>,
    pub(crate) zero_times: u64,
    pub(crate) too_long: u64,
    pub(crate) impossible: u64,
    budget: Budget,
    zero: ZeroTimestamp,
}

impl RowIngest {
    pub(crate) fn new(
        budget: Budget,
        zero: ZeroTimestamp,
        cache_writer: Option<CacheWriter>,
    ) -> Self {
        Self {
            numbering: Numbering::default(),
            buffer: RowBuffer::new(budget.clone()),
            cache_writer,
            zero_times: 0,
            too_long: 0,
            impossible: 0,
            budget,
            zero,
        }
    }

    /// Reads a source from its beginning to its end.
    pub(crate) fn read(
        &mut self,
        source: &mut dyn EventSource,
        tables: &mut Tables,
        progress: &dyn LoadProgress,
    ) -> Result<(), AnalyzeError> {
        let mut batch = Batch::default();
        while source.next_batch(tables, &mut batch)? {
            self.take(tables, &batch)?;
            progress.update("reading", self.buffer.len(), 0);
        }
        Ok(())
    }

    /// Begins again: everything that came before is void.
    pub(crate) fn restart(&mut self) {
        let cache_writer = self.cache_writer.take().and_then(CacheWriter::restarted);
        *self = Self::new(self.budget.clone(), self.zero, cache_writer);
    }

    pub(crate) fn take(&mut self, tables: &Tables, batch: &Batch) -> Result<(), AnalyzeError> {
        batch.events.iter().try_for_each(|event| self.add(tables, batch, event))
    }

    fn add(&mut self, tables: &Tables, batch: &Batch, event: &Event) -> Result<(), AnalyzeError> {
        if event.start_ns == 0 && self.zero == ZeroTimestamp::Missing {
            self.zero_times += 1;
            return Ok(());
        }
        if event.duration_ns > LONGEST_NS {
            self.too_long += 1;
            return Ok(());
        }
        let window = match (event.kind, event.extra) {
            (EventKind::Summary, Some(extra)) => {
                batch.texts.get(extra as usize).and_then(|extra| window_ns(extra))
            }
            _ => None,
        };
        if !is_moment(event.start_ns) || window.is_some_and(|window| window > LONGEST_NS) {
            self.impossible += 1;
            return Ok(());
        }
        let row = self.numbering.row(tables, event, window);
        self.buffer.push(row, &self.numbering.layers)?;
        if let Some(cache_writer) = &mut self.cache_writer {
            cache_writer.put(tables, event, window);
        }
        Ok(())
    }
}
