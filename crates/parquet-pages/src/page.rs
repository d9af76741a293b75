//! Headers of pages.

use crate::thrift::{Kind, ReadError, Reader};

/// What a header says about the page after it.
#[derive(Debug, Clone, Copy)]
pub struct PageHeader {
    /// Where the data of the page begins: the end of the header.
    pub offset: u64,
    /// Bytes of the data as it is stored.
    pub bytes: u32,
    /// Bytes of the data uncompressed.
    pub plain_bytes: u32,
    /// CRC-32 of the data as it is stored.
    pub crc: Option<u32>,
    /// What is in the page.
    pub kind: PageKind,
}

/// What is in a page.
#[derive(Debug, Clone, Copy)]
pub enum PageKind {
    /// Values with their levels.
    Data {
        /// Nulls and empty lists included.
        values: u32,
        /// How the values are encoded.
        encoding: Encoding,
        /// Where the levels of the values are.
        levels: Levels,
    },
    /// What the values of later pages are indices of.
    Dictionary {
        /// Entries of the dictionary.
        values: u32,
        /// How they are encoded.
        encoding: Encoding,
    },
    /// Something that readers pass over.
    Other,
}

/// Where levels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Levels {
    /// Compressed with the values, each kind after its length.
    Inside,
    /// Uncompressed before the values, which may be compressed or not.
    Before {
        /// Bytes of repetition levels, which come first.
        repetition: u32,
        /// Bytes of definition levels.
        definition: u32,
        /// Whether the values are compressed.
        compressed: bool,
    },
}

/// How values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// One after another, texts after their lengths.
    Plain,
    /// Indices of a dictionary.
    Dictionary,
    /// Repeated or packed booleans.
    Rle,
    /// Another one, by Parquet's name for it.
    Other(&'static str),
}

impl PageHeader {
    /// Reads the header that `bytes` begin with, which are at `offset` of their file.
    pub fn read(bytes: &[u8], offset: u64) -> Result<PageHeader, ReadError> {
        let mut reader = Reader::new(bytes, offset);
        let mut fields = Fields::default();
        reader.structure(|reader, id, kind| {
            match id {
                1 => fields.kind = Some(reader.i32(kind)?),
                2 => fields.plain_bytes = Some(reader.count32(kind)?),
                3 => fields.bytes = Some(reader.count32(kind)?),
                4 => fields.crc = Some(reader.i32(kind)? as u32),
                5 | 7 | 8 => {
                    reader.expect(kind, Kind::Struct)?;
                    reader
                        .structure(|reader, field, kind| fields.field(reader, id, field, kind))?;
                }
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        fields.header(&reader)
    }

    /// Where the page ends and the next header begins.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// Bytes of levels that are stored before the values and never compressed.
    pub fn levels_before(&self) -> usize {
        match self.kind {
            PageKind::Data { levels: Levels::Before { repetition, definition, .. }, .. } => {
                repetition as usize + definition as usize
            }
            _ => 0,
        }
    }

    /// Values of the page, of a dictionary too.
    pub fn values(&self) -> u32 {
        match self.kind {
            PageKind::Data { values, .. } | PageKind::Dictionary { values, .. } => values,
            PageKind::Other => 0,
        }
    }
}

/// The fields of a header as they are found.
#[derive(Default)]
struct Fields {
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

impl Fields {
    /// A field of the part that is about data pages (5), dictionaries (7) or newer data pages (8).
    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        part: i64,
        id: i64,
        kind: Kind,
    ) -> Result<(), ReadError> {
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

    fn header(self, reader: &Reader<'_>) -> Result<PageHeader, ReadError> {
        if self.level_encodings.iter().flatten().any(|&encoding| encoding != 3) {
            return Err(reader.unsupported("bit-packed levels"));
        }
        let missing = |what| reader.wrong(what, "none in the page header");
        let kind = match self.kind.ok_or_else(|| missing("a page type"))? {
            kind @ (0 | 2 | 3) => {
                let values = self.values.ok_or_else(|| missing("a number of values"))?;
                let encoding = self.encoding.ok_or_else(|| missing("an encoding"))?;
                let encoding = Encoding::of(encoding, reader)?;
                let levels = Levels::Before {
                    repetition: self.repetition,
                    definition: self.definition,
                    compressed: !self.uncompressed,
                };
                match kind {
                    0 => PageKind::Data { values, encoding, levels: Levels::Inside },
                    2 => PageKind::Dictionary { values, encoding },
                    _ => PageKind::Data { values, encoding, levels },
                }
            }
            _ => PageKind::Other,
        };
        Ok(PageHeader {
            offset: reader.place(),
            bytes: self.bytes.ok_or_else(|| missing("a size"))?,
            plain_bytes: self.plain_bytes.ok_or_else(|| missing("an uncompressed size"))?,
            crc: self.crc,
            kind,
        })
    }
}

impl Encoding {
    fn of(code: i32, reader: &Reader<'_>) -> Result<Encoding, ReadError> {
        Ok(match code {
            0 => Encoding::Plain,
            2 | 8 => Encoding::Dictionary,
            3 => Encoding::Rle,
            4 => Encoding::Other("BIT_PACKED"),
            5 => Encoding::Other("DELTA_BINARY_PACKED"),
            6 => Encoding::Other("DELTA_LENGTH_BYTE_ARRAY"),
            7 => Encoding::Other("DELTA_BYTE_ARRAY"),
            9 => Encoding::Other("BYTE_STREAM_SPLIT"),
            _ => return Err(reader.wrong("an encoding of Parquet", code)),
        })
    }
}
