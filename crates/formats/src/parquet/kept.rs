//! The values of rows, kept while the pages of their column chunk are decoded.

use super::values::Values;
use crate::{DecodeError, Decoded, Element, SamplePart};

/// What is kept of a column chunk. Decoders are generic over it, so that keeping nothing costs nothing.
pub(super) trait Keep {
    /// The first row of the group whose values are kept.
    fn first_row(&self) -> Option<u64>;

    /// Goes on to `row`, which is not before the first one; `false` if it is not kept.
    fn go_to(&mut self, row: u64) -> bool;

    /// Room for the next bytes of the row, unless it is not kept.
    fn room(&mut self, len: u64) -> Decoded<Option<&mut [u8]>>;

    /// Counts values of the row.
    fn count(&mut self, values: u64);
}

/// Keeps nothing, for sinks that want no bytes.
pub(super) struct KeepNothing;

impl Keep for KeepNothing {
    #[inline(always)]
    fn first_row(&self) -> Option<u64> {
        None
    }

    fn go_to(&mut self, _row: u64) -> bool {
        false
    }

    fn room(&mut self, _len: u64) -> Decoded<Option<&mut [u8]>> {
        Ok(None)
    }

    fn count(&mut self, _values: u64) {}
}

/// Most bytes of rows that are kept beside the first one: two row groups of this writer.
const KEPT_BYTES_MAX: u64 = 32 << 20;
/// What a row counts beside its bytes, which is what the list of rows takes while it grows.
const ROW_BYTES: usize = 48;

/// The rows of a group from the one that was asked for, as many as there is room for. Values are one
/// after the other; nulls take no room.
#[derive(Default)]
pub(super) struct KeptRows {
    group: usize,
    first: u64,
    /// Of the column, for errors.
    name: String,
    /// Bytes that the first row may have.
    limit: u64,
    /// Bytes that all rows together may take.
    most: usize,
    bytes: Vec<u8>,
    rows: Vec<KeptRow>,
    is_full: bool,
}

struct KeptRow {
    /// Where its bytes begin.
    start: usize,
    values: u64,
}

impl KeptRows {
    /// No rows yet, of the column with this name.
    pub(super) fn of(name: &str) -> KeptRows {
        KeptRows { name: name.to_owned(), ..KeptRows::default() }
    }

    /// Forgets all rows, to keep those of a group from `first` on: that one if it has at most `limit`
    /// bytes, and as many others as take no more than the file and 64 KiB.
    pub(super) fn restart(&mut self, group: usize, first: u64, limit: u64, file_len: u64) {
        (self.group, self.first, self.limit, self.is_full) = (group, first, limit, false);
        self.most = file_len.saturating_add(64 << 10).min(KEPT_BYTES_MAX) as usize;
        self.clear();
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// The row and its values, if it is kept.
    pub(super) fn find(&self, group: usize, row: u64) -> Option<FoundRow<'_>> {
        let at = row.checked_sub(self.first).filter(|_| group == self.group)? as usize;
        let KeptRow { start, values } = *self.rows.get(at)?;
        let end = self.rows.get(at + 1).map_or(self.bytes.len(), |next| next.start);
        Some(FoundRow { bytes: &self.bytes[start..end], values })
    }

    fn has_room(&self, bytes: usize) -> bool {
        bytes.saturating_add(self.rows.len() * ROW_BYTES) <= self.most
    }
}

impl Keep for KeptRows {
    fn first_row(&self) -> Option<u64> {
        Some(self.first)
    }

    fn go_to(&mut self, row: u64) -> bool {
        // Rows without values have not been announced.
        while !self.is_full && self.rows.len() as u64 <= row - self.first {
            self.is_full = !self.rows.is_empty() && !self.has_room(self.bytes.len());
            if !self.is_full {
                self.rows.push(KeptRow { start: self.bytes.len(), values: 0 });
            }
        }
        !self.is_full
    }

    fn room(&mut self, len: u64) -> Decoded<Option<&mut [u8]>> {
        let begin = self.bytes.len();
        let needed = (begin as u64).saturating_add(len);
        match self.rows.len() {
            _ if self.is_full => return Ok(None),
            0 | 1 if needed > self.limit => {
                let (part, limit) = (self.name.clone(), self.limit);
                return Err(DecodeError::SampleLimit { part, needed, limit });
            }
            0 | 1 => {}
            _ if !self.has_room(needed as usize) => {
                self.is_full = true;
                if let Some(unfinished) = self.rows.pop() {
                    self.bytes.truncate(unfinished.start);
                }
                return Ok(None);
            }
            // At once, since a buffer that grows takes up to three times its size.
            _ => self.bytes.reserve_exact(self.most.saturating_sub(begin)),
        }
        self.bytes.resize(begin + len as usize, 0);
        Ok(Some(&mut self.bytes[begin..]))
    }

    fn count(&mut self, values: u64) {
        if let Some(row) = self.rows.last_mut().filter(|_| !self.is_full) {
            row.values = row.values.saturating_add(values);
        }
    }
}

/// The values of one row.
pub(super) struct FoundRow<'a> {
    pub(super) bytes: &'a [u8],
    values: u64,
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

impl FoundRow<'_> {
    /// Shows the row as a part of a sample.
    ///
    /// Numbers are an array of one axis, or of none where a row is one number; byte strings are
    /// the array that the file's metadata describes if they have its size.
    pub(super) fn part<R>(
        &self,
        name: &str,
        meaning: &Meaning<'_>,
        show: impl FnOnce(SamplePart<'_>) -> R,
    ) -> R {
        let bytes = self.bytes.len() as u64;
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
    /// Takes the values of the run, those of kept rows with their bytes.
    pub(super) fn take<K: Keep>(
        self,
        values: &mut Values<'_, '_>,
        keep: &mut K,
        mut visit: impl FnMut(u64, u64) -> Decoded<()>,
    ) -> Decoded<()> {
        let Some(first) = keep.first_row() else { return values.take(self.count(), visit) };
        match self {
            Run::Begins { begun, count } => {
                let mut done = first.saturating_sub(begun).min(count);
                values.take(done, &mut visit)?;
                while done < count && keep.go_to(begun + done) {
                    values.keep(1, keep, &mut visit)?;
                    done += 1;
                }
                values.take(count - done, visit)
            }
            Run::GoesOn { begun, count } if begun >= first && keep.go_to(begun) => {
                values.keep(count, keep, visit)
            }
            Run::GoesOn { count, .. } => values.take(count, visit),
        }
    }

    fn count(&self) -> u64 {
        match *self {
            Run::Begins { count, .. } | Run::GoesOn { count, .. } => count,
        }
    }
}
