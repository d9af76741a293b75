//! Element types by their NumPy names.
//!
//! A workload file may use any spelling that NumPy understands without a byte-order mark; here it
//! becomes the full name of one of fourteen types.

/// Full names with their sizes in bytes.
const TYPES: &[(&str, u64)] = &[
    ("bool", 1),
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("uint8", 1),
    ("uint16", 2),
    ("uint32", 4),
    ("uint64", 8),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("complex64", 8),
    ("complex128", 16),
];

/// Other spellings that NumPy takes on a 64-bit Linux, with the full name each stands for.
const SPELLINGS: &[(&str, &str)] = &[
    ("?", "bool"),
    ("b1", "bool"),
    ("bool_", "bool"),
    ("bool8", "bool"),
    ("b", "int8"),
    ("i1", "int8"),
    ("byte", "int8"),
    ("h", "int16"),
    ("i2", "int16"),
    ("short", "int16"),
    ("i", "int32"),
    ("i4", "int32"),
    ("intc", "int32"),
    ("l", "int64"),
    ("q", "int64"),
    ("i8", "int64"),
    ("int", "int64"),
    ("int_", "int64"),
    ("intp", "int64"),
    ("long", "int64"),
    ("longlong", "int64"),
    ("B", "uint8"),
    ("u1", "uint8"),
    ("ubyte", "uint8"),
    ("H", "uint16"),
    ("u2", "uint16"),
    ("ushort", "uint16"),
    ("I", "uint32"),
    ("u4", "uint32"),
    ("uintc", "uint32"),
    ("L", "uint64"),
    ("Q", "uint64"),
    ("u8", "uint64"),
    ("uint", "uint64"),
    ("uintp", "uint64"),
    ("ulong", "uint64"),
    ("ulonglong", "uint64"),
    ("e", "float16"),
    ("f2", "float16"),
    ("half", "float16"),
    ("f", "float32"),
    ("f4", "float32"),
    ("single", "float32"),
    ("d", "float64"),
    ("f8", "float64"),
    ("double", "float64"),
    ("float", "float64"),
    ("float_", "float64"),
    ("F", "complex64"),
    ("c8", "complex64"),
    ("csingle", "complex64"),
    ("D", "complex128"),
    ("c16", "complex128"),
    ("complex", "complex128"),
    ("cdouble", "complex128"),
];

/// The full name of an element type, or none when NumPy would not know it.
pub fn full_name(spelling: &str) -> Option<&'static str> {
    if let Some((name, _)) = TYPES.iter().find(|(name, _)| *name == spelling) {
        return Some(name);
    }
    SPELLINGS.iter().find(|(short, _)| *short == spelling).map(|(_, name)| *name)
}

/// Bytes of one element; 1 for a name that is not the full name of a type.
pub fn size_bytes(name: &str) -> u64 {
    TYPES.iter().find(|(full, _)| *full == name).map_or(1, |(_, size)| *size)
}

/// The full names, for messages and the reference page.
pub(crate) fn names() -> Vec<&'static str> {
    TYPES.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_a_full_name() {
        #[track_caller]
        fn check(spelling: &str, expected: Option<&str>) {
            assert_eq!(full_name(spelling), expected, "{spelling}");
        }
        check("uint8", Some("uint8"));
        check("float", Some("float64"));
        check("int", Some("int64"));
        check("double", Some("float64"));
        check("half", Some("float16"));
        check("f4", Some("float32"));
        check("complex", Some("complex128"));
        check("float8", None);
        check("Float32", None);
        for (spelling, name) in SPELLINGS {
            assert!(names().contains(name), "{spelling} stands for unknown {name}");
        }
    }

    #[test]
    fn the_size_is_that_of_the_name() {
        for (name, size) in [("bool", 1), ("float16", 2), ("complex64", 8), ("complex128", 16)] {
            assert_eq!(size_bytes(name), size, "{name}");
        }
    }
}
