//! Numbers as text that is shorter than JSON: bytes or 16-bit fractions, in base 64.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Bytes in base 64, padded.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
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
