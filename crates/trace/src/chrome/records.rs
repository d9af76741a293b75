//! The records of a JSON file of any size, one at a time.

use std::io;

use crate::dftracer::Pieces;
use crate::file_slice::FileSlice;

/// Anything longer than this is not a record.
const RECORD_LIMIT: usize = 16 << 20;

/// The objects of the array of events.
pub(crate) struct Records {
    pieces: Pieces,
    piece: Vec<u8>,
    at: usize,
    depth: u32,
    /// The depth of records in the JSON; 0 until the array was found.
    array_depth: u32,
    is_array: bool,
    in_string: bool,
    after_backslash: bool,
    /// The bytes of the record, or of a key or value before the array.
    text: Vec<u8>,
    is_inside: bool,
    /// What comes before the events: `{"displayTimeUnit":…`.
    pub(crate) head: Vec<u8>,
    /// Records that are too long.
    pub(crate) too_long: u64,
}

impl Records {
    pub(crate) fn open(slice: &FileSlice) -> io::Result<Self> {
        Ok(Self {
            pieces: Pieces::open(slice)?,
            piece: Vec::new(),
            at: 0,
            depth: 0,
            array_depth: 0,
            is_array: false,
            in_string: false,
            after_backslash: false,
            text: Vec::new(),
            is_inside: false,
            head: Vec::new(),
            too_long: 0,
        })
    }

    /// Whether the file breaks off within a record, or is damaged.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_inside || self.pieces.damaged > 0
    }

    /// The next record's text, none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.text.clear();
        loop {
            if self.at == self.piece.len() {
                self.at = 0;
                self.piece.clear();
                match self.pieces.next_bytes()? {
                    Some(bytes) => self.piece.extend_from_slice(bytes),
                    None => return Ok(None),
                }
            }
            let byte = self.piece[self.at];
            self.at += 1;
            if self.step(byte) {
                if self.text.len() <= RECORD_LIMIT {
                    return Ok(Some(&self.text));
                }
                self.too_long += 1;
                self.text.clear();
            }
        }
    }

    /// Takes a byte; whether it ends a record.
    fn step(&mut self, byte: u8) -> bool {
        if self.is_inside && self.text.len() <= RECORD_LIMIT {
            self.text.push(byte);
        } else if !self.is_array && self.head.len() <= RECORD_LIMIT {
            self.head.push(byte);
        }
        if self.in_string {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' => self.after_backslash = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.open_bracket(byte),
            b'}' | b']' => {
                let ends = self.is_inside && self.depth == self.array_depth + 1;
                self.depth = self.depth.saturating_sub(1);
                self.is_inside &= !ends;
                if self.is_array && self.depth < self.array_depth {
                    (self.is_array, self.array_depth) = (false, u32::MAX);
                }
                return ends;
            }
            _ => {}
        }
        false
    }

    fn open_bracket(&mut self, byte: u8) {
        self.depth += 1;
        if self.is_array && self.depth == self.array_depth + 1 && byte == b'{' {
            self.is_inside = true;
            self.text.clear();
            self.text.push(byte);
        } else if self.array_depth == 0 && byte == b'[' {
            let is_named = || {
                let head = self.head.strip_suffix(b"[").unwrap_or(&self.head).trim_ascii_end();
                head.strip_suffix(b":")
                    .is_some_and(|head| head.trim_ascii_end().ends_with(b"\"traceEvents\""))
            };
            if self.depth == 1 || (self.depth == 2 && is_named()) {
                (self.is_array, self.array_depth) = (true, self.depth);
            }
        }
    }
}
