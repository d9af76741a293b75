//! NumPy's legacy generator, as far as data-set sizes need it.
//!
//! DLIO seeds `numpy.random` with 10 and draws normals for the sample sizes of every file. To make
//! data sets of the same sizes, the same stream must come out here: MT19937 with single-integer
//! seeding, 53-bit doubles from two words, and the polar Gaussian whose second value is kept.

use rand_mt::Mt;

/// The Gaussian stream of `numpy.random.seed(seed)`.
pub(crate) struct LegacyNormals {
    words: Mt,
    kept: Option<f64>,
}

impl LegacyNormals {
    pub(crate) fn new(seed: u32) -> Self {
        Self { words: Mt::new(seed), kept: None }
    }

    /// The next draw of `normal(mean, stdev)`.
    pub(crate) fn next(&mut self, mean: f64, stdev: f64) -> f64 {
        mean + stdev * self.standard()
    }

    fn standard(&mut self) -> f64 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        loop {
            let x1 = 2.0 * self.double() - 1.0;
            let x2 = 2.0 * self.double() - 1.0;
            let square = x1 * x1 + x2 * x2;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.kept = Some(factor * x1);
                return factor * x2;
            }
        }
    }

    fn double(&mut self) -> f64 {
        let high = f64::from(self.words.next_u32() >> 5);
        let low = f64::from(self.words.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_normals_of_seed_10_are_numpys() {
        let mut normals = LegacyNormals::new(10);
        let drawn: Vec<String> = (0..5).map(|_| format!("{:.8}", normals.next(0.0, 1.0))).collect();
        assert_eq!(drawn, ["1.33158650", "0.71527897", "-1.54540029", "-0.00838385", "0.62133597"]);
    }
}
