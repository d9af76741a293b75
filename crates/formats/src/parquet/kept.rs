//! The values of one row, kept while the pages of its column chunk are decoded.

use super::values::Values;
use crate::{DecodeError, Element, SamplePart};

/// What is kept of a column chunk. Decoders are generic over it, so that keeping nothing costs nothing.
pub(super) trait Keep {
    /// The row of the group whose values are kept.
    fn row(&self) -> Option<u64>;

    /// Room for the next bytes of the row.
    fn room(&mut self, len: u64) -> Result<&mut [u8], DecodeError>;

    /// Counts values of the row.
    fn count(&mut self, values: u64);
}

/// Keeps nothing, for sinks that want no bytes.
pub(super) struct KeepNothing;

impl Keep for KeepNothing {
    #[inline(always)]
    fn row(&self) -> Option<u64> {
        None
    }

    fn room(&mut self, _len: u64) -> Result<&mut [u8], DecodeError> {
        Ok(&mut [])
    }

    fn count(&mut self, _values: u64) {}
}

/// Keeps the values of one row, one after the other; nulls take no room.
pub(super) struct KeptRow<'a> {
    pub(super) row: u64,
    /// Of the column, for errors.
    pub(super) name: &'a str,
    /// Bytes that may be kept.
    pub(super) limit: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) values: u64,
}

impl Keep for KeptRow<'_> {
    fn row(&self) -> Option<u64> {
        Some(self.row)
    }

    fn room(&mut self, len: u64) -> Result<&mut [u8], DecodeError> {
        let begin = self.bytes.len();
        let needed = (begin as u64).saturating_add(len);
        if needed > self.limit {
            let (part, limit) = (self.name.to_owned(), self.limit);
            return Err(DecodeError::SampleLimit { part, needed, limit });
        }
        self.bytes.resize(begin + len as usize, 0);
        Ok(&mut self.bytes[begin..])
    }

    fn count(&mut self, values: u64) {
        self.values = self.values.saturating_add(values);
    }
}

/// How the values of a row are understood.
pub(super) struct Meaning<'a> {
    /// Of a value, if it is a number.
    pub(super) element: Option<Element>,
    /// Whether a row may have several values.
    pub(super) is_list: bool,
    /// What the file says of the bytes of a row, if it does.
    pub(super) array: Option<(Element, &'a [u64])>,
}

impl KeptRow<'_> {
    /// Shows the row as a part of a sample.
    ///
    /// Numbers are an array of one axis, or of none where a row is one number; byte strings are
    /// the array that the file's metadata describes if they have its size.
    pub(super) fn part<R>(
        &self,
        meaning: &Meaning<'_>,
        show: impl FnOnce(SamplePart<'_>) -> R,
    ) -> R {
        let (name, bytes) = (self.name, self.bytes.len() as u64);
        let counts = [self.values];
        if let Some(element) = meaning.element {
            let is_one = !meaning.is_list && self.values == 1;
            let shape = if is_one { &[][..] } else { &counts };
            return show(SamplePart { name, element: Some(element), shape });
        }
        if let Some((element, shape)) = meaning.array {
            let part = SamplePart { name, element: Some(element), shape };
            if part.size_bytes() == Some(bytes) {
                return show(part);
            }
        }
        show(SamplePart { name, element: None, shape: &[bytes] })
    }
}

/// Values of one repetition level.
pub(super) enum Run {
    /// Each begins a row, the first of them row `begun`.
    Begins { begun: u64, count: u64 },
    /// All go on with row `begun`.
    GoesOn { begun: u64, count: u64 },
}

impl Run {
    /// Takes the values of the run, those of the kept row with their bytes.
    pub(super) fn take<K: Keep>(
        self,
        values: &mut Values<'_, '_>,
        keep: &mut K,
        mut visit: impl FnMut(u64, u64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let Some(row) = keep.row() else { return values.take(self.count(), visit) };
        match self {
            Run::Begins { begun, count } => match row.checked_sub(begun) {
                Some(before) if before < count => {
                    values.take(before, &mut visit)?;
                    values.keep(1, keep, &mut visit)?;
                    values.take(count - before - 1, visit)
                }
                _ => values.take(count, visit),
            },
            Run::GoesOn { begun, count } if begun == row => values.keep(count, keep, visit),
            Run::GoesOn { count, .. } => values.take(count, visit),
        }
    }

    fn count(&self) -> u64 {
        match *self {
            Run::Begins { count, .. } | Run::GoesOn { count, .. } => count,
        }
    }
}
