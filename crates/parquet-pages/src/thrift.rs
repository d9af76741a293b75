//! Thrift's compact protocol, as far as Parquet's metadata needs it.
//!
//! A structure is a list of fields, each with a type and the distance from the number of the field
//! before; numbers are variable in length, signed ones folded so that small ones are short.

use crate::bits::{VARINT_BYTES, unzigzag, varint};
use crate::encode;

/// How deep unknown fields may be nested before they are refused.
const MAX_DEPTH: u32 = 32;

/// The type of a field, as its header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of Thrift")]
pub enum Kind {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn of(code: u8) -> Option<Kind> {
        const KINDS: [Kind; 13] = {
            use Kind::*;
            [True, False, Byte, I16, I32, I64, Double, Binary, List, Set, Map, Struct, Uuid]
        };
        KINDS.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// Why a structure could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The bytes end before the structure does.
    Short,
    /// It is damaged.
    Wrong {
        /// Where in the file.
        offset: u64,
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// It may be well, but is not something that can be read here.
    Unsupported {
        /// Where in the file.
        offset: u64,
        /// What Parquet calls it.
        feature: String,
    },
}

/// Reads structures.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins in the file.
    offset: u64,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which are at `offset` of their file.
    pub fn new(bytes: &'a [u8], offset: u64) -> Self {
        Reader { bytes, at: 0, offset }
    }

    /// Where in the file the next byte is.
    pub fn place(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// An error about the next byte.
    pub fn wrong(&self, expected: &'static str, found: impl ToString) -> ReadError {
        ReadError::Wrong { offset: self.place(), expected, found: found.to_string() }
    }

    /// An error about a feature that is not supported, at the next byte.
    pub fn unsupported(&self, feature: impl Into<String>) -> ReadError {
        ReadError::Unsupported { offset: self.place(), feature: feature.into() }
    }

    /// Shows every field of a structure to `visit`, which reads it or passes over it.
    pub fn structure(
        &mut self,
        mut visit: impl FnMut(&mut Self, i64, Kind) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut id = 0i64;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Ok(());
            }
            let kind = self.kind(header & 0x0f)?;
            id = match header >> 4 {
                0 => self.signed()?,
                delta => id.wrapping_add(delta.into()),
            };
            visit(self, id, kind)?;
        }
    }

    /// The type and number of a list's elements. Each takes a byte at least, so the number is never
    /// larger than that of the bytes that are left.
    pub fn list(&mut self) -> Result<(Kind, usize), ReadError> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.unsigned()?,
            count => count.into(),
        };
        let kind = match header & 0x0f {
            // Of nothing.
            0 if count == 0 => Kind::Byte,
            code => self.kind(code)?,
        };
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() - self.at => Ok((kind, count)),
            _ => Err(ReadError::Short),
        }
    }

    /// The number of elements of a list of structures.
    pub fn structures(&mut self, kind: Kind) -> Result<usize, ReadError> {
        self.expect(kind, Kind::List)?;
        match self.list()? {
            (Kind::Struct, count) => Ok(count),
            (_, 0) => Ok(0),
            (kind, _) => Err(self.wrong("a list of structures", format!("{kind:?}"))),
        }
    }

    /// Refuses a field of another type than the one it should have.
    pub fn expect(&self, kind: Kind, expected: Kind) -> Result<(), ReadError> {
        if kind == expected {
            return Ok(());
        }
        Err(self.wrong("a field of its proper type", format!("{kind:?}")))
    }

    /// A number of 32 bits.
    pub fn i32(&mut self, kind: Kind) -> Result<i32, ReadError> {
        self.expect(kind, Kind::I32)?;
        let value = self.signed()?;
        i32::try_from(value).map_err(|_| self.wrong("a number of 32 bits", value))
    }

    /// A number of 32 bits that counts or measures something.
    pub fn count32(&mut self, kind: Kind) -> Result<u32, ReadError> {
        let value = self.i32(kind)?;
        u32::try_from(value).map_err(|_| self.wrong("a number that is not negative", value))
    }

    /// A number of 64 bits that counts or measures something.
    pub fn count64(&mut self, kind: Kind) -> Result<u64, ReadError> {
        self.expect(kind, Kind::I64)?;
        let value = self.signed()?;
        u64::try_from(value).map_err(|_| self.wrong("a number that is not negative", value))
    }

    /// A text or other bytes.
    pub fn binary(&mut self, kind: Kind) -> Result<&'a [u8], ReadError> {
        self.expect(kind, Kind::Binary)?;
        let len = self.unsigned()?;
        self.take(len)
    }

    /// A boolean field, whose value is its type.
    pub fn boolean(&self, kind: Kind) -> Result<bool, ReadError> {
        match kind {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(self.wrong("a boolean", format!("{kind:?}"))),
        }
    }

    /// Passes over a field of that type.
    pub fn skip(&mut self, kind: Kind) -> Result<(), ReadError> {
        self.skip_nested(kind, 0)
    }

    fn skip_nested(&mut self, kind: Kind, depth: u32) -> Result<(), ReadError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("no more than 32 structures in each other", "more"));
        }
        match kind {
            Kind::True | Kind::False => {}
            Kind::Byte => drop(self.byte()?),
            Kind::I16 | Kind::I32 | Kind::I64 => drop(self.unsigned()?),
            Kind::Double => drop(self.take(8)?),
            Kind::Uuid => drop(self.take(16)?),
            Kind::Binary => drop(self.binary(kind)?),
            Kind::List | Kind::Set => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.skip_element(kind, depth)?;
                }
            }
            Kind::Map => {
                let count = self.unsigned()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.skip_element(self.kind(kinds >> 4)?, depth)?;
                    self.skip_element(self.kind(kinds & 0x0f)?, depth)?;
                }
            }
            Kind::Struct => {
                self.structure(|reader, _, kind| reader.skip_nested(kind, depth + 1))?;
            }
        }
        Ok(())
    }

    /// Unlike a field, a boolean in a list has a byte of its own.
    fn skip_element(&mut self, kind: Kind, depth: u32) -> Result<(), ReadError> {
        match kind {
            Kind::True | Kind::False => self.byte().map(drop),
            kind => self.skip_nested(kind, depth + 1),
        }
    }

    fn kind(&self, code: u8) -> Result<Kind, ReadError> {
        Kind::of(code).ok_or_else(|| self.wrong("a type of Thrift", code))
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let byte = *self.bytes.get(self.at).ok_or(ReadError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], ReadError> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or(ReadError::Short)?;
        self.at += taken.len();
        Ok(taken)
    }

    fn unsigned(&mut self) -> Result<u64, ReadError> {
        let left = self.bytes.len() - self.at;
        match varint(self.bytes, &mut self.at) {
            Some(value) => Ok(value),
            None if left < VARINT_BYTES => Err(ReadError::Short),
            None => Err(self.wrong("a number of 64 bits", "a longer one")),
        }
    }

    fn signed(&mut self) -> Result<i64, ReadError> {
        self.unsigned().map(unzigzag)
    }
}

/// Writes structures.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The number of the field before, of this structure and of those around it.
    last: Vec<u8>,
}

impl Writer {
    /// The bytes of one structure.
    pub fn bytes_of(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.element(fill);
        writer.bytes
    }

    /// A structure that is an element of a list.
    pub fn element(&mut self, fill: impl FnOnce(&mut Writer)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.bytes.push(0);
    }

    /// A field that is a structure.
    pub fn structure(&mut self, id: u8, fill: impl FnOnce(&mut Writer)) {
        self.field(id, 12);
        self.element(fill);
    }

    /// A number that fits 31 bits.
    pub fn i32(&mut self, id: u8, value: u32) {
        self.field(id, 5);
        self.count(u64::from(value) << 1);
    }

    /// Numbers from 2^63 on are beyond the format and checked for before.
    pub fn i64(&mut self, id: u8, value: u64) {
        self.field(id, 6);
        self.count(value << 1);
    }

    /// A text.
    pub fn text(&mut self, id: u8, text: &str) {
        self.field(id, 8);
        self.bare_text(text);
    }

    /// The head of a list, of which each [`element`](Self::element) follows.
    pub fn list_of_structures(&mut self, id: u8, count: usize) {
        self.list(id, count, 12);
    }

    /// A list of numbers that fit 31 bits.
    pub fn list_of_i32(&mut self, id: u8, values: &[u32]) {
        self.list(id, values.len(), 5);
        for &value in values {
            self.count(u64::from(value) << 1);
        }
    }

    /// A list of texts.
    pub fn list_of_texts(&mut self, id: u8, texts: &[&str]) {
        self.list(id, texts.len(), 8);
        for text in texts {
            self.bare_text(text);
        }
    }

    fn list(&mut self, id: u8, count: usize, kind: u8) {
        self.field(id, 9);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.count(count as u64);
        }
    }

    /// All distances between fields that are written here fit four bits.
    fn field(&mut self, id: u8, kind: u8) {
        let last = self.last.last_mut().expect("fields are in structures");
        let delta = id - std::mem::replace(last, id);
        self.bytes.push(delta << 4 | kind);
    }

    fn bare_text(&mut self, text: &str) {
        self.count(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn count(&mut self, value: u64) {
        encode::varint(&mut self.bytes, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = Writer::bytes_of(|out| {
            out.i32(1, 300);
            out.text(4, "name");
            out.structure(5, |out| out.i64(3, (1 << 62) + 1));
            out.list_of_i32(6, &[0, 3, 8]);
            out.list_of_texts(7, &["x"; 20]);
        });
        // Field 1 of type 5, then 300 folded to 600 in two bytes of seven bits.
        assert_eq!(bytes[..3], [0x15, 0xd8, 0x04]);
        let mut seen = Vec::new();
        let mut reader = Reader::new(&bytes, 10);
        let walked = reader.structure(|reader, id, kind| {
            seen.push((id, kind));
            match id {
                1 => assert_eq!(reader.i32(kind)?, 300),
                4 => assert_eq!(reader.binary(kind)?, b"name"),
                5 => reader.structure(|reader, id, kind| {
                    assert_eq!((id, reader.count64(kind)?), (3, (1 << 62) + 1));
                    Ok(())
                })?,
                _ => reader.skip(kind)?,
            }
            Ok(())
        });
        walked.unwrap();
        assert_eq!(seen.len(), 5);
        assert_eq!(reader.place(), 10 + bytes.len() as u64);
        for len in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..len], 0);
            let walked = reader.structure(|reader, _, kind| reader.skip(kind));
            assert!(matches!(walked, Err(ReadError::Short)), "{len}");
        }
    }

    #[test]
    fn nesting_and_lengths_have_bounds() {
        let skip = |bytes: &[u8], kind| Reader::new(bytes, 0).skip(kind);
        assert!(matches!(skip(&[0x1c; 1000], Kind::Struct), Err(ReadError::Wrong { .. })));
        assert!(matches!(skip(&[0x19; 1000], Kind::List), Err(ReadError::Wrong { .. })));
        let long = [0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(matches!(skip(&long, Kind::List), Err(ReadError::Short)));
        assert!(matches!(skip(&long[1..], Kind::Map), Err(ReadError::Short)));
        assert!(matches!(skip(&[0xff; 12], Kind::I64), Err(ReadError::Wrong { .. })));
        assert!(matches!(skip(&[0x1e], Kind::Struct), Err(ReadError::Wrong { .. })));
    }
}
