//! Element types by their NumPy names.
//!
//! A workload file may use any spelling that NumPy understands without a byte-order mark.

use feedline_formats::Element;

/// Other spellings that NumPy takes on a 64-bit Linux, with the type that each means.
const SPELLINGS: &[(&str, Element)] = &[
    ("?", Element::Bool),
    ("b1", Element::Bool),
    ("bool_", Element::Bool),
    ("bool8", Element::Bool),
    ("b", Element::Int8),
    ("i1", Element::Int8),
    ("byte", Element::Int8),
    ("h", Element::Int16),
    ("i2", Element::Int16),
    ("short", Element::Int16),
    ("i", Element::Int32),
    ("i4", Element::Int32),
    ("intc", Element::Int32),
    ("l", Element::Int64),
    ("q", Element::Int64),
    ("i8", Element::Int64),
    ("int", Element::Int64),
    ("int_", Element::Int64),
    ("intp", Element::Int64),
    ("long", Element::Int64),
    ("longlong", Element::Int64),
    ("B", Element::UInt8),
    ("u1", Element::UInt8),
    ("ubyte", Element::UInt8),
    ("H", Element::UInt16),
    ("u2", Element::UInt16),
    ("ushort", Element::UInt16),
    ("I", Element::UInt32),
    ("u4", Element::UInt32),
    ("uintc", Element::UInt32),
    ("L", Element::UInt64),
    ("Q", Element::UInt64),
    ("u8", Element::UInt64),
    ("uint", Element::UInt64),
    ("uintp", Element::UInt64),
    ("ulong", Element::UInt64),
    ("ulonglong", Element::UInt64),
    ("e", Element::Float16),
    ("f2", Element::Float16),
    ("half", Element::Float16),
    ("f", Element::Float32),
    ("f4", Element::Float32),
    ("single", Element::Float32),
    ("d", Element::Float64),
    ("f8", Element::Float64),
    ("double", Element::Float64),
    ("float", Element::Float64),
    ("float_", Element::Float64),
    ("F", Element::Complex64),
    ("c8", Element::Complex64),
    ("csingle", Element::Complex64),
    ("D", Element::Complex128),
    ("c16", Element::Complex128),
    ("complex", Element::Complex128),
    ("cdouble", Element::Complex128),
];

/// The element type that NumPy knows by this spelling.
pub(crate) fn parse(spelling: &str) -> Option<Element> {
    let other = || SPELLINGS.iter().find(|(other, _)| *other == spelling).map(|(_, it)| *it);
    Element::parse(spelling).or_else(other)
}

/// The full names, for messages and the reference page.
pub(crate) fn names() -> Vec<&'static str> {
    Element::ALL.map(Element::name).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_numpy_is_known() {
        #[track_caller]
        fn check(spelling: &str, expected: Option<Element>) {
            assert_eq!(parse(spelling), expected, "{spelling}");
        }
        check("uint8", Some(Element::UInt8));
        check("float", Some(Element::Float64));
        check("int", Some(Element::Int64));
        check("double", Some(Element::Float64));
        check("half", Some(Element::Float16));
        check("f4", Some(Element::Float32));
        check("complex", Some(Element::Complex128));
        check("float8", None);
        check("Float32", None);
    }
}
