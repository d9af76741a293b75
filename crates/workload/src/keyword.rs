//! Enumerations that a workload file spells as one word.
//!
//! The macro keeps the spelling next to the variant, so that parsing, printing, the reference page and
//! the "expects one of" messages cannot drift apart.

/// Declares an enumeration with `ALL`, `as_str`, `parse` and `Display`.
macro_rules! keyword_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The spelling used in workload files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The variant with exactly this spelling.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::keyword::Keyword for $name {
            fn words() -> Vec<&'static str> {
                Self::ALL.iter().map(|variant| variant.as_str()).collect()
            }

            fn from_word(word: &str) -> Option<Self> {
                Self::parse(word)
            }
        }
    };
}

pub(crate) use keyword_enum;

use feedline_formats::{Compression, FORMATS, Python, SampleFormat};

/// Parsing and listing the words of an enumeration.
pub(crate) trait Keyword: Sized {
    /// Every spelling, in the order of the reference page.
    fn words() -> Vec<&'static str>;

    /// The value with this spelling.
    fn from_word(word: &str) -> Option<Self>;
}

/// A word that may be left out.
impl<K: Keyword> Keyword for Option<K> {
    fn words() -> Vec<&'static str> {
        K::words()
    }

    fn from_word(word: &str) -> Option<Self> {
        K::from_word(word).map(Some)
    }
}

impl Keyword for &'static SampleFormat {
    fn words() -> Vec<&'static str> {
        FORMATS.iter().map(|format| format.name).collect()
    }

    fn from_word(word: &str) -> Option<Self> {
        SampleFormat::find(word)
    }
}

impl Keyword for Compression {
    fn words() -> Vec<&'static str> {
        Self::ALL.map(Self::name).to_vec()
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::parse(word)
    }
}

impl Keyword for Python {
    fn words() -> Vec<&'static str> {
        Self::ALL.map(Self::name).to_vec()
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::parse(word)
    }
}
