//! Sections `train` and `evaluation`: epochs, steps and the emulated computation.

use super::time::TimeSpec;

/// Epochs, steps and the emulated computation.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// Passes over the data set.
    pub epochs: u32,
    /// Most steps of one epoch, as DLIO applies the key in spite of its name.
    pub total_training_steps: Option<u64>,
    /// Most steps of the whole run. A key of Feedline's own.
    pub max_steps: Option<u64>,
    /// Seed of every shuffle.
    pub seed: u32,
    /// Whether each epoch shuffles differently.
    pub seed_change_epoch: bool,
    /// Emulated computation of one step.
    pub computation_time: TimeSpec,
}

impl Default for Train {
    fn default() -> Self {
        Self {
            epochs: 1,
            total_training_steps: None,
            max_steps: None,
            seed: 123,
            seed_change_epoch: true,
            computation_time: TimeSpec::default(),
        }
    }
}

/// When and how long evaluation runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Emulated computation of one evaluation step.
    pub eval_time: TimeSpec,
    /// First epoch that is followed by an evaluation.
    pub eval_after_epoch: u32,
    /// Epochs from one evaluation to the next.
    pub epochs_between_evals: u32,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { eval_time: TimeSpec::default(), eval_after_epoch: 1, epochs_between_evals: 1 }
    }
}
