//! Text taken apart into rows of numbers.
//!
//! The text comes in pieces that end anywhere; a number that is cut waits for its other part. Rows
//! end with a line feed, a carriage return or both; blank lines do not count; the last row may
//! lack its end. All rows must be of one length. Not read: quotes, empty fields, other words than
//! those for booleans, infinity and no number.

use std::hint::black_box;

use super::NAME;
use crate::{DecodeError, Decoded};

/// The longest number that may be cut by the end of a piece; the shortest text of a 64-bit float
/// has 24 characters, its exact text could have some hundred.
const CARRY_BYTES: usize = 512;
/// Eight ASCII zeros.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// What a text was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// Whether there are only booleans.
    pub(super) booleans: bool,
}

impl Found {
    /// Size of a row in the matrix that pandas would make of the text.
    pub(super) fn row_bytes(&self) -> u64 {
        self.columns.saturating_mul(if self.booleans { 1 } else { 8 })
    }
}

/// A text that is being read.
pub(super) struct Rows {
    rows: u64,
    /// Columns of every row; `None` before the end of the first.
    columns: Option<u64>,
    /// Numbers in the row so far.
    column: u64,
    numbers: bool,
    /// Where in the text the carried bytes, or if there are none the next piece, begin.
    offset: u64,
    carry: [u8; CARRY_BYTES],
    carried: usize,
}

/// What is between two separators.
enum Field {
    Number(u64),
    Boolean,
    /// Nothing at all.
    Empty,
    /// It may go on after the end of the piece.
    Cut,
}

impl Rows {
    pub(super) fn new() -> Rows {
        Rows {
            rows: 0,
            columns: None,
            column: 0,
            numbers: false,
            offset: 0,
            carry: [0; CARRY_BYTES],
            carried: 0,
        }
    }

    /// Reads the next piece of the text.
    pub(super) fn feed(&mut self, mut text: &[u8]) -> Decoded<()> {
        if self.carried > 0 {
            let end = text.iter().position(|&byte| is_separator(byte));
            let part = end.map_or(text.len(), |end| end + 1);
            self.carry(&text[..part])?;
            text = &text[part..];
            if end.is_none() {
                return Ok(());
            }
            let (carry, len) = (self.carry, self.carried);
            self.carried = 0;
            self.walk(&carry[..len])?;
        }
        let walked = self.walk(text)?;
        self.carry(&text[walked..])
    }

    /// Reads the last row, if it has no end of its own.
    pub(super) fn finish(mut self) -> Decoded<Found> {
        if self.carried > 0 || self.column > 0 {
            self.feed(b"\n")?;
        }
        Ok(Found {
            rows: self.rows,
            columns: self.columns.unwrap_or(0),
            booleans: !self.numbers && self.rows > 0,
        })
    }

    /// Keeps a number that is cut.
    fn carry(&mut self, text: &[u8]) -> Decoded<()> {
        let end = self.carried + text.len();
        let Some(room) = self.carry.get_mut(self.carried..end) else {
            return Err(self.wrong(0, format!("a field of more than {CARRY_BYTES} bytes")));
        };
        room.copy_from_slice(text);
        self.carried = end;
        Ok(())
    }

    /// Reads whole fields and says how many bytes they were.
    fn walk(&mut self, text: &[u8]) -> Decoded<usize> {
        let mut at = 0;
        // Nobody wants the numbers, but they must be made.
        let mut sum = 0u64;
        loop {
            let (taken, row_sum) = self.plain_numbers(&text[at..]);
            sum = sum.wrapping_add(row_sum);
            at += taken;
            let (field, len) = match self.field(&text[at..]) {
                Ok((Field::Cut, _)) => break,
                Ok(field) => field,
                Err(found) => return Err(self.wrong(at as u64, found)),
            };
            let separator = text[at + len];
            match field {
                Field::Number(value) => {
                    sum = sum.wrapping_add(value);
                    self.numbers = true;
                    self.column += 1;
                }
                Field::Boolean => self.column += 1,
                Field::Empty if self.column == 0 && separator != b',' => {
                    at += len + 1;
                    continue;
                }
                Field::Empty | Field::Cut => {
                    return Err(self.wrong(at as u64, "an empty field".to_owned()));
                }
            }
            if separator != b',' {
                self.end_row(at as u64)?;
            }
            at += len + 1;
        }
        black_box(sum);
        self.offset += at as u64;
        Ok(at)
    }

    /// Reads numbers that have a comma after them, as most have. Gives how many bytes they were,
    /// and their sum.
    fn plain_numbers(&mut self, text: &[u8]) -> (usize, u64) {
        let (mut at, mut sum, mut count) = (0, 0u64, 0);
        loop {
            let short = short_integers(&text[at..]);
            let (value, len) = match text.get(at + short.len) {
                Some(b'0'..=b'9' | b'-') => match number(&text[at + short.len..]) {
                    (Field::Number(value), len) => (value, len),
                    _ => (0, 0),
                },
                _ => (0, 0),
            };
            at += short.len;
            sum = sum.wrapping_add(short.sum);
            count += short.count;
            if len == 0 || text.get(at + len) != Some(&b',') {
                break;
            }
            at += len + 1;
            sum = sum.wrapping_add(value);
            count += 1;
        }
        self.column += count;
        self.numbers |= count > 0;
        (at, sum)
    }

    /// The field at the beginning of `text` and its length, or what is there instead.
    fn field(&self, text: &[u8]) -> Result<(Field, usize), String> {
        let first = text.iter().position(|&byte| !matches!(byte, b' ' | b'\t'));
        let Some(first) = first else { return Ok((Field::Cut, 0)) };
        let value = &text[first..];
        let (field, len) = match value[0] {
            byte if is_separator(byte) => return Ok((Field::Empty, first)),
            b'0'..=b'9' | b'-' | b'+' | b'.' => number(value),
            b'"' => return Err("a quote, which is not supported".to_owned()),
            _ => word(value),
        };
        let behind = &value[len..];
        let spaces = behind.iter().position(|&byte| !matches!(byte, b' ' | b'\t'));
        let Some(spaces) = spaces else { return Ok((Field::Cut, 0)) };
        if len == 0 || !is_separator(behind[spaces]) {
            return self.unreadable(text);
        }
        Ok((field, first + len + spaces))
    }

    /// A field that is not a number, unless the rest of it is still to come.
    fn unreadable(&self, text: &[u8]) -> Result<(Field, usize), String> {
        let end = text.iter().position(|&byte| is_separator(byte));
        match end {
            None if text.len() < CARRY_BYTES => Ok((Field::Cut, 0)),
            _ => {
                let shown = &text[..end.unwrap_or(text.len()).min(24)];
                Err(format!("\"{}\"", shown.escape_ascii()))
            }
        }
    }

    /// The last field of the row begins `at` bytes after `offset`.
    fn end_row(&mut self, at: u64) -> Decoded<()> {
        let columns = *self.columns.get_or_insert(self.column);
        if columns != self.column {
            return Err(DecodeError::field(
                NAME,
                self.offset + at,
                "the end of a row as long as the first",
                format!("{} columns in row {}, not {columns}", self.column, self.rows),
            ));
        }
        self.rows += 1;
        self.column = 0;
        Ok(())
    }

    fn wrong(&self, at: u64, found: String) -> DecodeError {
        let offset = self.offset + at;
        DecodeError::Field { format: NAME, offset, expected: "a number", found }
    }
}

pub(super) fn is_separator(byte: u8) -> bool {
    matches!(byte, b',' | b'\n' | b'\r')
}

/// A run of numbers.
struct Run {
    len: usize,
    count: u64,
    sum: u64,
}

/// Reads integers of up to seven digits that have a comma after them, without a decision for each
/// digit: the lengths of random numbers cannot be predicted.
#[inline(never)]
fn short_integers(text: &[u8]) -> Run {
    let mut run = Run { len: 0, count: 0, sum: 0 };
    while let Some(bytes) = text.get(run.len..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*bytes);
        // Digits become 0 to 9; whatever is more gets its high bit set. A carry reaches only bytes
        // after the first such, which do not matter.
        let digits = word ^ ZEROS;
        let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS;
        let bits = others.trailing_zeros() & !7;
        if bits == 0 || bits == 64 || (word >> bits) as u8 != b',' {
            break;
        }
        run.sum = run.sum.wrapping_add(eight_digits(digits << (64 - bits)));
        run.len += bits as usize / 8 + 1;
        run.count += 1;
    }
    run
}

/// The number at the beginning of `text` and its length.
fn number(text: &[u8]) -> (Field, usize) {
    let negative = text[0] == b'-';
    let begin = usize::from(negative);
    let (value, len) = integer(&text[begin..]);
    match (value, text.get(begin + len)) {
        (Some(value), Some(b',' | b'\n' | b'\r')) => {
            let value = if negative { value.wrapping_neg() } else { value };
            (Field::Number(value), begin + len)
        }
        // Also integers of more than 64 bits, which pandas makes floats of as well.
        _ => match fast_float2::parse_partial::<f64, _>(text) {
            Ok((value, len)) => (Field::Number(value.to_bits()), len),
            Err(_) => (Field::Empty, 0),
        },
    }
}

/// The digits at the beginning of `text`: their value, if there are any and it fits, and how many.
fn integer(text: &[u8]) -> (Option<u64>, usize) {
    let (mut value, mut at) = (Some(0u64), 0);
    let add = |value: Option<u64>, scale, digits| {
        value.and_then(|value| value.checked_mul(scale)?.checked_add(digits))
    };
    while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let digits = u64::from_le_bytes(*bytes) ^ ZEROS;
        if (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & HIGH_BITS != 0 {
            break;
        }
        value = add(value, 100_000_000, eight_digits(digits));
        at += 8;
    }
    while let Some(byte @ b'0'..=b'9') = text.get(at) {
        value = add(value, 10, u64::from(byte - b'0'));
        at += 1;
    }
    (value.filter(|_| at > 0), at)
}

/// The number of eight digits, the first in the lowest byte; zeros in front do no harm.
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF
}

/// The word at the beginning of `text` and its length.
fn word(text: &[u8]) -> (Field, usize) {
    const BOOLEANS: [&[u8]; 6] = [b"True", b"False", b"TRUE", b"FALSE", b"true", b"false"];
    if let Some(word) = BOOLEANS.into_iter().find(|word| text.starts_with(word)) {
        return (Field::Boolean, word.len());
    }
    match fast_float2::parse_partial::<f64, _>(text) {
        Ok((value, len)) => (Field::Number(value.to_bits()), len),
        Err(_) => (Field::Empty, 0),
    }
}

/// The sum that reading a text of whole fields makes.
#[cfg(test)]
pub(super) fn sum_of(text: &[u8]) -> u64 {
    let (len, sum) = Rows::new().plain_numbers(text);
    assert!(len == text.len() || text.len() < 8);
    if len == text.len() {
        return sum;
    }
    match number(text) {
        (Field::Number(value), _) => value,
        _ => 0,
    }
}
