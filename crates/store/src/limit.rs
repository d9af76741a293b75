//! Limits of emulated storage, as the user writes them.

use std::fmt;

use feedline_numbers::quantity::{self, BYTES, OPERATIONS, TIMES};

use crate::{Latency, SpecError};

/// Limits on storage. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limit {
    /// Bandwidth in bytes per second, reads and writes together.
    pub bytes_per_s: Option<u64>,
    /// Operations per second, all kinds together.
    pub ops_per_s: Option<u64>,
    /// Latency added to every operation.
    pub latency: Option<Latency>,
}

impl Limit {
    /// Parses a comma-separated list of a rate (`2GB/s`, `500MiB/s`), operations per second (`10kiops`) and a
    /// latency ([`Latency::parse`]), in any order, each at most once.
    pub fn parse(text: &str) -> Result<Limit, SpecError> {
        let mut limit = Limit::default();
        for part in text.split(',').map(str::trim) {
            match Part::parse(part)? {
                Part::Bytes(rate) => once("the rate", &mut limit.bytes_per_s, rate, part)?,
                Part::Ops(rate) => {
                    once("the number of operations", &mut limit.ops_per_s, rate, part)?;
                }
                Part::Latency(latency) => once("the latency", &mut limit.latency, latency, part)?,
            }
        }
        Ok(limit)
    }
}

/// The canonical form, which [`Limit::parse`] accepts; empty if nothing is limited.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.bytes_per_s.map(|rate| format!("{}/s", quantity::shown(rate, BYTES)));
        let ops = self.ops_per_s.map(|rate| quantity::shown(rate, OPERATIONS));
        let latency = self.latency.map(|latency| latency.to_string());
        let parts: Vec<_> = [rate, ops, latency].into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

/// One item of the list.
enum Part {
    Bytes(u64),
    Ops(u64),
    Latency(Latency),
}

impl Part {
    fn parse(part: &str) -> Result<Part, SpecError> {
        let (number, unit) = quantity::split(part);
        if let Some(factor) = unit.strip_suffix("/s").and_then(|unit| quantity::factor(unit, BYTES))
        {
            let rate = quantity::scaled(number, factor);
            return at_least_one(rate, "a rate of at least 1B/s", part).map(Part::Bytes);
        }
        if let Some(factor) = quantity::factor(unit, OPERATIONS) {
            let rate = quantity::scaled(number, factor);
            return at_least_one(rate, "at least 1iops", part).map(Part::Ops);
        }
        let looks_like_latency = part.contains(['@', '-'])
            || (!number.is_empty() && quantity::factor(unit, TIMES).is_some());
        if looks_like_latency {
            return Latency::parse(part).map(Part::Latency);
        }
        let is_amount = quantity::factor(unit, BYTES).is_some();
        Err(match is_amount {
            true => SpecError::expected("a rate such as 2GB/s", part),
            false => SpecError::expected(
                "a rate (2GB/s), operations per second (10kiops) or a latency (0.2ms)",
                part,
            ),
        })
    }
}

fn at_least_one(rate: Option<u64>, expected: &'static str, part: &str) -> Result<u64, SpecError> {
    rate.filter(|&rate| rate > 0).ok_or_else(|| SpecError::expected(expected, part))
}

fn once<T>(
    what: &'static str,
    place: &mut Option<T>,
    value: T,
    part: &str,
) -> Result<(), SpecError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(SpecError::Twice { what, found: part.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_shown() {
        for (text, expected) in [
            ("2GB/s", "2GB/s"),
            ("0.2ms , 2GB/s", "2GB/s,200us"),
            ("10kiops,1.5GiB/s,1ms-2ms", "1.5GiB/s,10kiops,1ms-2ms"),
            ("512KiB/s", "512KiB/s"),
            ("64KB/s", "64kB/s"),
            ("3.7B/s", "4B/s"),
            ("1Miops", "1Miops"),
            ("1234iops", "1234iops"),
            ("0.2ms@p50+5ms@p99,100MB/s", "100MB/s,200us@p50+5ms@p99"),
        ] {
            let limit = Limit::parse(text).unwrap();
            assert_eq!(limit.to_string(), expected);
            assert_eq!(Limit::parse(expected), Ok(limit), "{expected}");
        }
        let limit = Limit::parse("2.5GB/s,1kiops,3us").unwrap();
        let latency = Some(Latency::Constant { ns: 3_000 });
        let expected = Limit { bytes_per_s: Some(2_500_000_000), ops_per_s: Some(1_000), latency };
        assert_eq!(limit, expected);
        assert_eq!(Limit::default().to_string(), "");
    }

    #[test]
    fn what_is_no_limit_is_refused_in_words() {
        let any = "a rate (2GB/s), operations per second (10kiops) or a latency (0.2ms)";
        for (text, expected) in [
            ("2GB", "expected a rate such as 2GB/s, found `2GB`".to_owned()),
            ("", format!("expected {any}, found ``")),
            ("2GB/s,", format!("expected {any}, found ``")),
            ("2", format!("expected {any}, found `2`")),
            ("2Gb/s", format!("expected {any}, found `2Gb/s`")),
            ("fast", format!("expected {any}, found `fast`")),
            ("ms", format!("expected {any}, found `ms`")),
            ("0GB/s", "expected a rate of at least 1B/s, found `0GB/s`".to_owned()),
            ("GB/s", "expected a rate of at least 1B/s, found `GB/s`".to_owned()),
            ("1.2.3GB/s", "expected a rate of at least 1B/s, found `1.2.3GB/s`".to_owned()),
            ("-2GB/s", "expected a latency such as 0.2ms, found ``".to_owned()),
            ("0.4iops", "expected at least 1iops, found `0.4iops`".to_owned()),
            ("2GB/s,1MB/s", "the rate is limited twice, found `1MB/s` as well".to_owned()),
            (
                "1iops,2iops",
                "the number of operations is limited twice, found `2iops` as well".to_owned(),
            ),
            ("1ms,2ms-3ms", "the latency is limited twice, found `2ms-3ms` as well".to_owned()),
            ("5ms-1ms", "expected the shorter latency first, found `5ms-1ms`".to_owned()),
        ] {
            assert_eq!(Limit::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
