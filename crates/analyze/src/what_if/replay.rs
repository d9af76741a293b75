//! The loader's queue: workers, batches under way, delivery in order, ranks that meet.

use crate::saturating::{grow, grow_each};

/// A step as it was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplayStep {
    /// The worker's time with the batch,
    pub(super) service_ns: u64,
    /// and of that: opening, all storage, decoding.
    pub(super) open_ns: u64,
    pub(super) storage_ns: u64,
    pub(super) decode_ns: u64,
    /// From the batch's end, or the fetch's beginning if that was later, to the fetch's end.
    pub(super) hand_off_ns: u64,
    /// From the fetch's end to the meeting, or to the step's end.
    pub(super) own_ns: u64,
    /// From the last rank's arrival to the step's end.
    pub(super) after_ns: u64,
    /// To the next step: checkpoints and the like.
    pub(super) gap_ns: u64,
    pub(super) observed_ns: u64,
}

/// Who works on the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deal {
    /// Workers one after the other.
    InTurn,
    /// The worker that is free first.
    ToTheFree,
}

/// A rank's training of an epoch.
#[derive(Clone, Debug)]
pub(super) struct RankRun {
    /// 0 if the consumer works itself.
    pub(super) workers: u32,
    pub(super) outstanding: u32,
    pub(super) deal: Deal,
    /// When workers began, since the first fetch.
    pub(super) firsts_ns: Vec<i64>,
    pub(super) steps: Vec<ReplayStep>,
}

/// The training of an epoch.
#[derive(Clone, Debug)]
pub(super) struct PhaseRun {
    pub(super) ranks: Vec<RankRun>,
    /// Whether ranks meet in every step.
    pub(super) meets: bool,
}

impl PhaseRun {
    pub(super) fn steps(&self) -> usize {
        self.ranks.first().map_or(0, |rank| rank.steps.len())
    }
}

/// The change to the loader that a replay predicts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Workers per rank; batches in flight grow with them.
    pub(super) workers: Option<u32>,
    /// Factor on the number of batches in flight.
    pub(super) prefetch: u32,
    pub(super) scale: Scale,
}

impl Default for Change {
    fn default() -> Self {
        Self { workers: None, prefetch: 1, scale: Scale::AsIs }
    }
}

/// How long a batch takes its worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scale {
    #[default]
    AsIs,
    /// Storage is this many times as fast.
    Storage(u64),
    Decode(u64),
    NoOpen,
    /// Storage gives all workers together no more than before.
    Shared {
        workers: u32,
        before: u32,
    },
}

impl Scale {
    fn service_ns(self, step: &ReplayStep) -> u64 {
        let faster = |part_ns: u64, times: u64| step.service_ns - part_ns + part_ns / times;
        match self {
            Self::AsIs => step.service_ns,
            Self::Storage(times) => faster(step.storage_ns.min(step.service_ns), times),
            Self::Decode(times) => faster(step.decode_ns.min(step.service_ns), times),
            Self::NoOpen => step.service_ns.saturating_sub(step.open_ns),
            Self::Shared { workers, before } => {
                let storage_ns = step.storage_ns.min(step.service_ns);
                let shared = u128::from(storage_ns) * u128::from(workers) / u128::from(before);
                step.service_ns - storage_ns + u64::try_from(shared).unwrap_or(u64::MAX)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    steps: u64,
    all_ns: u64,
    stall_ns: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: Self) {
        grow_each!(self, other; steps, all_ns, stall_ns);
    }

    pub(super) fn step_ns(&self) -> u64 {
        self.all_ns / self.steps.max(1)
    }

    pub(super) fn stall_ns(&self) -> u64 {
        self.stall_ns
    }

    pub(super) fn stall_share(&self) -> f64 {
        self.stall_ns as f64 / self.all_ns.max(1) as f64
    }
}

/// A rank at play. Times are since its first fetch.
struct Player<'a> {
    run: &'a RankRun,
    scale: Scale,
    outstanding: usize,
    /// When workers are free; none if the consumer works itself.
    free_ns: Vec<i64>,
    /// When batches were taken.
    taken_ns: Vec<i64>,
    at_ns: i64,
}

impl<'a> Player<'a> {
    fn new(run: &'a RankRun, change: Change) -> Self {
        let workers = change.workers.unwrap_or(run.workers);
        let outstanding = match run.workers {
            0 => workers.saturating_mul(2),
            before => {
                let each = u64::from(run.outstanding) * u64::from(workers);
                u32::try_from(each.div_ceil(u64::from(before))).unwrap_or(u32::MAX)
            }
        };
        let first = |worker: usize| match run.firsts_ns.len() {
            0 => 0,
            count => run.firsts_ns[worker % count],
        };
        Self {
            run,
            scale: change.scale,
            outstanding: outstanding.saturating_mul(change.prefetch).max(1) as usize,
            free_ns: (0..workers as usize).map(first).collect(),
            taken_ns: Vec::with_capacity(run.steps.len()),
            at_ns: 0,
        }
    }

    /// Fetches the next batch: gives the stall.
    fn fetch(&mut self, step: &ReplayStep) -> u64 {
        let k = self.taken_ns.len();
        let service_ns = self.scale.service_ns(step);
        let room_ns =
            k.checked_sub(self.outstanding).map_or(i64::MIN, |before| self.taken_ns[before]);
        let worker = match self.run.deal {
            _ if self.free_ns.is_empty() => None,
            Deal::InTurn => Some(k % self.free_ns.len()),
            Deal::ToTheFree => {
                (0..self.free_ns.len()).min_by_key(|worker| (self.free_ns[*worker], *worker))
            }
        };
        let begun_ns = worker.map_or(self.at_ns, |worker| self.free_ns[worker].max(room_ns));
        let ready_ns = begun_ns.saturating_add_unsigned(service_ns);
        if let Some(worker) = worker {
            self.free_ns[worker] = ready_ns;
        }
        let taken_ns = self.at_ns.max(ready_ns).saturating_add_unsigned(step.hand_off_ns);
        self.taken_ns.push(taken_ns);
        taken_ns.abs_diff(self.at_ns)
    }

    /// When it comes to the meeting.
    fn arrival_ns(&self, step: &ReplayStep) -> i64 {
        let taken_ns = self.taken_ns.last().copied().unwrap_or(self.at_ns);
        taken_ns.saturating_add_unsigned(step.own_ns)
    }
}

/// Plays steps in an order, which may name them more than once.
pub(super) fn replay(run: &PhaseRun, change: Change, order: &[usize]) -> Outcome {
    let mut players: Vec<Player<'_>> =
        run.ranks.iter().map(|rank| Player::new(rank, change)).collect();
    let mut outcome = Outcome::default();
    let mut arrivals: Vec<(i64, u64)> = Vec::with_capacity(players.len());
    for k in order {
        arrivals.clear();
        for player in &mut players {
            let step = &player.run.steps[*k];
            let stall_ns = player.fetch(step);
            arrivals.push((player.arrival_ns(step), stall_ns));
        }
        let last = arrivals.iter().rev().max_by_key(|(arrival_ns, _)| *arrival_ns).copied();
        for (player, (arrival_ns, stall_ns)) in players.iter_mut().zip(&arrivals) {
            let step = &player.run.steps[*k];
            let (last_ns, late_ns) = last.filter(|_| run.meets).unwrap_or((*arrival_ns, 0));
            let end_ns = last_ns.saturating_add_unsigned(step.after_ns);
            outcome.steps += 1;
            grow(&mut outcome.all_ns, end_ns.abs_diff(player.at_ns));
            let late_ns = last_ns.abs_diff(*arrival_ns).min(late_ns);
            grow(&mut outcome.stall_ns, stall_ns.saturating_add(late_ns));
            player.at_ns = end_ns.saturating_add_unsigned(step.gap_ns);
        }
    }
    outcome
}
