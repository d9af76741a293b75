//! The two ends of every conversion.

use crate::event::Batch;
use crate::tables::Tables;

/// Where events come from.
pub trait Source {
    /// Why they do not come.
    type Error;

    /// Puts the next events into `batch`, which it empties first, and what they refer to into `tables`.
    /// False, with an empty batch, when there are no more. Batches are bounded: some ten thousand events.
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, Self::Error>;
}

/// Where events go.
pub trait Sink {
    /// Why they do not go.
    type Error;

    /// Takes events.
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<(), Self::Error>;

    /// Takes what is known at the end. Nothing has its name before this.
    fn finish(&mut self, tables: &Tables) -> Result<(), Self::Error>;
}

/// Moves all events of a trace.
pub fn pour<S, K, E>(source: &mut S, sink: &mut K) -> Result<(), E>
where
    S: Source,
    K: Sink,
    E: From<S::Error> + From<K::Error>,
{
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    while source.next_batch(&mut tables, &mut batch)? {
        sink.write(&tables, &batch)?;
    }
    sink.finish(&tables)?;
    Ok(())
}
