//! Numbers for people: three significant digits, decimal units, `n/a` for what does not exist.
//!
//! kB, MB and so on are powers of 1000. NaN and infinities are written `n/a` like absent values.

/// Printed in place of a number that does not exist.
pub const ABSENT: &str = "n/a";

const BYTE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/// From here on seconds are written as minutes, and minutes as hours.
const MOST_BELOW_NEXT: u64 = 120;

/// A whole number in groups of three digits: `1,234,567`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A count and what is counted: `1 file`, `2 files`.
pub fn counted(value: u64, noun: &str) -> String {
    let ending = if value == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(value))
}

/// A number with three significant digits, or all digits before the point: `0.415`, `22,712`.
pub fn number(value: impl Into<Option<f64>>) -> String {
    let Some(value) = finite(value) else { return ABSENT.into() };
    match magnitude(value) {
        None => "0".into(),
        Some(exponent) if exponent >= 2 => group(&format!("{value:.0}")),
        Some(exponent) if exponent >= -4 => format!("{value:.*}", (2 - exponent) as usize),
        Some(_) => format!("{value:.2e}"),
    }
}

/// Bytes in decimal units with three significant digits: `24.6 GB`.
pub fn bytes(value: impl Into<Option<f64>>) -> String {
    let Some(value) = finite(value).filter(|value| *value >= 0.0) else { return ABSENT.into() };
    let exponent = magnitude(value).unwrap_or(0);
    let unit = exponent.div_euclid(3).clamp(0, BYTE_UNITS.len() as i32 - 1);
    if unit == 0 {
        return format!("{value:.0} B");
    }
    let scaled = value / 1000f64.powi(unit);
    let decimals = (2 - (exponent - 3 * unit)).max(0) as usize;
    format!("{} {}", group(&format!("{scaled:.decimals$}")), BYTE_UNITS[unit as usize])
}

/// Seconds as ns, us, ms, s, min or h: `1.20 ms`, `58.3 s`, `4 min 05 s`.
pub fn duration(seconds: impl Into<Option<f64>>) -> String {
    let Some(value) = finite(seconds).filter(|value| *value >= 0.0) else { return ABSENT.into() };
    let Some(exponent) = magnitude(value) else { return "0 s".into() };
    let (whole_seconds, whole_minutes) = (value.round() as u64, (value / 60.0).round() as u64);
    if whole_minutes >= MOST_BELOW_NEXT {
        return format!("{} h {:02} min", count(whole_minutes / 60), whole_minutes % 60);
    }
    if whole_seconds >= MOST_BELOW_NEXT {
        return format!("{} min {:02} s", whole_seconds / 60, whole_seconds % 60);
    }
    let (unit, factor, power) = match exponent {
        0.. => ("s", 1.0, 0),
        -3.. => ("ms", 1e3, -3),
        -6.. => ("us", 1e6, -6),
        _ => return format!("{:.0} ns", value * 1e9),
    };
    format!("{:.*} {unit}", (2 - (exponent - power)).max(0) as usize, value * factor)
}

/// A percentage with one decimal: `41.3 %`.
pub fn percent(value: impl Into<Option<f64>>) -> String {
    finite(value).map_or(ABSENT.into(), |value| format!("{} %", fixed(value, 1)))
}

/// A percentage that someone asked for, without a decimal that is zero: `90 %`.
pub fn round_percent(value: impl Into<Option<f64>>) -> String {
    let text = percent(value);
    text.replace(".0 %", " %")
}

/// A percentage below `limit` that also reads as such: `89.96 %` where one decimal would give 90.0.
pub fn percent_below(value: f64, limit: f64) -> String {
    let reads_below =
        |digits: &usize| fixed(value, *digits).parse::<f64>().is_ok_and(|shown| shown < limit);
    let digits = (1..=4).find(reads_below).unwrap_or(1);
    finite(value).map_or(ABSENT.into(), |value| format!("{} %", fixed(value, digits)))
}

/// A number with that many decimals; what rounds to zero has no sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

fn finite(value: impl Into<Option<f64>>) -> Option<f64> {
    value.into().filter(|value| value.is_finite())
}

/// The power of ten of the first digit after rounding to three; `None` for zero.
fn magnitude(value: f64) -> Option<i32> {
    let text = format!("{value:.2e}");
    let (_, exponent) = text.split_once('e')?;
    (value != 0.0).then(|| exponent.parse().ok()).flatten()
}

/// Commas between groups of three digits before the point.
fn group(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: Copy + std::fmt::Debug>(format: impl Fn(T) -> String, table: &[(T, &str)]) {
        for &(value, expected) in table {
            assert_eq!(format(value), expected, "{value:?}");
        }
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        let table = [
            (0, "0"),
            (7, "7"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        check(count, &table);
        check(|n| counted(n, "file"), &[(0, "0 files"), (1, "1 file"), (1_000, "1,000 files")]);
    }

    #[test]
    fn numbers_have_three_digits_or_all_before_the_point() {
        let table = [
            (0.0, "0"),
            (-0.0, "0"),
            (0.000_012_3, "1.23e-5"),
            (0.000_123, "0.000123"),
            (0.415, "0.415"),
            (1.0, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (152.6, "153"),
            (999.6, "1,000"),
            (22_712.4, "22,712"),
            (-1_500.0, "-1,500"),
            (f64::NAN, "n/a"),
            (f64::INFINITY, "n/a"),
            (f64::NEG_INFINITY, "n/a"),
        ];
        check(|value: f64| number(value), &table);
        check(|value: Option<f64>| number(value), &[(None, "n/a"), (Some(2.5), "2.50")]);
    }

    #[test]
    fn bytes_have_decimal_units_and_three_digits() {
        let table = [
            (0.0, "0 B"),
            (1.0, "1 B"),
            (999.0, "999 B"),
            (999.6, "1.00 kB"),
            (1_000.0, "1.00 kB"),
            (4_096.0, "4.10 kB"),
            (65_536.0, "65.5 kB"),
            (114_660.07, "115 kB"),
            (999_499.0, "999 kB"),
            (999_999.0, "1.00 MB"),
            (146_600_628.0, "147 MB"),
            (24_628_905_504.0, "24.6 GB"),
            (1.5e12, "1.50 TB"),
            (1.5e15, "1.50 PB"),
            (u64::MAX as f64, "18.4 EB"),
            (1e22, "10,000 EB"),
            (-1.0, "n/a"),
            (f64::NAN, "n/a"),
            (f64::INFINITY, "n/a"),
        ];
        check(|value: f64| bytes(value), &table);
        check(|value: Option<f64>| bytes(value), &[(None, "n/a")]);
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        let table = [
            (0.0, "0 s"),
            (3e-10, "0 ns"),
            (5e-9, "5 ns"),
            (850e-9, "850 ns"),
            (999.6e-9, "1.00 us"),
            (12.34e-6, "12.3 us"),
            (999.6e-6, "1.00 ms"),
            (1.2e-3, "1.20 ms"),
            (0.0456, "45.6 ms"),
            (0.999_6, "1.00 s"),
            (1.0, "1.00 s"),
            (58.34, "58.3 s"),
            (119.4, "119 s"),
            (119.6, "2 min 00 s"),
            (245.0, "4 min 05 s"),
            (7_169.0, "119 min 29 s"),
            (7_200.0, "2 h 00 min"),
            (12_300.0, "3 h 25 min"),
            (3_600_000.0, "1,000 h 00 min"),
            (-1.0, "n/a"),
            (f64::NAN, "n/a"),
            (f64::INFINITY, "n/a"),
        ];
        check(|value: f64| duration(value), &table);
        check(|value: Option<f64>| duration(value), &[(None, "n/a")]);
    }

    #[test]
    fn percentages_have_one_decimal() {
        let table = [
            (0.0, "0.0 %"),
            (-0.04, "0.0 %"),
            (41.34, "41.3 %"),
            (100.0, "100.0 %"),
            (-3.0, "-3.0 %"),
            (f64::NAN, "n/a"),
            (f64::INFINITY, "n/a"),
        ];
        check(|value: f64| percent(value), &table);
        check(|value: Option<f64>| percent(value), &[(None, "n/a")]);
        check(|value: f64| round_percent(value), &[(90.0, "90 %"), (92.5, "92.5 %")]);
    }

    #[test]
    fn a_missed_target_never_reads_as_reached() {
        let table = [
            ((41.34, 90.0), "41.3 %"),
            ((89.96, 90.0), "89.96 %"),
            ((89.999_6, 90.0), "89.9996 %"),
            ((89.999_996, 90.0), "90.0 %"),
            ((f64::NAN, 90.0), "n/a"),
        ];
        check(|(value, limit)| percent_below(value, limit), &table);
    }
}
