//! The end of a file: the schema and where every column chunk is.
//!
//! Only one column is wanted, so only its chunks are kept: 48 bytes for a row group, which takes more
//! than 20 in the file.

use feedline_parquet_pages::thrift::{Kind, ReadError, Reader};

use super::NAME;
use super::page::decode_error;
use crate::{DecodeError, Decoded, Element};

/// How deep columns may be nested.
const MAX_DEPTH: usize = 64;

/// The file, as far as its sample column goes.
#[derive(Debug)]
pub(super) struct Footer {
    pub(super) column: Column,
    pub(super) groups: Vec<Group>,
    pub(super) rows: u64,
    /// What the key `dtype` says.
    pub(super) element: Option<Element>,
    /// What the key `shape` says.
    pub(super) shape: Option<Vec<u64>>,
    /// Name of the field that the column is in.
    pub(super) name: String,
}

/// The column that holds the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    /// Which of all columns it is.
    index: usize,
    pub(super) stored: Stored,
    /// What one value is in memory, if it is a number.
    pub(super) element: Option<Element>,
    pub(super) max_definition: u32,
    pub(super) max_repetition: u32,
}

impl Column {
    /// Size of one value of fixed size in memory, which for small numbers is less than stored.
    pub(super) fn value_bytes(&self) -> u64 {
        match (self.element, self.stored) {
            (Some(element), _) => element.size_bytes(),
            (None, Stored::Fixed(bytes)) => bytes.into(),
            (None, _) => 1,
        }
    }
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// One bit.
    Bit,
    /// So many bytes.
    Fixed(u32),
    /// As many bytes as its length says.
    Bytes,
}

/// The chunk of the sample column in one row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first_row: u64,
    pub(super) rows: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Nulls and empty lists included.
    pub(super) values: u64,
    pub(super) codec: Codec,
}

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
}

impl Footer {
    /// Reads the footer, which is at `offset`; everything else of the file is before it.
    pub(super) fn parse(bytes: &[u8], offset: u64) -> Decoded<Footer> {
        let mut reader = Reader::new(bytes, offset);
        let mut found = Found::default();
        let walked = reader.structure(|reader, id, kind| found.field(reader, id, kind, offset));
        let end = offset + bytes.len() as u64;
        walked.map_err(|error| decode_error(error, end))?;
        let missing = |expected| DecodeError::field(NAME, offset, expected, "none in the footer");
        let (name, shape) = (found.name, found.shape);
        let column = found.column.ok_or_else(|| missing("a schema"))?;
        let rows = found.rows.ok_or_else(|| missing("a number of rows"))?;
        let sum = found.groups.last().map_or(0, |last| last.first_row + last.rows);
        if sum != rows {
            return Err(DecodeError::field(
                NAME,
                offset,
                "as many rows as the row groups have",
                format!("{rows}, not {sum}"),
            ));
        }
        Ok(Footer { column, groups: found.groups, rows, element: found.element, shape, name })
    }

    /// The row group of a row.
    pub(super) fn group_of(&self, row: u64) -> Option<usize> {
        let behind = self.groups.partition_point(|group| group.first_row + group.rows <= row);
        (behind < self.groups.len()).then_some(behind)
    }
}

#[derive(Default)]
struct Found {
    column: Option<Column>,
    groups: Vec<Group>,
    rows: Option<u64>,
    element: Option<Element>,
    shape: Option<Vec<u64>>,
    name: String,
}

impl Found {
    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        id: i64,
        kind: Kind,
        data_end: u64,
    ) -> Result<(), ReadError> {
        match id {
            2 if self.column.is_none() => {
                let (column, name) = schema(reader, kind)?;
                (self.column, self.name) = (Some(column), name);
            }
            3 => self.rows = Some(reader.count64(kind)?),
            4 if self.groups.is_empty() => {
                let column = self.column.ok_or_else(|| reader.wrong("the schema first", "none"))?;
                for _ in 0..reader.structures(kind)? {
                    let group = RowGroup::read(reader, &column)?;
                    let first_row = self.groups.last().map_or(0, |last| last.first_row + last.rows);
                    let group = group.check(reader, first_row, data_end)?;
                    self.groups.push(group);
                }
            }
            5 => {
                for _ in 0..reader.structures(kind)? {
                    self.key_value(reader)?;
                }
            }
            8 => return Err(reader.unsupported("encryption")),
            _ => reader.skip(kind)?,
        }
        Ok(())
    }

    fn key_value(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        let (mut key, mut value) = (&b""[..], &b""[..]);
        reader.structure(|reader, id, kind| {
            match id {
                1 => key = reader.binary(kind)?,
                2 => value = reader.binary(kind)?,
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        if key == b"dtype" {
            self.element = std::str::from_utf8(value).ok().and_then(Element::parse);
        } else if key == b"shape" {
            self.shape = shape(value);
        }
        Ok(())
    }
}

/// A list of axes as JSON has it, which is no longer than its text.
fn shape(text: &[u8]) -> Option<Vec<u64>> {
    serde_json::from_slice(text).ok()
}

/// One element of the schema.
#[derive(Default)]
struct Node<'a> {
    name: &'a [u8],
    physical: Option<i32>,
    length: u32,
    /// 0 required, 1 optional, 2 repeated.
    repetition: i32,
    children: u32,
    converted: Option<i32>,
}

impl<'a> Node<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Node<'a>, ReadError> {
        let mut node = Node::default();
        reader.structure(|reader, id, kind| {
            match id {
                1 => node.physical = Some(reader.i32(kind)?),
                2 => node.length = reader.count32(kind)?,
                3 => node.repetition = reader.i32(kind)?,
                4 => node.name = reader.binary(kind)?,
                5 => node.children = reader.count32(kind)?,
                6 => node.converted = Some(reader.i32(kind)?),
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        Ok(node)
    }

    fn stored(&self, reader: &Reader<'_>) -> Result<Stored, ReadError> {
        Ok(match self.physical {
            Some(0) => Stored::Bit,
            Some(1 | 4) => Stored::Fixed(4),
            Some(2 | 5) => Stored::Fixed(8),
            Some(3) => Stored::Fixed(12),
            Some(6) => Stored::Bytes,
            Some(7) => Stored::Fixed(self.length),
            other => return Err(reader.wrong("a type of Parquet", format!("{other:?}"))),
        })
    }

    fn element(&self) -> Option<Element> {
        Some(match (self.physical?, self.converted) {
            (0, _) => Element::Bool,
            (1, Some(11)) => Element::UInt8,
            (1, Some(12)) => Element::UInt16,
            (1, Some(13)) => Element::UInt32,
            (1, Some(15)) => Element::Int8,
            (1, Some(16)) => Element::Int16,
            (1, _) => Element::Int32,
            (2, Some(14)) => Element::UInt64,
            (2, _) => Element::Int64,
            (4, _) => Element::Float32,
            (5, _) => Element::Float64,
            _ => return None,
        })
    }
}

/// The levels down to a node of the schema.
#[derive(Clone, Copy)]
struct Level {
    children_left: u32,
    definition: u32,
    repetition: u32,
    in_x: bool,
}

/// Finds the sample column and the name of its field: the first one of the field `x`, or of all if there is no such field.
///
/// The schema is a tree, written node by node, every one before its children.
fn schema(reader: &mut Reader<'_>, kind: Kind) -> Result<(Column, String), ReadError> {
    let count = reader.structures(kind)?;
    let mut chosen: Option<(bool, Column, &[u8])> = None;
    let mut field: &[u8] = &[];
    let mut path: Vec<Level> = Vec::new();
    let mut leaves = 0;
    for number in 0..count {
        let node = Node::read(reader)?;
        while path.last().is_some_and(|level| level.children_left == 0) {
            path.pop();
        }
        let mut level = match path.last_mut() {
            Some(parent) => {
                parent.children_left -= 1;
                *parent
            }
            None if number == 0 => {
                let root = Level { children_left: 0, definition: 0, repetition: 0, in_x: false };
                path.push(Level { children_left: node.children, ..root });
                continue;
            }
            None => return Err(reader.wrong("one root of the schema", "several")),
        };
        if path.len() == 1 {
            field = node.name;
            level.in_x |= field == b"x";
        }
        level.definition += u32::from(node.repetition != 0);
        level.repetition += u32::from(node.repetition == 2);
        level.children_left = node.children;
        if node.children > 0 || node.physical.is_none() {
            if path.len() > MAX_DEPTH {
                return Err(reader.unsupported("nesting of more than 64 fields"));
            }
            path.push(level);
            continue;
        }
        let is_better = chosen.is_none_or(|(in_x, ..)| level.in_x && !in_x);
        if is_better {
            let column = Column {
                index: leaves,
                stored: node.stored(reader)?,
                element: node.element(),
                max_definition: level.definition,
                max_repetition: level.repetition,
            };
            chosen = Some((level.in_x, column, field));
        }
        leaves += 1;
    }
    let (_, column, field) = chosen.ok_or_else(|| reader.wrong("a column", "none"))?;
    Ok((column, String::from_utf8_lossy(field).into_owned()))
}

/// A row group before its numbers have been checked.
#[derive(Default)]
struct RowGroup {
    rows: Option<u64>,
    chunk: Option<Chunk>,
}

#[derive(Default)]
struct Chunk {
    codec: Option<Codec>,
    values: Option<u64>,
    len: Option<u64>,
    data_offset: Option<u64>,
    dictionary_offset: Option<u64>,
}

impl RowGroup {
    fn read(reader: &mut Reader<'_>, column: &Column) -> Result<RowGroup, ReadError> {
        let mut group = RowGroup::default();
        reader.structure(|reader, id, kind| {
            match id {
                1 => {
                    for index in 0..reader.structures(kind)? {
                        if index == column.index {
                            group.chunk = Some(Chunk::read(reader)?);
                        } else {
                            reader.skip(Kind::Struct)?;
                        }
                    }
                }
                3 => group.rows = Some(reader.count64(kind)?),
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        Ok(group)
    }

    fn check(self, reader: &Reader<'_>, first_row: u64, data_end: u64) -> Result<Group, ReadError> {
        let group = self.complete(first_row);
        let group = group.ok_or_else(|| reader.wrong("a chunk of the sample column", "less"))?;
        let end = group.offset.checked_add(group.len).filter(|&end| end <= data_end);
        if end.is_none() || group.offset < 4 {
            let found = format!("{} bytes at {}", group.len, group.offset);
            return Err(reader.wrong("a column chunk before the footer", found));
        }
        if first_row.checked_add(group.rows).is_none_or(|rows| rows > i64::MAX as u64) {
            return Err(reader.wrong("less than 2^63 rows", "more"));
        }
        Ok(group)
    }

    fn complete(self, first_row: u64) -> Option<Group> {
        let chunk = self.chunk?;
        let data = chunk.data_offset?;
        // Some writers name a dictionary at 0, or after the data, that does not exist.
        let dictionary = chunk.dictionary_offset.filter(|&at| at > 0 && at < data);
        Some(Group {
            first_row,
            rows: self.rows?,
            offset: dictionary.unwrap_or(data),
            len: chunk.len?,
            values: chunk.values?,
            codec: chunk.codec?,
        })
    }
}

impl Chunk {
    fn read(reader: &mut Reader<'_>) -> Result<Chunk, ReadError> {
        let mut chunk = Chunk::default();
        reader.structure(|reader, id, kind| {
            match id {
                1 => return Err(reader.unsupported("column in another file")),
                3 => {
                    reader.expect(kind, Kind::Struct)?;
                    reader.structure(|reader, id, kind| chunk.field(reader, id, kind))?;
                }
                8 | 9 => return Err(reader.unsupported("encryption")),
                _ => reader.skip(kind)?,
            }
            Ok(())
        })?;
        Ok(chunk)
    }

    fn field(&mut self, reader: &mut Reader<'_>, id: i64, kind: Kind) -> Result<(), ReadError> {
        match id {
            4 => self.codec = Some(codec(reader, kind)?),
            5 => self.values = Some(reader.count64(kind)?),
            7 => self.len = Some(reader.count64(kind)?),
            9 => self.data_offset = Some(reader.count64(kind)?),
            11 => self.dictionary_offset = Some(reader.count64(kind)?),
            _ => reader.skip(kind)?,
        }
        Ok(())
    }
}

fn codec(reader: &mut Reader<'_>, kind: Kind) -> Result<Codec, ReadError> {
    const UNREAD: [(i32, &str); 5] =
        [(3, "LZO"), (4, "BROTLI"), (5, "LZ4"), (6, "ZSTD"), (7, "LZ4_RAW")];
    match reader.i32(kind)? {
        0 => Ok(Codec::None),
        1 => Ok(Codec::Snappy),
        2 => Ok(Codec::Gzip),
        other => match UNREAD.iter().find(|unread| unread.0 == other) {
            Some((_, name)) => Err(reader.unsupported(format!("compression {name}"))),
            None => Err(reader.wrong("a compression of Parquet", other)),
        },
    }
}
