//! When checkpoints are due.

use feedline_workload::Workload;

/// When checkpoints are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Schedule {
    Never,
    EverySteps(u64),
    Epochs {
        first: u32,
        every: u32,
    },
    /// As often as saving may cost that share of the training time.
    Budget {
        share: f64,
        /// Steps of the whole run after which the next one is due.
        next: u64,
    },
}

impl Schedule {
    pub(crate) fn new(workload: &Workload) -> Self {
        let checkpoint = &workload.checkpoint;
        match checkpoint.steps_between_checkpoints {
            _ if !workload.workflow.checkpoint => Self::Never,
            Some(0) => Self::Never,
            Some(steps) => Self::EverySteps(steps),
            None => match checkpoint.overhead_budget {
                // What a save costs is learned from the first.
                Some(share) => Self::Budget { share, next: 1 },
                None => Self::Epochs {
                    first: checkpoint.checkpoint_after_epoch,
                    every: checkpoint.epochs_between_checkpoints.max(1),
                },
            },
        }
    }

    /// After that step of the epoch, the so-manieth of the run.
    pub(crate) fn due_after_step(&self, step: u64, of_run: u64) -> bool {
        match *self {
            Self::EverySteps(every) => step.is_multiple_of(every),
            Self::Budget { next, .. } => of_run >= next,
            _ => false,
        }
    }

    pub(crate) fn due_after_epoch(&self, epoch: u32) -> bool {
        match *self {
            Self::Epochs { first, every } => {
                epoch >= first && (epoch - first).is_multiple_of(every)
            }
            _ => false,
        }
    }

    /// Steps that must lie between two saves so that they cost no more than they may; `None` if that
    /// is not what the schedule goes by.
    pub(crate) fn steps_for(&self, pause_ns: u64, mean_step_ns: f64) -> Option<u64> {
        match *self {
            Self::Budget { share, .. } => {
                // Of the time of `n` steps and one pause, the pause may be `share`.
                let steps = pause_ns as f64 * (1.0 - share) / (share * mean_step_ns.max(1.0));
                Some((steps.ceil() as u64).max(1))
            }
            _ => None,
        }
    }

    /// The next save is due when `of_run` steps are done.
    pub(crate) fn put_off(&mut self, of_run: u64) {
        if let Self::Budget { next, .. } = self {
            *next = of_run;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: Schedule, epochs: &[u32], steps: &[u64]) {
        let due: Vec<u32> = (1..=8).filter(|&epoch| schedule.due_after_epoch(epoch)).collect();
        assert_eq!(due, epochs, "{schedule:?}");
        let due: Vec<u64> =
            (1..=8).filter(|&step| schedule.due_after_step(step, step + 100)).collect();
        assert_eq!(due, steps, "{schedule:?}");
    }

    #[test]
    fn checkpoints_are_due_by_epoch_or_by_step_and_never_by_both() {
        check(Schedule::Never, &[], &[]);
        check(Schedule::Epochs { first: 1, every: 2 }, &[1, 3, 5, 7], &[]);
        check(Schedule::Epochs { first: 5, every: 2 }, &[5, 7], &[]);
        check(Schedule::EverySteps(3), &[], &[3, 6]);
        check(Schedule::Budget { share: 0.1, next: 107 }, &[], &[7, 8]);
    }

    #[test]
    fn a_budget_says_how_many_steps_a_pause_is_worth() {
        let schedule = Schedule::Budget { share: 0.2, next: 1 };
        // 3 s of pause in 15 s are a fifth: 12 s are steps, 6 of 2 s.
        assert_eq!(schedule.steps_for(3_000_000_000, 2e9), Some(6));
        // Half a step more than 6 makes 7.
        assert_eq!(schedule.steps_for(3_250_000_000, 2e9), Some(7));
        assert_eq!(schedule.steps_for(0, 2e9), Some(1));
        assert_eq!(Schedule::EverySteps(3).steps_for(1, 1.0), None);
    }
}
