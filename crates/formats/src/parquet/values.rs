//! The values of a page, one run of equal sizes after the other.

use feedline_parquet_pages::Hybrid;

use super::body::Body;
use super::chunk::wrong;
use super::footer::{Column, Stored};
use super::kept::Keep;
use crate::Decoded;

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

/// The values that indices stand for, of which only the size matters unless rows are kept.
#[derive(Debug)]
pub(super) enum Dictionary {
    Equal {
        count: u32,
        bytes: u64,
    },
    Lengths(Vec<u32>),
    /// With the values themselves: start and length of each.
    Kept {
        places: Vec<(u32, u32)>,
        bytes: Vec<u8>,
    },
}

/// The booleans, for pages in which they are packed like indices.
pub(super) const BOOLEANS: Dictionary = Dictionary::Equal { count: 2, bytes: 1 };

impl Dictionary {
    fn bytes(&self, index: u32) -> Option<u64> {
        match self {
            Dictionary::Equal { count, bytes } => (index < *count).then_some(*bytes),
            Dictionary::Lengths(lengths) => lengths.get(index as usize).map(|&len| len.into()),
            Dictionary::Kept { places, .. } => {
                places.get(index as usize).map(|&(_, len)| len.into())
            }
        }
    }

    /// Writes a value that there is to a place of its size.
    fn copy(&self, index: u32, to: &mut [u8]) {
        match self {
            Dictionary::Kept { places, bytes } => {
                let start = places[index as usize].0 as usize;
                to.copy_from_slice(&bytes[start..start + to.len()]);
            }
            // Booleans; all others are kept with their values.
            _ => to.fill(index as u8),
        }
    }
}

impl Values<'_, '_> {
    /// Reads the next `count` values and shows the size of each to `visit`, with the number of
    /// neighbors that have the same.
    pub(super) fn take(
        &mut self,
        count: u64,
        mut visit: impl FnMut(u64, u64) -> Decoded<()>,
    ) -> Decoded<()> {
        match self {
            _ if count == 0 => Ok(()),
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
                    let (_, bytes, run) = next_index(indices, dictionary, *offset, left)?;
                    visit(bytes, run)?;
                    left -= run;
                }
                Ok(())
            }
        }
    }

    /// Does the same, and keeps the bytes of the values.
    pub(super) fn keep<K: Keep>(
        &mut self,
        count: u64,
        keep: &mut K,
        mut visit: impl FnMut(u64, u64) -> Decoded<()>,
    ) -> Decoded<()> {
        keep.count(count);
        let mut left = count;
        while left > 0 {
            let (bytes, run) = match self {
                Values::Plain { body, column, bits } => (plain_value(body, column, bits, keep)?, 1),
                Values::Indices { indices, dictionary, offset } => {
                    let (index, bytes, run) = next_index(indices, dictionary, *offset, left)?;
                    let room = keep.room(bytes.saturating_mul(run))?;
                    if let Some(room) = room.filter(|_| bytes > 0) {
                        let values = room.chunks_exact_mut(bytes as usize);
                        values.for_each(|value| dictionary.copy(index, value));
                    }
                    (bytes, run)
                }
            };
            visit(bytes, run)?;
            left -= run;
        }
        Ok(())
    }

    /// Reads what is left of the page and compares its checksum, unless that was done before.
    pub(super) fn finish(self, crc: Option<u32>, offset: u64) -> Decoded<()> {
        match self {
            Values::Plain { mut body, bits, .. } => {
                body.skip(bits.div_ceil(8))?;
                body.finish(crc, offset)
            }
            Values::Indices { .. } => Ok(()),
        }
    }
}

/// The next index, the size of its value, and how many of at most `left` are the same.
fn next_index(
    indices: &mut Hybrid<'_>,
    dictionary: &Dictionary,
    offset: u64,
    left: u64,
) -> Decoded<(u32, u64, u64)> {
    let next = indices.next(left);
    let (index, run) = next.ok_or_else(|| wrong(offset, "an index for every value", "less"))?;
    let bytes = dictionary.bytes(index);
    let bytes = bytes.ok_or_else(|| wrong(offset, "an index of the dictionary", index))?;
    Ok((index, bytes, run))
}

/// Keeps one plain value, or passes over it; gives its size.
fn plain_value<K: Keep>(
    body: &mut Body<'_, '_>,
    column: &Column,
    bits: &mut u64,
    keep: &mut K,
) -> Decoded<u64> {
    let len = match column.stored {
        Stored::Bit => {
            let bit = body.bit(*bits)?;
            if let Some(room) = keep.room(1)? {
                room.fill(bit);
            }
            *bits += 1;
            return Ok(1);
        }
        Stored::Bytes => u64::from(body.u32()?),
        Stored::Fixed(_) => column.value_bytes(),
    };
    body.check(len)?;
    match keep.room(len)? {
        Some(room) => body.copy(room)?,
        None => body.skip(len)?,
    }
    // Small numbers are stored with zeros or signs in front of them.
    if let Stored::Fixed(stored) = column.stored {
        body.skip(u64::from(stored).saturating_sub(len))?;
    }
    Ok(len)
}
