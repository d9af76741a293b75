//! Four floats side by side, for the transforms.
//!
//! Compilers vectorise the sums of a transform, but not the transposition in its middle, which then
//! costs more than all the rest. So on x86-64 the vectors are spelt out, with SSE2, which every such
//! processor has and which `safe_arch` lets safe code use; elsewhere they are arrays.

#[cfg(target_arch = "x86_64")]
mod lanes {
    use safe_arch::*;

    pub(in super::super) type Lanes = m128;

    #[inline(always)]
    pub(super) fn load(values: [f32; 4]) -> Lanes {
        m128::from_array(values)
    }

    #[inline(always)]
    pub(super) fn from_ints(values: [i32; 4]) -> Lanes {
        convert_to_m128_from_i32_m128i(m128i::from(values))
    }

    #[inline(always)]
    pub(super) fn from_bytes(bytes: [u8; 8]) -> [Lanes; 2] {
        let zero = zeroed_m128i();
        let words = unpack_low_i8_m128i(set_i64_m128i_s(i64::from_le_bytes(bytes)), zero);
        [unpack_low_i16_m128i(words, zero), unpack_high_i16_m128i(words, zero)]
            .map(convert_to_m128_from_i32_m128i)
    }

    #[inline(always)]
    pub(super) fn to_bytes(low: Lanes, high: Lanes) -> [u8; 8] {
        let words = rounded(low, high);
        get_i64_from_m128i_s(pack_i16_to_u8_m128i(words, words)).to_le_bytes()
    }

    #[inline(always)]
    pub(super) fn to_words(low: Lanes, high: Lanes) -> [i16; 8] {
        rounded(low, high).into()
    }

    #[inline(always)]
    pub(super) fn nonzero(words: &[[i16; 8]; 8]) -> u64 {
        let zeros = |i: usize| cmp_eq_mask_i16_m128i(m128i::from(words[i]), zeroed_m128i());
        let sixteen = |i: usize| {
            let bytes = pack_i16_to_i8_m128i(zeros(i), zeros(i + 1));
            move_mask_i8_m128i(bytes) as u16
        };
        let parts = [sixteen(0), sixteen(2), sixteen(4), sixteen(6)].map(u64::from);
        !(parts[0] | parts[1] << 16 | parts[2] << 32 | parts[3] << 48)
    }

    #[inline(always)]
    fn rounded(low: Lanes, high: Lanes) -> m128i {
        let [low, high] = [low, high].map(convert_to_i32_m128i_from_m128);
        pack_i32_to_i16_m128i(low, high)
    }

    #[inline(always)]
    pub(super) fn add(a: Lanes, b: Lanes) -> Lanes {
        add_m128(a, b)
    }

    #[inline(always)]
    pub(super) fn sub(a: Lanes, b: Lanes) -> Lanes {
        sub_m128(a, b)
    }

    #[inline(always)]
    pub(super) fn mul(a: Lanes, b: Lanes) -> Lanes {
        mul_m128(a, b)
    }

    #[inline(always)]
    pub(super) fn transposed([mut a, mut b, mut c, mut d]: [Lanes; 4]) -> [Lanes; 4] {
        transpose_four_m128(&mut a, &mut b, &mut c, &mut d);
        [a, b, c, d]
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "compared in a test"))]
mod arrays {
    pub(in super::super) type Lanes = [f32; 4];

    #[inline(always)]
    pub(super) fn load(v: [f32; 4]) -> Lanes {
        v
    }

    #[inline(always)]
    pub(super) fn from_ints(v: [i32; 4]) -> Lanes {
        v.map(|value| value as f32)
    }

    #[inline(always)]
    pub(super) fn from_bytes(bytes: [u8; 8]) -> [Lanes; 2] {
        [0, 4].map(|half| std::array::from_fn(|i| f32::from(bytes[half + i])))
    }

    #[inline(always)]
    pub(super) fn to_bytes(low: Lanes, high: Lanes) -> [u8; 8] {
        to_words(low, high).map(|word| word.clamp(0, 255) as u8)
    }

    #[inline(always)]
    pub(super) fn to_words(low: Lanes, high: Lanes) -> [i16; 8] {
        // As the other lanes do it: to the nearest, and of two the even one.
        std::array::from_fn(|i| [low, high][i / 4][i % 4].round_ties_even() as i16)
    }

    #[inline(always)]
    pub(super) fn nonzero(words: &[[i16; 8]; 8]) -> u64 {
        let bits = words.as_flattened().iter().zip(0..);
        bits.fold(0, |mask, (&word, bit)| mask | u64::from(word != 0) << bit)
    }

    #[inline(always)]
    pub(super) fn add(a: Lanes, b: Lanes) -> Lanes {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    pub(super) fn sub(a: Lanes, b: Lanes) -> Lanes {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    pub(super) fn mul(a: Lanes, b: Lanes) -> Lanes {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    pub(super) fn transposed(rows: [Lanes; 4]) -> [Lanes; 4] {
        std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
    }
}

#[cfg(not(target_arch = "x86_64"))]
use arrays as lanes;

/// A bit for each of 64 numbers that is not zero.
#[inline(always)]
pub(super) fn nonzero(words: &[[i16; 8]; 8]) -> u64 {
    lanes::nonzero(words)
}

/// Four floats.
#[derive(Clone, Copy)]
pub(super) struct Quad(lanes::Lanes);

impl Quad {
    #[inline(always)]
    pub(super) fn load(values: [f32; 4]) -> Quad {
        Quad(lanes::load(values))
    }

    #[inline(always)]
    pub(super) fn splat(value: f32) -> Quad {
        Quad(lanes::load([value; 4]))
    }

    #[inline(always)]
    pub(super) fn from_ints(values: [i32; 4]) -> Quad {
        Quad(lanes::from_ints(values))
    }

    #[inline(always)]
    pub(super) fn from_bytes(bytes: [u8; 8]) -> [Quad; 2] {
        lanes::from_bytes(bytes).map(Quad)
    }

    /// The nearest bytes of eight numbers.
    #[inline(always)]
    pub(super) fn to_bytes([low, high]: [Quad; 2]) -> [u8; 8] {
        lanes::to_bytes(low.0, high.0)
    }

    /// The nearest integers of eight numbers.
    #[inline(always)]
    pub(super) fn to_words([low, high]: [Quad; 2]) -> [i16; 8] {
        lanes::to_words(low.0, high.0)
    }

    #[inline(always)]
    pub(super) fn times(self, factor: f32) -> Quad {
        self * Quad::splat(factor)
    }

    #[inline(always)]
    pub(super) fn transposed(rows: [Quad; 4]) -> [Quad; 4] {
        lanes::transposed(rows.map(|row| row.0)).map(Quad)
    }
}

impl std::ops::Add for Quad {
    type Output = Quad;

    #[inline(always)]
    fn add(self, other: Quad) -> Quad {
        Quad(lanes::add(self.0, other.0))
    }
}

impl std::ops::Sub for Quad {
    type Output = Quad;

    #[inline(always)]
    fn sub(self, other: Quad) -> Quad {
        Quad(lanes::sub(self.0, other.0))
    }
}

impl std::ops::Mul for Quad {
    type Output = Quad;

    #[inline(always)]
    fn mul(self, other: Quad) -> Quad {
        Quad(lanes::mul(self.0, other.0))
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{arrays, lanes};

    const A: [f32; 4] = [0.5, -1.5, 2.5, 300.0];
    const B: [f32; 4] = [-7.0, 254.5, 255.5, 1e6];

    /// Every number of the vectors, seen through the one way out that they have.
    fn check(vectors: [lanes::Lanes; 2], arrays: [arrays::Lanes; 2]) {
        assert_eq!(lanes::to_words(vectors[0], vectors[1]), arrays::to_words(arrays[0], arrays[1]));
        assert_eq!(lanes::to_bytes(vectors[0], vectors[1]), arrays::to_bytes(arrays[0], arrays[1]));
    }

    #[test]
    fn vectors_and_arrays_do_the_same() {
        let (a, b) = (lanes::load(A), lanes::load(B));
        check([a, b], [A, B]);
        check([lanes::add(a, b), lanes::sub(a, b)], [arrays::add(A, B), arrays::sub(A, B)]);
        check([lanes::mul(a, b), a], [arrays::mul(A, B), A]);
        let ints = [i32::MIN / 100_000, -3, 0, 77];
        check([lanes::from_ints(ints), b], [arrays::from_ints(ints), B]);
        let bytes = [0, 1, 127, 128, 200, 254, 255, 9];
        check(lanes::from_bytes(bytes), arrays::from_bytes(bytes));
        let mut words = [[0i16; 8]; 8];
        for (i, word) in words.as_flattened_mut().iter_mut().enumerate() {
            *word = [0, 1, -1, 256, 0, 0, -256][i % 7];
        }
        assert_eq!(lanes::nonzero(&words), arrays::nonzero(&words));
        let (turned, expected) =
            (lanes::transposed([a, b, a, b]), arrays::transposed([A, B, A, B]));
        check([turned[0], turned[1]], [expected[0], expected[1]]);
        check([turned[2], turned[3]], [expected[2], expected[3]]);
    }
}
