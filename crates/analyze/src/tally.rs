//! What can be counted in any order: calls, bytes, latencies, files, and what happened when.

use std::collections::{BTreeMap, HashSet};

use feedline_recorder::Class;

use feedline_trace::EventKind;

use crate::histogram::Spread;
use crate::layer::{EventType, StackLayer};
use crate::load::{RowTally, Trace};
use crate::roster::Roster;
use crate::row::{NONE, Row};
use crate::saturating::{Total as _, grow, grow_each};

/// The most buckets of a timeline.
const BUCKETS: u64 = 1000;
/// Error numbers that are told apart; larger ones count as the last.
const ERRORS: usize = 256;
/// Rows whose files are fetched together.
const TILE: usize = 256;
/// Buckets of the histogram of read latencies of a bucket of time: eight a power of two are enough there.
const COARSE: usize = 512;

/// Values of counters are added up as whole numbers of 2^-40.
pub(crate) const COUNTER_UNIT: f64 = (1_u64 << 40) as f64;

/// Counters count no further.
const COUNTER_MOST: f64 = 1e18;

/// What a call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOp {
    Read,
    Write,
    Open,
    /// Closing, asking, listing, naming: metadata.
    Meta,
    /// Mapping, advice, waiting and all else.
    Other,
}

impl FileOp {
    pub(crate) fn from_event_type(event_type: &EventType) -> Option<Self> {
        if !event_type.layer.is_io() {
            return None;
        }
        Some(match event_type.class {
            Some(Class::Read) => Self::Read,
            Some(Class::Write) => Self::Write,
            Some(Class::Open) => Self::Open,
            Some(Class::Close | Class::Stat | Class::Directory | Class::Namespace) => Self::Meta,
            _ => Self::Other,
        })
    }
}

/// What all tallies of a trace need to know.
#[derive(Debug)]
pub(crate) struct TimeGrid {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) bucket_ns: u64,
    pub(crate) buckets: usize,
    /// By kind of event.
    pub(crate) file_ops: Vec<Option<FileOp>>,
    pub(crate) layers: Vec<StackLayer>,
    /// By lane: the unit, or [`NONE`].
    pub(crate) unit_of: Vec<u32>,
    pub(crate) units: usize,
    pub(crate) files: usize,
}

impl TimeGrid {
    pub(crate) fn new(trace: &Trace, roster: &Roster) -> Self {
        let run_ns = trace.end_ns.abs_diff(trace.start_ns).max(1);
        let bucket_ns = round_up(run_ns.div_ceil(BUCKETS));
        Self {
            start_ns: trace.start_ns,
            end_ns: trace.end_ns,
            bucket_ns,
            buckets: usize::try_from(run_ns.div_ceil(bucket_ns)).unwrap_or(0),
            file_ops: trace.event_types.iter().map(FileOp::from_event_type).collect(),
            layers: trace.event_types.iter().map(|event_type| event_type.layer).collect(),
            unit_of: roster.unit_of.clone(),
            units: roster.units.len(),
            files: trace.tables.files().len(),
        }
    }

    /// The bucket of a moment; those outside of the run count to its edges.
    #[inline]
    pub(crate) fn bucket(&self, at_ns: i64) -> usize {
        let since = at_ns.saturating_sub(self.start_ns).max(0).cast_unsigned();
        ((since / self.bucket_ns) as usize).min(self.buckets - 1)
    }

    /// Deals an interval out to the buckets that it is in.
    #[inline]
    pub(crate) fn spread(&self, start_ns: i64, end_ns: i64, mut put: impl FnMut(usize, u64)) {
        let (start, end) = (start_ns.max(self.start_ns), end_ns.min(self.end_ns));
        if start >= end {
            return;
        }
        let (first, last) = (self.bucket(start), self.bucket(end - 1));
        if first == last {
            return put(first, end.abs_diff(start));
        }
        for bucket in first..=last {
            let from = self.start_ns + (bucket as u64 * self.bucket_ns).cast_signed();
            let until = from + self.bucket_ns.cast_signed();
            put(bucket, until.min(end).abs_diff(from.max(start)));
        }
    }
}

/// The next of 1, 2, 5, 10, 20, 50 ...: widths that people can read.
fn round_up(ns: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            if power.saturating_mul(factor) >= ns {
                return power.saturating_mul(factor);
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Calls or spans of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FunctionTally {
    pub(crate) count: u64,
    pub(crate) errors: u64,
    pub(crate) total_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) latency: Spread,
    pub(crate) size: Spread,
}

impl FunctionTally {
    pub(crate) fn merge(&mut self, other: &Self) {
        grow_each!(self, other; count, errors, total_ns, bytes);
        self.latency.merge(&other.latency);
        self.size.merge(&other.size);
    }
}

/// What was done with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FileTally {
    pub(crate) opens: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) others: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) extent_read: u64,
    pub(crate) ns: u64,
    pub(crate) metadata_ns: u64,
    pub(crate) errors: u64,
    /// The units below 64 that touched it, a bit each; others are in [`Counts::others`].
    #[serde(skip)]
    pub(crate) units: u64,
}

impl FileTally {
    pub(crate) fn calls(&self) -> u64 {
        [self.opens, self.reads, self.writes, self.others].into_iter().total()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        grow_each!(self, other; opens, reads, writes, others, bytes_read, bytes_written);
        grow_each!(self, other; ns, metadata_ns, errors);
        self.extent_read = self.extent_read.max(other.extent_read);
        self.units |= other.units;
    }
}

/// What a rank and its workers did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RankTally {
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) calls: u64,
    pub(crate) samples: u64,
    /// By bucket of time.
    pub(crate) read_at: Vec<u64>,
    pub(crate) io_ns_at: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Moment {
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) calls: u64,
    pub(crate) io_ns: u64,
    /// Latencies of reads, coarse.
    pub(crate) reads: Vec<u32>,
}

impl Moment {
    pub(crate) fn merge(&mut self, other: &Self) {
        grow_each!(self, other; bytes_read, bytes_written, calls, io_ns);
        if self.reads.len() < other.reads.len() {
            self.reads.resize(other.reads.len(), 0);
        }
        for (our, their) in self.reads.iter_mut().zip(&other.reads) {
            *our = our.saturating_add(*their);
        }
    }

    /// A quantile of the latencies of reads, in thousandths.
    pub(crate) fn read_ns(&self, thousandths: u64) -> u64 {
        let all: u64 = self.reads.iter().map(|count| u64::from(*count)).sum();
        let target = u128::from(all) * u128::from(thousandths);
        let target = u64::try_from(target.div_ceil(1000)).unwrap_or(all).max(1);
        let mut seen = 0;
        for (bucket, count) in self.reads.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= target {
                return coarse_value(bucket);
            }
        }
        0
    }
}

/// How many calls a row covers, and how long they took.
#[inline]
fn calls_of(row: &Row) -> (u64, u64) {
    match row.kind {
        EventKind::Summary => (u64::from(row.count), row.offset.max(0).cast_unsigned()),
        _ => (1, row.duration_ns()),
    }
}

/// Nearly all rows are one call, and dividing is slow.
#[inline]
fn mean(sum: u64, calls: u64) -> u64 {
    if calls == 1 { sum } else { sum.checked_div(calls).unwrap_or(0) }
}

/// Eight buckets a power of two.
fn coarse(value: u64) -> usize {
    let shift = 60_u32.saturating_sub(value.leading_zeros());
    ((shift as usize) << 3) + (value >> shift) as usize
}

/// The middle of a coarse bucket.
fn coarse_value(bucket: usize) -> u64 {
    let shift = (bucket >> 3).saturating_sub(1);
    let least = ((bucket - (shift << 3)) as u64) << shift;
    least + ((1_u64 << shift) - 1) / 2
}

fn add_all(ours: &mut Vec<u64>, theirs: &[u64]) {
    if ours.len() < theirs.len() {
        ours.resize(theirs.len(), 0);
    }
    for (our, their) in ours.iter_mut().zip(theirs) {
        grow(our, *their);
    }
}

/// Values of a counter.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CounterTally {
    /// By bucket: how many values, and their sum in parts of [`COUNTER_UNIT`], which adds up the same in any
    /// order.
    pub(crate) buckets: BTreeMap<u32, (u64, i128)>,
}

impl CounterTally {
    pub(crate) fn merge(&mut self, other: Self) {
        for (bucket, (count, sum)) in other.buckets {
            let our = self.buckets.entry(bucket).or_default();
            our.0 += count;
            our.1 += sum;
        }
    }
}

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Counts<'a> {
    grid: &'a TimeGrid,
    /// The bucket of the last moment, and from when to when it goes: rows that follow each other are mostly
    /// in the same one, and dividing is slow.
    near: (i64, i64, usize),
    pub(crate) functions: Vec<FunctionTally>,
    pub(crate) files: Vec<FileTally>,
    /// Files, and units from 64 on that touched them.
    pub(crate) others: HashSet<(u32, u32)>,
    /// What was put there last.
    last: (u32, u32),
    pub(crate) units: Vec<RankTally>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) counters: BTreeMap<u32, CounterTally>,
    pub(crate) errors: Vec<u64>,
    pub(crate) read_sizes: [u64; 64],
    pub(crate) write_sizes: [u64; 64],
    pub(crate) read_latencies: [u64; 64],
    /// By power of two of size and of latency.
    pub(crate) read_size_by_latency: Vec<u64>,
}

impl<'a> Counts<'a> {
    pub(crate) fn new(grid: &'a TimeGrid) -> Self {
        let unit = RankTally {
            read_at: vec![0; grid.buckets],
            io_ns_at: vec![0; grid.buckets],
            ..RankTally::default()
        };
        Self {
            grid,
            near: (0, 0, 0),
            functions: vec![FunctionTally::default(); grid.layers.len()],
            files: vec![FileTally::default(); grid.files],
            others: HashSet::new(),
            last: (NONE, NONE),
            units: vec![unit; grid.units],
            moments: vec![Moment::default(); grid.buckets],
            counters: BTreeMap::new(),
            errors: vec![0; ERRORS],
            read_sizes: [0; 64],
            write_sizes: [0; 64],
            read_latencies: [0; 64],
            read_size_by_latency: vec![0; 64 * 64],
        }
    }

    #[inline]
    fn take(&mut self, row: &Row) {
        let event_type = row.event_type as usize;
        let layer = self.grid.layers[event_type];
        if row.kind == EventKind::Counter {
            return self.counter(row);
        }
        let (calls, ns) = calls_of(row);
        let errors = if row.errno == 0 { 0 } else { calls };
        let function = &mut self.functions[event_type];
        grow(&mut function.count, calls);
        grow(&mut function.errors, errors);
        grow(&mut function.total_ns, ns);
        grow(&mut function.bytes, row.bytes);
        if calls == 1 {
            function.latency.add(ns);
            if row.bytes > 0 {
                function.size.add(row.bytes);
            }
        } else {
            function.latency.add_many(ns, calls);
            function.size.add_many(row.bytes, if row.bytes > 0 { calls } else { 0 });
        }
        if let Some(op) = self.grid.file_ops[event_type] {
            self.io(row, op, calls, ns);
        } else if layer == StackLayer::Sample {
            let unit = self.grid.unit_of[row.lane as usize];
            if let Some(unit) = self.units.get_mut(unit as usize) {
                grow(&mut unit.samples, calls);
            }
        }
    }

    fn io(&mut self, row: &Row, op: FileOp, calls: u64, ns: u64) {
        let errors = if row.errno == 0 { 0 } else { calls };
        if errors > 0 {
            grow(&mut self.errors[usize::from(row.errno).min(ERRORS - 1)], errors);
        }
        let unit = self.grid.unit_of[row.lane as usize];
        self.shape(row, op, calls, ns);
        self.file(row, op, unit, calls, ns);
        let bucket = self.bucket(row.start_ns);
        let moment = &mut self.moments[bucket];
        grow(&mut moment.calls, calls);
        let mut of_unit = self.units.get_mut(unit as usize);
        if let Some(unit) = &mut of_unit {
            grow(&mut unit.calls, calls);
        }
        match op {
            FileOp::Read => {
                if let Some(unit) = &mut of_unit {
                    grow(&mut unit.bytes_read, row.bytes);
                }
                if moment.reads.is_empty() {
                    moment.reads.resize(COARSE, 0);
                }
                let reads = &mut moment.reads[coarse(mean(ns, calls))];
                *reads = reads.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
            }
            FileOp::Write => {
                if let Some(unit) = &mut of_unit {
                    grow(&mut unit.bytes_written, row.bytes);
                }
            }
            FileOp::Open | FileOp::Meta | FileOp::Other => {}
        }
        self.when(bucket, row, op, unit);
    }

    /// The bucket of a moment.
    #[inline]
    fn bucket(&mut self, at_ns: i64) -> usize {
        if !(self.near.0..self.near.1).contains(&at_ns) {
            let bucket = self.grid.bucket(at_ns);
            let from_ns = self.grid.start_ns + (bucket as u64 * self.grid.bucket_ns).cast_signed();
            self.near = (from_ns, from_ns + self.grid.bucket_ns.cast_signed(), bucket);
        }
        self.near.2
    }

    /// Deals time and bytes out to the buckets that the call was in; bytes by time, so that they add up.
    #[inline]
    fn when(&mut self, first: usize, row: &Row, op: FileOp, unit: u32) {
        let is_within = row.end_ns <= self.near.1;
        let (moments, units, grid) = (&mut self.moments, &mut self.units, self.grid);
        let mut put = |bucket: usize, ns: u64, bytes: u64| {
            let moment = &mut moments[bucket];
            grow(&mut moment.io_ns, ns);
            let (read, written) = match op {
                FileOp::Read => (bytes, 0),
                FileOp::Write => (0, bytes),
                FileOp::Open | FileOp::Meta | FileOp::Other => (0, 0),
            };
            grow(&mut moment.bytes_read, read);
            grow(&mut moment.bytes_written, written);
            if let Some(unit) = units.get_mut(unit as usize) {
                grow(&mut unit.io_ns_at[bucket], ns);
                grow(&mut unit.read_at[bucket], read);
            }
        };
        let all_ns = row.duration_ns();
        if is_within || all_ns == 0 {
            return put(first, all_ns, row.bytes);
        }
        let (mut ns_before, mut bytes_before) = (0, 0);
        grid.spread(row.start_ns, row.end_ns, |bucket, ns| {
            ns_before += ns;
            let bytes = u128::from(row.bytes) * u128::from(ns_before) / u128::from(all_ns);
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            put(bucket, ns, bytes - bytes_before);
            bytes_before = bytes;
        });
    }

    /// Looks at what is kept of the files of rows: they are many and far from the processor, and looked at
    /// one after the other, with nothing in between, several come at once.
    fn fetch(&self, rows: &[Row]) {
        let files = rows.iter().filter_map(|row| self.files.get(row.file as usize));
        std::hint::black_box(files.fold(0, |seen, file| seen ^ file.opens ^ file.units));
    }

    fn file(&mut self, row: &Row, op: FileOp, unit: u32, calls: u64, ns: u64) {
        let Some(file) = self.files.get_mut(row.file as usize) else { return };
        match 1_u64.checked_shl(unit) {
            Some(bit) => file.units |= bit,
            None if unit != NONE && self.last != (row.file, unit) => {
                self.last = (row.file, unit);
                self.others.insert(self.last);
            }
            None => {}
        }
        grow(&mut file.ns, ns);
        grow(&mut file.errors, if row.errno == 0 { 0 } else { calls });
        match op {
            FileOp::Read => {
                grow(&mut file.reads, calls);
                grow(&mut file.bytes_read, row.bytes);
                if row.kind != EventKind::Summary && row.offset >= 0 {
                    let end = row.offset.cast_unsigned().saturating_add(row.bytes);
                    file.extent_read = file.extent_read.max(end);
                }
            }
            FileOp::Write => {
                grow(&mut file.writes, calls);
                grow(&mut file.bytes_written, row.bytes);
            }
            FileOp::Open => {
                grow(&mut file.opens, calls);
                grow(&mut file.metadata_ns, ns);
            }
            FileOp::Meta => {
                grow(&mut file.others, calls);
                grow(&mut file.metadata_ns, ns);
            }
            FileOp::Other => grow(&mut file.others, calls),
        }
    }

    /// Sizes and latencies by powers of two.
    fn shape(&mut self, row: &Row, op: FileOp, calls: u64, ns: u64) {
        let mean = |sum: u64| mean(sum, calls);
        let power = |value: u64| value.max(1).ilog2() as usize;
        let (size, latency) = (power(mean(row.bytes)), power(mean(ns)));
        match op {
            FileOp::Read => {
                grow(&mut self.read_sizes[size], calls);
                grow(&mut self.read_latencies[latency], calls);
                grow(&mut self.read_size_by_latency[size * 64 + latency], calls);
            }
            FileOp::Write => grow(&mut self.write_sizes[size], calls),
            FileOp::Open | FileOp::Meta | FileOp::Other => {}
        }
    }

    fn counter(&mut self, row: &Row) {
        let value = f64::from_bits(row.bytes);
        if value.is_finite() {
            let bucket = self.grid.bucket(row.start_ns) as u32;
            let (count, sum) =
                self.counters.entry(row.event_type).or_default().buckets.entry(bucket).or_default();
            *count += 1;
            // Within bounds sums fit, and are the same in any order.
            let value = value.clamp(-COUNTER_MOST, COUNTER_MOST);
            *sum += (value * COUNTER_UNIT).round() as i128;
        }
    }
}

impl RowTally for Counts<'_> {
    fn add(&mut self, rows: &[Row]) {
        for some in rows.chunks(TILE) {
            self.fetch(some);
            some.iter().for_each(|row| self.take(row));
        }
    }

    fn merge(&mut self, other: Self) {
        for (ours, theirs) in self.functions.iter_mut().zip(&other.functions) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.files.iter_mut().zip(&other.files) {
            ours.merge(theirs);
        }
        self.others.extend(other.others);
        for (ours, theirs) in self.units.iter_mut().zip(&other.units) {
            grow_each!(ours, theirs; bytes_read, bytes_written, calls, samples);
            add_all(&mut ours.read_at, &theirs.read_at);
            add_all(&mut ours.io_ns_at, &theirs.io_ns_at);
        }
        for (ours, theirs) in self.moments.iter_mut().zip(&other.moments) {
            ours.merge(theirs);
        }
        for (event_type, theirs) in other.counters {
            self.counters.entry(event_type).or_default().merge(theirs);
        }
        add_all(&mut self.errors, &other.errors);
        add_all(&mut self.read_size_by_latency, &other.read_size_by_latency);
        for index in 0..64 {
            grow(&mut self.read_sizes[index], other.read_sizes[index]);
            grow(&mut self.write_sizes[index], other.write_sizes[index]);
            grow(&mut self.read_latencies[index], other.read_latencies[index]);
        }
    }
}
