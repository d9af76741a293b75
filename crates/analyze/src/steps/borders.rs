//! What steps are part of: trainings and evaluations of an epoch, and blocks between checkpoints.

use crate::analysis::Phase;
use crate::row::{NONE, Row};
use crate::steps::NameHint;
use crate::steps::consumption::Closing;
use crate::steps::lane_roles::{Grouping, LaneRole};
use crate::steps::rank_state::RankState;
use crate::steps::record::{BlockRecord, PhaseRecord};

impl RankState {
    pub(super) fn pipeline(&mut self, row: &Row, hint: NameHint) {
        let phase = match hint {
            NameHint::Train => Phase::Train,
            NameHint::Evaluate => Phase::Evaluate,
            NameHint::Block => {
                self.leave_what_is_over(row.start_ns);
                self.close_step(row.start_ns, Closing::Border);
                if !self.phase.is_open || (!self.phase.is_declared && self.of_another_epoch(row)) {
                    self.enter_phase(row, Phase::Train);
                    self.phase.is_declared = false;
                }
                self.end_block(row.start_ns);
                self.push_block(row.start_ns, row.end_ns);
                self.block.is_declared = true;
                self.open_gap(row.start_ns);
                return;
            }
            _ => return,
        };
        self.leave_what_is_over(row.start_ns);
        self.end_phase(row.start_ns);
        self.enter_phase(row, phase);
        self.phase.is_declared = true;
        self.open_gap(row.start_ns);
    }

    pub(super) fn of_another_epoch(&self, row: &Row) -> bool {
        let epoch = self.out.phases.last().map_or(NONE, |phase| phase.epoch);
        row.epoch != NONE && row.epoch != epoch
    }

    pub(super) fn enter_phase(&mut self, row: &Row, phase: Phase) {
        self.end_phase(row.start_ns);
        let before = self.out.phases.iter().filter(|before| before.phase == phase).count() as u32;
        let last_end_ns = self.out.phases.last().map_or(i64::MIN, |last| last.end_ns);
        let first = self.out.steps.len();
        self.out.phases.push(PhaseRecord {
            phase,
            epoch: if row.epoch == NONE { before + 1 } else { row.epoch },
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            steps: first..first,
            ..PhaseRecord::default()
        });
        self.phase.is_open = true;
        self.pending.drop_before(last_end_ns);
    }

    /// A fetch belongs to a phase and a block, said or not.
    pub(super) fn enter_block(&mut self, row: &Row) {
        if !self.phase.is_open {
            self.enter_phase(row, Phase::Train);
            self.phase.is_declared = false;
        }
        if !self.block.is_open {
            let phase = self.out.phases.last();
            let begins = self.out.blocks.last().is_none_or(|last| {
                phase
                    .is_some_and(|phase| last.end_ns <= phase.start_ns || last.phase != phase.phase)
            });
            let start_ns = match phase {
                Some(phase) if begins && self.phase.is_declared => phase.start_ns,
                _ => row.start_ns,
            };
            self.push_block(start_ns, i64::MAX);
            self.block.is_declared = false;
        }
    }

    pub(super) fn push_block(&mut self, start_ns: i64, end_ns: i64) {
        let Some(phase) = self.out.phases.last() else { return };
        let of_phase = |block: &&BlockRecord| {
            block.steps.start >= phase.steps.start && block.start_ns >= phase.start_ns
        };
        let before = self.out.blocks.last().filter(of_phase).map_or(0, |block| block.block);
        let first = self.out.steps.len();
        self.out.blocks.push(BlockRecord {
            phase: phase.phase,
            epoch: phase.epoch,
            block: before + 1,
            start_ns,
            end_ns,
            steps: first..first,
        });
        self.block.is_open = true;
    }

    /// Closes phases and blocks that end before now.
    pub(super) fn leave_what_is_over(&mut self, now_ns: i64) {
        if self.block.is_open && self.block.is_declared {
            let end_ns = self.out.blocks.last().map_or(i64::MAX, |block| block.end_ns);
            if end_ns <= now_ns {
                self.close_step(end_ns, Closing::Border);
                self.end_block(end_ns);
                self.open_gap(end_ns);
            }
        }
        if self.phase.is_open && self.phase.is_declared {
            let end_ns = self.out.phases.last().map_or(i64::MAX, |phase| phase.end_ns);
            if end_ns <= now_ns {
                self.end_phase(end_ns);
                self.open_gap(end_ns);
            }
        }
    }

    pub(super) fn end_block(&mut self, now_ns: i64) {
        if !std::mem::take(&mut self.block.is_open) {
            return;
        }
        let steps = self.out.steps.len();
        let worked_ns = self.deadlines.worked_until_ns;
        if let Some(block) = self.out.blocks.last_mut() {
            if !self.block.is_declared {
                block.end_ns = if self.phase.is_declared { now_ns } else { now_ns.min(worked_ns) };
            }
            block.end_ns = block.end_ns.max(block.start_ns);
            block.steps.end = steps;
        }
    }

    pub(super) fn end_phase(&mut self, now_ns: i64) {
        if !self.phase.is_open {
            return;
        }
        let said_ns = match (self.phase.is_declared, self.block.is_declared) {
            (true, _) => self.out.phases.last().map(|phase| phase.end_ns),
            (_, true) => self.out.blocks.last().map(|block| block.end_ns),
            _ => None,
        };
        let end_ns = now_ns.min(said_ns.unwrap_or(self.deadlines.worked_until_ns));
        self.close_step(end_ns, Closing::Border);
        self.end_block(end_ns);
        self.phase.is_open = false;
        let workers = self.number_workers();
        let Some(phase) = self.out.phases.last_mut() else { return };
        phase.end_ns = end_ns.max(phase.start_ns);
        phase.steps.end = self.out.steps.len();
        phase.workers = workers;
    }

    /// Numbers the workers of the phase, in their order, and tells its steps; how many there are.
    pub(super) fn number_workers(&mut self) -> u32 {
        let mut of_phase: Vec<(u32, u32)> = Vec::new();
        for (slot, role) in (0u32..).zip(&self.facts.lane_roles) {
            let lane = &mut self.lanes[slot as usize];
            let rounds = std::mem::take(&mut lane.rounds);
            if let (LaneRole::Worker(order), true) = (role, rounds > 0) {
                of_phase.push((*order, slot));
            }
            if self.facts.grouping != Grouping::Batches {
                lane.finish_item();
            }
        }
        of_phase.sort_unstable();
        let first = self.out.phases.last().map_or(0, |phase| phase.steps.start);
        for (step, slot) in self.out.steps[first..].iter_mut().zip(self.slots.drain(..)) {
            let place = of_phase.iter().position(|(_, of_phase)| *of_phase == slot);
            step.worker = place.map(|place| place as u32);
        }
        of_phase.len() as u32
    }
}
