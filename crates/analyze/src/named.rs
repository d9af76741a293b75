//! Enums whose variants have a name in reports, tables and files.

/// Declares such an enum, with all of its variants and their names.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident { $($(#[$attribute:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        $vis enum $enum {
            $($(#[$attribute])* #[serde(rename = $name)] $variant,)*
        }

        impl $enum {
            /// All variants, in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in reports, tables and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

pub(crate) use named_enum;
