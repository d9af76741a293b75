//! Headers of pages.

use super::NAME;
use super::thrift::{Broken, Kind, Reader};
use crate::DecodeError;
use crate::window::Window;

/// What a header says about the page behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Where its data begins.
    pub(super) offset: u64,
    /// Bytes of the data as it is stored.
    pub(super) bytes: u32,
    /// Bytes of it uncompressed.
    pub(super) plain_bytes: u32,
    pub(super) crc: Option<u32>,
    pub(super) kind: PageKind,
}

/// What is in a page.
#[derive(Debug, Clone, Copy)]
pub(super) enum PageKind {
    /// Values with their levels.
    Data { values: u32, encoding: Encoding, levels: Levels },
    /// What the values of later pages are indices of.
    Dictionary { values: u32, encoding: Encoding },
    /// Something that readers pass over.
    Other,
}

/// Where levels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Levels {
    /// Compressed with the values, each kind behind its length.
    Inside,
    /// Uncompressed before the values, which may be compressed or not.
    Before { repetition: u32, definition: u32, compressed: bool },
}

/// How values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Dictionary,
    /// Repeated or packed booleans.
    Rle,
}

impl Page {
    /// The page whose header is at `at`, in a chunk that goes to `end`.
    pub(super) fn at(window: &mut Window<'_>, at: u64, end: u64) -> Result<Page, DecodeError> {
        let mut least = 1;
        loop {
            if at >= end {
                return Err(Broken::Short.at_end(end, NAME));
            }
            let bytes = window.at_least(at, least.min(end - at), end)?;
            let len = bytes.len() as u64;
            match Header::read(bytes, at) {
                Ok(page) => return page.check(end),
                // Statistics make some headers long.
                Err(Broken::Short) if len < end - at => least = (2 * len).max(64),
                Err(broken) => return Err(broken.at_end(at + len, NAME)),
            }
            if least > window.capacity() {
                return Err(DecodeError::TooMuch {
                    format: NAME,
                    what: "page header",
                    offset: at,
                    needed: least,
                    limit: window.capacity(),
                });
            }
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// Bytes of levels that are stored before the values and never compressed.
    pub(super) fn levels_before(&self) -> usize {
        match self.kind {
            PageKind::Data { levels: Levels::Before { repetition, definition, .. }, .. } => {
                repetition as usize + definition as usize
            }
            _ => 0,
        }
    }

    fn check(self, end: u64) -> Result<Page, DecodeError> {
        let wrong = |expected, found: String| {
            Err(DecodeError::Field { format: NAME, offset: self.offset, expected, found })
        };
        if self.end() > end {
            return wrong("a page inside of its column chunk", format!("{} bytes", self.bytes));
        }
        let levels = self.levels_before();
        if levels > self.bytes.min(self.plain_bytes) as usize {
            return wrong("levels inside of their page", format!("{levels} bytes"));
        }
        Ok(self)
    }
}

/// The fields of a header as they are found.
#[derive(Default)]
struct Header {
    kind: Option<i32>,
    plain_bytes: Option<u32>,
    bytes: Option<u32>,
    crc: Option<u32>,
    values: Option<u32>,
    encoding: Option<i32>,
    /// Of levels, where the header says so: nothing else but 3 is left in use.
    level_encodings: [Option<i32>; 2],
    repetition: u32,
    definition: u32,
    uncompressed: bool,
}

impl Header {
    fn read(bytes: &[u8], at: u64) -> Result<Page, Broken> {
        let mut reader = Reader::new(bytes, at);
        let mut header = Header::default();
        reader.structure(|reader, id, kind| {
            match id {
                1 => header.kind = Some(reader.i32(kind)?),
                2 => header.plain_bytes = Some(reader.count32(kind)?),
                3 => header.bytes = Some(reader.count32(kind)?),
                4 => header.crc = Some(reader.i32(kind)? as u32),
                5 | 7 | 8 => {
                    reader.expect(kind, Kind::Struct)?;
                    reader
                        .structure(|reader, field, kind| header.field(reader, id, field, kind))?;
                }
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        header.page(&reader)
    }

    /// A field of the part that is about data pages (5), dictionaries (7) or newer data pages (8).
    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        part: i64,
        id: i64,
        kind: Kind,
    ) -> Result<(), Broken> {
        match (part, id) {
            (_, 1) => self.values = Some(reader.count32(kind)?),
            (5 | 7, 2) | (8, 4) => self.encoding = Some(reader.i32(kind)?),
            (5, 3) => self.level_encodings[0] = Some(reader.i32(kind)?),
            (5, 4) => self.level_encodings[1] = Some(reader.i32(kind)?),
            (8, 5) => self.definition = reader.count32(kind)?,
            (8, 6) => self.repetition = reader.count32(kind)?,
            (8, 7) => self.uncompressed = !reader.boolean(kind)?,
            _ => reader.skip(kind)?,
        }
        Ok(())
    }

    fn page(self, reader: &Reader<'_>) -> Result<Page, Broken> {
        let missing = |what| reader.wrong(what, "none in the page header");
        let kind = match self.kind.ok_or_else(|| missing("a page type"))? {
            kind @ (0 | 2 | 3) => {
                let values = self.values.ok_or_else(|| missing("a number of values"))?;
                let encoding = self.encoding.ok_or_else(|| missing("an encoding"))?;
                let encoding = Encoding::of(encoding, reader)?;
                let levels = match kind {
                    2 => return self.with(reader, PageKind::Dictionary { values, encoding }),
                    0 => Levels::Inside,
                    _ => Levels::Before {
                        repetition: self.repetition,
                        definition: self.definition,
                        compressed: !self.uncompressed,
                    },
                };
                PageKind::Data { values, encoding, levels }
            }
            _ => PageKind::Other,
        };
        self.with(reader, kind)
    }

    fn with(self, reader: &Reader<'_>, kind: PageKind) -> Result<Page, Broken> {
        let missing = |what| reader.wrong(what, "none in the page header");
        if self.level_encodings.iter().flatten().any(|&encoding| encoding != 3) {
            let (feature, offset) = ("bit-packed levels".to_owned(), reader.place());
            return Err(DecodeError::Feature { format: NAME, feature, offset }.into());
        }
        Ok(Page {
            offset: reader.place(),
            bytes: self.bytes.ok_or_else(|| missing("a size"))?,
            plain_bytes: self.plain_bytes.ok_or_else(|| missing("an uncompressed size"))?,
            crc: self.crc,
            kind,
        })
    }
}

impl Encoding {
    fn of(code: i32, reader: &Reader<'_>) -> Result<Encoding, Broken> {
        let unread = match code {
            0 => return Ok(Encoding::Plain),
            2 | 8 => return Ok(Encoding::Dictionary),
            3 => return Ok(Encoding::Rle),
            4 => "BIT_PACKED",
            5 => "DELTA_BINARY_PACKED",
            6 => "DELTA_LENGTH_BYTE_ARRAY",
            7 => "DELTA_BYTE_ARRAY",
            9 => "BYTE_STREAM_SPLIT",
            _ => return Err(reader.wrong("an encoding of Parquet", code)),
        };
        let (feature, offset) = (format!("encoding {unread}"), reader.place());
        Err(DecodeError::Feature { format: NAME, feature, offset }.into())
    }
}
