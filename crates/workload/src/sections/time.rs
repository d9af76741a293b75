//! The duration of emulated work.

/// A duration in seconds: fixed, or drawn from a distribution for each piece of work.
///
/// Some distributions can draw negative values; the wait is then the absolute value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeSpec {
    /// Always the same.
    Constant {
        /// Seconds.
        mean: f64,
    },
    /// Normal distribution.
    Normal {
        /// Mean in seconds.
        mean: f64,
        /// Standard deviation in seconds.
        stdev: f64,
    },
    /// Uniform distribution.
    Uniform {
        /// Minimum in seconds.
        min: f64,
        /// Maximum in seconds.
        max: f64,
    },
    /// Gamma distribution.
    Gamma {
        /// Shape, without unit.
        shape: f64,
        /// Scale in seconds.
        scale: f64,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean in seconds.
        scale: f64,
    },
    /// Poisson distribution: whole seconds.
    Poisson {
        /// Mean in seconds.
        lam: f64,
    },
}

impl Default for TimeSpec {
    fn default() -> Self {
        Self::Constant { mean: 0.0 }
    }
}

impl TimeSpec {
    /// The mean of the distribution in seconds, before the absolute value is taken.
    pub fn mean_seconds(&self) -> f64 {
        match *self {
            Self::Constant { mean } | Self::Normal { mean, .. } => mean,
            Self::Uniform { min, max } => (min + max) / 2.0,
            Self::Gamma { shape, scale } => shape * scale,
            Self::Exponential { scale } => scale,
            Self::Poisson { lam } => lam,
        }
    }

    /// The largest of the distribution's parameters.
    pub fn largest_parameter(&self) -> f64 {
        match *self {
            Self::Constant { mean } => mean,
            Self::Normal { mean, stdev } => mean.max(stdev),
            Self::Uniform { min, max } => min.max(max),
            Self::Gamma { shape, scale } => (shape * scale).max(scale),
            Self::Exponential { scale } => scale,
            Self::Poisson { lam } => lam,
        }
    }

    /// Whether every draw is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_each_distribution_is_that_of_the_textbook() {
        #[track_caller]
        fn check(spec: TimeSpec, mean: f64) {
            assert_eq!(spec.mean_seconds(), mean);
        }
        check(TimeSpec::default(), 0.0);
        check(TimeSpec::Normal { mean: 1.5, stdev: 9.0 }, 1.5);
        check(TimeSpec::Uniform { min: 1.0, max: 2.0 }, 1.5);
        check(TimeSpec::Gamma { shape: 2.0, scale: 3.0 }, 6.0);
        check(TimeSpec::Exponential { scale: 0.25 }, 0.25);
        check(TimeSpec::Poisson { lam: 4.0 }, 4.0);
    }
}
