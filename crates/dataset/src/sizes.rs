//! How large the samples of each generated file are.

use crate::legacy_random::LegacyNormals;
use crate::spec::SampleShape;

/// The seed that DLIO draws its sizes from.
const SIZE_SEED: u32 = 10;

/// Sample dimensions file after file, in the order of the work list (training files, then
/// evaluation files), in constant memory.
pub struct SampleSizes {
    rule: Rule,
}

enum Rule {
    Fixed(Vec<u64>),
    Drawn { normals: Box<LegacyNormals>, side: f64, stdev: f64 },
}

impl SampleSizes {
    /// The sizes that `shape` asks for.
    pub fn new(shape: &SampleShape) -> Self {
        let root = shape.length_bytes.sqrt();
        let side = root.floor();
        let rule = if !shape.dims.is_empty() {
            Rule::Fixed(shape.dims.clone())
        } else if shape.length_bytes_stdev > 0.0 {
            let stdev = shape.length_bytes_stdev / (2.0 * root);
            Rule::Drawn { normals: Box::new(LegacyNormals::new(SIZE_SEED)), side, stdev }
        } else {
            Rule::Fixed(vec![side as u64; 2])
        };
        Self { rule }
    }

    /// True if every file's samples have the same dimensions.
    pub fn is_uniform(&self) -> bool {
        matches!(self.rule, Rule::Fixed(_))
    }

    /// The dimensions of a sample of the next file.
    pub fn next_dims(&mut self) -> Vec<u64> {
        match &mut self.rule {
            Rule::Fixed(dims) => dims.clone(),
            Rule::Drawn { normals, side, stdev } => {
                (0..2).map(|_| normals.next(*side, *stdev).max(1.0) as u64).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(length: f64, stdev: f64, expected: &[[u64; 2]]) {
        let mut sizes = SampleSizes::new(&SampleShape {
            length_bytes: length,
            length_bytes_stdev: stdev,
            ..SampleShape::default()
        });
        for dims in expected {
            assert_eq!(sizes.next_dims(), dims);
        }
    }

    #[test]
    fn without_spread_every_sample_is_the_same_square() {
        check(114_660.07, 0.0, &[[338, 338], [338, 338]]);
        check(2500.0, 0.0, &[[50, 50]]);
        check(2048.0, 0.0, &[[45, 45]]);
        check(146_600_628.0, 0.0, &[[12107, 12107]]);
    }

    #[test]
    fn unet3d_sizes_are_those_of_dlio() {
        let golden = [[15865, 14125], [7745, 12083], [13860, 10074], [12856, 12413]];
        check(146_600_628.0, 68_341_808.0, &golden);
    }

    #[test]
    fn cosmoflow_sizes_are_those_of_dlio() {
        let golden = [[1709, 1696], [1648, 1680], [1694, 1665], [1686, 1683]];
        check(2_828_486.0, 71_311.0, &golden);
    }

    #[test]
    fn the_168_files_of_unet3d_add_up() {
        let mut sizes = SampleSizes::new(&SampleShape {
            length_bytes: 146_600_628.0,
            length_bytes_stdev: 68_341_808.0,
            ..SampleShape::default()
        });
        let elements: Vec<u64> = (0..168).map(|_| sizes.next_dims().iter().product()).collect();
        assert_eq!(elements.iter().sum::<u64>(), 25_285_981_919);
        assert_eq!(elements.iter().min(), Some(&46_888_650));
        assert_eq!(elements.iter().max(), Some(&301_601_979));
    }

    #[test]
    fn explicit_dimensions_win() {
        let mut sizes =
            SampleSizes::new(&SampleShape { dims: vec![3, 4, 5], ..SampleShape::default() });
        assert_eq!(sizes.next_dims(), [3, 4, 5]);
    }
}
