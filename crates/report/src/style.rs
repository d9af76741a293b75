//! How text may look: its width, and whether it may have color.

/// Lines longer than this are hard to read, however wide the terminal is.
const MOST_COLUMNS: usize = 100;
/// Narrower terminals get this and break the lines themselves.
const LEAST_COLUMNS: usize = 40;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether escape codes for color may be used.
    pub color: bool,
}

/// An escape code for color. It never carries a meaning that the text does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Bold,
    BoldGreen,
    BoldRed,
    BoldYellow,
    DimGreen,
    DimRed,
    DimYellow,
    DimMagenta,
    DimBlue,
    DimCyan,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::BoldGreen => "1;32",
            Self::BoldRed => "1;31",
            Self::BoldYellow => "1;33",
            Self::DimGreen => "2;32",
            Self::DimRed => "2;31",
            Self::DimYellow => "2;33",
            Self::DimMagenta => "2;35",
            Self::DimBlue => "2;34",
            Self::DimCyan => "2;36",
        }
    }
}

impl Style {
    /// Columns that are used.
    pub(crate) fn columns(&self) -> usize {
        self.width.clamp(LEAST_COLUMNS, MOST_COLUMNS)
    }

    /// `text` in that color, if there is color.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", ink.code())
    }
}

/// Takes the escape codes out, for tests that compare colored with plain text.
#[cfg(test)]
pub(crate) fn strip(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').expect("every escape code here ends with m").1);
    }
    plain
}
