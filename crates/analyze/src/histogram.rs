//! How values are spread, in buckets that are at most 1/128 of their values wide.
//!
//! Values below 128 have a bucket each, so they are exact; of larger ones the seven highest bits after the
//! first count. Counts of two histograms add up, in any order, to what one would have counted.

use serde::{Deserialize, Serialize};

use crate::analysis::Distribution;
use crate::saturating::grow;

/// Bits of a value that tell buckets of one power of two apart.
const BITS: u32 = 7;
/// Buckets of all values there are.
const BUCKETS: usize = 58 << BITS;
/// Values that are kept as they are until there are more: most names of a trace are seldom.
const FEW: usize = 32;

/// Counts by bucket, and what is exact: how many, their sum, least and largest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Counted", into = "Counted")]
pub(crate) struct Spread {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Buckets of single values, while there are few.
    few: Vec<u16>,
    /// Counts from the bucket `first` on.
    counts: Vec<u64>,
    first: usize,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            few: Vec::new(),
            counts: Vec::new(),
            first: 0,
        }
    }
}

/// A histogram in a file: bucket and count, in order.
#[derive(Serialize, Deserialize)]
struct Counted {
    sum: String,
    min: u64,
    max: u64,
    counts: Vec<(u32, u64)>,
}

impl From<Spread> for Counted {
    fn from(spread: Spread) -> Self {
        let counts = spread.buckets().into_iter().map(|(b, n)| (b as u32, n)).collect();
        Self { sum: spread.sum.to_string(), min: spread.min, max: spread.max, counts }
    }
}

impl From<Counted> for Spread {
    fn from(counted: Counted) -> Self {
        let mut spread = Self { min: counted.min, max: counted.max, ..Self::default() };
        spread.sum = counted.sum.parse().unwrap_or(0);
        let known = counted.counts.into_iter().filter(|(bucket, _)| (*bucket as usize) < BUCKETS);
        for (bucket, count) in known {
            grow(&mut spread.count, count);
            grow(spread.bucket(bucket as usize), count);
        }
        spread
    }
}

/// The bucket of a value.
#[inline]
pub(crate) fn bucket_of(value: u64) -> usize {
    let shift = (64 - BITS - 1).saturating_sub(value.leading_zeros());
    ((shift << BITS) as usize) + (value >> shift) as usize
}

/// The least value of a bucket, and how many values it has.
fn bounds(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> BITS).saturating_sub(1);
    (((bucket - (shift << BITS)) as u64) << shift, 1 << shift)
}

impl Spread {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let bucket = bucket_of(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add_new(bucket),
        }
    }

    /// Counts `times` values whose sum is known, each taken as their mean.
    pub(crate) fn add_many(&mut self, sum: u64, times: u64) {
        let Some(mean) = sum.checked_div(times) else { return };
        grow(&mut self.count, times);
        self.sum += u128::from(sum);
        self.min = self.min.min(mean);
        self.max = self.max.max(mean);
        grow(self.bucket(bucket_of(mean)), times);
    }

    fn add_new(&mut self, bucket: usize) {
        if self.counts.is_empty() && self.few.len() < FEW {
            self.few.push(bucket as u16);
        } else {
            *self.bucket(bucket) += 1;
        }
    }

    /// The count of a bucket, which is there afterwards.
    fn bucket(&mut self, bucket: usize) -> &mut u64 {
        if self.counts.is_empty() {
            self.first = bucket;
            self.counts.push(0);
            for seldom in std::mem::take(&mut self.few) {
                *self.bucket(usize::from(seldom)) += 1;
            }
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        } else if bucket >= self.first + self.counts.len() {
            self.counts.resize(bucket - self.first + 1, 0);
        }
        let at = bucket - self.first;
        &mut self.counts[at]
    }

    /// Buckets that are not empty, and their counts, in order.
    pub(crate) fn buckets(&self) -> Vec<(usize, u64)> {
        let mut all: Vec<(usize, u64)> = Vec::new();
        let mut few = self.few.clone();
        few.sort_unstable();
        for bucket in few {
            match all.last_mut() {
                Some((last, count)) if *last == usize::from(bucket) => *count += 1,
                _ => all.push((usize::from(bucket), 1)),
            }
        }
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        all.extend(counted.map(|(at, count)| (self.first + at, *count)));
        all
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        grow(&mut self.count, other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (bucket, count) in other.buckets() {
            grow(self.bucket(bucket), count);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The least value that this share of all values (in thousandths) does not exceed; exact but for the
    /// width of its bucket, whose middle it is. 0 if there are no values.
    pub(crate) fn quantile(&self, thousandths: u64) -> u64 {
        let target = u128::from(self.count) * u128::from(thousandths);
        let target = u64::try_from(target.div_ceil(1000)).unwrap_or(self.count).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            grow(&mut seen, count);
            if seen >= target {
                let (least, width) = bounds(bucket);
                return (least + (width - 1) / 2).clamp(self.min, self.max);
            }
        }
        0
    }

    /// Least, percentiles and largest.
    pub(crate) fn distribution(&self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let at = |thousandths| self.quantile(thousandths);
        Distribution {
            min: self.min,
            p5: at(50),
            p25: at(250),
            p50: at(500),
            mean: self.sum as f64 / self.count as f64,
            p75: at(750),
            p95: at(950),
            p99: at(990),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for value in (0..100_000).chain((17..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + power / 3]
        })) {
            let bucket = bucket_of(value);
            assert!(bucket >= last, "{value}");
            last = bucket;
            let (least, width) = bounds(bucket);
            assert!(least <= value && value - least < width, "{value} in {least}+{width}");
            assert!(width == 1 || width <= value / 128, "{value}: {width}");
        }
        assert_eq!(bucket_of(u64::MAX), 58 * 128 - 1);
    }

    #[test]
    fn small_values_are_exact() {
        let mut spread = Spread::default();
        for value in 1..=100 {
            spread.add(value);
        }
        let found = spread.distribution();
        let expected = Distribution {
            min: 1,
            p5: 5,
            p25: 25,
            p50: 50,
            mean: 50.5,
            p75: 75,
            p95: 95,
            p99: 99,
            max: 100,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn merged_halves_are_the_whole() {
        let values: Vec<u64> = (0..1000).map(|n| n * n * 37 % 1_000_003).collect();
        let mut whole = Spread::default();
        values.iter().for_each(|value| whole.add(*value));
        for cut in [0, 1, 20, 31, 32, 33, 500, 999, 1000] {
            let (mut a, mut b) = (Spread::default(), Spread::default());
            values[..cut].iter().for_each(|value| a.add(*value));
            values[cut..].iter().for_each(|value| b.add(*value));
            a.merge(&b);
            assert_eq!(a.buckets(), whole.buckets(), "{cut}");
            assert_eq!(a.distribution(), whole.distribution(), "{cut}");
            let text = serde_json::to_string(&a).unwrap();
            let back: Spread = serde_json::from_str(&text).unwrap();
            assert_eq!(back.buckets(), whole.buckets(), "{cut}");
            assert_eq!(back.distribution(), whole.distribution(), "{cut}");
        }
    }
}
