//! Checkpoints that a rank is in.

use crate::interval::Times;
use crate::row::Row;
use crate::saturating::grow;
use crate::steps::Word;
use crate::steps::consumption::Closing;
use crate::steps::lane_work::Role;
use crate::steps::record::{CheckpointRecord, Direction};
use crate::steps::unit_model::UnitModel;

/// A checkpoint that the consumer is in.
#[derive(Clone, Debug)]
pub(super) struct OpenCheckpoint {
    pub(super) record: CheckpointRecord,
    pub(super) said_bytes: bool,
    pub(super) covers: Times,
    pub(super) syncs: Times,
}

impl UnitModel {
    pub(super) fn call_in_checkpoint(&mut self, row: &Row, word: Word) {
        for open in &mut self.checkpoints {
            match (word, open.record.direction) {
                (Word::Sync, _) => open.syncs.push(row.start_ns, row.end_ns),
                (Word::Write, Direction::Save) | (Word::Read, Direction::Load)
                    if !open.said_bytes =>
                {
                    grow(&mut open.record.bytes, row.bytes);
                }
                _ => {}
            }
        }
    }

    pub(super) fn checkpoint(&mut self, slot: u32, row: &Row, word: Word) {
        let is_consumer = slot == self.consumer;
        let is_inner = is_consumer && !self.checkpoints.is_empty();
        self.begin(slot, row, None, Role::Checkpoint);
        self.checkpoint.push(row.start_ns, row.end_ns);
        let direction = match word {
            Word::Save => Direction::Save,
            Word::Load => Direction::Load,
            _ => return,
        };
        if is_inner {
            return;
        }
        if is_consumer && self.fetch.is_none() {
            self.leave_what_is_over(row.start_ns);
            self.close_step(row.start_ns, Closing::Border);
            if self.block_is_open && !self.block_is_said {
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
        let covers = Times::of([(row.start_ns, self.covered_until_ns)]);
        let said_bytes = row.bytes > 0;
        let syncs = Times::of([(row.start_ns, self.synced_until_ns)]);
        self.checkpoints.push(OpenCheckpoint { record, said_bytes, covers, syncs });
        self.plan();
    }
}

impl OpenCheckpoint {
    pub(super) fn finish(self) -> CheckpointRecord {
        let mut record = self.record;
        let all = Times::of([(record.start_ns, record.end_ns)]);
        let stall = all.difference(&self.covers);
        record.stall_ns = stall.measure_ns();
        record.sync_ns = stall.intersection(&self.syncs).measure_ns();
        record
    }
}
