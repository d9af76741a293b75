//! Which lane of a rank does what.

use std::collections::BTreeMap;

use crate::layer::StackLayer;
use crate::roster::{Rank, named_worker};
use crate::row::Lane;

/// What a lane is for its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaneRole {
    /// Takes batches.
    Consumer,
    /// Brings batches: the number orders workers.
    Worker(u32),
    /// Makes calls for others: places of those in the unit, in the order of their lanes.
    Helper(Vec<u32>),
    Other,
}

/// How batches without a span of their own are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Spans say what a batch is.
    Batches,
    /// A fixed number of a worker's samples form one. The first sample tells how many events a sample has, so here
    /// are only the events of all and the steps.
    Counted { events: u64, steps: u64 },
    /// What a worker did since its last batch was taken.
    SinceTaken,
}

/// The roles of a unit's lanes.
pub(crate) fn lane_roles(unit: &Rank, of_unit: &[u32], lanes: &[Lane]) -> Vec<LaneRole> {
    let place = |lane: u32| of_unit.binary_search(&lane).ok().map(|place| place as u32);
    let mut lane_roles = vec![LaneRole::Other; of_unit.len()];
    for (order, worker) in (0u32..).zip(in_turn(unit, lanes)) {
        if let Some(place) = place(worker) {
            lane_roles[place as usize] = LaneRole::Worker(order);
        }
    }
    if let Some(place) = place(unit.consumer) {
        lane_roles[place as usize] = LaneRole::Consumer;
    }
    let owners = Owners::new(unit, lanes);
    for (number, lane) in of_unit.iter().enumerate() {
        if lane_roles[number] == LaneRole::Other
            && let Some(owners) = owners.of(&lanes[*lane as usize])
        {
            lane_roles[number] =
                LaneRole::Helper(owners.iter().copied().filter_map(place).collect());
        }
    }
    lane_roles
}

/// Workers in the order in which they take turns: as they are numbered by name, else as they were started,
/// which the kernel's numbers tell; rows of processes are in the order in which events were written.
fn in_turn(unit: &Rank, lanes: &[Lane]) -> Vec<u32> {
    let mut workers = unit.workers.clone();
    workers.sort_by_key(|lane| {
        let of = &lanes[*lane as usize];
        (named_worker(of), of.thread, *lane)
    });
    workers
}

/// For whom a lane makes calls: `rank 0 reader 1 lane 2` for `rank 0 reader 1`, and a nameless thread of a
/// worker's process for that worker.
struct Owners<'a> {
    by_name: BTreeMap<(u32, &'a str), Vec<u32>>,
    by_process: BTreeMap<u32, Vec<u32>>,
    consumer: u32,
}

impl<'a> Owners<'a> {
    fn new(unit: &Rank, lanes: &'a [Lane]) -> Self {
        let (mut by_name, mut by_process) = (BTreeMap::new(), BTreeMap::new());
        let mut candidates = unit.workers.clone();
        candidates.push(unit.consumer);
        candidates.sort_unstable();
        candidates.dedup();
        for lane in candidates {
            let Some(Lane { process, name, .. }) = lanes.get(lane as usize) else { continue };
            let name = (*process, name.as_deref().unwrap_or_default());
            by_name.entry(name).or_insert_with(Vec::new).push(lane);
            by_process.entry(*process).or_insert_with(Vec::new).push(lane);
        }
        Self { by_name, by_process, consumer: unit.consumer }
    }

    fn of(&self, helper: &'a Lane) -> Option<&[u32]> {
        let calls = [StackLayer::Storage, StackLayer::ObjectStore]
            .map(|layer| helper.events[layer as usize]);
        if calls == [0, 0] {
            return None;
        }
        match &helper.name {
            Some(name) => {
                let (owner, _) = name.rsplit_once(" lane ")?;
                self.by_name.get(&(helper.process, owner)).map(Vec::as_slice)
            }
            None => match self.by_process.get(&helper.process)?.as_slice() {
                [one] if *one == self.consumer => None,
                one @ [_] => Some(one),
                _ => None,
            },
        }
    }
}

/// How batches of a unit are told apart.
pub(crate) fn grouping(unit: &Rank, lanes: &[Lane]) -> Grouping {
    let of_workers = |layer: StackLayer| -> u64 {
        unit.workers.iter().map(|lane| lanes[*lane as usize].events[layer as usize]).sum()
    };
    let Some(Lane { events: consumer, .. }) = lanes.get(unit.consumer as usize) else {
        return Grouping::SinceTaken; // No consumer.
    };
    if of_workers(StackLayer::Batch) + consumer[StackLayer::Batch as usize] > 0 {
        return Grouping::Batches;
    }
    let (fetches, computes) =
        (consumer[StackLayer::Fetch as usize], consumer[StackLayer::Compute as usize]);
    // A fetch at the end of an epoch may bring nothing, so computations tell better how many steps there
    // are; unless a step has several.
    let steps = match (fetches, computes) {
        (0, steps) | (steps, 0) => steps,
        (fetches, computes) if computes <= fetches && computes >= fetches / 2 => computes,
        (fetches, _) => fetches,
    };
    match of_workers(StackLayer::Sample) {
        0 => Grouping::SinceTaken,
        _ if steps == 0 => Grouping::SinceTaken,
        events => Grouping::Counted { events, steps },
    }
}
