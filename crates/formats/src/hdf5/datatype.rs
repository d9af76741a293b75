//! Datatype messages: which of our element types a dataset has.

use super::fields::{Fields, unsupported, wrong};
use crate::{Decoded, Element};

/// Classes of datatypes, by their number.
mod class {
    pub(super) const FIXED: u8 = 0;
    pub(super) const FLOAT: u8 = 1;
    pub(super) const COMPOUND: u8 = 6;
    pub(super) const ENUM: u8 = 8;
    pub(super) const COMPLEX: u8 = 11;
}

const NAMES: [&str; 12] = [
    "fixed-point",
    "floating-point",
    "time",
    "string",
    "bit field",
    "opaque",
    "compound",
    "reference",
    "enumerated",
    "variable-length",
    "array",
    "complex",
];

/// What a datatype message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Datatype {
    pub(super) element: Element,
    pub(super) is_big_endian: bool,
}

/// The element type that a datatype message means, and its byte order.
pub(super) fn datatype(fields: &mut Fields<'_>) -> Decoded<Datatype> {
    let place = fields.place();
    let head = fields.u8()?;
    let bits = fields.uint(3)?;
    let size = fields.u32()?;
    let (class, version) = (head & 15, head >> 4);
    if !(1..=5).contains(&version) {
        return Err(unsupported(place, format!("datatype version {version}")));
    }
    let name = NAMES.get(usize::from(class)).copied().unwrap_or("unknown");
    let other = || unsupported(place, format!("{name} datatype of {size} bytes"));
    let is_big_endian = bits & 1 != 0;
    let plain = |element: Option<Element>| match element {
        Some(element) => Ok(Datatype { element, is_big_endian }),
        None => Err(other()),
    };
    match class {
        class::FIXED => {
            fields.skip(2)?;
            let whole = u32::from(fields.u16()?) == size.saturating_mul(8);
            let kind = if bits & 8 != 0 { b'i' } else { b'u' };
            plain(Element::of_kind(kind, size.into()).filter(|_| whole))
        }
        class::FLOAT => {
            let layout = fields.take(12)?;
            plain(Element::of_kind(b'f', size.into()).filter(|_| is_ieee(size, layout)))
        }
        class::ENUM => {
            let base = nested(fields, class::FIXED)?;
            match (base.element, bits & 0xFFFF) {
                // How h5py writes booleans.
                (Element::Int8 | Element::UInt8, 2) => {
                    Ok(Datatype { element: Element::Bool, ..base })
                }
                (element, _) if element.size_bytes() == u64::from(size) => Ok(base),
                _ => Err(other()),
            }
        }
        class::COMPOUND if bits & 0xFFFF == 2 => {
            let real = member(fields, version, size)?;
            let imaginary = member(fields, version, size)?;
            let half = u64::from(size) / 2;
            if real.0 != 0 || imaginary.0 != half || real.1 != imaginary.1 {
                return Err(other());
            }
            complex(real.1, size).ok_or_else(other)
        }
        class::COMPLEX => complex(nested(fields, class::FLOAT)?, size).ok_or_else(other),
        _ => Err(other()),
    }
}

/// Offset and type of a member of a compound, which must be a floating-point number.
fn member(fields: &mut Fields<'_>, version: u8, size: u32) -> Decoded<(u64, Datatype)> {
    let mut name_bytes = 1;
    while fields.u8()? != 0 {
        name_bytes += 1;
    }
    if version < 3 {
        fields.skip(8_usize.wrapping_sub(name_bytes) % 8)?;
    }
    let width = if version < 3 { 4 } else { super::tree2::encoded_bytes(u64::from(size)) };
    let offset = fields.uint(width)?;
    if version == 1 {
        fields.skip(28)?;
    }
    Ok((offset, nested(fields, class::FLOAT)?))
}

/// A datatype inside another, which must be of that class: nothing is nested deeper than this.
fn nested(fields: &mut Fields<'_>, class: u8) -> Decoded<Datatype> {
    let place = fields.place();
    match fields.peek()? & 15 {
        found if found == class => datatype(fields),
        found => Err(unsupported(place, format!("datatype of class {found} inside another"))),
    }
}

fn complex(part: Datatype, size: u32) -> Option<Datatype> {
    let element = match (part.element, size) {
        (Element::Float32, 8) => Element::Complex64,
        (Element::Float64, 16) => Element::Complex128,
        _ => return None,
    };
    Some(Datatype { element, ..part })
}

/// Offset, precision, exponent and mantissa are those of IEEE 754; bfloat16, for one, has others.
fn is_ieee(size: u32, layout: &[u8]) -> bool {
    ieee_layout(size).is_some_and(|ieee| ieee == layout)
}

/// Properties of a floating-point datatype: bit offset, precision, exponent location and size,
/// mantissa location and size, exponent bias.
pub(super) fn ieee_layout(size: u32) -> Option<[u8; 12]> {
    match size {
        2 => Some([0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0]),
        4 => Some([0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]),
        8 => Some([0, 0, 64, 0, 52, 11, 0, 52, 0xFF, 3, 0, 0]),
        _ => None,
    }
}

/// The message of an element type, as h5py has it: booleans are an enumeration, complex numbers a
/// compound.
pub(super) fn message(element: Element) -> Vec<u8> {
    let size = element.size_bytes() as u32;
    match element {
        Element::Bool => {
            let mut bytes = head(class::ENUM, 3, 2, 1);
            bytes.extend(message(Element::Int8));
            bytes.extend(b"FALSE\0TRUE\0\x00\x01");
            bytes
        }
        Element::Complex64 | Element::Complex128 => {
            let part = if size == 8 { Element::Float32 } else { Element::Float64 };
            let mut bytes = head(class::COMPOUND, 3, 2, size);
            for (name, offset) in [(b'r', 0), (b'i', size as u8 / 2)] {
                bytes.extend([name, 0, offset]);
                bytes.extend(message(part));
            }
            bytes
        }
        Element::Float16 | Element::Float32 | Element::Float64 => {
            // Little-endian, the mantissa's first digit implied; then the place of the sign.
            let mut bytes = head(class::FLOAT, 1, 0x20 | (size * 8 - 1) << 8, size);
            bytes.extend(ieee_layout(size).expect("these three sizes have one"));
            bytes
        }
        integer => {
            let signed = integer.name().starts_with('i');
            let mut bytes = head(class::FIXED, 1, u32::from(signed) << 3, size);
            bytes.extend([0, 0, size as u8 * 8, 0]);
            bytes
        }
    }
}

fn head(class: u8, version: u8, bits: u32, size: u32) -> Vec<u8> {
    let mut bytes = vec![version << 4 | class];
    bytes.extend(&bits.to_le_bytes()[..3]);
    bytes.extend(size.to_le_bytes());
    bytes
}

/// Refuses a datatype whose size the layout contradicts.
pub(super) fn check_size(element: Element, found: u64, place: u64) -> Decoded<()> {
    if found == element.size_bytes() {
        return Ok(());
    }
    Err(wrong(place, "the size of the datatype", found))
}

#[cfg(test)]
mod tests {
    use super::super::fields::Addressing;
    use super::*;

    const WIDE: Addressing = Addressing { address_bytes: 8, length_bytes: 8, base: 0 };

    #[test]
    fn what_is_written_is_found_again() {
        for of in Element::ALL {
            let bytes = message(of);
            assert_eq!(datatype(&mut Fields::new(&bytes, 0, WIDE)).unwrap().element, of);
            for len in 0..bytes.len() {
                // What an enumeration is called does not matter.
                if of != Element::Bool || len < 20 {
                    datatype(&mut Fields::new(&bytes[..len], 0, WIDE)).unwrap_err();
                }
            }
        }
    }

    #[test]
    fn other_numbers_are_refused_by_name() {
        let refused =
            |bytes: &[u8]| datatype(&mut Fields::new(bytes, 7, WIDE)).unwrap_err().to_string();
        let mut bytes = message(Element::Int32);
        bytes[10] = 31;
        let expected = "hdf5: fixed-point datatype of 4 bytes at byte 7 is not supported";
        assert_eq!(refused(&bytes), expected);
        let mut bytes = message(Element::Float16);
        bytes[12..16].copy_from_slice(&[7, 8, 0, 7]);
        let expected = "hdf5: floating-point datatype of 2 bytes at byte 7 is not supported";
        assert_eq!(refused(&bytes), expected);
        let expected = "hdf5: string datatype of 9 bytes at byte 7 is not supported";
        assert_eq!(refused(&[0x13, 0, 0, 0, 9, 0, 0, 0]), expected);
    }
}
