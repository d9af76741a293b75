//! The element types a sample can have, under the names NumPy gives them.

/// The type of one element of a sample. Little-endian where it has several bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are NumPy's own")]
pub enum Element {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl Element {
    /// Every element type there is.
    pub const ALL: [Element; 14] = {
        use Element::*;
        [
            Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32,
            Float64, Complex64, Complex128,
        ]
    };

    /// The type NumPy calls `name`, as in `uint8`.
    pub fn parse(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|element| element.name() == name)
    }

    /// NumPy's name of the type.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Size of one element.
    pub fn size_bytes(self) -> u64 {
        self.row().1
    }

    /// Size of one number of an element: complex numbers have two.
    pub(crate) fn number_bytes(self) -> u64 {
        match self {
            Element::Complex64 | Element::Complex128 => self.size_bytes() / 2,
            _ => self.size_bytes(),
        }
    }

    /// The type as an npy header writes it on a little-endian machine.
    pub fn descr(self) -> &'static str {
        self.row().2
    }

    /// The type an npy header means by `descr`, whatever its byte order.
    pub fn from_descr(descr: &str) -> Option<Element> {
        let kind_and_size = descr.strip_prefix(['<', '>', '|', '='])?;
        Element::ALL.into_iter().find(|element| element.descr()[1..] == *kind_and_size)
    }

    /// The type of that kind, as in a `descr`, and size.
    pub(crate) fn of_kind(kind: u8, size_bytes: u64) -> Option<Element> {
        let is_it = |element: &Element| {
            element.descr().as_bytes()[1] == kind && element.size_bytes() == size_bytes
        };
        Element::ALL.into_iter().find(is_it)
    }

    fn row(self) -> (&'static str, u64, &'static str) {
        match self {
            Element::Bool => ("bool", 1, "|b1"),
            Element::Int8 => ("int8", 1, "|i1"),
            Element::Int16 => ("int16", 2, "<i2"),
            Element::Int32 => ("int32", 4, "<i4"),
            Element::Int64 => ("int64", 8, "<i8"),
            Element::UInt8 => ("uint8", 1, "|u1"),
            Element::UInt16 => ("uint16", 2, "<u2"),
            Element::UInt32 => ("uint32", 4, "<u4"),
            Element::UInt64 => ("uint64", 8, "<u8"),
            Element::Float16 => ("float16", 2, "<f2"),
            Element::Float32 => ("float32", 4, "<f4"),
            Element::Float64 => ("float64", 8, "<f8"),
            Element::Complex64 => ("complex64", 8, "<c8"),
            Element::Complex128 => ("complex128", 16, "<c16"),
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descrs_lead_back_to_the_type() {
        for element in Element::ALL {
            assert_eq!(Element::parse(element.name()), Some(element));
            assert_eq!(Element::from_descr(element.descr()), Some(element));
        }
    }

    #[test]
    fn sizes_are_what_the_descr_says() {
        for element in Element::ALL {
            assert_eq!(element.descr()[2..].parse(), Ok(element.size_bytes()));
        }
    }

    #[test]
    fn big_endian_types_are_known_and_strangers_are_not() {
        assert_eq!(Element::from_descr(">f4"), Some(Element::Float32));
        for stranger in ["", "f4", "<f", "<f3", "<U8", "|O", "<é4"] {
            assert_eq!(Element::from_descr(stranger), None, "{stranger}");
        }
    }
}
