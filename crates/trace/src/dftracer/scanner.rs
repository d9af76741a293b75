//! Reads the plain JSON that nearly all lines of DFTracer are, without blanks and escapes. Whatever else a
//! line holds gives `None`, and a reader of all of JSON takes the line.

/// A line, and how far it was read.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    #[inline]
    pub(crate) fn literal(&mut self, expected: &[u8]) -> Option<()> {
        if !self.bytes[self.at..].starts_with(expected) {
            return None;
        }
        self.at += expected.len();
        Some(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The rest of a string without escapes, and its end.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'"' || *byte == b'\\')?;
        if rest[length] == b'\\' {
            return None;
        }
        let text = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        Some(text)
    }

    /// A whole number of 64 bits; a reader of all of JSON takes larger ones.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<i64> {
        let is_negative = self.literal(b"-").is_some();
        let begin = self.at;
        let mut number = 0_u64;
        while let Some(eight) = self.bytes.get(self.at..self.at + 8).and_then(digits)
            && self.at - begin < 16
        {
            number = number * 100_000_000 + eight;
            self.at += 8;
        }
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let count = self.at - begin;
        // JSON has no number that begins with a zero; a reader of all of JSON shall say so.
        if count == 0 || count > 19 || (count > 1 && self.bytes[begin] == b'0') {
            return None;
        }
        let number = i64::try_from(number).ok()?;
        Some(if is_negative { -number } else { number })
    }

    /// Goes over a fraction, if there is one: whether the number is whole.
    #[inline]
    pub(crate) fn fraction(&mut self) -> Option<bool> {
        match self.bytes.get(self.at)? {
            b'e' | b'E' => return None,
            b'.' => {}
            _ => return Some(true),
        }
        let rest = &self.bytes[self.at + 1..];
        let length = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        if length == 0 || matches!(rest[length], b'e' | b'E') {
            return None;
        }
        self.at += 1 + length;
        Some(rest[..length].iter().all(|digit| *digit == b'0'))
    }

    /// The text of a plain decimal number, or `None` if it is a whole one.
    #[inline]
    pub(crate) fn decimal(&mut self) -> Option<(i64, Option<&'a str>)> {
        let begin = self.at;
        let number = self.number()?;
        let end = self.at;
        self.fraction()?;
        Some((number, (self.at > end).then(|| &self.text[begin..self.at])))
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.text[self.at..].chars().all(is_after_record)
    }
}

/// What may be between a record and the end of its line.
pub(crate) fn is_after_record(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ',' | ']')
}

/// Eight digits at once.
#[inline]
fn digits(eight: &[u8]) -> Option<u64> {
    let word = u64::from_le_bytes(eight.try_into().ok()?);
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    let zeros = 0x3030_3030_3030_3030;
    if word & high != zeros || word.wrapping_add(0x0606_0606_0606_0606) & high != zeros {
        return None;
    }
    // Pairs, then fours, then all: each step multiplies the earlier half and adds the later one.
    let word = word - zeros;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let all = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_numbers() {
        for number in [0, 1, 12_345_678, 99_999_999, 10_203_040] {
            assert_eq!(digits(format!("{number:08}").as_bytes()), Some(number));
        }
        for text in ["1234567 ", "/2345678", "1234:678", "-1234567"] {
            assert_eq!(digits(text.as_bytes()), None, "{text}");
        }
    }
}
