//! A rank while its rows go by: the phase, block, step and fetch that are open, and what its lanes do.

use crate::layer::{StackLayer, StallCause};
use crate::roster::Rank;
use crate::row::{Lane, NONE, Row};
use crate::saturating::grow;
use crate::steps::checkpointing::OpenCheckpoint;
use crate::steps::consumption::{Computed, OpenFetch, OpenStep};
use crate::steps::lane_roles::{self, Grouping, LaneRole};
use crate::steps::lane_work::{FrameKind, LaneWork};
use crate::steps::pending::PendingBatches;
use crate::steps::record::{RankSteps, WorkerRecord};
use crate::steps::window::{Upcoming, Window};
use crate::steps::{EventClass, NameHint};

/// What is known of a rank before its first row.
#[derive(Debug)]
pub(super) struct RankFacts {
    /// By slot: what the lane does for the rank.
    pub(super) lane_roles: Vec<LaneRole>,
    /// By slot: the lane's row in the trace.
    pub(super) lane_numbers: Vec<u32>,
    /// Slot of the lane that takes batches, or [`NONE`].
    pub(super) consumer: u32,
    pub(super) grouping: Grouping,
    /// Whether the trace has fetches; without them, the gaps between computations count as fetches.
    pub(super) has_fetches: bool,
    pub(super) has_compute: bool,
    /// The cause of time that a lane spends outside of any named call or span.
    pub(super) own: StallCause,
}

/// The phase or block that the rank is in: always the last one of its records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Border {
    pub(super) is_open: bool,
    /// Whether a span of the trace declares it; otherwise it is inferred from the steps.
    pub(super) is_declared: bool,
}

/// Moments up to which something lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// The next end of a fetch or checkpoint that must be handled.
    pub(super) due_ns: i64,
    /// The end of computation and copies so far.
    pub(super) covered_until_ns: i64,
    /// The end of `fsync` calls so far, on threads other than workers.
    pub(super) synced_until_ns: i64,
    /// The end of the consumer's fetches, computations and collectives so far.
    pub(super) worked_until_ns: i64,
}

/// Times of a rank, to be cut into steps.
#[derive(Debug, Default)]
pub(super) struct Activity {
    pub(super) compute: Upcoming,
    pub(super) communication: Upcoming,
    pub(super) checkpoint: Upcoming,
}

/// Computations of the current step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computing {
    pub(super) current: Computed,
    /// Those that began before the last one: a fetch of zero length is ordered after the computation that
    /// follows it, which then belongs to the new step.
    pub(super) before_last: Computed,
    pub(super) last_start_ns: i64,
}

/// Samples that are not part of a batch yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampleCounts {
    /// Samples that the consumer worked on during the fetch.
    pub(super) own: u32,
    /// Samples of any lane since the last batch, where batches are moments.
    pub(super) loose: u32,
    /// Events per sample: both the loader and the program may record it.
    pub(super) events_each: Option<u64>,
}

/// A rank while its rows arrive.
#[derive(Debug)]
pub(crate) struct RankState {
    pub(super) facts: RankFacts,
    pub(super) lanes: Vec<LaneWork>,
    /// By slot: the lane it made its last call for, or [`NONE`].
    pub(super) owners: Vec<u32>,
    /// Slots of lanes that are inside of something.
    pub(super) busy: Vec<u32>,
    pub(super) window: Window,
    pub(super) pending: PendingBatches,
    pub(super) fetch: Option<OpenFetch>,
    pub(super) step: Option<OpenStep>,
    pub(super) open_checkpoints: Vec<OpenCheckpoint>,
    pub(super) phase: Border,
    pub(super) block: Border,
    pub(super) deadlines: Deadlines,
    pub(super) activity: Activity,
    pub(super) computing: Computing,
    pub(super) samples: SampleCounts,
    pub(super) out: RankSteps,
    /// By step of the open phase: the slot of its worker.
    pub(super) slots: Vec<u32>,
}

impl RankState {
    pub(crate) fn new(rank: &Rank, of_rank: &[u32], lanes: &[Lane]) -> Self {
        let own = if rank.is_native { StallCause::Decode } else { StallCause::Python };
        let has = |layer: StackLayer| {
            of_rank.iter().any(|lane| lanes[*lane as usize].events[layer as usize] > 0)
        };
        let consumer = of_rank.binary_search(&rank.consumer).ok();
        let fetches =
            |slot: usize| lanes[of_rank[slot] as usize].events[StackLayer::Fetch as usize] > 0;
        Self {
            facts: RankFacts {
                lane_roles: lane_roles::lane_roles(rank, of_rank, lanes),
                lane_numbers: of_rank.to_vec(),
                consumer: consumer.map_or(NONE, |slot| slot as u32),
                grouping: lane_roles::grouping(rank, lanes),
                has_fetches: consumer.is_some_and(fetches),
                has_compute: has(StackLayer::Compute),
                own,
            },
            lanes: vec![LaneWork::new(own); of_rank.len()],
            owners: vec![NONE; of_rank.len()],
            busy: Vec::new(),
            window: Window::default(),
            pending: PendingBatches::default(),
            fetch: None,
            step: None,
            open_checkpoints: Vec::new(),
            phase: Border::default(),
            block: Border::default(),
            deadlines: Deadlines {
                due_ns: i64::MAX,
                covered_until_ns: i64::MIN,
                synced_until_ns: i64::MIN,
                worked_until_ns: i64::MIN,
            },
            activity: Activity::default(),
            computing: Computing {
                current: Computed::default(),
                before_last: Computed::default(),
                last_start_ns: i64::MIN,
            },
            samples: SampleCounts::default(),
            out: RankSteps { rank: rank.rank, host: rank.host.clone(), ..RankSteps::default() },
            slots: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn row(&mut self, slot: u32, row: &Row, class: EventClass) {
        if row.start_ns >= self.deadlines.due_ns {
            self.catch_up(row.start_ns);
        }
        self.lanes[slot as usize].see(row.start_ns, row.end_ns);
        if matches!(class.layer, StackLayer::Storage | StackLayer::ObjectStore) {
            self.call(slot, row, class);
        } else {
            self.span(slot, row, class);
        }
    }

    #[inline]
    fn call(&mut self, slot: u32, row: &Row, class: EventClass) {
        match &self.facts.lane_roles[slot as usize] {
            LaneRole::Consumer | LaneRole::Worker(_) => {
                self.begin(slot, row, class.cause, FrameKind::Part)
            }
            LaneRole::Helper(owners) => {
                // Lanes of the same name come one after the other: mostly it is the one of the last call.
                let is_at_work =
                    |owner: &&u32| self.lanes[**owner as usize].is_at_work(row.start_ns);
                let known = Some(&self.owners[slot as usize]).filter(|owner| **owner != NONE);
                let owner = known.filter(is_at_work).or_else(|| owners.iter().find(is_at_work));
                if let (Some(owner), Some(cause)) = (owner.copied(), class.cause) {
                    self.owners[slot as usize] = owner;
                    let lane = &mut self.lanes[owner as usize];
                    lane.advance(row.start_ns, &self.window, &mut self.pending);
                    lane.help(row.end_ns, cause);
                }
            }
            LaneRole::Other => {}
        }
        if class.hint == NameHint::Read
            && let Some(phase) = self.out.phases.last_mut().filter(|_| self.phase.is_open)
        {
            grow(&mut phase.bytes_read, row.bytes);
        }
        if !matches!(self.facts.lane_roles[slot as usize], LaneRole::Worker(_)) {
            if class.hint == NameHint::Sync {
                self.deadlines.synced_until_ns = self.deadlines.synced_until_ns.max(row.end_ns);
            }
            self.call_in_checkpoint(row, class.hint);
        }
    }

    /// Something begins on a lane.
    #[inline]
    pub(super) fn begin(
        &mut self,
        slot: u32,
        row: &Row,
        cause: Option<StallCause>,
        role: FrameKind,
    ) {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(row.start_ns, &self.window, &mut self.pending);
        lane.begin(row.start_ns, row.end_ns, cause, role);
        if !lane.is_listed {
            lane.is_listed = true;
            self.busy.push(slot);
        }
    }

    fn span(&mut self, slot: u32, row: &Row, class: EventClass) {
        let is_consumer = slot == self.facts.consumer;
        match class.layer {
            StackLayer::Pipeline if is_consumer => self.pipeline(row, class.hint),
            StackLayer::Pipeline | StackLayer::App | StackLayer::Meta => {}
            StackLayer::Fetch if is_consumer => self.fetch(row),
            StackLayer::Compute | StackLayer::Device => self.computation(slot, row, class.layer),
            StackLayer::Communication if is_consumer => self.meeting(row),
            StackLayer::Communication => {}
            StackLayer::Checkpoint => self.checkpoint(slot, row, class.hint),
            StackLayer::Process if is_consumer => {
                self.begin(slot, row, Some(StallCause::StartUp), FrameKind::Part);
            }
            _ if matches!(
                self.facts.lane_roles[slot as usize],
                LaneRole::Helper(_) | LaneRole::Other
            ) => {}
            StackLayer::Batch => self.batch(slot, row),
            StackLayer::Sample => self.sample(slot, row),
            StackLayer::Decode | StackLayer::Transform | StackLayer::Collate => {
                self.work(slot, row, class)
            }
            _ => self.begin(slot, row, class.cause, FrameKind::Part),
        }
    }

    /// Ends what has ended by now: the fetch, and checkpoints.
    fn catch_up(&mut self, now_ns: i64) {
        if self.fetch.is_some() && self.window.end_ns <= now_ns {
            self.settle();
        }
        for place in (0..self.open_checkpoints.len()).rev() {
            if self.open_checkpoints[place].record.end_ns <= now_ns {
                let open = self.open_checkpoints.remove(place);
                self.out.checkpoints.push(open.finish());
            }
        }
        self.plan();
    }

    pub(super) fn plan(&mut self) {
        let fetch = if self.fetch.is_some() { self.window.end_ns } else { i64::MAX };
        let checkpoint = self.open_checkpoints.iter().map(|open| open.record.end_ns).min();
        self.deadlines.due_ns = fetch.min(checkpoint.unwrap_or(i64::MAX));
    }

    /// Adds up what lanes did until then.
    pub(super) fn advance_all(&mut self, to_ns: i64) {
        let (lanes, window, items) = (&mut self.lanes, &self.window, &mut self.pending);
        self.busy.retain(|slot| {
            let lane = &mut lanes[*slot as usize];
            lane.advance(to_ns, window, items);
            lane.is_listed = !lane.is_idle();
            lane.is_listed
        });
    }

    pub(crate) fn finish(mut self) -> RankSteps {
        self.catch_up(i64::MAX - 1);
        self.advance_all(i64::MAX - 1);
        self.leave_what_is_over(i64::MAX);
        // What a device was told last may go on after all else.
        self.deadlines.worked_until_ns =
            self.deadlines.worked_until_ns.max(self.computing.current.until_ns);
        self.end_phase(self.deadlines.worked_until_ns);
        for (slot, role) in self.facts.lane_roles.iter().enumerate() {
            let lane = &self.lanes[slot];
            if matches!(role, LaneRole::Worker(_)) && lane.first_ns <= lane.last_ns {
                self.out.workers.push(WorkerRecord {
                    lane: self.facts.lane_numbers[slot],
                    first_ns: lane.first_ns,
                    last_ns: lane.last_ns,
                    busy_ns: lane.busy_ns,
                    batches: lane.batches,
                });
            }
        }
        self.out
    }
}
