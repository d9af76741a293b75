//! Sections `train` and `evaluation`: epochs, steps and the emulated computation.

use super::time::TimeSpec;
use crate::schema::Kind::Number;
use crate::schema::used;
use crate::section::section;

/// Largest seed that NumPy's generator accepts.
const MOST_SEED: i64 = u32::MAX as i64;

section! {
    /// Epochs, steps and the emulated computation.
    pub struct Train in "train" {
        /// Number of passes over the data set.
        epochs: u32 = 1, positive() "1";
        /// Maximum number of steps per epoch (not in total, despite its name).
        total_training_steps: Option<u64> = None, optional(1) "-1";
        /// Maximum number of steps in the whole run. Specific to Feedline.
        max_steps: Option<u64> = None, optional(1) "null";
        /// Seed for all shuffling.
        seed: u32 = 123, whole(0..=MOST_SEED) "123";
        /// Shuffle each epoch differently.
        seed_change_epoch: bool = true, bool() "true";
        /// Emulated computation time per step.
        computation_time: TimeSpec = TimeSpec::default(), time() "{}", then [
            used(
                "train.computation_time_stdev", Number, "",
                "Standard deviation of `computation_time`.",
            ),
        ];
    }
}

section! {
    /// When and how long evaluation runs.
    pub struct Evaluation in "evaluation" {
        /// Emulated computation time per evaluation step.
        eval_time: TimeSpec = TimeSpec::default(), time() "{}", then [
            used("evaluation.eval_time_stdev", Number, "", "Standard deviation of `eval_time`."),
        ];
        /// First epoch after which to evaluate.
        eval_after_epoch: u32 = 1, count() "1";
        /// Epochs between evaluations.
        epochs_between_evals: u32 = 1, positive() "1";
    }
}
