//! The walk over all rows in the order of time: unions of every rank, self times, access patterns, strips.

use feedline_recorder::Class;

use feedline_trace::EventKind;

use crate::access::{Pattern, Places};
use crate::analysis::Strip;
use crate::cover::{Backdrop, Cover};
use crate::lanes::Lanes;
use crate::layer::{LAYERS, StackLayer};
use crate::load::Trace;
use crate::roster::{Roster, ThreadRole};
use crate::row::{NONE, Row};
use crate::saturating::grow;
use crate::tally::{FileOp, TimeGrid};

/// The most threads that get a strip.
const STRIPS: usize = 128;

/// Unions that are made of several layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Calls on files and objects.
    Io,
    /// Everything that brings batches, calls of workers included.
    Loader,
    /// Everything but the program and its phases: what is not in it was not seen.
    Any,
}

pub(crate) const GROUPS: usize = 3;

/// Unions of a rank and all that works for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankCover {
    /// Computation and copies to the device.
    pub(crate) compute: Backdrop,
    pub(crate) layers: [Cover; LAYERS],
    pub(crate) groups: [Cover; GROUPS],
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
}

#[derive(Clone, Debug, Default)]
struct Life {
    busy: Cover,
    first_ns: Option<i64>,
    last_ns: i64,
}

/// A strip that is being made.
#[derive(Clone, Debug, Default)]
struct Making {
    bucket: usize,
    /// From when to when the bucket goes; nothing before the first slice.
    from_ns: i64,
    until_ns: i64,
    layers_ns: [u64; LAYERS],
    strip: Strip,
}

pub(crate) struct Sweep<'a> {
    grid: &'a TimeGrid,
    roster: &'a Roster,
    is_close: Vec<bool>,
    lanes: Lanes,
    pub(crate) units: Vec<RankCover>,
    lives: Vec<Life>,
    pub(crate) self_ns: Vec<u64>,
    reads: Places,
    writes: Places,
    /// By lane: its place in `making`, or [`NONE`].
    strip_of: Vec<u32>,
    making: Vec<Making>,
    none: Backdrop,
}

/// What came of the walk.
pub(crate) struct Swept {
    pub(crate) units: Vec<RankCover>,
    /// By unit: busy time and lives of its workers.
    pub(crate) workers_ns: Vec<(u64, u64)>,
    pub(crate) self_ns: Vec<u64>,
    pub(crate) reads: Pattern,
    pub(crate) writes: Pattern,
    pub(crate) strips: Vec<Strip>,
    pub(crate) crossing: u64,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(trace: &Trace, roster: &'a Roster, grid: &'a TimeGrid) -> Self {
        let lanes = trace.lanes.len();
        let mut sweep = Self {
            grid,
            roster,
            is_close: trace
                .event_types
                .iter()
                .map(|what| what.class == Some(Class::Close))
                .collect(),
            lanes: Lanes::new(lanes),
            units: vec![RankCover::default(); roster.units.len()],
            lives: vec![Life::default(); lanes],
            self_ns: vec![0; trace.event_types.len()],
            reads: Places::new(lanes),
            writes: Places::new(lanes),
            strip_of: vec![NONE; lanes],
            making: Vec::new(),
            none: Backdrop::default(),
        };
        for unit in &roster.units {
            for lane in std::iter::once(&unit.consumer).chain(&unit.workers) {
                if sweep.making.len() < STRIPS && (*lane as usize) < lanes {
                    sweep.strip_of[*lane as usize] = sweep.making.len() as u32;
                    let strip = Strip {
                        title: title(trace, *lane),
                        rank: unit.rank,
                        role: roster.role_of[*lane as usize].name().to_owned(),
                        ..Strip::default()
                    };
                    sweep.making.push(Making { strip, ..Making::default() });
                }
            }
        }
        sweep
    }

    /// Takes rows, in order.
    pub(crate) fn take(&mut self, rows: &[Row]) {
        for row in rows {
            self.row(row);
        }
    }

    #[inline]
    fn row(&mut self, row: &Row) {
        if matches!(row.kind, EventKind::Counter | EventKind::Instant) {
            return;
        }
        let layer = self.grid.layers[row.event_type as usize];
        if layer == StackLayer::Meta {
            return;
        }
        if row.kind != EventKind::Summary {
            self.enter(row);
        }
        self.cover(row, layer);
        if let Some(op) = self.grid.file_ops[row.event_type as usize] {
            match op {
                FileOp::Read if row.kind != EventKind::Summary => self.reads.take(row),
                FileOp::Write if row.kind != EventKind::Summary => self.writes.take(row),
                _ if self.is_close[row.event_type as usize] => {
                    self.reads.close(row.lane, row.file);
                    self.writes.close(row.lane, row.file);
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn enter(&mut self, row: &Row) {
        let Self { lanes, self_ns, strip_of, making, grid, .. } = self;
        lanes.enter(row, &mut |lane, what, from_ns, to_ns| {
            grow(&mut self_ns[what as usize], to_ns.abs_diff(from_ns));
            if let Some(making) = making.get_mut(strip_of[lane as usize] as usize) {
                making.slice(grid, grid.layers[what as usize], from_ns, to_ns);
            }
        });
    }

    #[inline]
    fn cover(&mut self, row: &Row, layer: StackLayer) {
        let unit = self.roster.unit_of[row.lane as usize];
        let Some(unit) = self.units.get_mut(unit as usize) else { return };
        let (start, end) = (row.start_ns, row.end_ns);
        unit.first_ns.get_or_insert(start);
        unit.last_ns = unit.last_ns.max(end);
        if matches!(layer, StackLayer::Compute | StackLayer::Device) {
            unit.compute.add(start, end);
        }
        unit.layers[layer as usize].add(start, end, &unit.compute);
        if layer.is_io() {
            unit.groups[Group::Io as usize].add(start, end, &unit.compute);
        }
        let is_work = matches!(
            layer,
            StackLayer::Batch
                | StackLayer::Sample
                | StackLayer::Decode
                | StackLayer::Transform
                | StackLayer::Collate
        );
        let is_worker = self.roster.role_of[row.lane as usize] == ThreadRole::Worker;
        if is_work || (is_worker && layer.is_io()) {
            unit.groups[Group::Loader as usize].add(start, end, &unit.compute);
        }
        if !matches!(layer, StackLayer::App | StackLayer::Pipeline) {
            unit.groups[Group::Any as usize].add(start, end, &unit.compute);
        }
        if is_worker {
            let life = &mut self.lives[row.lane as usize];
            life.first_ns.get_or_insert(start);
            life.last_ns = life.last_ns.max(end);
            if is_work {
                life.busy.add(start, end, &self.none);
            }
        }
    }

    pub(crate) fn finish(mut self) -> Swept {
        let Self { lanes, self_ns, strip_of, making, grid, .. } = &mut self;
        lanes.finish(&mut |lane, what, from_ns, to_ns| {
            grow(&mut self_ns[what as usize], to_ns.abs_diff(from_ns));
            if let Some(making) = making.get_mut(strip_of[lane as usize] as usize) {
                making.slice(grid, grid.layers[what as usize], from_ns, to_ns);
            }
        });
        for unit in &mut self.units {
            let RankCover { compute, layers, groups, .. } = unit;
            for cover in layers.iter_mut().chain(groups) {
                cover.close(compute);
            }
        }
        let mut workers_ns = vec![(0, 0); self.units.len()];
        for (unit, sums) in self.roster.units.iter().zip(&mut workers_ns) {
            for lane in &unit.workers {
                let life = &mut self.lives[*lane as usize];
                life.busy.close(&self.none);
                grow(&mut sums.0, life.busy.measure_ns());
                grow(&mut sums.1, life.first_ns.map_or(0, |first| life.last_ns.abs_diff(first)));
            }
        }
        let grid = self.grid;
        Swept {
            units: self.units,
            workers_ns,
            self_ns: self.self_ns,
            reads: self.reads.pattern,
            writes: self.writes.pattern,
            strips: self.making.into_iter().map(|making| making.finish(grid)).collect(),
            crossing: self.lanes.crossing,
        }
    }
}

impl Making {
    #[inline]
    fn slice(&mut self, grid: &TimeGrid, layer: StackLayer, from_ns: i64, to_ns: i64) {
        if self.from_ns <= from_ns && to_ns <= self.until_ns {
            self.layers_ns[layer as usize] += to_ns.abs_diff(from_ns);
            return;
        }
        self.slices(grid, layer, from_ns, to_ns);
    }

    /// A slice that may go over the edge of a bucket.
    fn slices(&mut self, grid: &TimeGrid, layer: StackLayer, from_ns: i64, to_ns: i64) {
        grid.spread(from_ns, to_ns, |bucket, ns| {
            if bucket > self.bucket {
                self.advance(grid.bucket_ns, bucket);
            }
            self.layers_ns[layer as usize] += ns;
        });
        self.from_ns = grid.start_ns + (self.bucket as u64 * grid.bucket_ns).cast_signed();
        self.until_ns = (self.from_ns + grid.bucket_ns.cast_signed()).min(grid.end_ns);
    }

    /// Goes on to a later bucket.
    fn advance(&mut self, bucket_ns: u64, bucket: usize) {
        while self.bucket < bucket {
            let busy: u64 = self.layers_ns.iter().sum();
            let longest = (0..LAYERS).max_by_key(|layer| (self.layers_ns[*layer], LAYERS - layer));
            self.strip.layers.push(longest.unwrap_or(0) as u8);
            let percent = (busy.min(bucket_ns) * 100).div_ceil(bucket_ns.max(1));
            self.strip.busy_percent.push(percent as u8);
            self.layers_ns = [0; LAYERS];
            self.bucket += 1;
        }
    }

    fn finish(mut self, grid: &TimeGrid) -> Strip {
        self.advance(grid.bucket_ns, grid.buckets);
        self.strip
    }
}

/// What a thread is called.
pub(crate) fn title(trace: &Trace, lane: u32) -> String {
    let Some(lane) = trace.lanes.get(lane as usize) else { return String::new() };
    let process = trace.tables.processes.get(lane.process as usize);
    let host = process.map(|process| process.host.as_str()).unwrap_or_default();
    let pid = process.map_or(0, |process| process.pid);
    match &lane.name {
        // A name that is only the number says nothing more.
        Some(name) if name.parse::<u32>().is_err() => format!("{name} [{host} {pid}]"),
        _ if lane.thread == pid => format!("{host} {pid}"),
        _ => format!("{host} {pid}/{}", lane.thread),
    }
}
