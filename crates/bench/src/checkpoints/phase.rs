//! A run that only checkpoints: all saves, then all loads, oldest first, as in DLIO.

use std::sync::atomic::Ordering;

use feedline_ranks::Ranks;

use crate::checkpoints::job::SaveJob;
use crate::checkpoints::saver::{CheckpointLabel, Saver};
use crate::error::{BenchError, Result};
use crate::observer::{Checkpointing, Observer};
use crate::results::host::Host;
use crate::results::metrics::StrictTally;
use crate::results::moment::Moment;
use crate::results::outcome::{CheckpointOutcome, Direction, EpochOutcome, RankOutcome};
use crate::results::step_log::StepLog;
use crate::run::journal::Journal;

/// The epoch under which everything is kept and reported.
const EPOCH: u32 = 1;

/// One rank at work.
pub(crate) struct CheckpointPhase<'a> {
    pub(crate) job: &'a SaveJob<'a>,
    pub(crate) ranks: &'a dyn Ranks,
    pub(crate) journal: &'a Journal,
    pub(crate) observer: &'a dyn Observer,
}

impl CheckpointPhase<'_> {
    /// Saves and loads; ends early, with what there is, when a stop is asked for.
    pub(crate) fn run(&self, mut saver: Saver<'_>, log: StepLog) -> Result<RankOutcome> {
        let start = Moment::now(self.job.clock);
        let meminfo = Host::meminfo_now();
        let mut ended = Vec::new();
        saver.begin();
        let writes = self.job.workload.checkpoint.num_checkpoints_write.unwrap_or(0);
        for number in 1..=writes {
            if !self.wait()? {
                break;
            }
            self.announce(Direction::Save, number, writes);
            let label = CheckpointLabel { epoch: EPOCH, step: number };
            self.list(&mut ended, saver.save(label, number)?);
        }
        let drained = self.job.clock.now();
        self.list(&mut ended, saver.drain(writes)?);
        let drain_ns = self.job.clock.now() - drained;
        let reads = self.job.workload.checkpoint.num_checkpoints_read.unwrap_or(0);
        for (number, name) in (1..=reads).zip(saver.loadable()) {
            if !self.wait()? {
                break;
            }
            self.announce(Direction::Load, number, reads);
            self.list(&mut ended, saver.load(&name)?.into_iter().collect());
        }
        if self.ranks.rank() == 0 {
            self.observer.phase_ends();
        }
        let end = Moment::now(self.job.clock);
        let epoch = EpochOutcome {
            number: EPOCH,
            start,
            train_end: end.clone(),
            end: end.clone(),
            blocks: Vec::new(),
            eval: None,
            checkpoints: ended,
            strict: StrictTally::default(),
            samples: 0,
            sample_bytes: 0,
            cached_share: None,
            meminfo,
        };
        Ok(RankOutcome {
            epochs: vec![epoch],
            meter: feedline_store::Meter::default(),
            done_ns: end.ns,
            saving: crate::results::outcome::SavingTally { drain_ns, ..saver.tally() },
            steps: log.finish().map_err(|source| BenchError::Output {
                file: "step log in the output folder".into(),
                source,
            })?,
        })
    }

    /// Waits for as long as the workload says, together with the other ranks; false if a stop was
    /// asked for.
    fn wait(&self) -> Result<bool> {
        if let Some(seconds) = self.job.workload.checkpoint.time_between_checkpoints {
            self.job.clock.sleep_unless((seconds * 1e9) as u64, &self.job.stop);
        }
        let stop = u64::from(self.job.stop.load(Ordering::Relaxed));
        Ok(self.ranks.max(stop)? == 0)
    }

    fn announce(&self, direction: Direction, number: u64, of: u64) {
        if self.ranks.rank() == 0 {
            self.observer.checkpointing(Checkpointing { direction, number, of });
            let verb = match direction {
                Direction::Save => "Saving",
                Direction::Load => "Loading",
            };
            self.journal.output(&format!("{verb} checkpoint {number} of {of}"));
        }
    }

    fn list(&self, all: &mut Vec<CheckpointOutcome>, ended: Vec<CheckpointOutcome>) {
        for mut outcome in ended {
            outcome.number = number_behind(all, outcome.direction);
            if self.ranks.rank() == 0 {
                self.journal.output(&ended_line(&outcome, EPOCH));
            }
            all.push(outcome);
        }
    }
}

/// The number of the next one in that direction.
pub(crate) fn number_behind(all: &[CheckpointOutcome], direction: Direction) -> u32 {
    all.iter().filter(|one| one.direction == direction).count() as u32 + 1
}

/// What the log says of a checkpoint that is done, in DLIO's words: rank 0's time, everybody's bytes.
pub(crate) fn ended_line(ended: &CheckpointOutcome, epoch: u32) -> String {
    let seconds = ended.end.seconds_since(&ended.start);
    let verb = match ended.direction {
        Direction::Save => "saving",
        Direction::Load => "loading",
    };
    let rate = ended.bytes_of_all as f64 / f64::from(1 << 30) / seconds;
    format!(
        "Finished {verb} checkpoint {} for epoch {epoch} in {seconds:.4} s; \
         Throughput: {rate:.4} GB/s",
        ended.number
    )
}
