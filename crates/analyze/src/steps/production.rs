//! The side of the workers: batches, samples, and what is done with them.

use crate::layer::StackLayer;
use crate::row::{NONE, Row};
use crate::steps::EventClass;
use crate::steps::lane_roles::Grouping;
use crate::steps::lane_work::{FrameKind, NO_ITEM};
use crate::steps::pending::{PendingBatch, Stage};
use crate::steps::rank_state::RankState;

impl RankState {
    pub(super) fn batch(&mut self, slot: u32, row: &Row) {
        if row.start_ns == row.end_ns {
            let mut item = PendingBatch::new(slot, row.epoch, row.step, row.start_ns, row.end_ns);
            item.concurrency = self.at_work(slot, row.start_ns);
            item.samples = std::mem::take(&mut self.samples.loose);
            let lane = &mut self.lanes[slot as usize];
            lane.advance(row.start_ns, &self.window, &mut self.pending);
            let number = self.pending.push(item);
            lane.mark_item(number, &self.window, &mut self.pending);
        } else {
            self.start_item(slot, row);
            self.begin(slot, row, None, FrameKind::Batch);
        }
        self.count_outstanding(row.start_ns);
    }

    pub(super) fn start_item(&mut self, slot: u32, row: &Row) {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(row.start_ns, &self.window, &mut self.pending);
        let mut item = PendingBatch::new(slot, row.epoch, row.step, row.start_ns, row.end_ns);
        item.concurrency = self.at_work(slot, row.start_ns);
        let number = self.pending.push(item);
        self.lanes[slot as usize].start_item(number, &self.window, &mut self.pending);
    }

    /// Lanes that are at work then, this one among them.
    pub(super) fn at_work(&self, slot: u32, at_ns: i64) -> u32 {
        let others =
            self.busy.iter().filter(|busy| **busy != slot && **busy != self.facts.consumer);
        1 + others.filter(|busy| self.lanes[**busy as usize].is_at_work(at_ns)).count() as u32
    }

    /// Counts batches that are begun and not taken. One that is there while its fetch goes on has been
    /// taken: workers hear of that before the fetch ends.
    pub(super) fn count_outstanding(&mut self, now_ns: i64) {
        let is_going = |item: &PendingBatch| {
            let is_it = self.fetch.is_some_and(|f| item.step == NONE || item.step == f.step);
            is_it && item.is_whole && item.end_ns <= now_ns
        };
        let under_way = self.pending.waiting().count() as u32;
        let going = u32::from(self.pending.waiting().any(|(_, item)| is_going(item)));
        if let Some(phase) = self.out.phases.last_mut().filter(|_| self.phase.is_open) {
            phase.outstanding = phase.outstanding.max(under_way - going);
        }
    }

    pub(super) fn sample(&mut self, slot: u32, row: &Row) {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(row.start_ns, &self.window, &mut self.pending);
        let events_before = lane.sample_events;
        lane.sample_events += 1;
        if lane.is_in_sample() {
            self.begin(slot, row, None, FrameKind::Part);
            return;
        }
        if events_before > 0 {
            self.samples.events_each.get_or_insert(events_before);
        }
        if slot == self.facts.consumer {
            self.samples.own += 1;
        }
        match self.facts.grouping {
            Grouping::Batches => {}
            _ if slot == self.facts.consumer => {}
            _ => self.sample_of_group(slot, row),
        }
        match self.pending.get_mut(self.lanes[slot as usize].item) {
            Some(item) => item.samples += 1,
            None => self.samples.loose += 1,
        }
        self.begin(slot, row, None, FrameKind::Sample);
    }

    /// A sample of a lane whose batches have no spans: of the batch that it is at, or of the next.
    pub(super) fn sample_of_group(&mut self, slot: u32, row: &Row) {
        let group_size = self.group_size();
        let lane = &mut self.lanes[slot as usize];
        let goes_on = match self.pending.get_mut(lane.item) {
            None => false,
            Some(item) if row.step != NONE || item.step != NONE => {
                (item.epoch, item.step) == (row.epoch, row.step)
            }
            Some(item) => group_size.is_none_or(|size| u64::from(item.samples) < size),
        };
        if goes_on {
            lane.resume(row.start_ns, &self.window, &mut self.pending);
        } else {
            self.start_item(slot, row);
            self.count_outstanding(row.start_ns);
        }
        let is_whole = row.step != NONE || group_size.is_none();
        if let Some(item) = self.pending.get_mut(self.lanes[slot as usize].item) {
            item.is_whole = is_whole || group_size == Some(u64::from(item.samples) + 1);
            item.end_ns = row.end_ns;
        }
    }

    /// Its batch was taken from a lane whose batches have no spans. What it is in belongs to the next.
    pub(super) fn release(&mut self, slot: u32, end_ns: i64) {
        let lane = &mut self.lanes[slot as usize];
        lane.finish_item();
        if lane.is_in_work() {
            let mut item = PendingBatch::new(slot, NONE, NONE, end_ns, i64::MAX);
            item.samples = 1;
            let number = self.pending.push(item);
            lane.start_item(number, &self.window, &mut self.pending);
        }
    }

    /// Samples of a batch, once a whole sample has told how many events it has.
    pub(super) fn group_size(&self) -> Option<u64> {
        let Grouping::Counted { events, steps } = self.facts.grouping else { return None };
        let per_batch = self.samples.events_each?.saturating_mul(steps);
        events.is_multiple_of(per_batch).then(|| events / per_batch).filter(|size| *size > 0)
    }

    /// Decoding, transforming, putting together.
    pub(super) fn work(&mut self, slot: u32, row: &Row, class: EventClass) {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(row.start_ns, &self.window, &mut self.pending);
        let is_outermost = !lane.is_in_work() && slot != self.facts.consumer;
        let has_item = lane.item != NO_ITEM;
        let cause = class.cause.unwrap_or(self.facts.own);
        match class.layer {
            // A batch is put together from samples after the last one: that is part of it.
            StackLayer::Collate | StackLayer::Transform if is_outermost && has_item => {
                lane.resume(row.start_ns, &self.window, &mut self.pending);
                self.begin(slot, row, class.cause, FrameKind::Sample);
            }
            StackLayer::Collate | StackLayer::Transform if is_outermost && row.step != NONE => {
                self.pending.push_stage(Stage {
                    epoch: row.epoch,
                    step: row.step,
                    start_ns: row.start_ns,
                    end_ns: row.end_ns,
                    cause,
                });
                self.begin(slot, row, class.cause, FrameKind::Part);
            }
            StackLayer::Decode if is_outermost && self.facts.grouping == Grouping::SinceTaken => {
                self.sample_of_group(slot, row);
                if let Some(item) = self.pending.get_mut(self.lanes[slot as usize].item) {
                    item.samples += 1;
                }
                self.begin(slot, row, class.cause, FrameKind::Sample);
            }
            _ => self.begin(slot, row, class.cause, FrameKind::Part),
        }
    }
}
