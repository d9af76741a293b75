//! One epoch of a loader, as its consumer sees it.

use crate::batch::{Batches, Delivered};
use crate::error::{LoadError, Result};

/// The batches of one epoch, in order. It owns the threads that read them, so that it can be kept and
/// moved like any other value. Dropped, at its end or before, it stops its readers, waits for them and
/// gives them back to its loader, whose next epoch reuses their buffers and kept files.
///
/// It ends with the last batch of the share, or with the first error.
pub struct Epoch {
    batches: Box<dyn Batches>,
    is_over: bool,
}

impl Epoch {
    pub(crate) fn new(batches: impl Batches + 'static) -> Self {
        Self { batches: Box::new(batches), is_over: false }
    }

    /// An epoch of which nothing but an error comes.
    pub(crate) fn refused(error: LoadError) -> Self {
        Self::new(Refused(Some(error)))
    }

    /// Waits for the next batch; `None` after the last one and after an error.
    pub fn next_batch(&mut self) -> Result<Option<Delivered>> {
        if self.is_over {
            return Ok(None);
        }
        let next = self.batches.next_batch();
        // The reader of a failed batch reads no other one: waiting for its next would never end.
        self.is_over = !matches!(next, Ok(Some(_)));
        next
    }
}

impl Iterator for Epoch {
    type Item = Result<Delivered>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl std::iter::FusedIterator for Epoch {}

struct Refused(Option<LoadError>);

impl Batches for Refused {
    fn next_batch(&mut self) -> Result<Option<Delivered>> {
        self.0.take().map_or(Ok(None), Err)
    }
}
