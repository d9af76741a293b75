//! The values of a page, one run of equal sizes after the other.

use super::body::Body;
use super::chunk::wrong;
use super::footer::{Column, Stored};
use super::hybrid::Hybrid;
use crate::DecodeError;

/// Values that have not been read.
pub(super) enum Values<'a, 'w> {
    Plain {
        body: Body<'a, 'w>,
        column: Column,
        /// Booleans so far, eight to a byte.
        bits: u64,
    },
    Indices {
        indices: Hybrid<'a>,
        dictionary: &'a Dictionary,
        /// Where the page is.
        offset: u64,
    },
}

/// The values that indices stand for, of which only the size matters.
#[derive(Debug)]
pub(super) enum Dictionary {
    Equal { count: u32, bytes: u64 },
    Lengths(Vec<u32>),
}

/// The booleans, for pages in which they are packed like indices.
pub(super) const BOOLEANS: Dictionary = Dictionary::Equal { count: 2, bytes: 1 };

impl Dictionary {
    fn bytes(&self, index: u32) -> Option<u64> {
        match self {
            Dictionary::Equal { count, bytes } => (index < *count).then_some(*bytes),
            Dictionary::Lengths(lengths) => lengths.get(index as usize).map(|&len| len.into()),
        }
    }
}

impl Values<'_, '_> {
    /// Reads the next `count` values and shows the size of each to `visit`, with the number of
    /// neighbours that have the same.
    pub(super) fn take(
        &mut self,
        count: u64,
        mut visit: impl FnMut(u64, u64) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        match self {
            Values::Plain { body, column, bits } => match column.stored {
                Stored::Bytes => {
                    for _ in 0..count {
                        let len = body.u32()?;
                        body.skip(len.into())?;
                        visit(len.into(), 1)?;
                    }
                    Ok(())
                }
                Stored::Fixed(bytes) => {
                    body.skip(count.saturating_mul(bytes.into()))?;
                    visit(column.value_bytes(), count)
                }
                Stored::Bit => {
                    *bits = bits.saturating_add(count);
                    visit(column.value_bytes(), count)
                }
            },
            Values::Indices { indices, dictionary, offset } => {
                let mut left = count;
                while left > 0 {
                    let next = indices.next(left);
                    let (index, run) =
                        next.ok_or_else(|| wrong(*offset, "an index for every value", "less"))?;
                    let bytes = dictionary.bytes(index);
                    let bytes =
                        bytes.ok_or_else(|| wrong(*offset, "an index of the dictionary", index))?;
                    visit(bytes, run)?;
                    left -= run;
                }
                Ok(())
            }
        }
    }

    /// Reads what is left of the page and compares its checksum, unless that was done before.
    pub(super) fn finish(self, crc: Option<u32>, offset: u64) -> Result<(), DecodeError> {
        match self {
            Values::Plain { mut body, bits, .. } => {
                body.skip(bits.div_ceil(8))?;
                body.finish(crc, offset)
            }
            Values::Indices { .. } => Ok(()),
        }
    }
}
