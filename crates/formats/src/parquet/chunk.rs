//! A column chunk: pages one after the other, decoded as far as the size of every row.
//!
//! Uncompressed plain values, which large samples usually are, are passed over as they come from the
//! file; everything else goes through the reader's buffers, a page at a time.

use std::io::Read;

use feedline_parquet_pages::{Encoding, Hybrid, Levels, PageHeader, PageKind};

use super::NAME;
use super::body::{Body, check_crc};
use super::footer::{Codec, Column, Group, Stored};
use super::kept::{Keep, Run};
use super::page::page_at;
use super::rows::Rows;
use super::values::{BOOLEANS, Dictionary, Values};
use crate::error::check_limit;
use crate::scratch::grow;
use crate::window::Window;
use crate::{DecodeError, Decoded, Streamed};

/// Reads the pages of one chunk.
pub(super) struct ChunkReader<'a, 'w, K> {
    pub(super) window: &'a mut Window<'w>,
    /// For a page as it is stored, or for levels alone.
    pub(super) stored: &'a mut Vec<u8>,
    /// For a page without its compression, or for levels alone.
    pub(super) plain: &'a mut Vec<u8>,
    pub(super) column: Column,
    pub(super) group: Group,
    pub(super) rows: &'a mut Rows,
    pub(super) keep: &'a mut K,
}

/// What a data page holds.
#[derive(Clone, Copy)]
struct Content {
    values: u64,
    encoding: Encoding,
    levels: Levels,
}

impl<K: Keep> ChunkReader<'_, '_, K> {
    /// Reads all pages up to the last value.
    pub(super) fn read(mut self) -> Decoded<()> {
        let end = self.group.offset + self.group.len;
        let mut at = self.group.offset;
        let mut left = self.group.values;
        let mut dictionary = None;
        while left > 0 {
            let page = page_at(self.window, at, end)?;
            match page.kind {
                PageKind::Data { values, encoding, levels } => {
                    left = left.checked_sub(values.into()).ok_or_else(|| {
                        wrong(page.offset, "no more values than the chunk has", values)
                    })?;
                    let content = Content { values: values.into(), encoding, levels };
                    self.data(&page, content, dictionary.as_ref())?;
                }
                PageKind::Dictionary { values, encoding } => {
                    if dictionary.is_some()
                        || !matches!(encoding, Encoding::Plain | Encoding::Dictionary)
                    {
                        return Err(wrong(page.offset, "one plain dictionary", "another"));
                    }
                    dictionary = Some(self.dictionary(&page, values)?);
                }
                PageKind::Other => {}
            }
            at = page.end();
        }
        match self.rows.begun() {
            rows if rows == self.group.rows => {
                // The last rows may have no values.
                if self.keep.first_row().is_some_and(|first| first < rows) {
                    self.keep.go_to(rows - 1);
                }
                Ok(())
            }
            rows => Err(wrong(
                self.group.offset,
                "as many rows as the row group has",
                format!("{rows}, not {}", self.group.rows),
            )),
        }
    }

    /// The sizes of the dictionary's values: four bytes for each, as many as its length takes in the
    /// page.
    fn dictionary(&mut self, page: &PageHeader, count: u32) -> Decoded<Dictionary> {
        let codec = self.group.codec;
        let bytes = Memory { window: self.window, stored: self.stored, plain: self.plain }.load(
            page,
            codec,
            Limit::DICTIONARY,
        )?;
        let mut body = Body::memory(bytes, page.offset);
        if self.keep.first_row().is_some() {
            return kept_dictionary(bytes, self.column, count, page.offset);
        }
        if self.column.stored != Stored::Bytes {
            let mut values = Values::Plain { body, column: self.column, bits: 0 };
            values.take(count.into(), |_, _| Ok(()))?;
            values.finish(None, page.offset)?;
            return Ok(Dictionary::Equal { count, bytes: self.column.value_bytes() });
        }
        if u64::from(count) * 4 > bytes.len() as u64 {
            return Err(wrong(page.offset, "a dictionary with all its values", "less"));
        }
        let mut lengths = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let len = body.u32()?;
            body.skip(len.into())?;
            lengths.push(len);
        }
        Ok(Dictionary::Lengths(lengths))
    }

    fn data(
        &mut self,
        page: &PageHeader,
        content: Content,
        dictionary: Option<&Dictionary>,
    ) -> Decoded<()> {
        let codec = match content.levels {
            Levels::Before { compressed: false, .. } => Codec::None,
            _ => self.group.codec,
        };
        let (rows, keep) = (&mut *self.rows, &mut *self.keep);
        // Single bits are picked out of a page, so it must be in memory for that.
        let is_picked = keep.first_row().is_some() && self.column.stored == Stored::Bit;
        let decoder = Decoder { page, content, column: self.column, dictionary, rows, keep };
        if codec == Codec::None && content.encoding == Encoding::Plain && !is_picked {
            let body = Body::stream(self.window, page.offset, page.end(), page.crc);
            return decoder.decode(body, self.stored, self.plain);
        }
        let limit = if dictionary.is_some() { Limit::WITH_DICTIONARY } else { Limit::ALONE };
        let bytes = Memory { window: self.window, stored: self.stored, plain: self.plain }
            .load(page, codec, limit)?;
        decoder.decode(Body::memory(bytes, page.offset), &mut Vec::new(), &mut Vec::new())
    }
}

/// The dictionary's values themselves: as many bytes as its page has, and eight for each value.
fn kept_dictionary(bytes: &[u8], column: Column, count: u32, offset: u64) -> Decoded<Dictionary> {
    let stored_bytes = match column.stored {
        Stored::Bit => return Err(wrong(offset, "no dictionary of booleans", "one")),
        Stored::Fixed(stored) => stored,
        Stored::Bytes => 4,
    };
    if u64::from(count) * u64::from(stored_bytes) > bytes.len() as u64 {
        return Err(wrong(offset, "a dictionary with all its values", "less"));
    }
    if stored_bytes == 0 {
        return Ok(Dictionary::Equal { count, bytes: 0 });
    }
    let mut places = Vec::with_capacity(count as usize);
    let mut body = Body::memory(bytes, offset);
    let mut at = 0;
    for _ in 0..count {
        let len = match column.stored {
            Stored::Bytes => {
                at += 4;
                body.u32()?
            }
            _ => stored_bytes,
        };
        body.skip(len.into())?;
        let kept = if column.stored == Stored::Bytes { len } else { column.value_bytes() as u32 };
        places.push((at, kept));
        at += len;
    }
    Ok(Dictionary::Kept { places, bytes: bytes.to_vec() })
}

/// How large a page may become: so many times the file, and as often 64 KiB.
///
/// A page, the sizes of a dictionary's values and rows or their sizes may be in memory together; all
/// of it stays below 16 times the file and 1 MiB. A page of 1 MiB that snappy made as small as it can is
/// within the limit where there is no dictionary.
#[derive(Clone, Copy)]
struct Limit(u64);

impl Limit {
    const DICTIONARY: Limit = Limit(5);
    const WITH_DICTIONARY: Limit = Limit(8);
    const ALONE: Limit = Limit(13);
}

/// Where a whole page is brought together.
struct Memory<'a, 'b, 'w> {
    window: &'a mut Window<'w>,
    stored: &'b mut Vec<u8>,
    plain: &'b mut Vec<u8>,
}

impl<'b> Memory<'_, 'b, '_> {
    /// The page, checked and without its compression.
    fn load(self, page: &PageHeader, codec: Codec, limit: Limit) -> Decoded<&'b [u8]> {
        let (offset, len) = (page.offset, page.bytes as usize);
        // What is stored is part of the file, so this is never larger than the file.
        let stored = grow(self.stored, len);
        let mut body = Body::stream(self.window, offset, page.end(), None);
        body.copy(stored)?;
        if let Some(expected) = page.crc {
            check_crc(crc32fast::hash(stored), expected, offset)?;
        }
        let before = page.levels_before();
        if codec == Codec::None {
            return match page.plain_bytes {
                plain if plain == page.bytes => Ok(stored),
                plain => Err(wrong(offset, "a page as large as without compression", plain)),
            };
        }
        let needed = u64::from(page.plain_bytes);
        let limit = (self.window.len().saturating_add(64 << 10)).saturating_mul(limit.0);
        check_limit((NAME, "uncompressed page"), offset, needed, limit)?;
        let plain = grow(self.plain, page.plain_bytes as usize);
        plain[..before].copy_from_slice(&stored[..before]);
        let (from, to) = (&stored[before..], &mut plain[before..]);
        // Newer pages without values have nothing that could be compressed.
        if !(from.is_empty() && to.is_empty()) {
            decompress(codec, from, to)
                .map_err(|source| DecodeError::coding(NAME, offset + before as u64, source))?;
        }
        Ok(plain)
    }
}

/// Fills `to` with exactly what `from` holds.
fn decompress(codec: Codec, from: &[u8], to: &mut [u8]) -> Streamed<()> {
    match codec {
        Codec::None => Err("a page that is not compressed".into()),
        Codec::Snappy => match snap::raw::Decoder::new().decompress(from, to)? {
            len if len == to.len() => Ok(()),
            len => Err(format!("page has {len} bytes, its header says {}", to.len()).into()),
        },
        Codec::Gzip => {
            let mut gzip = flate2::bufread::MultiGzDecoder::new(from);
            gzip.read_exact(to)?;
            // Only at its end is the checksum of a stream compared.
            match gzip.read(&mut [0])? {
                0 => Ok(()),
                _ => Err(format!("page has more than the {} bytes of its header", to.len()).into()),
            }
        }
    }
}

/// Turns the body of a data page into rows.
struct Decoder<'a, K> {
    page: &'a PageHeader,
    content: Content,
    column: Column,
    dictionary: Option<&'a Dictionary>,
    rows: &'a mut Rows,
    keep: &'a mut K,
}

impl<'a, K: Keep> Decoder<'a, K> {
    /// The two buffers are for levels that are not in memory.
    fn decode<'b>(
        mut self,
        mut body: Body<'b, '_>,
        first: &'b mut Vec<u8>,
        second: &'b mut Vec<u8>,
    ) -> Decoded<()> {
        let sizes = match self.content.levels {
            Levels::Inside => [None; 2],
            Levels::Before { repetition, definition, .. } => [Some(repetition), Some(definition)],
        };
        let (max_repetition, max_definition) =
            (self.column.max_repetition, self.column.max_definition);
        let mut repetition = self.levels(&mut body, sizes[0], max_repetition, first)?;
        let mut definition = self.levels(&mut body, sizes[1], max_definition, second)?;
        let mut values = self.values(body)?;
        let offset = self.page.offset;
        let short = || wrong(offset, "a level for every value", "less");
        let mut left = self.content.values;
        while left > 0 {
            let (level, mut run) = repetition.next(left).ok_or_else(short)?;
            left -= run;
            while run > 0 {
                let (defined, count) = definition.next(run).ok_or_else(short)?;
                run -= count;
                if level > max_repetition || defined > max_definition {
                    return Err(wrong(offset, "levels of the column", level.max(defined)));
                }
                if defined == max_definition {
                    self.take(&mut values, level, count)?;
                } else {
                    self.add_gaps(level, count)?;
                }
            }
        }
        values.finish(self.page.crc, offset)
    }

    /// Takes values that all have the same repetition level.
    fn take(&mut self, values: &mut Values<'_, '_>, level: u32, count: u64) -> Decoded<()> {
        let short = self.short_row();
        let rows = &mut *self.rows;
        let begun = rows.begun();
        let run = match level {
            0 => Run::Begins { begun, count },
            _ => Run::GoesOn { begun: begun.saturating_sub(1), count },
        };
        run.take(values, self.keep, |bytes, count| rows.add(level, bytes, count).ok_or_else(&short))
    }

    /// Adds gaps that all have the same repetition level.
    fn add_gaps(&mut self, level: u32, count: u64) -> Decoded<()> {
        self.rows.add(level, 0, count).ok_or_else(self.short_row())
    }

    /// The error of a page that goes on with a row before any has begun.
    fn short_row(&self) -> impl Fn() -> DecodeError + use<K> {
        let offset = self.page.offset;
        move || wrong(offset, "a row that begins", "one that goes on")
    }

    /// Levels up to `max`; older pages have their size before them, if they have them at all.
    fn levels<'b>(
        &self,
        body: &mut Body<'b, '_>,
        size: Option<u32>,
        max: u32,
        buffer: &'b mut Vec<u8>,
    ) -> Decoded<Hybrid<'b>> {
        let size = match size {
            Some(size) => size,
            None if max == 0 => 0,
            None => body.u32()?,
        };
        let bytes = body.part(size, buffer)?;
        if max == 0 {
            return Ok(Hybrid::constant(0));
        }
        let hybrid = Hybrid::new(bytes, 32 - max.leading_zeros());
        hybrid.ok_or_else(|| wrong(self.page.offset, "levels of 32 bits at most", max))
    }

    fn values<'b, 'w>(&self, mut body: Body<'b, 'w>) -> Decoded<Values<'b, 'w>>
    where
        'a: 'b,
    {
        let offset = self.page.offset;
        let (dictionary, indices) = match (self.content.encoding, self.dictionary) {
            (Encoding::Plain, _) => {
                return Ok(Values::Plain { body, column: self.column, bits: 0 });
            }
            (Encoding::Rle, _) if self.column.stored == Stored::Bit => {
                let len = body.u32()? as usize;
                let bytes = body.rest();
                (&BOOLEANS, Hybrid::new(&bytes[..len.min(bytes.len())], 1))
            }
            (Encoding::Rle, _) | (Encoding::Other(_), _) => {
                let feature = match self.content.encoding {
                    Encoding::Other(name) => format!("encoding {name}"),
                    _ => "encoding RLE of values".to_owned(),
                };
                return Err(DecodeError::Feature { format: NAME, feature, offset });
            }
            (Encoding::Dictionary, Some(dictionary)) => {
                // Without values not even the width is there.
                let (width, indices) = body.rest().split_first().unwrap_or((&0, &[]));
                (dictionary, Hybrid::new(indices, (*width).into()))
            }
            (Encoding::Dictionary, None) => {
                return Err(wrong(offset, "a dictionary before its indices", "none"));
            }
        };
        let indices = indices.ok_or_else(|| wrong(offset, "indices of 32 bits at most", "more"))?;
        Ok(Values::Indices { indices, dictionary, offset })
    }
}

/// An error at a place of the file.
pub(super) fn wrong(offset: u64, expected: &'static str, found: impl ToString) -> DecodeError {
    DecodeError::Field { format: NAME, offset, expected, found: found.to_string() }
}
