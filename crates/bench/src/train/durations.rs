//! Emulated durations: compute, evaluation and preprocessing times drawn as the workload says.

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use feedline_workload::TimeSpec;
use rand_distr::{Distribution, Exp, Gamma, Normal, Poisson, Uniform};

/// A stream of durations. The absolute value of a draw counts, as in DLIO.
pub(crate) struct Durations {
    law: Law,
    /// By name: `rand` may replace its standard generator, and equal seeds must give equal
    /// durations for ever.
    random: ChaCha12Rng,
}

enum Law {
    Constant(f64),
    Normal(Normal<f64>),
    Uniform(Uniform<f64>),
    Gamma(Gamma<f64>),
    Exponential(Exp<f64>),
    Poisson(Poisson<f64>),
}

impl Durations {
    /// Draws by `spec`; `stream` tells the draws of different ranks and workers apart.
    pub(crate) fn new(spec: &TimeSpec, seed: u64, stream: u64) -> Self {
        let law = match *spec {
            TimeSpec::Constant { mean } => Law::Constant(mean),
            TimeSpec::Normal { mean, stdev } => {
                Normal::new(mean, stdev.abs()).map_or(Law::Constant(mean), Law::Normal)
            }
            TimeSpec::Uniform { min, max } => {
                let (low, high) = (min.min(max), min.max(max));
                Uniform::new_inclusive(low, high).map_or(Law::Constant(low), Law::Uniform)
            }
            TimeSpec::Gamma { shape, scale } => {
                Gamma::new(shape, scale).map_or(Law::Constant(0.0), Law::Gamma)
            }
            TimeSpec::Exponential { scale } => {
                Exp::new(1.0 / scale).map_or(Law::Constant(0.0), Law::Exponential)
            }
            TimeSpec::Poisson { lam } => Poisson::new(lam).map_or(Law::Constant(0.0), Law::Poisson),
        };
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&stream.to_le_bytes());
        Self { law, random: ChaCha12Rng::from_seed(key) }
    }

    /// Draws the next duration, in nanoseconds.
    pub(crate) fn next_ns(&mut self) -> u64 {
        let random = &mut self.random;
        let seconds = match &self.law {
            Law::Constant(seconds) => *seconds,
            Law::Normal(law) => law.sample(random),
            Law::Uniform(law) => law.sample(random),
            Law::Gamma(law) => law.sample(random),
            Law::Exponential(law) => law.sample(random),
            Law::Poisson(law) => law.sample(random),
        };
        (seconds.abs() * 1e9).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of 200 000 draws against those of the law, within 2 %.
    fn check(spec: TimeSpec, mean: f64, stdev: f64) {
        let mut durations = Durations::new(&spec, 1, 0);
        let draws: Vec<f64> = (0..200_000).map(|_| durations.next_ns() as f64 / 1e9).collect();
        let found = draws.iter().sum::<f64>() / draws.len() as f64;
        let spread =
            (draws.iter().map(|d| (d - found).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
        assert!((found - mean).abs() <= 0.02 * mean, "{spec:?}: mean {found}, expected {mean}");
        assert!((spread - stdev).abs() <= 0.02 * stdev, "{spec:?}: stdev {spread}, not {stdev}");
    }

    #[test]
    fn draws_follow_their_law() {
        check(TimeSpec::Normal { mean: 1.0, stdev: 0.1 }, 1.0, 0.1);
        check(TimeSpec::Uniform { min: 1.0, max: 3.0 }, 2.0, 2.0 / 12f64.sqrt());
        check(TimeSpec::Gamma { shape: 2.0, scale: 0.5 }, 1.0, 0.5 * 2f64.sqrt());
        check(TimeSpec::Exponential { scale: 0.25 }, 0.25, 0.25);
        check(TimeSpec::Poisson { lam: 4.0 }, 4.0, 2.0);
    }

    #[test]
    fn a_constant_is_the_same_every_time() {
        let mut durations = Durations::new(&TimeSpec::Constant { mean: 0.323 }, 1, 0);
        assert_eq!([durations.next_ns(), durations.next_ns()], [323_000_000, 323_000_000]);
    }

    #[test]
    fn negative_draws_count_by_their_size() {
        let mut durations = Durations::new(&TimeSpec::Constant { mean: -0.5 }, 1, 0);
        assert_eq!(durations.next_ns(), 500_000_000);
    }

    #[test]
    fn a_seed_gives_the_same_durations_for_ever() {
        let first = |spec| Durations::new(&spec, 7, 3).next_ns();
        let found = [
            first(TimeSpec::Normal { mean: 1.0, stdev: 0.5 }),
            first(TimeSpec::Uniform { min: 1.0, max: 3.0 }),
            first(TimeSpec::Gamma { shape: 2.0, scale: 0.5 }),
        ];
        assert_eq!(found, [266_028_472, 1_030_201_561, 735_868_231]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |stream| {
            Durations::new(&TimeSpec::Normal { mean: 1.0, stdev: 0.5 }, 7, stream).next_ns()
        };
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
    }
}
