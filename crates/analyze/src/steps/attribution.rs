//! What a stall is called: the producer of the batch, and what it did meanwhile.

use crate::analysis::Confidence;
use crate::layer::{CAUSES, StallCause};
use crate::row::NONE;
use crate::steps::lane_roles::{Grouping, LaneRole};
use crate::steps::pending::{NsByCause, PendingBatch};
use crate::steps::rank_state::RankState;
use crate::steps::record::StepRecord;
use crate::steps::window::measure;

/// Who brought a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// Place of the lane in the unit, or [`NONE`].
    pub(crate) slot: u32,
    /// When the batch lay ready.
    pub(crate) ready_ns: Option<(i64, i64)>,
}

const NOBODY: Fetched = Fetched { slot: NONE, ready_ns: None };

impl RankState {
    /// Splits the stall of a fetch that is over. Its lanes have been brought up to its end.
    pub(super) fn attribute(
        &mut self,
        record: &mut StepRecord,
        (epoch, step): (u32, u32),
    ) -> Fetched {
        let found = self.producer(epoch, step, record.fetch_end_ns);
        let found =
            found.and_then(|(number, sure)| Some((self.pending.take(number)?, number, sure)));
        let found = found.map(|(mut item, number, sure)| {
            // Of samples that come one after the other, what is over is the batch.
            let is_told = self.facts.grouping == Grouping::Batches || item.step != NONE;
            if !is_told && self.group_size().is_none() {
                item.end_ns = item.ended_ns.max(item.start_ns);
            }
            (item, number, sure)
        });
        match found {
            Some((item, _, sure)) if item.slot == self.facts.consumer => {
                record.confidence = sure;
                self.of_consumer(record);
                tell_service(record, &item);
                NOBODY
            }
            Some((item, number, sure)) => {
                record.confidence = sure;
                self.of_producer(record, &item, number);
                tell_service(record, &item);
                let is_ready = item.end_ns < record.start_ns;
                let ready_ns = is_ready.then_some((item.end_ns, record.start_ns));
                Fetched { slot: item.slot, ready_ns }
            }
            None => {
                self.of_all(record);
                NOBODY
            }
        }
    }

    /// The batch that ended a fetch, and how sure that is.
    fn producer(&self, epoch: u32, step: u32, end_ns: i64) -> Option<(u64, Confidence)> {
        let begun = || self.pending.waiting().filter(|(_, item)| item.start_ns < end_ns);
        if step != NONE {
            let is_it = |item: &PendingBatch| {
                item.step == step && (item.epoch == epoch || item.epoch == NONE || epoch == NONE)
            };
            if let Some((number, _)) = begun().find(|(_, item)| is_it(item)) {
                return Some((number, Confidence::High));
            }
        }
        let untold = || begun().filter(|(_, item)| item.step == NONE);
        let by_turn = self.facts.grouping == Grouping::Batches || self.group_size().is_some();
        let found = if by_turn {
            untold().min_by_key(|(number, item)| (item.round, self.order(item.slot), *number))
        } else {
            let ended = untold().filter(|(_, item)| item.ended_ns > i64::MIN);
            ended.max_by_key(|(number, item)| (item.ended_ns, u64::MAX - number))
        };
        found.map(|(number, _)| (number, Confidence::Medium))
    }

    /// Workers take turns in this order.
    fn order(&self, slot: u32) -> u32 {
        match self.facts.lane_roles.get(slot as usize) {
            Some(LaneRole::Worker(order)) => *order,
            _ => u32::MAX,
        }
    }

    fn of_producer(&mut self, record: &mut StepRecord, item: &PendingBatch, number: u64) {
        let (stall, end_ns) = (record.stall_ns, record.fetch_end_ns);
        let lane = &self.lanes[item.slot as usize];
        let is_open = lane.item == number && item.end_ns > end_ns;
        let mut parts = match item.window_number == self.window.number {
            _ if is_open => lane.window_of_item(&self.window),
            true => item.window,
            false => [0; CAUSES],
        };
        if lane.item == number && self.facts.grouping != Grouping::Batches {
            self.release(item.slot, end_ns);
        }
        let mut left = stall - limit(&mut parts, stall);
        let after = self.window.inside_ns(item.end_ns, end_ns).min(left);
        left -= after;
        parts[StallCause::HandOff as usize] += after;
        self.name_stage(&mut parts, record, item);
        if item.is_first {
            parts[StallCause::StartUp as usize] += left;
        } else if item.start_ns <= record.start_ns {
            // Inside of the batch, and yet in nothing that has a name.
            parts[self.facts.own as usize] += left;
        } else {
            let busy = item.other_ns.min(left);
            parts[StallCause::Workers as usize] += busy;
            parts[StallCause::Prefetch as usize] += left - busy;
        }
        record.parts_ns = parts;
    }

    /// Other threads may have worked on the batch after its samples: that is not hand-off.
    fn name_stage(&mut self, parts: &mut NsByCause, record: &StepRecord, item: &PendingBatch) {
        let Some(stage) = self.pending.take_stage(item.epoch, item.step) else { return };
        let until_ns = stage.end_ns.min(record.fetch_end_ns);
        let ns = self.window.inside_ns(stage.start_ns.max(item.end_ns), until_ns);
        let ns = ns.min(parts[StallCause::HandOff as usize]);
        parts[StallCause::HandOff as usize] -= ns;
        parts[stage.cause as usize] += ns;
    }

    /// The consumer works itself: its fetch is all that it does.
    fn of_consumer(&self, record: &mut StepRecord) {
        let mut parts = self.lanes[self.facts.consumer as usize].window_of_all(&self.window);
        let named = limit(&mut parts, record.stall_ns);
        parts[self.facts.own as usize] += record.stall_ns - named;
        record.parts_ns = parts;
        record.samples = record.samples.max(self.samples.own);
    }

    /// Attributes a batch of an unknown worker to all workers.
    fn of_all(&self, record: &mut StepRecord) {
        let is_alive = |slot: &usize| {
            let lane = &self.lanes[*slot];
            matches!(self.facts.lane_roles[*slot], LaneRole::Worker(_))
                && lane.first_ns < record.fetch_end_ns
                && lane.last_ns > record.start_ns
        };
        let alive: Vec<usize> = (0..self.lanes.len()).filter(is_alive).collect();
        let has_workers =
            self.facts.lane_roles.iter().any(|role| matches!(role, LaneRole::Worker(_)));
        let stall = record.stall_ns;
        record.confidence = Confidence::Low;
        if !has_workers {
            let parts = self.lanes[self.facts.consumer as usize].window_of_all(&self.window);
            let has_names =
                StallCause::ALL.iter().any(|c| *c != self.facts.own && parts[*c as usize] > 0);
            if has_names || self.samples.own > 0 {
                record.confidence = Confidence::High;
                self.of_consumer(record);
                record.service_start_ns = record.start_ns;
                record.service_ns = record.fetch_ns();
                record.service_parts_ns = record.parts_ns;
                return;
            }
        }
        let mut parts = [0; CAUSES];
        for slot in &alive {
            let of_lane = self.lanes[*slot].window_of_all(&self.window);
            parts.iter_mut().zip(of_lane).for_each(|(part, ns)| *part += ns);
        }
        let count = alive.len().max(1) as u64;
        parts.iter_mut().for_each(|part| *part /= count);
        let left = stall - limit(&mut parts, stall);
        let is_early = has_workers && alive.is_empty() && self.lanes_are_unborn();
        let rest = if is_early { StallCause::StartUp } else { StallCause::Unknown };
        parts[rest as usize] += left;
        record.parts_ns = parts;
    }

    fn lanes_are_unborn(&self) -> bool {
        let mut workers = self.lanes.iter().zip(&self.facts.lane_roles);
        workers.all(|(lane, role)| {
            !matches!(role, LaneRole::Worker(_)) || lane.first_ns > self.window.start_ns
        })
    }
}

fn tell_service(record: &mut StepRecord, item: &PendingBatch) {
    record.service_start_ns = item.start_ns;
    record.service_ns = measure(item.start_ns, item.end_ns);
    record.service_parts_ns = item.parts;
    record.samples = item.samples.max(record.samples);
    record.concurrency = item.concurrency;
}

/// Holds parts to a sum: a damaged trace may have overlaps on a thread. Gives the sum.
fn limit(parts: &mut NsByCause, most: u64) -> u64 {
    let mut left = most;
    for part in parts.iter_mut() {
        *part = (*part).min(left);
        left -= *part;
    }
    most - left
}
