//! Element types by their NumPy names.
//!
//! A workload file may use any spelling that NumPy understands without a byte-order mark.

use feedline_formats::Element;

/// The other spellings that NumPy accepts for each type on 64-bit Linux.
const SPELLINGS: &[(Element, &[&str])] = &[
    (Element::Bool, &["?", "b1", "bool_", "bool8"]),
    (Element::Int8, &["b", "i1", "byte"]),
    (Element::Int16, &["h", "i2", "short"]),
    (Element::Int32, &["i", "i4", "intc"]),
    (Element::Int64, &["l", "q", "i8", "int", "int_", "intp", "long", "longlong"]),
    (Element::UInt8, &["B", "u1", "ubyte"]),
    (Element::UInt16, &["H", "u2", "ushort"]),
    (Element::UInt32, &["I", "u4", "uintc"]),
    (Element::UInt64, &["L", "Q", "u8", "uint", "uintp", "ulong", "ulonglong"]),
    (Element::Float16, &["e", "f2", "half"]),
    (Element::Float32, &["f", "f4", "single"]),
    (Element::Float64, &["d", "f8", "double", "float", "float_"]),
    (Element::Complex64, &["F", "c8", "csingle"]),
    (Element::Complex128, &["D", "c16", "complex", "cdouble"]),
];

/// The element type that NumPy knows by this spelling.
pub(crate) fn parse(spelling: &str) -> Option<Element> {
    let other = || SPELLINGS.iter().find(|(_, others)| others.contains(&spelling));
    Element::parse(spelling).or_else(|| other().map(|(element, _)| *element))
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
