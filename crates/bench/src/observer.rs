//! Where a run tells how it goes, while it goes.

use feedline_dataset::{GenerationProgress, VerificationProgress};

use crate::results::outcome::Direction;

/// What the steps of an epoch are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Training.
    Training,
    /// The evaluation that follows it.
    Evaluation,
}

/// How far an epoch's training or evaluation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepping {
    /// Which of the two.
    pub pass: Pass,
    /// The epoch, from 1.
    pub epoch: u32,
    /// Number of epochs of the run.
    pub epochs: u32,
    /// Steps made in this epoch.
    pub step: u64,
    /// Steps of this epoch.
    pub steps: u64,
    /// How it goes, once a step has been made.
    pub rates: Option<Rates>,
}

/// Which checkpoint of a run that only checkpoints is saved or loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpointing {
    /// Whether it is saved or loaded.
    pub direction: Direction,
    /// Its number, from 1.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

/// How an epoch goes so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Share of the time that rank 0 computed.
    pub busy_percent: f64,
    /// Samples per second, all ranks.
    pub samples_per_s: f64,
    /// Bytes of samples per second, all ranks.
    pub bytes_per_s: f64,
    /// What the rest of the epoch takes if it goes on like this.
    pub seconds_left: f64,
}

/// How important a line of the log is; DLIO's levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details of each step.
    Info,
    /// The run goes on, but its numbers may not mean what they seem to.
    Warning,
    /// What a user normally sees.
    Output,
    /// The run cannot go on.
    Error,
}

impl Level {
    /// The name at the start of a log line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Output => "OUTPUT",
            Self::Error => "ERROR",
        }
    }
}

/// Hears what a run has to say. Calls come from the run's own threads and must return at once.
pub trait Observer: Send + Sync {
    /// A line of the log.
    fn line(&self, _level: Level, _text: &str) {}

    /// Data generation went on.
    fn generating(&self, _progress: GenerationProgress) {}

    /// The check of a data set went on.
    fn verifying(&self, _progress: VerificationProgress) {}

    /// An epoch's training or evaluation begins (step 0), or a step was made.
    fn stepping(&self, _progress: Stepping) {}

    /// A checkpoint is about to be saved or loaded, in a run that does nothing else.
    fn checkpointing(&self, _progress: Checkpointing) {}

    /// Progress of the current phase ends here.
    fn phase_ends(&self) {}
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
