//! The cosine transforms of a block of 8 by 8 pixels, after Arai, Agui and Nakajima.
//!
//! In floats: without a 32-bit product in the oldest x86-64's vectors that is both faster and more
//! exact than integers. Five products a line instead of eleven, because the rest of them is folded
//! into the divisors. Each transform goes over the rows, transposes and goes over the rows again; the
//! second transposition is saved by keeping coefficients column by column.

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::quad::Quad;

/// What each frequency is scaled by along one axis: 1, then the root of 2 times cos(k pi / 16).
const SCALES: [f64; 8] = [
    1.0,
    1.387_039_845_322_147_5,
    1.306_562_964_876_376_6,
    1.175_875_602_419_358_8,
    1.0,
    0.785_694_958_387_102_2,
    0.541_196_100_146_197,
    0.275_899_379_282_943_1,
];

/// Eight rows of pixels, or eight columns of coefficients, in halves.
pub(super) type Block = [[Quad; 2]; 8];

/// What to multiply the output of [`forward`] with to get quantised coefficients.
///
/// `divisors` are row by row, the result is column by column.
pub(super) fn forward_factors(divisors: &[u8; 64]) -> Block {
    by_column(|row, column| {
        let divisor = f64::from(divisors[row * 8 + column]);
        1.0 / (divisor * SCALES[row] * SCALES[column] * 8.0)
    })
}

/// What to multiply quantised coefficients with to get the input of [`inverse`].
///
/// `divisors` are row by row, the result is column by column.
pub(super) fn inverse_factors(divisors: &[u16; 64]) -> Block {
    by_column(|row, column| {
        f64::from(divisors[row * 8 + column]) * SCALES[row] * SCALES[column] / 8.0
    })
}

/// Rows of pixels to columns of coefficients.
#[inline(always)]
pub(super) fn forward(block: &Block) -> Block {
    down_lanes(&transposed(&down_lanes(block, forward_line)), forward_line)
}

/// Columns of coefficients to rows of pixels.
#[inline(always)]
pub(super) fn inverse(block: &Block) -> Block {
    down_lanes(&transposed(&down_lanes(block, inverse_line)), inverse_line)
}

fn by_column(factor: impl Fn(usize, usize) -> f64) -> Block {
    let quad = |column, half: usize| {
        Quad::load(std::array::from_fn(|i| factor(half * 4 + i, column) as f32))
    };
    std::array::from_fn(|column| [quad(column, 0), quad(column, 1)])
}

#[inline(always)]
fn down_lanes(block: &Block, line: impl Fn([Quad; 8]) -> [Quad; 8]) -> Block {
    let (left, right) = (line(block.map(|row| row[0])), line(block.map(|row| row[1])));
    std::array::from_fn(|i| [left[i], right[i]])
}

#[inline(always)]
fn forward_line(d: [Quad; 8]) -> [Quad; 8] {
    let (s0, s1, s2, s3) = (d[0] + d[7], d[1] + d[6], d[2] + d[5], d[3] + d[4]);
    let (d0, d1, d2, d3) = (d[0] - d[7], d[1] - d[6], d[2] - d[5], d[3] - d[4]);

    let (e0, e1, e2, e3) = (s0 + s3, s1 + s2, s1 - s2, s0 - s3);
    let turn = (e2 + e3).times(FRAC_1_SQRT_2);

    let (o0, o1, o2) = (d3 + d2, d2 + d1, d1 + d0);
    let z5 = (o0 - o2).times(0.382_683_43);
    let (z2, z4) = (o0.times(0.541_196_1) + z5, o2.times(1.306_563) + z5);
    let z3 = o1.times(FRAC_1_SQRT_2);
    let (z11, z13) = (d0 + z3, d0 - z3);

    [e0 + e1, z11 + z4, e3 + turn, z13 - z2, e0 - e1, z13 + z2, e3 - turn, z11 - z4]
}

#[inline(always)]
fn inverse_line(c: [Quad; 8]) -> [Quad; 8] {
    let (p0, p1) = (c[0] + c[4], c[0] - c[4]);
    let p3 = c[2] + c[6];
    let p2 = (c[2] - c[6]).times(SQRT_2) - p3;
    let (e0, e1, e2, e3) = (p0 + p3, p1 + p2, p1 - p2, p0 - p3);

    let (z13, z10) = (c[5] + c[3], c[5] - c[3]);
    let (z11, z12) = (c[1] + c[7], c[1] - c[7]);
    let o7 = z11 + z13;
    let z5 = (z10 + z12).times(1.847_759_1);
    let o6 = z5 - z10.times(2.613_126) - o7;
    let o5 = (z11 - z13).times(SQRT_2) - o6;
    let o4 = z5 - z12.times(1.082_392_2) - o5;

    [e0 + o7, e1 + o6, e2 + o5, e3 + o4, e3 - o4, e2 - o5, e1 - o6, e0 - o7]
}

#[inline(always)]
fn transposed(block: &Block) -> Block {
    let quarter =
        |rows: usize, half: usize| Quad::transposed(std::array::from_fn(|i| block[rows + i][half]));
    let (a, b, c, d) = (quarter(0, 0), quarter(4, 0), quarter(0, 1), quarter(4, 1));
    std::array::from_fn(|i| if i < 4 { [a[i], b[i]] } else { [c[i - 4], d[i - 4]] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Element};
    use std::f64::consts::PI;

    fn noise() -> [[u8; 8]; 8] {
        let mut bytes = [[0; 8]; 8];
        Content::new(3, 4).fill(Element::UInt8, 0, bytes.as_flattened_mut());
        bytes
    }

    /// Coefficients times eight, by column.
    fn transformed(pixels: &[[u8; 8]; 8]) -> [[i16; 8]; 8] {
        let block = forward(&pixels.map(Quad::from_bytes));
        let factors = forward_factors(&[1; 64]);
        std::array::from_fn(|u| {
            let [low, high] = [0, 1].map(|half| (block[u][half] * factors[u][half]).times(8.0));
            Quad::to_words([low, high])
        })
    }

    /// The definition: equation A.3.3 of the standard.
    fn defined(pixels: &[[u8; 8]; 8], v: usize, u: usize) -> f64 {
        let wave = |place: usize, frequency: usize| {
            ((2 * place + 1) as f64 * frequency as f64 * PI / 16.0).cos()
        };
        let norm = |frequency| if frequency == 0 { 0.5f64.sqrt() } else { 1.0 };
        let places = (0..8).flat_map(|y| (0..8).map(move |x| (y, x)));
        let sum: f64 = places.map(|(y, x)| f64::from(pixels[y][x]) * wave(y, v) * wave(x, u)).sum();
        sum * norm(u) * norm(v) / 4.0
    }

    #[test]
    fn the_forward_transform_is_the_defined_one() {
        let pixels = noise();
        let found = transformed(&pixels);
        for (u, v) in (0..8).flat_map(|u| (0..8).map(move |v| (u, v))) {
            let difference = f64::from(found[u][v]) / 8.0 - defined(&pixels, v, u);
            assert!(difference.abs() < 0.07, "{v} {u}: {difference}");
        }
    }

    #[test]
    fn the_inverse_undoes_the_forward_transform() {
        let pixels = noise();
        let coefficients = transformed(&pixels);
        let factors = inverse_factors(&[1; 64]);
        let block: Block = std::array::from_fn(|u| {
            std::array::from_fn(|half| {
                let part = |i| i32::from(coefficients[u][half * 4 + i]);
                Quad::from_ints(std::array::from_fn(part)).times(0.125) * factors[u][half]
            })
        });
        assert_eq!(inverse(&block).map(Quad::to_bytes), pixels);
    }
}
