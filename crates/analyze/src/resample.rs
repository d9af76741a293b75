//! Numbers drawn again: blocks of a series, so that what hangs together stays together.
//!
//! The same seed gives the same draws on every machine and with any number of threads.

use feedline_numbers::splitmix;

/// Numbers that are drawn, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // The high half of a product is even enough for counts far below 2^64.
        ((u128::from(splitmix::next(&mut self.state)) * count as u128) >> 64) as usize
    }
}

/// How long blocks of a series are: its cube root, which is where bias and spread balance.
pub(crate) fn block_length(count: usize) -> usize {
    (1..).find(|length: &usize| length.pow(3) >= count).unwrap_or(1)
}

/// Beginnings and lengths of blocks that make as long a series as before.
pub(crate) fn blocks(count: usize, draws: &mut Draws) -> Vec<(usize, usize)> {
    let length = block_length(count).min(count);
    let mut left = count;
    let mut blocks = Vec::new();
    while left > 0 {
        let taken = length.min(left);
        blocks.push((draws.below(count - length + 1), taken));
        left -= taken;
    }
    blocks
}

/// The value below which `permille` of 1000 lie, of sorted values.
pub(crate) fn quantile<T: Copy>(sorted: &[T], permille: usize) -> Option<T> {
    let place = (sorted.len() * permille).div_ceil(1000).max(1) - 1;
    sorted.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_make_a_series_of_the_same_length() {
        for (count, length) in [(1, 1), (8, 2), (9, 3), (27, 3), (1000, 10)] {
            assert_eq!(block_length(count), length);
            let mut draws = Draws::new(1);
            for _ in 0..100 {
                let blocks = blocks(count, &mut draws);
                assert_eq!(blocks.iter().map(|block| block.1).sum::<usize>(), count);
                assert!(blocks.iter().all(|(start, length)| start + length <= count));
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_draws_for_ever() {
        assert_eq!(Draws::new(1_234_567).below(100), 35);
    }

    #[test]
    fn quantiles_are_values_that_there_are() {
        let values: Vec<u32> = (1..=20).collect();
        assert_eq!(quantile(&values, 950), Some(19));
        assert_eq!(quantile(&values, 50), Some(1));
        assert_eq!(quantile(&[7], 500), Some(7));
        assert_eq!(quantile::<u8>(&[], 500), None);
    }
}
