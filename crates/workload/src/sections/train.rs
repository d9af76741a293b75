//! Sections `train` and `evaluation`: epochs, steps and the emulated computation.

use super::time::TimeSpec;

/// Epochs, steps and the emulated computation.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// Number of passes over the data set.
    pub epochs: u32,
    /// Maximum number of steps per epoch, which is how DLIO uses the key despite its name.
    pub total_training_steps: Option<u64>,
    /// Maximum number of steps in the whole run. Specific to Feedline.
    pub max_steps: Option<u64>,
    /// Seed for all shuffling.
    pub seed: u32,
    /// Whether each epoch shuffles differently.
    pub seed_change_epoch: bool,
    /// Emulated computation time per step.
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
    /// Emulated computation time per evaluation step.
    pub eval_time: TimeSpec,
    /// First epoch after which to evaluate.
    pub eval_after_epoch: u32,
    /// Epochs between evaluations.
    pub epochs_between_evals: u32,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { eval_time: TimeSpec::default(), eval_after_epoch: 1, epochs_between_evals: 1 }
    }
}
