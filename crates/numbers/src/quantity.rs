//! Numbers with units, as people type them and as results show them.

/// A unit: what it is called, and how many of the base unit it is.
pub type Unit = (&'static str, u64);

/// Rates of bytes, without their `/s`. MB is 10⁶, MiB is 2²⁰.
pub const BYTES: &[Unit] = &[
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("kB", 1_000),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// Operations per second.
pub const OPERATIONS: &[Unit] = &[("Miops", 1_000_000), ("kiops", 1_000), ("iops", 1)];

/// Times, in nanoseconds. Both characters that look like a Greek mu are in use.
pub const TIMES: &[Unit] = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ns", 1),
];

/// The number that a text begins with, and its unit.
pub fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// The value of a text such as `2.5MB`; `None` if it is not a number and a unit of the table.
pub fn parse(text: &str, units: &[Unit]) -> Option<u64> {
    let (number, unit) = split(text);
    scaled(number, factor(unit, units)?)
}

/// The size of a unit.
pub fn factor(unit: &str, units: &[Unit]) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// A number without sign or exponent times a factor, to the nearest whole. A number too large for an
/// answer gives the largest; `None` if the text is not a number.
pub fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
        return None;
    }
    // Digits after the eighteenth decimal change nothing for any of the units.
    let fraction = &fraction[..fraction.len().min(18)];
    let parsed = |text: &str| match text {
        "" => 0,
        // Digits only, so it can only be too long.
        text => text.parse::<u64>().unwrap_or(u64::MAX),
    };
    let ten = 10u128.pow(fraction.len() as u32);
    let part = (u128::from(parsed(fraction)) * u128::from(factor) + ten / 2) / ten;
    let sum = u128::from(parsed(whole)) * u128::from(factor) + part;
    Some(u64::try_from(sum).unwrap_or(u64::MAX))
}

/// A value in the first unit of the table in which it is 1 or more and has at most two decimals.
pub fn shown(value: u64, units: &[Unit]) -> String {
    let fits = |&&(_, factor): &&Unit| {
        value >= factor && (u128::from(value) * 100).is_multiple_of(u128::from(factor))
    };
    let smallest = units.last().expect("every table of units has one");
    let (name, factor) = units.iter().find(fits).unwrap_or(smallest);
    let hundredths = u128::from(value) * 100 / u128::from(*factor);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match (rest, rest % 10) {
        (0, _) => format!("{whole}{name}"),
        (rest, 0) => format!("{whole}.{}{name}", rest / 10),
        (rest, _) => format!("{whole}.{rest:02}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_exactly() {
        let check = |number, factor, expected| assert_eq!(scaled(number, factor), expected);
        check("2", 1_000, Some(2_000));
        check("0.2", 1_000_000, Some(200_000));
        check(".5", 10, Some(5));
        check("5.", 10, Some(50));
        check("0.0004", 1_000, Some(0));
        check("0.0005", 1_000, Some(1));
        check("0.1234567890123456789", 1_000_000_000, Some(123_456_789));
        check("99999999999999999999999", 1, Some(u64::MAX));
        check("18446744073709551615", 2, Some(u64::MAX));
        for bad in ["", ".", "1.2.3", "-1", "+1", "1e3"] {
            check(bad, 1, None);
        }
    }

    #[test]
    fn values_are_shown_in_the_largest_unit_that_is_exact() {
        let check = |value, units, expected: &str| assert_eq!(shown(value, units), expected);
        check(2_000_000_000, BYTES, "2GB");
        check(2 << 30, BYTES, "2GiB");
        check(1_500_000_000, BYTES, "1.5GB");
        check(1_230_000, BYTES, "1.23MB");
        check(1_050_000, BYTES, "1.05MB");
        check(1_234_000, BYTES, "1234kB");
        check(1_024, BYTES, "1KiB");
        check(1_234_567, BYTES, "1234567B");
        check(10_000, OPERATIONS, "10kiops");
        check(200_000, TIMES, "200us");
        check(1_500_000, TIMES, "1.5ms");
        check(0, TIMES, "0ns");
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for value in [1, 999, 1_000, 1_024, 1_280, 123_456_789, 5 << 30, 7_000_000_000_000] {
            let text = shown(value, BYTES);
            let (number, unit) = split(&text);
            assert_eq!(scaled(number, factor(unit, BYTES).unwrap()), Some(value), "{text}");
        }
    }
}
