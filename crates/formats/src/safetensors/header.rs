//! The header: eight bytes of length and a JSON object with one entry a tensor.
//!
//! The text is walked, not kept: of every tensor only its place in the data stays, 16 bytes for an
//! entry of about 50 at least.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::NAME;
use crate::error::check_limit;
use crate::{DecodeError, Decoded, Element, SamplePart};

/// Size of the length field.
pub const LENGTH_BYTES: u64 = 8;
/// What the reference takes at most.
const MAX_BYTES: u64 = 100_000_000;
/// The data begins at a multiple of this, for which the text is padded.
const ALIGN: usize = 8;
/// As many axes as NumPy knows; a shape must not take memory without end.
const MAX_AXES: usize = 64;

/// The tensor that holds the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tensor {
    /// Where it begins in the file.
    offset: u64,
    pub(super) samples: u64,
    sample_bytes: u64,
    /// `None` for types that only accelerators have.
    pub(super) element: Option<Element>,
    name: String,
    /// Shape of a sample, or its bytes if they have no element type.
    shape: Vec<u64>,
}

impl Tensor {
    /// A sample, as sinks see it.
    pub(super) fn part(&self) -> SamplePart<'_> {
        SamplePart { name: &self.name, element: self.element, shape: &self.shape }
    }

    /// Where the bytes of a sample begin and end.
    pub(super) fn sample(&self, index: u64) -> Decoded<(u64, u64)> {
        if index >= self.samples {
            let (offset, samples) = (self.offset, self.samples);
            return Err(DecodeError::SampleIndex { offset, index, samples });
        }
        // Within the file, whose size was checked, so nothing overflows.
        let start = self.offset + index * self.sample_bytes;
        Ok((start, start + self.sample_bytes))
    }
}

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its type, as safetensors calls it.
    pub dtype: &'static str,
    /// Lengths of its axes.
    pub shape: Vec<u64>,
    /// Where it begins in the file.
    pub offset: u64,
}

/// The header with its length and padding, from what [`entry`] gave, in the order of the data.
pub fn build(entries: &[String]) -> Vec<u8> {
    let text = format!("{{{}}}", entries.join(","));
    let len = text.len().next_multiple_of(ALIGN);
    let mut header = (len as u64).to_le_bytes().to_vec();
    header.extend(text.as_bytes());
    header.resize(LENGTH_BYTES as usize + len, b' ');
    header
}

/// The entry of a tensor, as the reference writes it; `place` counts from the end of the header.
pub fn entry(name: &str, dtype: &str, shape: &[u64], place: Range<u64>) -> String {
    let name = serde_json::Value::from(name);
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let (axes, Range { start, end }) = (axes.join(","), place);
    format!(r#"{name}:{{"dtype":"{dtype}","shape":[{axes}],"data_offsets":[{start},{end}]}}"#)
}

/// What safetensors calls a type; nothing for the one that it does not have, which is refused before
/// anything is written.
pub(super) fn type_name(element: Element) -> &'static str {
    TYPES.iter().find(|row| row.2 == Some(element)).map_or("", |row| row.0)
}

/// The length of the text, from the file's first bytes.
pub fn length(first: &[u8], file_len: u64) -> Decoded<u64> {
    let Some(&length) = first.first_chunk() else {
        return Err(DecodeError::truncated(8, file_len));
    };
    let length = u64::from_le_bytes(length);
    check_limit((NAME, "header"), 0, length, MAX_BYTES)?;
    let needed = LENGTH_BYTES + length;
    if needed > file_len {
        return Err(DecodeError::truncated(needed, file_len));
    }
    Ok(length)
}

/// The tensor of the samples, after all of them were checked; the data begins at `data_at`.
pub(super) fn find_samples(text: &[u8], data_at: u64, file_len: u64) -> Decoded<Tensor> {
    let mut chosen: Option<(String, Entry)> = None;
    walk(text, data_at, file_len, |name, entry| {
        if chosen.as_ref().is_none_or(|(_, chosen)| entry.rank() < chosen.rank()) {
            chosen = Some((name.into_owned(), entry));
        }
    })?;
    let chosen = chosen.ok_or_else(|| field(LENGTH_BYTES, "a tensor", "none".to_owned()))?;
    let (name, entry) = chosen;
    entry.tensor(name, data_at)
}

/// All tensors, after they were checked, in the order of their places; the data begins at `data_at`.
pub fn list(text: &[u8], data_at: u64, file_len: u64) -> Decoded<Vec<Listed>> {
    let mut listed = Vec::new();
    walk(text, data_at, file_len, |name, entry| {
        let Entry { dtype, axes: shape, start, .. } = entry;
        let offset = data_at.saturating_add(start);
        listed.push(Listed { name: name.into_owned(), dtype, shape, offset });
    })?;
    listed.sort_by_key(|tensor| tensor.offset);
    Ok(listed)
}

/// Shows every tensor to `visit`, and then checks that they fill the file.
fn walk(
    text: &[u8],
    data_at: u64,
    file_len: u64,
    visit: impl FnMut(Cow<'_, str>, Entry),
) -> Decoded<()> {
    if text.first() != Some(&b'{') {
        let found = text[..text.len().min(8)].to_vec();
        let (format, expected) = ("a safetensors file", "{");
        return Err(DecodeError::Foreign { format, offset: LENGTH_BYTES, expected, found });
    }
    let mut json = serde_json::Deserializer::from_slice(text);
    let places = json.deserialize_map(Entries { visit });
    let places = places.and_then(|places| json.end().map(|()| places));
    let mut places = places
        .map_err(|error| DecodeError::coding(NAME, LENGTH_BYTES + place(text, &error), error))?;
    places.sort_unstable();
    let data_bytes = check_places(&places)?;
    let needed = data_at.saturating_add(data_bytes);
    if needed > file_len {
        return Err(DecodeError::truncated(needed, file_len));
    }
    if needed < file_len {
        let found = format!("{} more", file_len - needed);
        return Err(field(needed, "the end of the file", found));
    }
    Ok(())
}

/// Where in the text a parser gave up; it counts lines and columns.
fn place(text: &[u8], error: &serde_json::Error) -> u64 {
    let lines = text.split(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
    let before: usize = lines.map(|line| line.len() + 1).sum();
    (before + error.column().saturating_sub(1)) as u64
}

/// Refuses gaps and overlaps; gives the size of all tensors.
fn check_places(places: &[(u64, u64)]) -> Decoded<u64> {
    places.iter().try_fold(0, |end, &(start, its_end)| {
        if start == end {
            return Ok(its_end);
        }
        let found = format!("one at {start} after one that ends at {end}");
        Err(field(LENGTH_BYTES, "tensors without gap or overlap", found))
    })
}

fn field(offset: u64, expected: &'static str, found: String) -> DecodeError {
    DecodeError::Field { format: NAME, offset, expected, found }
}

/// One tensor.
struct Entry {
    is_x: bool,
    start: u64,
    bytes: u64,
    axes: Vec<u64>,
    dtype: &'static str,
    element: Option<Element>,
}

impl Entry {
    /// `x` before all others, then whichever comes first.
    fn rank(&self) -> (bool, u64) {
        (!self.is_x, self.start)
    }

    fn tensor(self, name: String, data_at: u64) -> Decoded<Tensor> {
        let offset = data_at + self.start;
        // The first axis is the samples'; without axes there is one.
        let samples = self.axes.first().copied().unwrap_or(1);
        let sample_bytes = self.bytes.checked_div(samples).unwrap_or(0);
        if sample_bytes.checked_mul(samples) != Some(self.bytes) {
            let feature = "sample that does not end at a byte".to_owned();
            return Err(DecodeError::Feature { format: NAME, feature, offset });
        }
        let shape = match self.element {
            Some(_) => self.axes.get(1..).unwrap_or_default().to_vec(),
            None => vec![sample_bytes],
        };
        Ok(Tensor { offset, samples, sample_bytes, element: self.element, name, shape })
    }
}

/// Name, bits and element of every type of the reference.
const TYPES: [(&str, u64, Option<Element>); 20] = [
    ("BOOL", 8, Some(Element::Bool)),
    ("F4", 4, None),
    ("F6_E2M3", 6, None),
    ("F6_E3M2", 6, None),
    ("U8", 8, Some(Element::UInt8)),
    ("I8", 8, Some(Element::Int8)),
    ("F8_E5M2", 8, None),
    ("F8_E4M3", 8, None),
    ("F8_E8M0", 8, None),
    ("I16", 16, Some(Element::Int16)),
    ("U16", 16, Some(Element::UInt16)),
    ("F16", 16, Some(Element::Float16)),
    ("BF16", 16, None),
    ("I32", 32, Some(Element::Int32)),
    ("U32", 32, Some(Element::UInt32)),
    ("F32", 32, Some(Element::Float32)),
    ("C64", 64, Some(Element::Complex64)),
    ("F64", 64, Some(Element::Float64)),
    ("I64", 64, Some(Element::Int64)),
    ("U64", 64, Some(Element::UInt64)),
];

/// Reads the whole object; gives start and end of every tensor.
struct Entries<V> {
    visit: V,
}

impl<'de, V: FnMut(Cow<'_, str>, Entry)> Visitor<'de> for Entries<V> {
    type Value = Vec<(u64, u64)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut places = Vec::new();
        while let Some(Name(name)) = map.next_key::<Name<'de>>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let mut entry = map.next_value::<Description>()?.entry::<A::Error>()?;
            entry.is_x = name == "x";
            places.push((entry.start, entry.start + entry.bytes));
            (self.visit)(name, entry);
        }
        Ok(places)
    }
}

/// A name, copied only if something in it is escaped.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The description of a tensor.
#[derive(serde::Deserialize)]
struct Description {
    dtype: Type,
    shape: Shape,
    data_offsets: (u64, u64),
}

impl Description {
    fn entry<E: Error>(self) -> Result<Entry, E> {
        let (start, end) = self.data_offsets;
        let bits = self.shape.elements.and_then(|elements| elements.checked_mul(self.dtype.bits));
        let bytes = bits.filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
        if bytes.is_none() || end.checked_sub(start) != bytes {
            return Err(E::custom("data_offsets are not those of a tensor of that shape and type"));
        }
        let Type { name: dtype, element, .. } = self.dtype;
        Ok(Entry { is_x: false, start, bytes: end - start, axes: self.shape.axes, dtype, element })
    }
}

/// A type by its name.
struct Type {
    name: &'static str,
    bits: u64,
    element: Option<Element>,
}

impl<'de> serde::Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
        struct Named;
        impl Visitor<'_> for Named {
            type Value = Type;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type of safetensors")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Type, E> {
                let row = TYPES.iter().find(|row| row.0 == name);
                let row = row.ok_or_else(|| E::custom("a type that safetensors does not have"))?;
                Ok(Type { name: row.0, bits: row.1, element: row.2 })
            }
        }
        deserializer.deserialize_str(Named)
    }
}

/// What matters of a shape.
struct Shape {
    /// `None` if 64 bits cannot hold it.
    elements: Option<u64>,
    axes: Vec<u64>,
}

impl<'de> serde::Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        struct Axes;
        impl<'de> Visitor<'de> for Axes {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the lengths of axes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
                let mut shape = Shape { elements: Some(1), axes: Vec::new() };
                while let Some(len) = seq.next_element::<u64>()? {
                    shape.axes.push(len);
                    if shape.axes.len() > MAX_AXES {
                        return Err(A::Error::custom("a tensor of more than 64 axes"));
                    }
                    shape.elements = shape.elements.and_then(|elements| elements.checked_mul(len));
                }
                Ok(shape)
            }
        }
        deserializer.deserialize_seq(Axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, data_bytes: u64) -> Result<Tensor, DecodeError> {
        find_samples(text.as_bytes(), 8, 8 + data_bytes)
    }

    fn message(text: &str, data_bytes: u64) -> String {
        let error = found(text, data_bytes).unwrap_err();
        match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }

    #[test]
    fn x_is_chosen_and_otherwise_the_first_in_the_data() {
        let a = r#""a":{"dtype":"F32","shape":[2,3],"data_offsets":[6,30]}"#;
        let b = r#""b":{"dtype":"BF16","shape":[1,3],"data_offsets":[0,6]}"#;
        let x = r#""x":{"dtype":"U8","shape":[2,2],"data_offsets":[30,34]}"#;
        let meta = r#""__metadata__":{"a":"b","more":{"x":[1]}}"#;
        let tensor = found(&format!("{{{a},{meta},{b}}}"), 30).unwrap();
        assert_eq!((tensor.offset, tensor.samples, tensor.sample_bytes), (8, 1, 6));
        assert_eq!(tensor.element, None);
        let tensor = found(&format!("{{{a},{x},{b}}}"), 34).unwrap();
        assert_eq!((tensor.offset, tensor.samples, tensor.sample_bytes), (38, 2, 2));
        assert_eq!(tensor.element, Some(Element::UInt8));
        assert_eq!(tensor.sample(1).unwrap(), (40, 42));
        tensor.sample(2).unwrap_err();
    }

    #[test]
    fn a_tensor_without_axes_is_one_sample_and_one_of_length_zero_is_none() {
        let scalar = r#"{"x":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}"#;
        assert_eq!(found(scalar, 8).unwrap().sample(0).unwrap(), (8, 16));
        let empty = r#"{"x":{"dtype":"F64","shape":[0,7],"data_offsets":[0,0]}}"#;
        found(empty, 0).unwrap().sample(0).unwrap_err();
        let hollow = r#"{"x":{"dtype":"F64","shape":[7,0],"data_offsets":[0,0]}}"#;
        assert_eq!(found(hollow, 0).unwrap().sample(6).unwrap(), (8, 8));
    }

    #[test]
    fn halves_of_bytes_are_no_samples() {
        let text = r#"{"x":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#;
        let message = message(text, 3);
        assert!(message.contains("sample that does not end at a byte"), "{message}");
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let check = |text: &str, expected: &str| {
            let message = message(text, 4);
            assert!(message.contains(expected), "{expected}: {message}");
        };
        check("[]", "not a safetensors file: expected {");
        check("", "not a safetensors file: expected {");
        check("{}", "expected the end of the file at byte 8, found 4 more");
        check(r#"{"x":1}"#, "invalid type");
        check(r#"{"x":{"dtype":"U8","shape":[4]}}"#, "missing field");
        check(r#"{"x":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}}"#, "does not have");
        check(r#"{"x":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}}"#, "invalid value");
        check(r#"{"x":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}}"#, "data_offsets are not");
        check(r#"{"x":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}}"#, "without gap");
        check(r#"{"x":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}}"#, "needs 13 bytes");
        check(r#"{"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#, "1 more");
        check(r#"{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}"#, "trailing");
        let wide = "4294967296,".repeat(3);
        check(
            &format!(r#"{{"x":{{"dtype":"U8","shape":[{wide}1],"data_offsets":[0,4]}}}}"#),
            "data_offsets are not",
        );
        let deep = format!(r#"{{"__metadata__":{}}}"#, "[".repeat(100_000));
        check(&deep, "cannot be decoded: expected value");
        let many = "1,".repeat(100);
        check(
            &format!(r#"{{"x":{{"dtype":"U8","shape":[{many}4],"data_offsets":[0,4]}}}}"#),
            "more than 64 axes",
        );
    }

    #[test]
    fn an_error_names_its_place() {
        let text = "{\n\"x\":{\"dtype\":\"U8\",\n\"shape\":?}}";
        let message = message(text, 4);
        assert!(message.starts_with("safetensors: data at byte 37 cannot"), "{message}");
    }
}
