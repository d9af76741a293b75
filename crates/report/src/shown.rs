//! What the last screen shows of a run.
//!
//! Not the [`Outcome`] itself, because that holds the ranks' step logs and cannot be made by hand:
//! the screen is a function of these values alone.

use feedline_bench::{Assessment, Outcome, Plan, StorageCounts, Summary};
use feedline_dataset::Generated;

/// Everything that the last screen shows.
#[derive(Clone)]
pub struct Shown<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// The metrics.
    pub summary: &'a Summary,
    /// The verdict and what goes with it.
    pub assessment: &'a Assessment,
    /// The data generation, if there was one.
    pub generated: Option<Generated>,
    /// What the training readers asked of the store.
    pub storage: StorageCounts,
    /// Things that the run found worth saying.
    pub warnings: &'a [String],
    /// True if the run was stopped before its end.
    pub interrupted: bool,
    /// True if ranks were at work, so that there are files of theirs.
    pub worked: bool,
    /// Where the result files are.
    pub out_folder: &'a str,
}

impl<'a> Shown<'a> {
    /// Picks the values out of a run's results.
    pub fn new(
        outcome: &'a Outcome,
        summary: &'a Summary,
        assessment: &'a Assessment,
        out_folder: &'a str,
    ) -> Self {
        Self {
            plan: &outcome.plan,
            summary,
            assessment,
            generated: outcome.generated,
            storage: outcome.storage_counts(),
            warnings: &outcome.warnings,
            interrupted: outcome.interrupted,
            worked: !outcome.ranks.is_empty(),
            out_folder,
        }
    }

    /// True if there are training numbers.
    pub(crate) fn trained(&self) -> bool {
        self.summary.train.is_some()
    }
}
