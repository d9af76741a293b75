//! SplitMix64: a sequence of full period with a strong mixer.
//!
//! Not for secrets. What is drawn from it (contents of samples, orders, latencies) is part of what a seed
//! means, so it gives the same numbers for ever.

/// The distance between two states.
pub const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next number of a sequence.
#[inline]
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(INCREMENT);
    finalize(*state)
}

/// The first number of the sequence that `seed` begins: a bijection that spreads every bit.
#[inline]
pub fn mix(seed: u64) -> u64 {
    finalize(seed.wrapping_add(INCREMENT))
}

/// The mixer alone, which leaves zero as it is.
#[inline]
pub fn finalize(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut state = 1_234_567;
        let drawn = [next(&mut state), next(&mut state), next(&mut state)];
        assert_eq!(drawn, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
        assert_eq!(mix(1_234_567), drawn[0]);
        assert_eq!(finalize(0), 0);
    }
}
