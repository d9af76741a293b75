//! Numbers as text that is shorter than JSON: bytes or 16-bit fractions, in base 64.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base 64, padded.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |place: usize| u32::from(part.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            if digit > part.len() {
                text.push('=');
            } else {
                text.push(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize].into());
            }
        }
    }
    text
}

/// Values as fractions of `largest`: 16 bits each, little endian. What is not zero stays so.
pub(super) fn fractions(values: impl Iterator<Item = u64>, largest: u64) -> String {
    let full = f64::from(u16::MAX);
    let fraction = |value: u64| match value {
        0 => 0,
        value => (value as f64 / largest.max(1) as f64 * full).round().clamp(1.0, full) as u16,
    };
    let bytes: Vec<u8> = values.flat_map(|value| fraction(value).to_le_bytes()).collect();
    base64(&bytes)
}

/// A number with four digits, so that its text is short.
pub(super) fn short(value: f64) -> f64 {
    if !value.is_finite() {
        return 0.0;
    }
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_that_of_the_standard() {
        for (plain, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), expected, "{plain}");
        }
    }

    #[test]
    fn fractions_are_of_the_largest_and_keep_what_is_not_zero() {
        // 0, 1 (rounded up from nothing), 65535, little endian.
        assert_eq!(
            fractions([0, 1, 1_000_000].into_iter(), 1_000_000),
            base64(&[0, 0, 1, 0, 255, 255])
        );
        assert_eq!(fractions([0].into_iter(), 0), base64(&[0, 0]));
    }

    #[test]
    fn short_numbers_have_five_digits_and_are_numbers() {
        assert_eq!(short(1.234_567_8), 1.2346);
        assert_eq!(short(f64::NAN), 0.0);
    }
}
