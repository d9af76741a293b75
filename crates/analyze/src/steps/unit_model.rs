//! A rank while its rows go by: the phase, block, step and fetch that are open, and what its lanes do.

use crate::layer::{Cause, Layer};
use crate::roster::Unit;
use crate::row::{Lane, NONE, Row};
use crate::saturating::grow;
use crate::steps::checkpointing::OpenCheckpoint;
use crate::steps::consumption::{Computed, OpenFetch, OpenStep};
use crate::steps::items::Items;
use crate::steps::lane_work::{LaneWork, Role};
use crate::steps::record::{UnitSteps, WorkerRecord};
use crate::steps::seats::{self, Grouping, Seat};
use crate::steps::window::{Ahead, Window};
use crate::steps::{Sort, Word};

/// A rank.
#[derive(Debug)]
pub(crate) struct UnitModel {
    pub(super) seats: Vec<Seat>,
    pub(super) lanes: Vec<LaneWork>,
    pub(super) lane_numbers: Vec<u32>,
    /// By lane: for whom it made its last call, or [`NONE`].
    pub(super) owners: Vec<u32>,
    pub(super) consumer: u32,
    pub(super) grouping: Grouping,
    /// Whether there are events of fetches; else what lies between computations is one.
    pub(super) has_fetches: bool,
    pub(super) has_compute: bool,
    pub(super) own: Cause,
    pub(super) window: Window,
    pub(super) items: Items,
    /// Lanes that are in something.
    pub(super) busy: Vec<u32>,
    /// When something ends that must be seen to.
    pub(super) due_ns: i64,
    pub(super) fetch: Option<OpenFetch>,
    pub(super) step: Option<OpenStep>,
    /// Samples that the consumer worked on in the fetch.
    pub(super) own_samples: u32,
    pub(super) compute: Ahead,
    pub(super) communication: Ahead,
    pub(super) checkpoint: Ahead,
    /// Computation or copies go on until then.
    pub(super) covered_until_ns: i64,
    pub(super) computed: Computed,
    /// What of it began at the last computation's beginning: a fetch that takes no time comes after the
    /// computation that follows it.
    pub(super) computed_before: Computed,
    pub(super) last_compute_ns: i64,
    /// A thread other than a worker is in `fsync` or its like until then.
    pub(super) synced_until_ns: i64,
    /// When the consumer's last fetch, computation or collective ended.
    pub(super) worked_until_ns: i64,
    pub(super) checkpoints: Vec<OpenCheckpoint>,
    /// Phase and block that are open are the last ones of the records.
    pub(super) phase_is_open: bool,
    pub(super) block_is_open: bool,
    pub(super) phase_is_said: bool,
    pub(super) block_is_said: bool,
    /// Samples of any lane since the last batch, where batches are moments.
    pub(super) loose_samples: u32,
    /// Events of a sample: it may be told twice, by the loader and by the program.
    pub(super) events_per_sample: Option<u64>,
    pub(super) out: UnitSteps,
    /// By step: place of its worker, until the phase is over.
    pub(super) slots: Vec<u32>,
}
impl UnitModel {
    pub(crate) fn new(unit: &Unit, of_unit: &[u32], lanes: &[Lane]) -> Self {
        let own = if unit.is_native { Cause::Decode } else { Cause::Python };
        let has =
            |layer: Layer| of_unit.iter().any(|l| lanes[*l as usize].events[layer as usize] > 0);
        let consumer = of_unit.binary_search(&unit.consumer).ok();
        let fetches = |lane: usize| lanes[of_unit[lane] as usize].events[Layer::Fetch as usize] > 0;
        Self {
            seats: seats::seats(unit, of_unit, lanes),
            lanes: vec![LaneWork::new(own); of_unit.len()],
            lane_numbers: of_unit.to_vec(),
            owners: vec![NONE; of_unit.len()],
            consumer: consumer.map_or(NONE, |place| place as u32),
            grouping: seats::grouping(unit, lanes),
            has_fetches: consumer.is_some_and(fetches),
            has_compute: has(Layer::Compute),
            own,
            window: Window::default(),
            items: Items::default(),
            busy: Vec::new(),
            due_ns: i64::MAX,
            fetch: None,
            step: None,
            own_samples: 0,
            compute: Ahead::default(),
            communication: Ahead::default(),
            checkpoint: Ahead::default(),
            covered_until_ns: i64::MIN,
            computed: Computed::default(),
            computed_before: Computed::default(),
            last_compute_ns: i64::MIN,
            synced_until_ns: i64::MIN,
            worked_until_ns: i64::MIN,
            checkpoints: Vec::new(),
            phase_is_open: false,
            block_is_open: false,
            phase_is_said: false,
            block_is_said: false,
            loose_samples: 0,
            events_per_sample: None,
            out: UnitSteps { rank: unit.rank, host: unit.host.clone(), ..UnitSteps::default() },
            slots: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn row(&mut self, slot: u32, row: &Row, sort: Sort) {
        if row.start_ns >= self.due_ns {
            self.catch_up(row.start_ns);
        }
        self.lanes[slot as usize].see(row.start_ns, row.end_ns);
        if matches!(sort.layer, Layer::Storage | Layer::ObjectStore) {
            self.call(slot, row, sort);
        } else {
            self.span(slot, row, sort);
        }
    }

    #[inline]
    fn call(&mut self, slot: u32, row: &Row, sort: Sort) {
        match &self.seats[slot as usize] {
            Seat::Consumer | Seat::Worker(_) => self.begin(slot, row, sort.cause, Role::Part),
            Seat::Helper(owners) => {
                // Lanes of the same name come one after the other: mostly it is the one of the last call.
                let is_at_work =
                    |owner: &&u32| self.lanes[**owner as usize].is_at_work(row.start_ns);
                let known = Some(&self.owners[slot as usize]).filter(|owner| **owner != NONE);
                let owner = known.filter(is_at_work).or_else(|| owners.iter().find(is_at_work));
                if let (Some(owner), Some(cause)) = (owner.copied(), sort.cause) {
                    self.owners[slot as usize] = owner;
                    let lane = &mut self.lanes[owner as usize];
                    lane.advance(row.start_ns, &self.window, &mut self.items);
                    lane.help(row.end_ns, cause);
                }
            }
            Seat::Other => {}
        }
        if sort.word == Word::Read
            && let Some(phase) = self.out.phases.last_mut().filter(|_| self.phase_is_open)
        {
            grow(&mut phase.bytes_read, row.bytes);
        }
        if !matches!(self.seats[slot as usize], Seat::Worker(_)) {
            if sort.word == Word::Sync {
                self.synced_until_ns = self.synced_until_ns.max(row.end_ns);
            }
            self.call_in_checkpoint(row, sort.word);
        }
    }

    /// Something begins on a lane.
    #[inline]
    pub(super) fn begin(&mut self, slot: u32, row: &Row, cause: Option<Cause>, role: Role) {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(row.start_ns, &self.window, &mut self.items);
        lane.begin(row.start_ns, row.end_ns, cause, role);
        if !lane.is_listed {
            lane.is_listed = true;
            self.busy.push(slot);
        }
    }

    fn span(&mut self, slot: u32, row: &Row, sort: Sort) {
        let is_consumer = slot == self.consumer;
        match sort.layer {
            Layer::Pipeline if is_consumer => self.pipeline(row, sort.word),
            Layer::Pipeline | Layer::App | Layer::Meta => {}
            Layer::Fetch if is_consumer => self.fetch(row),
            Layer::Compute | Layer::Device => self.computation(slot, row, sort.layer),
            Layer::Communication if is_consumer => self.meeting(row),
            Layer::Communication => {}
            Layer::Checkpoint => self.checkpoint(slot, row, sort.word),
            Layer::Process if is_consumer => {
                self.begin(slot, row, Some(Cause::StartUp), Role::Part);
            }
            _ if matches!(self.seats[slot as usize], Seat::Helper(_) | Seat::Other) => {}
            Layer::Batch => self.batch(slot, row),
            Layer::Sample => self.sample(slot, row),
            Layer::Decode | Layer::Transform | Layer::Collate => self.work(slot, row, sort),
            _ => self.begin(slot, row, sort.cause, Role::Part),
        }
    }

    /// Ends what has ended by now: the fetch, and checkpoints.
    fn catch_up(&mut self, now_ns: i64) {
        if self.fetch.is_some() && self.window.end_ns <= now_ns {
            self.settle();
        }
        for place in (0..self.checkpoints.len()).rev() {
            if self.checkpoints[place].record.end_ns <= now_ns {
                let open = self.checkpoints.remove(place);
                self.out.checkpoints.push(open.finish());
            }
        }
        self.plan();
    }

    pub(super) fn plan(&mut self) {
        let fetch = if self.fetch.is_some() { self.window.end_ns } else { i64::MAX };
        let checkpoint = self.checkpoints.iter().map(|open| open.record.end_ns).min();
        self.due_ns = fetch.min(checkpoint.unwrap_or(i64::MAX));
    }

    /// Adds up what lanes did until then.
    pub(super) fn advance_all(&mut self, to_ns: i64) {
        let (lanes, window, items) = (&mut self.lanes, &self.window, &mut self.items);
        self.busy.retain(|slot| {
            let lane = &mut lanes[*slot as usize];
            lane.advance(to_ns, window, items);
            lane.is_listed = !lane.is_idle();
            lane.is_listed
        });
    }

    pub(crate) fn finish(mut self) -> UnitSteps {
        self.catch_up(i64::MAX - 1);
        self.advance_all(i64::MAX - 1);
        self.leave_what_is_over(i64::MAX);
        // What a device was told last may go on after all else.
        self.worked_until_ns = self.worked_until_ns.max(self.computed.until_ns);
        self.end_phase(self.worked_until_ns);
        for (slot, seat) in self.seats.iter().enumerate() {
            let lane = &self.lanes[slot];
            if matches!(seat, Seat::Worker(_)) && lane.first_ns <= lane.last_ns {
                self.out.workers.push(WorkerRecord {
                    lane: self.lane_numbers[slot],
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
