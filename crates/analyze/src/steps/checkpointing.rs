//! Checkpoints that a rank is in.

use crate::interval::Times;
use crate::row::Row;
use crate::saturating::grow;
use crate::steps::NameHint;
use crate::steps::consumption::Closing;
use crate::steps::lane_work::FrameKind;
use crate::steps::rank_state::RankState;
use crate::steps::record::{CheckpointRecord, Direction};

/// A checkpoint that the consumer is in.
#[derive(Clone, Debug)]
pub(super) struct OpenCheckpoint {
    pub(super) record: CheckpointRecord,
    pub(super) said_bytes: bool,
    pub(super) covers: Times,
    pub(super) syncs: Times,
}

impl RankState {
    pub(super) fn call_in_checkpoint(&mut self, row: &Row, hint: NameHint) {
        for open in &mut self.open_checkpoints {
            match (hint, open.record.direction) {
                (NameHint::Sync, _) => open.syncs.push(row.start_ns, row.end_ns),
                (NameHint::Write, Direction::Save) | (NameHint::Read, Direction::Load)
                    if !open.said_bytes =>
                {
                    grow(&mut open.record.bytes, row.bytes);
                }
                _ => {}
            }
        }
    }

    pub(super) fn checkpoint(&mut self, slot: u32, row: &Row, hint: NameHint) {
        let is_consumer = slot == self.facts.consumer;
        let is_inner = is_consumer && !self.open_checkpoints.is_empty();
        self.begin(slot, row, None, FrameKind::Checkpoint);
        self.activity.checkpoint.push(row.start_ns, row.end_ns);
        let direction = match hint {
            NameHint::Save => Direction::Save,
            NameHint::Load => Direction::Load,
            _ => return,
        };
        if is_inner {
            return;
        }
        if is_consumer && self.fetch.is_none() {
            self.leave_what_is_over(row.start_ns);
            self.close_step(row.start_ns, Closing::Border);
            if self.block.is_open && !self.block.is_declared {
                self.end_block(row.start_ns);
            }
            if self.window.is_open() {
                self.open_gap(row.end_ns);
            }
        }
        let record = CheckpointRecord {
            direction,
            epoch: row.epoch,
            step: row.step,
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            stall_ns: 0,
            sync_ns: 0,
            bytes: row.bytes,
        };
        if !is_consumer {
            self.out.checkpoints.push(record);
            return;
        }
        let covers = Times::from_intervals([(row.start_ns, self.deadlines.covered_until_ns)]);
        let said_bytes = row.bytes > 0;
        let syncs = Times::from_intervals([(row.start_ns, self.deadlines.synced_until_ns)]);
        self.open_checkpoints.push(OpenCheckpoint { record, said_bytes, covers, syncs });
        self.plan();
    }
}

impl OpenCheckpoint {
    pub(super) fn finish(self) -> CheckpointRecord {
        let mut record = self.record;
        let all = Times::from_intervals([(record.start_ns, record.end_ns)]);
        let stall = all.difference(&self.covers);
        record.stall_ns = stall.measure_ns();
        record.sync_ns = stall.intersection(&self.syncs).measure_ns();
        record
    }
}
