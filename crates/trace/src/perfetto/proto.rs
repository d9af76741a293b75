//! The few messages of Perfetto that a trace is made of, as bytes.
//!
//! Field numbers are those of Perfetto's `.proto` files. All packets are of one sequence, whose names
//! are numbered when they come first.

use feedline_parquet_pages::encode::varint;

use crate::words::Words;

pub(crate) const BEGIN: u64 = 1;
pub(crate) const END: u64 = 2;
pub(crate) const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The one sequence.
const SEQUENCE: u64 = 1;
/// The first packet clears what is known, and all need what was said before.
const FIRST_FLAGS: u64 = 3;
const OTHER_FLAGS: u64 = 2;

pub(crate) fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, (field << 3) | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub(crate) fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, (field << 3) | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    fixed64(out, field, value.to_bits());
}

/// Kinds of names, each counted for itself. The numbers are fields of `InternedData`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Table {
    Category = 1,
    Name = 2,
    Annotation = 3,
    Text = 29,
}

/// What has been named, and what the next packet must name.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    categories: Words,
    names: Words,
    annotations: Words,
    texts: Words,
    fresh: Vec<u8>,
}

impl Interned {
    /// The number of a text; 0 means no text in Perfetto.
    pub(crate) fn number(&mut self, table: Table, text: &str) -> u64 {
        let words = match table {
            Table::Category => &mut self.categories,
            Table::Name => &mut self.names,
            Table::Annotation => &mut self.annotations,
            Table::Text => &mut self.texts,
        };
        let (row, is_new) = words.number(text);
        let iid = u64::from(row) + 1;
        if is_new {
            let mut entry = Vec::with_capacity(text.len() + 16);
            number(&mut entry, 1, iid);
            bytes(&mut entry, 2, text.as_bytes());
            bytes(&mut self.fresh, table as u64, &entry);
        }
        iid
    }
}

/// Debug annotations of an event: what the user sees when a slice is selected.
pub(crate) fn annotate_int(out: &mut Vec<u8>, interned: &mut Interned, name: &str, value: i64) {
    let mut entry = Vec::with_capacity(16);
    number(&mut entry, 1, interned.number(Table::Annotation, name));
    number(&mut entry, 4, value.cast_unsigned());
    bytes(out, 4, &entry);
}

pub(crate) fn annotate_text(out: &mut Vec<u8>, interned: &mut Interned, name: &str, text: &str) {
    let mut entry = Vec::with_capacity(16);
    number(&mut entry, 1, interned.number(Table::Annotation, name));
    number(&mut entry, 17, interned.number(Table::Text, text));
    bytes(out, 4, &entry);
}

/// A text that will hardly come again, and is not kept.
pub(crate) fn annotate_json(out: &mut Vec<u8>, interned: &mut Interned, name: &str, json: &str) {
    let mut entry = Vec::with_capacity(json.len() + 16);
    number(&mut entry, 1, interned.number(Table::Annotation, name));
    bytes(&mut entry, 9, json.as_bytes());
    bytes(out, 4, &entry);
}

/// Packets, one after another.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    pub(crate) interned: Interned,
    is_begun: bool,
    packet: Vec<u8>,
    event: Vec<u8>,
}

impl Packets {
    fn begin(&mut self, at_ns: Option<u64>) {
        self.packet.clear();
        if let Some(at_ns) = at_ns {
            number(&mut self.packet, 8, at_ns);
        }
        number(&mut self.packet, 10, SEQUENCE);
        let flags = if self.is_begun { OTHER_FLAGS } else { FIRST_FLAGS };
        self.is_begun = true;
        number(&mut self.packet, 13, flags);
        if !self.interned.fresh.is_empty() {
            bytes(&mut self.packet, 12, &self.interned.fresh);
            self.interned.fresh.clear();
        }
    }

    /// Writes the names that no packet has named yet, so that they do not pile up.
    pub(crate) fn write_names(&mut self, out: &mut Vec<u8>) {
        if !self.interned.fresh.is_empty() {
            self.begin(None);
            bytes(out, 1, &self.packet);
        }
    }

    /// A track, as the fields of its descriptor.
    pub(crate) fn track(&mut self, out: &mut Vec<u8>, descriptor: &[u8]) {
        self.begin(None);
        bytes(&mut self.packet, 60, descriptor);
        bytes(out, 1, &self.packet);
    }

    /// The begin of a slice, or an instant. `details` are encoded fields of the event.
    pub(crate) fn slice(&mut self, out: &mut Vec<u8>, at_ns: u64, slice: &Slice, details: &[u8]) {
        self.event.clear();
        number(&mut self.event, 9, slice.kind);
        number(&mut self.event, 11, slice.track);
        number(&mut self.event, 3, slice.category);
        number(&mut self.event, 10, slice.name);
        self.event.extend_from_slice(details);
        self.event(out, at_ns);
    }

    pub(crate) fn end(&mut self, out: &mut Vec<u8>, at_ns: u64, track: u64) {
        self.event.clear();
        number(&mut self.event, 9, END);
        number(&mut self.event, 11, track);
        self.event(out, at_ns);
    }

    pub(crate) fn counter(&mut self, out: &mut Vec<u8>, at_ns: u64, track: u64, value: f64) {
        self.event.clear();
        number(&mut self.event, 9, COUNTER);
        number(&mut self.event, 11, track);
        double(&mut self.event, 44, value);
        self.event(out, at_ns);
    }

    fn event(&mut self, out: &mut Vec<u8>, at_ns: u64) {
        self.begin(Some(at_ns));
        bytes(&mut self.packet, 11, &self.event);
        bytes(out, 1, &self.packet);
    }
}

/// What a slice begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) kind: u64,
    pub(crate) track: u64,
    /// Number of the category.
    pub(crate) category: u64,
    /// Number of the name.
    pub(crate) name: u64,
}
