//! `tf.train.Example`, as much of it as a record of a sample needs.
//!
//! A message `Example { Features features = 1 }` with `Features { map<string, Feature> feature = 1 }`
//! and `Feature { oneof { BytesList = 1, FloatList = 2, Int64List = 3 } }`, each list with its values
//! in field 1. Written with `image` before `size`, the order that a deterministic serializer gives.
//! Read in any order, with whatever other features and fields there are.

use feedline_parquet_pages::encode::varint;

use super::NAME;
use super::stream::Payload;
use crate::{DecodeError, Decoded, FileSpec, SampleSink};

const IMAGE: &[u8] = b"image";
const SIZE: &[u8] = b"size";

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

/// The example of one sample, in the parts around its bytes.
pub(super) struct Example {
    pub(super) before_image: Vec<u8>,
    pub(super) image_bytes: u64,
    pub(super) after_image: Vec<u8>,
}

impl Example {
    /// `None` if 64 bits cannot hold its size.
    pub(super) fn of(file: &FileSpec) -> Option<Example> {
        let image_bytes = file.sample_bytes()?;
        // The frame is small; this leaves room for it in every sum below.
        image_bytes.checked_add(1024)?;
        let mut size = Vec::new();
        varint(&mut size, image_bytes);
        let size = field(3, &field(1, &size));
        let after_image = field(1, &[field(1, SIZE), field(2, &size)].concat());

        let mut before_image = around(1, &[], image_bytes);
        let with_image = |before: &[u8]| before.len() as u64 + image_bytes;
        before_image = around(1, &before_image, with_image(&before_image));
        before_image = around(2, &before_image, with_image(&before_image));
        before_image.splice(0..0, field(1, IMAGE));
        before_image = around(1, &before_image, with_image(&before_image));
        let features = with_image(&before_image) + after_image.len() as u64;
        before_image = around(1, &before_image, features);
        Some(Example { before_image, image_bytes, after_image })
    }

    pub(super) fn len(&self) -> u64 {
        self.before_image.len() as u64 + self.image_bytes + self.after_image.len() as u64
    }
}

/// A field that holds `value` and nothing else.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    around(number, value, value.len() as u64)
}

/// The beginning of a field of `len` bytes that begins with `value`.
fn around(number: u8, value: &[u8], len: u64) -> Vec<u8> {
    let mut out = vec![number << 3 | BYTES];
    varint(&mut out, len);
    out.extend(value);
    out
}

/// Goes through an example and says how large its image is.
pub(super) fn walk<S: SampleSink>(payload: &mut Payload<'_, '_, S>) -> Decoded<u64> {
    let begin = payload.at();
    let end = payload.end();
    let mut wanted = Wanted::default();
    while let Some(tag) = tag(payload, end)? {
        match tag {
            (1, BYTES) => {
                let features_end = length(payload, end)?;
                while let Some(tag) = self::tag(payload, features_end)? {
                    match tag {
                        (1, BYTES) => {
                            let entry_end = length(payload, features_end)?;
                            entry(payload, entry_end, &mut wanted)?;
                        }
                        (_, wire) => skip(payload, wire, features_end)?,
                    }
                }
            }
            (_, wire) => skip(payload, wire, end)?,
        }
    }
    wanted.check(begin)
}

/// The two features that a record must have, the last of each name.
#[derive(Default)]
struct Wanted {
    image: Option<Feature>,
    size: Option<Feature>,
}

impl Wanted {
    fn check(&self, begin: u64) -> Decoded<u64> {
        let wrong = |expected, feature: &Option<Feature>| {
            DecodeError::field(
                NAME,
                begin,
                expected,
                match feature {
                    Some(Feature { kind, values, .. }) => format!("{values} {}", kind.words()),
                    None => "no such feature".to_owned(),
                },
            )
        };
        match self.size {
            Some(Feature { kind: Kind::Int64, values: 1, .. }) => (),
            _ => return Err(wrong("one integer in feature size of the example", &self.size)),
        }
        match self.image {
            Some(Feature { kind: Kind::Bytes, values: 1, bytes }) => Ok(bytes),
            _ => Err(wrong("one byte string in feature image of the example", &self.image)),
        }
    }
}

/// What matters of a feature.
#[derive(Debug, Clone, Copy, Default)]
struct Feature {
    kind: Kind,
    values: u64,
    /// Size of the last byte string.
    bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unset,
    Bytes,
    Float,
    Int64,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Unset => "values of no kind",
            Kind::Bytes => "byte strings",
            Kind::Float => "floats",
            Kind::Int64 => "integers",
        }
    }
}

/// One feature and its name, in either order.
fn entry<S: SampleSink>(
    payload: &mut Payload<'_, '_, S>,
    end: u64,
    wanted: &mut Wanted,
) -> Decoded<()> {
    let mut name = [0; IMAGE.len()];
    let mut name_len = 0;
    let mut feature = Feature::default();
    while let Some(tag) = tag(payload, end)? {
        match tag {
            (1, BYTES) => {
                let name_end = length(payload, end)?;
                name_len = name_end - payload.at();
                if name_len <= name.len() as u64 {
                    for byte in &mut name[..name_len as usize] {
                        *byte = payload.byte()?;
                    }
                }
                payload.skip_to(name_end)?;
            }
            (2, BYTES) => {
                let feature_end = length(payload, end)?;
                feature = read_feature(payload, feature_end)?;
            }
            (_, wire) => skip(payload, wire, end)?,
        }
    }
    let known = usize::try_from(name_len).ok().and_then(|len| name.get(..len));
    match known {
        Some(IMAGE) => wanted.image = Some(feature),
        Some(SIZE) => wanted.size = Some(feature),
        _ => (),
    }
    Ok(())
}

fn read_feature<S: SampleSink>(payload: &mut Payload<'_, '_, S>, end: u64) -> Decoded<Feature> {
    let mut feature = Feature::default();
    while let Some((number, wire)) = tag(payload, end)? {
        let kind = match (number, wire) {
            (1, BYTES) => Kind::Bytes,
            (2, BYTES) => Kind::Float,
            (3, BYTES) => Kind::Int64,
            _ => {
                skip(payload, wire, end)?;
                continue;
            }
        };
        if feature.kind != kind {
            feature = Feature { kind, ..Feature::default() };
        }
        let list_end = length(payload, end)?;
        while let Some(tag) = tag(payload, list_end)? {
            match (tag, kind) {
                ((1, BYTES), Kind::Bytes) => {
                    let value_end = length(payload, list_end)?;
                    feature.bytes = value_end - payload.at();
                    feature.values += 1;
                    payload.skip_to(value_end)?;
                }
                ((1, BYTES), Kind::Int64) => {
                    let values_end = length(payload, list_end)?;
                    while payload.at() < values_end {
                        varint_in(payload, values_end)?;
                        feature.values += 1;
                    }
                }
                ((1, VARINT), Kind::Int64) => {
                    varint_in(payload, list_end)?;
                    feature.values += 1;
                }
                ((_, wire), _) => skip(payload, wire, list_end)?,
            }
        }
    }
    Ok(feature)
}

/// Number and wire type of the next field, or `None` at the end of the message.
fn tag<S: SampleSink>(payload: &mut Payload<'_, '_, S>, end: u64) -> Decoded<Option<(u64, u8)>> {
    if payload.at() == end {
        return Ok(None);
    }
    let offset = payload.at();
    let tag = varint_in(payload, end)?;
    if tag >> 3 == 0 {
        return Err(wrong(offset, "the number of a protobuf field", "0".to_owned()));
    }
    Ok(Some((tag >> 3, (tag & 7) as u8)))
}

/// Reads a length and says where the bytes end that it announces.
fn length<S: SampleSink>(payload: &mut Payload<'_, '_, S>, end: u64) -> Decoded<u64> {
    let offset = payload.at();
    let len = varint_in(payload, end)?;
    skip_end(payload, len, end).ok_or_else(|| {
        let found = format!("{len}, message ends at byte {end}");
        wrong(offset, "the length of a protobuf field", found)
    })
}

/// Where a field of `len` bytes ends, unless the message ends before.
fn skip_end<S: SampleSink>(payload: &Payload<'_, '_, S>, len: u64, end: u64) -> Option<u64> {
    payload.at().checked_add(len).filter(|&field_end| field_end <= end)
}

/// Goes over the value of a field.
fn skip<S: SampleSink>(payload: &mut Payload<'_, '_, S>, wire: u8, end: u64) -> Decoded<()> {
    let offset = payload.at();
    let value_end = match wire {
        VARINT => return varint_in(payload, end).map(drop),
        BYTES => length(payload, end)?,
        FIXED32 | FIXED64 => {
            let len = if wire == FIXED32 { 4 } else { 8 };
            skip_end(payload, len, end).ok_or_else(|| {
                wrong(offset, "a protobuf value", format!("the end of its message at {end}"))
            })?
        }
        3 | 4 => {
            let feature = "a protobuf group".to_owned();
            return Err(DecodeError::Feature { format: NAME, feature, offset });
        }
        _ => return Err(wrong(offset, "a protobuf value", format!("wire type {wire}"))),
    };
    payload.skip_to(value_end)
}

fn varint_in<S: SampleSink>(payload: &mut Payload<'_, '_, S>, end: u64) -> Decoded<u64> {
    let offset = payload.at();
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        if payload.at() == end {
            let found = format!("the end of its message at {end}");
            return Err(wrong(offset, "a protobuf varint", found));
        }
        let byte = payload.byte()?;
        // As in every protobuf library, what does not fit into 64 bits is dropped.
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(wrong(offset, "a protobuf varint", "more than ten bytes".to_owned()))
}

fn wrong(offset: u64, expected: &'static str, found: String) -> DecodeError {
    DecodeError::Field { format: NAME, offset, expected, found }
}
