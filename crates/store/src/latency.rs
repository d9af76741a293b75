//! Emulated latency: how long an operation is delayed before it reaches the store.
//!
//! The n-th draw is a pure function of the seed and n, so a run that makes its calls in the same order
//! has the same latencies.

use std::fmt;

use feedline_numbers::quantity::{self, TIMES};
use feedline_numbers::splitmix;

use crate::SpecError;

/// The longest latency, drawn or given: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A distribution of latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// The same latency for every operation.
    Constant {
        /// Latency of every operation.
        ns: u64,
    },
    /// Uniform between two ends, both included.
    Uniform {
        /// The shortest latency, in nanoseconds.
        low_ns: u64,
        /// The longest latency, in nanoseconds.
        high_ns: u64,
    },
    /// Log-normal, so with a long tail, given by two percentiles. With `z(p)` the p-quantile of the standard normal distribution,
    /// `sigma = (ln high - ln low) / (z(p_high) - z(p_low))` and `mu = ln low - sigma * z(p_low)`;
    /// a draw is `exp(mu + sigma * z(u))` for a `u` that is uniform between 0 and 1, and no draw is
    /// longer than an hour.
    LogNormal {
        /// The lower percentile.
        low: Percentile,
        /// The higher percentile.
        high: Percentile,
    },
}

/// A percentile of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// The share in hundredths of a percent, above 0 and below 10 000.
    pub basis_points: u64,
    /// The latency that this share of operations does not exceed.
    pub ns: u64,
}

impl Latency {
    /// Parses `0.2ms`, `0.1ms-0.4ms` or `0.2ms@p50+5ms@p99`.
    pub fn parse(text: &str) -> Result<Latency, SpecError> {
        if text.contains('@') {
            return log_normal(text);
        }
        match text.split_once('-') {
            None => Ok(Latency::Constant { ns: time(text)? }),
            Some((low, high)) => {
                let (low_ns, high_ns) = (time(low)?, time(high)?);
                if low_ns > high_ns {
                    return Err(SpecError::expected("the shorter latency first", text));
                }
                Ok(Latency::Uniform { low_ns, high_ns })
            }
        }
    }

    /// Draws the latency of operation `number`.
    pub fn draw(&self, seed: u64, number: u64) -> u64 {
        match *self {
            Latency::Constant { ns } => ns,
            Latency::Uniform { low_ns, high_ns } => {
                let span = u128::from(high_ns - low_ns) + 1;
                low_ns + ((u128::from(bits(seed, number)) * span) >> 64) as u64
            }
            Latency::LogNormal { low, high } => {
                // The middle of one of 2^53 equal parts, so neither 0 nor 1.
                let u = ((bits(seed, number) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                let (z_low, ln_low) = (low.z(), (low.ns as f64).ln());
                let sigma = ((high.ns as f64).ln() - ln_low) / (high.z() - z_low);
                let ns = (ln_low + sigma * (normal_quantile(u) - z_low)).exp();
                (ns.round() as u64).min(LONGEST_NS)
            }
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns| quantity::shown(ns, TIMES);
        match self {
            Latency::Constant { ns } => f.write_str(&time(*ns)),
            Latency::Uniform { low_ns, high_ns } => {
                write!(f, "{}-{}", time(*low_ns), time(*high_ns))
            }
            Latency::LogNormal { low, high } => write!(f, "{low}+{high}"),
        }
    }
}

impl Percentile {
    fn z(&self) -> f64 {
        normal_quantile(self.basis_points as f64 / 10_000.0)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.basis_points / 100, self.basis_points % 100);
        let percent = match (rest, rest % 10) {
            (0, _) => format!("{whole}"),
            (rest, 0) => format!("{whole}.{}", rest / 10),
            (rest, _) => format!("{whole}.{rest:02}"),
        };
        write!(f, "{}@p{percent}", quantity::shown(self.ns, TIMES))
    }
}

/// Parses a time of up to an hour.
fn time(text: &str) -> Result<u64, SpecError> {
    let expected = || SpecError::expected("a latency such as 0.2ms", text);
    match quantity::parse(text, TIMES).ok_or_else(expected)? {
        ns if ns > LONGEST_NS => Err(SpecError::expected("a latency of at most an hour", text)),
        ns => Ok(ns),
    }
}

fn log_normal(text: &str) -> Result<Latency, SpecError> {
    let expected = || SpecError::expected("two percentiles such as 0.2ms@p50+5ms@p99", text);
    let (low, high) = text.split_once('+').ok_or_else(expected)?;
    let percentile = |part: &str| {
        let (ns, share) = part.split_once("@p").ok_or_else(expected)?;
        let basis_points = quantity::scaled(share, 100).ok_or_else(expected)?;
        let ns = time(ns)?;
        if !(1..10_000).contains(&basis_points) {
            return Err(SpecError::expected("a percentile between p0 and p100", part));
        }
        if ns == 0 {
            return Err(SpecError::expected("a percentile longer than 0", part));
        }
        Ok(Percentile { basis_points, ns })
    };
    let (low, high) = (percentile(low)?, percentile(high)?);
    if low.basis_points >= high.basis_points || low.ns > high.ns {
        return Err(SpecError::expected("the lower percentile first, and not longer", text));
    }
    Ok(Latency::LogNormal { low, high })
}

/// 64 random bits: the `number`-th output of splitmix64, seeded with a mix of the seed.
fn bits(seed: u64, number: u64) -> u64 {
    splitmix::mix(splitmix::mix(seed).wrapping_add(number.wrapping_mul(splitmix::INCREMENT)))
}

/// The quantile of the standard normal distribution, by Acklam's rational approximations: off by
/// less than 1.2e-9 of the value, for `p` between 0 and 1.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    const TAIL: f64 = 0.024_25;
    let polynomial = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    };
    if p < TAIL {
        return tail(p);
    }
    if p > 1.0 - TAIL {
        return -tail(1.0 - p);
    }
    let q = p - 0.5;
    q * polynomial(&A, q * q) / polynomial(&B, q * q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST's table of the normal distribution, to more digits.
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_082),
            (0.9, 1.281_551_565_544_6),
            (0.99, 2.326_347_874_040_841),
            (0.999_9, 3.719_016_485_455_68),
            (0.01, -2.326_347_874_040_841),
        ] {
            let found = normal_quantile(p);
            assert!((found - z).abs() < 5e-9, "z({p}) = {found}, expected {z}");
        }
    }

    #[test]
    fn a_latency_is_read_and_shown() {
        let check = |text, expected: &str| {
            let latency = Latency::parse(text).unwrap();
            assert_eq!(latency.to_string(), expected);
            assert_eq!(Latency::parse(expected), Ok(latency), "{expected}");
        };
        check("0.2ms", "200us");
        check("200\u{b5}s", "200us");
        check("200\u{3bc}s", "200us");
        check("0s", "0ns");
        check("0.1ms-0.4ms", "100us-400us");
        check("0.2ms@p50+5ms@p99", "200us@p50+5ms@p99");
        check("1us@p0.5+2s@p99.99", "1us@p0.5+2s@p99.99");
        check("3600s", "3600s");
    }

    #[test]
    fn what_is_no_latency_is_refused_in_words() {
        for (text, expected) in [
            ("fast", "expected a latency such as 0.2ms, found `fast`"),
            ("ms", "expected a latency such as 0.2ms, found `ms`"),
            ("3601s", "expected a latency of at most an hour, found `3601s`"),
            ("4ms-1ms", "expected the shorter latency first, found `4ms-1ms`"),
            ("4ms-", "expected a latency such as 0.2ms, found ``"),
            ("1ms@p50", "expected two percentiles such as 0.2ms@p50+5ms@p99, found `1ms@p50`"),
            (
                "1ms@50+2ms@p99",
                "expected two percentiles such as 0.2ms@p50+5ms@p99, found `1ms@50+2ms@p99`",
            ),
            ("1ms@p50+2ms@p100", "expected a percentile between p0 and p100, found `2ms@p100`"),
            ("0ms@p50+2ms@p99", "expected a percentile longer than 0, found `0ms@p50`"),
            (
                "2ms@p99+1ms@p50",
                "expected the lower percentile first, and not longer, found `2ms@p99+1ms@p50`",
            ),
        ] {
            assert_eq!(Latency::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn draws_follow_the_distribution_and_the_seed() {
        const DRAWS: u64 = 100_000;
        let drawn = |text: &str, seed| {
            let latency = Latency::parse(text).unwrap();
            let mut drawn: Vec<u64> = (0..DRAWS).map(|n| latency.draw(seed, n)).collect();
            assert_eq!(latency.draw(seed, 17), drawn[17], "a draw is a function of its number");
            drawn.sort_unstable();
            drawn
        };
        let uniform = drawn("3ns-6ns", 1);
        for ns in 3..=6 {
            let share = uniform.iter().filter(|&&drawn| drawn == ns).count();
            assert!((24_000..26_000).contains(&share), "{share} of {ns} ns");
        }
        assert_eq!((uniform[0], uniform[DRAWS as usize - 1]), (3, 6));

        let tailed = drawn("0.2ms@p50+5ms@p99", 1);
        let percentile = |percent: u64| tailed[(DRAWS * percent / 100) as usize];
        // Four standard errors of such a percentile are 2 % at p50 and 5 % at p99.
        assert!((196_000..204_000).contains(&percentile(50)), "{}", percentile(50));
        assert!((4_750_000..5_250_000).contains(&percentile(99)), "{}", percentile(99));
        assert_ne!(drawn("0.2ms@p50+5ms@p99", 2), tailed, "another seed draws others");
    }

    #[test]
    fn no_draw_is_longer_than_an_hour() {
        let latency = Latency::parse("1s@p50+3600s@p50.01").unwrap();
        assert_eq!((0..100).map(|n| latency.draw(1, n)).max(), Some(LONGEST_NS));
    }
}
