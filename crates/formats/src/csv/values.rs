//! The numbers of one row, of the type that pandas would give to all of the text: `bool` if it holds
//! nothing else, `int64`, `uint64` for integers that are too large for it, and `float64` if one field
//! is not an integer or if both signs need more than 64 bits. A boolean among numbers is 0 or 1.

use super::rows::is_separator;
use crate::sample_sink::{begin, check_room, put};
use crate::{Decoded, Element, SamplePart, SampleSink};

/// Goes through a text that [`Rows`](super::rows::Rows) has found to be sound. Does nothing for a sink
/// that wants no bytes.
pub(super) struct Values<'s, S> {
    sink: &'s mut S,
    /// The row that is kept.
    index: u64,
    row: u64,
    column: u64,
    kept: Vec<Value>,
    found: Found,
    /// The beginning of a field that is cut by the end of a piece.
    cut: Vec<u8>,
}

/// A field, as an integer if it is one and as a float in any case.
#[derive(Debug, Clone, Copy)]
struct Value {
    bits: u64,
    float: f64,
}

/// What there is in the text.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    numbers: bool,
    floats: bool,
    negative: bool,
    above_int64: bool,
}

impl<'s, S: SampleSink> Values<'s, S> {
    #[inline]
    pub(super) fn new(sink: &'s mut S, index: u64) -> Self {
        let (kept, cut) = (Vec::new(), Vec::new());
        Values { sink, index, row: 0, column: 0, kept, found: Found::default(), cut }
    }

    /// Takes the next piece of the text.
    #[inline]
    pub(super) fn feed(&mut self, text: &[u8]) -> Decoded<()> {
        if self.sink.wants_bytes() { self.walk(text) } else { Ok(()) }
    }

    /// Hands the row over.
    #[inline]
    pub(super) fn finish(mut self) -> Decoded<()> {
        if !self.sink.wants_bytes() {
            return Ok(());
        }
        self.walk(b"\n")?;
        let element = self.found.element();
        let shape = [self.kept.len() as u64];
        begin(self.sink, SamplePart { name: "", element: Some(element), shape: &shape })?;
        let mut bytes = Vec::with_capacity(self.kept.len() * element.size_bytes() as usize);
        for value in &self.kept {
            match element {
                Element::Bool => bytes.push(value.bits as u8),
                Element::Float64 => bytes.extend(value.float.to_le_bytes()),
                _ => bytes.extend(value.bits.to_le_bytes()),
            }
        }
        put(self.sink, &bytes)
    }

    fn walk(&mut self, mut text: &[u8]) -> Decoded<()> {
        while let Some(end) = text.iter().position(|&byte| is_separator(byte)) {
            let (field, separator) = (&text[..end], text[end]);
            text = &text[end + 1..];
            if self.cut.is_empty() {
                self.field(field)?;
            } else {
                let mut whole = std::mem::take(&mut self.cut);
                whole.extend(field);
                self.field(&whole)?;
            }
            if separator != b',' && self.column > 0 {
                (self.row, self.column) = (self.row + 1, 0);
            }
        }
        // No longer than what the rows themselves carry over.
        self.cut.extend(text);
        Ok(())
    }

    fn field(&mut self, field: &[u8]) -> Decoded<()> {
        let field = field.trim_ascii();
        if field.is_empty() {
            return Ok(());
        }
        let value = self.found.value(field);
        if self.row == self.index {
            check_room(self.sink, "", 8 * (self.kept.len() as u64 + 1))?;
            self.kept.push(value);
        }
        self.column += 1;
        Ok(())
    }
}

impl Found {
    fn value(&mut self, field: &[u8]) -> Value {
        match field {
            b"True" | b"TRUE" | b"true" => return Value { bits: 1, float: 1.0 },
            b"False" | b"FALSE" | b"false" => return Value { bits: 0, float: 0.0 },
            _ => self.numbers = true,
        }
        let float = fast_float2::parse(field).unwrap_or(f64::NAN);
        let text = str::from_utf8(field).unwrap_or_default();
        let bits = match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(number), _) => {
                self.negative |= number < 0;
                number.cast_unsigned()
            }
            (Err(_), Ok(number)) => {
                self.above_int64 = true;
                number
            }
            _ => {
                self.floats = true;
                0
            }
        };
        Value { bits, float }
    }

    fn element(&self) -> Element {
        match self {
            Found { numbers: false, .. } => Element::Bool,
            Found { floats: true, .. } => Element::Float64,
            Found { above_int64: true, negative: true, .. } => Element::Float64,
            Found { above_int64: true, .. } => Element::UInt64,
            _ => Element::Int64,
        }
    }
}
