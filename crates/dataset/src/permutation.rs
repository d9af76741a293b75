//! A pseudo-random permutation of `0..len` that needs no memory of its size.
//!
//! Up to [`TABLE_LEN`] elements the permutation is a shuffled table, every order equally likely.
//! Above that it is a Feistel network over pairs `(left, right)` of `rows x columns`, the smallest
//! near-square grid that holds the range, walked until it lands inside: a bijection by
//! construction, hardly ever a second walk, no table. The same seed gives the same order on every
//! rank and every machine.

use feedline_numbers::splitmix::{finalize, next};

/// Largest domain that is shuffled in a table (32 KiB); small domains are where a Feistel network
/// is visibly not uniform.
const TABLE_LEN: u64 = 4096;
const ROUNDS: usize = 8;

/// One order of `0..len`.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Table(Vec<u64>),
    Feistel { rows: u64, columns: u64, keys: [u64; ROUNDS] },
}

impl Permutation {
    /// The permutation of `0..len` that belongs to `seed`.
    pub fn new(len: u64, seed: u64) -> Self {
        let mut state = seed;
        if len <= TABLE_LEN {
            let mut table: Vec<u64> = (0..len).collect();
            for last in (1..table.len()).rev() {
                table.swap(last, below(&mut state, last as u64 + 1) as usize);
            }
            return Self { len, kind: Kind::Table(table) };
        }
        let columns = len.isqrt();
        let rows = len.div_ceil(columns);
        let keys = std::array::from_fn(|_| next(&mut state));
        Self { len, kind: Kind::Feistel { rows, columns, keys } }
    }

    /// The element at `position`.
    ///
    /// # Panics
    /// When `position` is not below the length.
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.len, "position {position} of a permutation of {}", self.len);
        match &self.kind {
            Kind::Table(table) => table[position as usize],
            Kind::Feistel { rows, columns, keys } => {
                let mut value = position;
                loop {
                    value = feistel(value, *rows, *columns, keys);
                    if value < self.len {
                        return value;
                    }
                }
            }
        }
    }
}

/// Each round shifts one coordinate by a keyed hash of the other, which can be undone.
fn feistel(value: u64, rows: u64, columns: u64, keys: &[u64; ROUNDS]) -> u64 {
    let (mut row, mut column) = (value / columns, value % columns);
    for pair in keys.chunks_exact(2) {
        row = shifted(row, finalize(column ^ pair[0]), rows);
        column = shifted(column, finalize(row ^ pair[1]), columns);
    }
    row * columns + column
}

/// `value` moved by `hash`, scaled down to the range, around a circle of `len`.
fn shifted(value: u64, hash: u64, len: u64) -> u64 {
    let sum = value + ((u128::from(hash) * u128::from(len)) >> 64) as u64;
    if sum < len { sum } else { sum - len }
}

/// A number below `bound` without modulo bias: draws from the uneven rest are thrown away.
pub(crate) fn below(state: &mut u64, bound: u64) -> u64 {
    loop {
        let draw = next(state);
        let value = draw % bound;
        if draw - value <= u64::MAX - (bound - 1) {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_bijection(len: u64, seed: u64) {
        let permutation = Permutation::new(len, seed);
        let mut seen = vec![false; len as usize];
        for position in 0..len {
            let value = permutation.at(position) as usize;
            assert!(!seen[value], "{value} twice in a permutation of {len}");
            seen[value] = true;
        }
    }

    #[test]
    fn every_element_comes_exactly_once() {
        for len in (1..300).chain([4095, 4096, 4097, 65_535, 65_536, 65_537, 1_281_024]) {
            check_bijection(len, len * 31 + 7);
        }
    }

    #[test]
    fn the_order_is_that_of_the_seed() {
        let order = |seed| {
            let permutation = Permutation::new(100_000, seed);
            (0..5).map(|position| permutation.at(position)).collect::<Vec<_>>()
        };
        assert_eq!(order(123), order(123));
        assert_ne!(order(123), order(124));
    }

    /// Chi-square of where element counts fall over many seeds, 10 bins: 27.9 is its 0.1 % point.
    fn check_uniform(len: u64, position: u64) {
        let mut bins = [0f64; 10];
        let seeds = 20_000;
        for seed in 0..seeds {
            let value = Permutation::new(len, seed).at(position);
            bins[(u128::from(value) * 10 / u128::from(len)) as usize] += 1.0;
        }
        let expected = seeds as f64 / 10.0;
        let chi: f64 = bins.iter().map(|count| (count - expected).powi(2) / expected).sum();
        assert!(chi < 27.9, "element {position} of {len}: chi-square {chi:.1}");
    }

    #[test]
    fn an_element_lands_anywhere_with_equal_chance() {
        for (len, position) in [(10, 0), (10, 9), (1000, 500), (5000, 0), (5000, 4999)] {
            check_uniform(len, position);
        }
        check_uniform(277_203_535, 0);
        check_uniform(277_203_535, 277_203_534);
    }

    #[test]
    fn neighbors_do_not_stay_neighbors() {
        let permutation = Permutation::new(1_000_000, 5);
        let near = (1..100_000)
            .filter(|&p| permutation.at(p).abs_diff(permutation.at(p - 1)) < 1000)
            .count();
        // Two uniform draws are that near with probability 0.2 %: 200 of 100 000 expected.
        assert!((120..280).contains(&near), "{near} near neighbors");
    }
}
