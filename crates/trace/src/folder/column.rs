//! A column of a row group: gathered value by value, then encoded in the way that takes least room.

use std::collections::HashMap;

use feedline_parquet_pages::encode;
use parquet::basic::Encoding;

use super::schema::Type;

/// A column with more different numbers has no dictionary.
const DICTIONARY: usize = 1024;
/// After this many row groups, all encodings of a column are tried again.
const TRIED_AGAIN: u32 = 32;

/// Which rows have a value. Nothing is kept while all of them do, or none.
#[derive(Debug, Default)]
struct Presence {
    rows: usize,
    present: usize,
    marks: Vec<u8>,
}

impl Presence {
    #[inline]
    fn push(&mut self, is_present: bool) {
        let before = if is_present { self.present } else { self.rows - self.present };
        if before != self.rows {
            if self.marks.is_empty() {
                self.marks.resize(self.rows, u8::from(!is_present));
            }
            self.marks.push(u8::from(is_present));
        }
        self.rows += 1;
        self.present += usize::from(is_present);
    }

    /// Takes many rows that are alike.
    fn push_all(&mut self, count: usize, is_present: bool) {
        let before = if is_present { self.present } else { self.rows - self.present };
        if before != self.rows {
            if self.marks.is_empty() {
                self.marks.resize(self.rows, u8::from(!is_present));
            }
            self.marks.resize(self.rows + count, u8::from(is_present));
        }
        self.rows += count;
        self.present += if is_present { count } else { 0 };
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.present = 0;
        self.marks.clear();
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 4]);
        if self.present == 0 || self.present == self.rows {
            encode::varint(out, (self.rows as u64) << 1);
            out.push(u8::from(self.present > 0));
        } else {
            encode::hybrid(out, &self.marks, 1);
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A way to encode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Dictionary,
    Deltas,
    Streams,
    Plain,
}

/// Pages of a column before they are compressed.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The dictionary, and how many values it has.
    pub(crate) dictionary: Option<(Vec<u8>, usize)>,
    pub(crate) encoding: Encoding,
    pub(crate) data: Vec<u8>,
    /// The least and the largest number.
    range: Option<(i64, i64)>,
}

/// What is known about the values of a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    /// The least and the largest number, if the column holds numbers.
    pub(crate) range: Option<(i64, i64)>,
}

/// A column of numbers (also of those that are times, truths, and the bits of real numbers).
#[derive(Debug)]
pub(crate) struct Numbers {
    kind: Type,
    is_optional: bool,
    presence: Presence,
    values: Vec<i64>,
    way: Option<Way>,
    uses: u32,
}

impl Numbers {
    pub(crate) fn new(kind: Type, is_optional: bool) -> Self {
        let (presence, values) = (Presence::default(), Vec::new());
        Self { kind, is_optional, presence, values, way: None, uses: 0 }
    }

    pub(crate) fn push(&mut self, value: Option<i64>) {
        self.extend(&[value], |value| *value);
    }

    /// Takes many rows, of which often none or all have a value.
    pub(crate) fn extend<T>(&mut self, rows: &[T], value: impl Fn(&T) -> Option<i64>) {
        if !self.is_optional {
            self.values.extend(rows.iter().map(|row| value(row).unwrap_or(0)));
            return;
        }
        let present = rows.iter().filter(|row| value(row).is_some()).count();
        if present == 0 || present == rows.len() {
            self.presence.push_all(rows.len(), present > 0);
        } else {
            rows.iter().for_each(|row| self.presence.push(value(row).is_some()));
        }
        if present > 0 {
            self.values.extend(rows.iter().filter_map(value));
        }
    }

    /// What waits to be encoded, where a value is.
    pub(crate) fn values(&self) -> &[i64] {
        &self.values
    }

    fn bytes(&self) -> usize {
        if matches!(self.kind, Type::Int32 | Type::Uint32) { 4 } else { 8 }
    }

    /// Encodes everything, judging ways by `sealed_size`, and empties the column.
    fn take(&mut self, sealed_size: &mut dyn FnMut(&Pages) -> usize) -> (Extent, Pages) {
        let pages = self.encode_best(sealed_size);
        let rows = if self.is_optional { self.presence.rows } else { self.values.len() };
        let is_ordered = matches!(self.kind, Type::Int64 | Type::Int32 | Type::Timestamp);
        let range = pages.range.filter(|_| is_ordered);
        let extent = Extent { rows, nulls: rows - self.values.len(), range };
        self.presence.clear();
        self.values.clear();
        (extent, pages)
    }

    fn encode_best(&mut self, sealed_size: &mut dyn FnMut(&Pages) -> usize) -> Pages {
        self.uses = self.uses.wrapping_add(1);
        if self.values.is_empty() || self.kind == Type::Boolean {
            return self
                .encode(Way::Plain)
                .unwrap_or_else(|| unreachable!("plain encoding fits any column"));
        }
        if let Some(way) = self.way.filter(|_| !self.uses.is_multiple_of(TRIED_AGAIN))
            && let Some(pages) = self.encode(way)
        {
            return pages;
        }
        let dictionary = self.encode(Way::Dictionary);
        // One bit per value or less is not worth looking further.
        if let Some(pages) = dictionary
            && pages.data.len() <= self.values.len() / 8 + 16
        {
            self.way = Some(Way::Dictionary);
            return pages;
        }
        let ways = [Way::Deltas, Way::Dictionary, Way::Streams, Way::Plain];
        let tried = ways.into_iter().filter_map(|way| {
            let pages = self.encode(way)?;
            Some((sealed_size(&pages), way, pages))
        });
        let best = tried.min_by_key(|(size, _, _)| *size);
        let (_, way, pages) =
            best.unwrap_or_else(|| unreachable!("plain encoding fits any column"));
        self.way = Some(way);
        pages
    }

    /// `None` if that way is not open to these numbers.
    fn encode(&self, way: Way) -> Option<Pages> {
        let mut data = Vec::new();
        if self.is_optional {
            self.presence.write(&mut data);
        }
        let mut dictionary = None;
        let mut range = None;
        let encoding = match way {
            Way::Dictionary => {
                let (numbers, indices) = look_up(&self.values)?;
                range = range_of(&numbers);
                let mut page = Vec::new();
                encode::plain(&mut page, &numbers, self.bytes());
                write_indices(&mut data, &indices, numbers.len());
                dictionary = Some((page, numbers.len()));
                Encoding::RLE_DICTIONARY
            }
            Way::Deltas if self.kind == Type::Double => return None,
            Way::Deltas => {
                encode::deltas(&mut data, &self.values);
                Encoding::DELTA_BINARY_PACKED
            }
            Way::Streams => {
                encode::byte_streams(&mut data, &self.values, self.bytes());
                Encoding::BYTE_STREAM_SPLIT
            }
            Way::Plain => {
                if self.kind == Type::Boolean {
                    encode::plain_bits(&mut data, &self.values);
                } else {
                    encode::plain(&mut data, &self.values, self.bytes());
                }
                Encoding::PLAIN
            }
        };
        let range = range.or_else(|| range_of(&self.values));
        Some(Pages { dictionary, encoding, data, range })
    }
}

fn range_of(numbers: &[i64]) -> Option<(i64, i64)> {
    numbers.iter().copied().min().zip(numbers.iter().copied().max())
}

fn write_indices(out: &mut Vec<u8>, indices: &[u32], different: usize) {
    let width = encode::width_of(different.saturating_sub(1) as u64);
    // At most 32.
    out.push(width as u8);
    encode::hybrid(out, indices, width);
}

/// Different numbers in the order of their appearance, and the index of each of the numbers among them.
/// `None` if there are too many.
fn look_up(numbers: &[i64]) -> Option<(Vec<i64>, Vec<u32>)> {
    const PLACES: usize = 4 * DICTIONARY;
    let mut places = [0_u32; PLACES];
    let mut different = Vec::new();
    let mut indices = Vec::with_capacity(numbers.len());
    let mut last = None;
    for number in numbers {
        let index = match last {
            Some((before, index)) if before == *number => index,
            _ => {
                let spread = number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
                let mut place = spread as usize % PLACES;
                loop {
                    match places[place] {
                        0 if different.len() == DICTIONARY => return None,
                        0 => {
                            different.push(*number);
                            places[place] = different.len() as u32;
                            break different.len() as u32 - 1;
                        }
                        known if different[known as usize - 1] == *number => break known - 1,
                        _ => place = (place + 1) % PLACES,
                    }
                }
            }
        };
        last = Some((*number, index));
        indices.push(index);
    }
    Some((different, indices))
}

/// A column of texts, each different one kept once.
#[derive(Debug)]
pub(crate) struct Texts {
    is_optional: bool,
    presence: Presence,
    indices: Vec<u32>,
    different: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Indices of texts that have a row elsewhere, plus 1.
    rows: Vec<u32>,
}

impl Texts {
    pub(crate) fn new(is_optional: bool) -> Self {
        Self {
            is_optional,
            presence: Presence::default(),
            indices: Vec::new(),
            different: Vec::new(),
            numbers: HashMap::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                let index = self.index(text);
                self.push_index(index);
            }
            None => self.push_null(),
        }
    }

    /// Many texts that are known by their rows, or none. Neighbors are often alike.
    pub(crate) fn extend<'a, T>(
        &mut self,
        rows: &[T],
        number: impl Fn(&T) -> Option<u32>,
        text: impl Fn(u32) -> &'a str,
    ) {
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let row = number(first);
            let run = rest.iter().take_while(|other| number(other) == row).count();
            if self.is_optional {
                self.presence.push_all(run, row.is_some());
            }
            if let Some(row) = row {
                let known = self.rows.get(row as usize).copied().unwrap_or(0);
                let index = if known > 0 { known - 1 } else { self.add_row(row, text(row)) };
                self.indices.extend(std::iter::repeat_n(index, run));
            }
            rest = &rest[run..];
        }
    }

    /// Which text every row has that has one, and the different texts.
    pub(crate) fn places(&self) -> (&[u32], &[String]) {
        (&self.indices, &self.different)
    }

    #[inline]
    pub(crate) fn push_null(&mut self) {
        self.presence.push(false);
    }

    #[inline]
    fn push_index(&mut self, index: u32) {
        if self.is_optional {
            self.presence.push(true);
        }
        self.indices.push(index);
    }

    #[cold]
    fn add_row(&mut self, row: u32, text: &str) -> u32 {
        let index = self.index(text);
        let row = row as usize;
        if self.rows.len() <= row {
            self.rows.resize(row + 1, 0);
        }
        self.rows[row] = index + 1;
        index
    }

    fn index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.numbers.get(text) {
            return *index;
        }
        // No more than rows of a row group.
        let index = self.different.len() as u32;
        self.different.push(text.to_owned());
        self.numbers.insert(text.to_owned(), index);
        index
    }

    fn take(&mut self) -> (Extent, Pages) {
        let mut data = Vec::new();
        if self.is_optional {
            self.presence.write(&mut data);
        }
        let rows = if self.is_optional { self.presence.rows } else { self.indices.len() };
        let extent = Extent { rows, nulls: rows - self.indices.len(), range: None };
        let texts = |out: &mut Vec<u8>, indices: &mut dyn Iterator<Item = usize>| {
            encode::plain_texts(out, indices.map(|index| self.different[index].as_str()));
        };
        let pages = if self.different.len() * 2 <= self.indices.len() + 2 {
            let mut page = Vec::new();
            texts(&mut page, &mut (0..self.different.len()));
            write_indices(&mut data, &self.indices, self.different.len());
            let dictionary = Some((page, self.different.len()));
            Pages { dictionary, encoding: Encoding::RLE_DICTIONARY, data, range: None }
        } else {
            texts(&mut data, &mut self.indices.iter().map(|index| *index as usize));
            Pages { dictionary: None, encoding: Encoding::PLAIN, data, range: None }
        };
        self.presence.clear();
        self.indices.clear();
        self.different.clear();
        self.numbers.clear();
        self.rows.clear();
        (extent, pages)
    }
}

/// A column of either kind.
#[derive(Debug)]
pub(crate) enum Gathered<'a> {
    /// Numbers.
    Numbers(&'a mut Numbers),
    /// Texts.
    Texts(&'a mut Texts),
}

impl Gathered<'_> {
    /// Encodes everything and empties the column.
    pub(crate) fn take(&mut self, sealed_size: &mut dyn FnMut(&Pages) -> usize) -> (Extent, Pages) {
        match self {
            Self::Numbers(column) => column.take(sealed_size),
            Self::Texts(column) => column.take(),
        }
    }
}
