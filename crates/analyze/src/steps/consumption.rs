//! The side of the consumer: fetches, computations, meetings, and the steps that they make.

use crate::layer::StackLayer;
use crate::row::{NONE, Row};
use crate::steps::attribution::Fetched;
use crate::steps::lane_work::FrameKind;
use crate::steps::pending::PendingBatch;
use crate::steps::rank_state::RankState;
use crate::steps::record::StepRecord;

/// The fetch that is going on.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFetch {
    pub(super) epoch: u32,
    pub(super) step: u32,
    pub(super) ready: u32,
}

/// The step that is going on.
#[derive(Clone, Debug)]
pub(super) struct OpenStep {
    pub(super) record: StepRecord,
    /// Place of its worker in the unit, or [`NONE`].
    pub(super) slot: u32,
    /// When what it is part of ends.
    pub(super) limit_ns: i64,
}

/// Computations of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Computed {
    pub(super) count: u32,
    /// When the last one ended; 0 if there is none.
    pub(super) until_ns: i64,
}

/// What ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The next fetch of the same block.
    Fetch,
    /// Anything else.
    Border,
}

impl RankState {
    pub(super) fn fetch(&mut self, row: &Row) {
        // One inside of another one is part of it.
        if self.fetch.is_none() {
            self.enter_fetch(row);
        }
        self.begin(self.facts.consumer, row, None, FrameKind::Part);
    }

    pub(super) fn enter_fetch(&mut self, row: &Row) {
        let start_ns = row.start_ns;
        self.leave_what_is_over(start_ns);
        if self.begins_anew(row) {
            self.end_phase(start_ns);
        }
        // Computation that begins where the fetch does is already the new step's.
        let mut ahead = Computed::default();
        if self.computing.last_start_ns == start_ns {
            ahead.count = self.computing.current.count - self.computing.before_last.count;
            ahead.until_ns = self.computing.current.until_ns;
            self.computing.current = self.computing.before_last;
        }
        self.close_step(start_ns, Closing::Fetch);
        self.enter_block(row);
        let ready = |item: &PendingBatch| item.is_whole && item.end_ns <= start_ns;
        let ready = self.pending.waiting().filter(|(_, item)| ready(item)).count() as u32;
        self.fetch = Some(OpenFetch { epoch: row.epoch, step: row.step, ready });
        self.window.open(start_ns, row.end_ns, self.deadlines.covered_until_ns);
        (self.computing.current, self.computing.before_last) = (ahead, Computed::default());
        self.samples.own = 0;
        self.deadlines.worked_until_ns = self.deadlines.worked_until_ns.max(row.end_ns);
        self.plan();
    }

    /// Whether an epoch begins that no span tells of: numbers begin again.
    pub(super) fn begins_anew(&self, row: &Row) -> bool {
        let Some(step) = &self.step else { return false };
        let last = &step.record;
        let next_epoch = row.epoch != NONE && row.epoch != last.epoch;
        let first_again = row.step != NONE && row.step < last.step;
        self.phase.is_open && !self.phase.is_declared && (next_epoch || first_again)
    }

    /// The fetch is over, and all that happened in it is known.
    pub(super) fn settle(&mut self) {
        let Some(fetch) = self.fetch.take() else { return };
        let end_ns = self.window.end_ns;
        self.advance_all(end_ns);
        let (phase, block) = (self.out.phases.last(), self.out.blocks.last());
        let (Some(phase), Some(block)) = (phase, block) else { return };
        let before = self.out.steps.get(phase.steps.start..).unwrap_or_default().last();
        let counted = before.map_or(1, |step| step.step.saturating_add(1));
        let mut record = StepRecord {
            phase: phase.phase,
            epoch: if fetch.epoch == NONE { phase.epoch } else { fetch.epoch },
            block: block.block,
            step: if fetch.step == NONE { counted } else { fetch.step },
            start_ns: self.window.start_ns,
            fetch_end_ns: end_ns,
            ready: fetch.ready,
            ..StepRecord::default()
        };
        let limit_ns = match (self.phase.is_declared, self.block.is_declared) {
            (_, true) => block.end_ns,
            (true, _) => phase.end_ns,
            _ => i64::MAX,
        };
        record.stall_ns = self.window.inside_ns(record.start_ns, end_ns);
        self.out.stalls_ns.extend_from_slice(self.window.stalls().parts());
        let Fetched { slot, ready_ns } = self.attribute(&mut record, (fetch.epoch, fetch.step));
        debug_assert_eq!(record.parts_ns.iter().sum::<u64>(), record.stall_ns);
        self.out.ready_ns.extend(ready_ns);
        if let Some(phase) = self.out.phases.last_mut() {
            let since = end_ns.saturating_sub(phase.start_ns).max(0).cast_unsigned();
            phase.first_batch_ns.get_or_insert(since);
        }
        self.step = Some(OpenStep { record, slot, limit_ns });
        self.window.close();
    }

    pub(super) fn computation(&mut self, slot: u32, row: &Row, layer: StackLayer) {
        let (start_ns, end_ns) = (row.start_ns, row.end_ns);
        if layer == StackLayer::Compute && slot == self.facts.consumer && !self.facts.has_fetches {
            self.compute_without_fetch(row);
        }
        self.window.cover(start_ns, end_ns);
        for open in &mut self.open_checkpoints {
            open.covers.push(start_ns, end_ns);
        }
        self.deadlines.covered_until_ns = self.deadlines.covered_until_ns.max(end_ns);
        if layer == StackLayer::Compute {
            self.activity.compute.push(start_ns, end_ns);
            if start_ns > self.computing.last_start_ns {
                self.computing.before_last = self.computing.current;
                self.computing.last_start_ns = start_ns;
            }
            self.computing.current.count += 1;
            self.computing.current.until_ns = self.computing.current.until_ns.max(end_ns);
        }
        if slot == self.facts.consumer {
            self.deadlines.worked_until_ns = self.deadlines.worked_until_ns.max(end_ns);
        }
    }

    /// What lies between two computations counts as a fetch.
    pub(super) fn compute_without_fetch(&mut self, row: &Row) {
        if row.start_ns < self.deadlines.worked_until_ns && self.step.is_some() {
            return; // Inside of another one.
        }
        let same = self.step.as_ref().is_some_and(|step| {
            row.step != NONE && (row.epoch, row.step) == (step.record.epoch, step.record.step)
        });
        if same {
            self.open_gap(row.end_ns);
            return;
        }
        self.leave_what_is_over(row.start_ns);
        if self.begins_anew(row) {
            self.end_phase(row.start_ns);
            self.window.close();
        }
        if !self.window.is_open() {
            self.window.open(row.start_ns, row.start_ns, i64::MIN);
        }
        let gap_ns = self.window.start_ns.min(row.start_ns);
        self.close_step(gap_ns, Closing::Fetch);
        self.enter_block(row);
        (self.window.start_ns, self.window.end_ns) = (gap_ns, row.start_ns);
        self.fetch = Some(OpenFetch { epoch: row.epoch, step: row.step, ready: 0 });
        (self.computing.current, self.computing.before_last) =
            (Computed::default(), Computed::default());
        self.samples.own = 0;
        self.settle();
        self.open_gap(row.end_ns);
        self.plan();
    }

    /// Where there are no fetches: from now on the consumer may be waiting.
    pub(super) fn open_gap(&mut self, at_ns: i64) {
        if !self.facts.has_fetches {
            self.window.open(at_ns, i64::MAX, self.deadlines.covered_until_ns);
        }
    }

    pub(super) fn meeting(&mut self, row: &Row) {
        self.activity.communication.push(row.start_ns, row.end_ns);
        self.deadlines.worked_until_ns = self.deadlines.worked_until_ns.max(row.end_ns);
        if let Some(step) = &mut self.step {
            step.record.meets_ns.get_or_insert((row.start_ns, row.end_ns));
        }
        if self.window.is_open() {
            self.open_gap(row.end_ns);
        }
    }

    pub(super) fn close_step(&mut self, end_ns: i64, closing: Closing) {
        let Some(OpenStep { mut record, slot, limit_ns }) = self.step.take() else { return };
        let end_ns = end_ns.min(limit_ns).max(record.fetch_end_ns);
        record.end_ns = end_ns;
        if self.facts.has_compute && self.computing.current.count == 0 && closing == Closing::Border
        {
            if let Some(phase) = self.out.phases.last_mut() {
                phase.surplus_ns += record.fetch_ns();
            }
            self.take_back_stall(&record);
            return;
        }
        record.compute_ns = self.activity.compute.take_ns(record.start_ns, end_ns);
        record.communication_ns = self.activity.communication.take_ns(record.start_ns, end_ns);
        record.checkpoint_ns = self.activity.checkpoint.take_ns(record.start_ns, end_ns);
        let done_ns = match self.computing.current.count {
            0 => record.fetch_end_ns,
            _ => self.computing.current.until_ns,
        };
        let process_ns = done_ns.min(end_ns).saturating_sub(record.start_ns);
        record.process_ns = process_ns.max(0).cast_unsigned();
        self.out.steps.push(record);
        self.slots.push(slot);
    }

    /// A fetch outside of any step has no stall.
    pub(super) fn take_back_stall(&mut self, record: &StepRecord) {
        let stalls = &mut self.out.stalls_ns;
        while stalls.last().is_some_and(|stall| stall.0 >= record.start_ns) {
            stalls.pop();
        }
    }
}
