//! A trace folder as rows: its row groups are read when their turn comes, and never all at once.

use std::collections::HashMap;
use std::path::PathBuf;

use feedline_trace::{
    ABSENT, Block, BlockFacts, Blocks, Column, EventKind, RowGroupContents, Tables, TraceError,
};
use rustc_hash::FxHashMap;

use crate::layer::{EventType, Measure, StackLayer};
use crate::row::{NONE, Row};
use crate::saturating::grow;

use super::numbering::{Numbering, TimeSpan};
use super::order::{Layers, by_start, settle_ties};
use super::ordered::{Workforce, ordered};
use super::{AnalyzeError, LoadOptions, LoadProgress};

/// Combinations of codes that are numbered by a table.
const TABLE: usize = 1 << 20;
/// Columns that say who did what.
const SURVEYED: [&str; 7] = ["process", "thread", "start", "kind", "category", "name", "count"];
/// The row groups of one or many trace folders.
#[derive(Default)]
pub(crate) struct Groups {
    folders: Vec<Blocks>,
    /// Folder and row group.
    groups: Vec<(usize, usize)>,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

impl Groups {
    pub(crate) fn open(paths: &[PathBuf], tables: &mut Tables) -> Result<Self, TraceError> {
        let mut groups = Self::default();
        for path in paths {
            let blocks = Blocks::open(path, tables)?;
            let folder = groups.folders.len();
            groups.groups.extend((0..blocks.len()).map(|group| (folder, group)));
            groups.folders.push(blocks);
        }
        Ok(groups)
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    fn facts(&self, index: usize) -> BlockFacts {
        let (folder, group) = self.groups[index];
        self.folders[folder].facts(group)
    }

    fn read(&self, index: usize, columns: &[&str]) -> Result<Block, TraceError> {
        let (folder, group) = self.groups[index];
        self.folders[folder].read(group, columns)
    }

    /// What a row group has in it, if its file says so.
    fn survey(&self, index: usize) -> Option<&RowGroupContents> {
        let (folder, group) = self.groups[index];
        self.folders[folder].survey(group)
    }

    /// What is wrong with the file of a row group.
    fn wrong(&self, index: usize, what: &'static str) -> TraceError {
        let (folder, group) = self.groups[index];
        TraceError::Content { path: self.folders[folder].path(group).to_owned(), what }
    }

    /// Looks whether everything is as it was written.
    pub(crate) fn verify(&self) -> Result<(), TraceError> {
        self.folders.iter().try_for_each(Blocks::verify)
    }

    /// Rows of all row groups.
    pub(crate) fn rows(&self) -> u64 {
        (0..self.len()).map(|index| self.facts(index).rows).sum()
    }
}

/// What all row groups have in them together.
#[derive(Debug, Default)]
pub(crate) struct Surveyed {
    pub(crate) numbering: Numbering,
    /// Events whose time is 0 in a trace whose others are not.
    pub(crate) zero_times: u64,
    /// Numbers of kinds of events, by category and name.
    known: HashMap<(EventKind, String, String), u32>,
}

/// Reads who did what, in all row groups, and when it was over.
pub(crate) fn survey(
    groups: &Groups,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
) -> Result<Surveyed, AnalyzeError> {
    let drops_zeros = drops_zeros(groups);
    let mut surveyed = Surveyed::default();
    let threads = options.threads;
    let mut done = 0;
    ordered(
        Workforce { threads, ahead: 2 * threads.get() },
        &|| (),
        |give| {
            let _ = (0..groups.len()).all(give);
        },
        &|(), index| survey_group(groups, index),
        &mut |survey: Result<RowGroupContents, TraceError>| {
            surveyed.add(survey?);
            done += 1;
            progress.update("looking", done, groups.len() as u64);
            Ok::<(), AnalyzeError>(())
        },
    )?;
    if !drops_zeros {
        surveyed.zero_times = 0;
    }
    surveyed.numbering.extent = extent(groups, &surveyed, drops_zeros)?;
    Ok(surveyed)
}

/// Whether times of 0 are no times: if there are others that are.
fn drops_zeros(groups: &Groups) -> bool {
    let starts = (0..groups.len()).filter_map(|index| groups.facts(index).starts_ns);
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for range in starts {
        (least, most) = (least.min(range.0), most.max(range.1));
    }
    // A day: no trace that counts from its own beginning is longer.
    least == 0 && most > 24 * 3600 * 1_000_000_000
}

/// Who did what in a row group: as its file says, or as its columns do.
fn survey_group(groups: &Groups, index: usize) -> Result<RowGroupContents, TraceError> {
    if let Some(survey) = groups.survey(index) {
        return Ok(survey.clone());
    }
    let mut block = groups.read(index, &SURVEYED)?;
    let (start, count) = (block.take("start"), block.take("count"));
    let codes = Codes::of(&mut block);
    let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for pair in codes.lane_of.iter().copied().zip(codes.event_type_of.iter().copied()) {
        *counts.entry(pair).or_default() += 1;
    }
    let mut survey = RowGroupContents {
        lanes: codes.lanes,
        whats: codes.event_types,
        ..RowGroupContents::default()
    };
    survey.counts =
        counts.into_iter().map(|((lane, event_type), count)| (lane, event_type, count)).collect();
    survey.counts.sort_unstable();
    survey.zero_times = (0..block.rows).filter(|row| start.at(*row) == 0).count() as u64;
    for (row, event_type) in codes.event_type_of.iter().enumerate() {
        if survey.whats[*event_type as usize].0 == EventKind::Summary {
            survey.summaries.0 += 1;
            grow(&mut survey.summaries.1, count.at(row).max(0).cast_unsigned());
        }
    }
    Ok(survey)
}

fn text(column: &Column, row: usize) -> &str {
    let place = column.at(row);
    usize::try_from(place).ok().and_then(|place| column.texts.get(place)).map_or("", String::as_str)
}

impl Surveyed {
    fn add(&mut self, survey: RowGroupContents) {
        let lanes = survey.lanes.iter();
        let lanes: Vec<u32> = lanes
            .map(|(process, thread)| self.numbering.lane(table_row(*process), *thread))
            .collect();
        let event_types: Vec<u32> =
            survey.whats.into_iter().map(|event_type| self.event_type(event_type)).collect();
        for (lane, event_type, events) in survey.counts {
            self.numbering.count(lanes[lane as usize], event_types[event_type as usize], events);
        }
        self.zero_times += survey.zero_times;
        self.numbering.summaries[0] += survey.summaries.0;
        grow(&mut self.numbering.summaries[1], survey.summaries.1);
    }

    fn event_type(&mut self, (kind, category, name): (EventKind, String, String)) -> u32 {
        let next = self.known.len() as u32;
        let number = *self.known.entry((kind, category.clone(), name.clone())).or_insert(next);
        // Texts are found by their number, so that any two numbers do for a key.
        self.numbering.event_type(kind, (number, 0), || (&category, &name))
    }
}

/// When the first event began and when the last one ended. Row groups are read only if what is known of them
/// leaves room for an earlier beginning or a later end.
fn extent(groups: &Groups, surveyed: &Surveyed, drops_zeros: bool) -> Result<TimeSpan, TraceError> {
    let mut extent = TimeSpan::default();
    for (least, index) in by_beginning(groups) {
        if least >= extent.start_ns {
            break;
        }
        extent.add(extent_of(groups, index, surveyed, drops_zeros)?);
    }
    let latest = |index: usize| {
        let facts = groups.facts(index);
        let (starts, durations) = (facts.starts_ns?, facts.durations_ns?);
        Some(starts.1.saturating_add(durations.1.max(0)))
    };
    let latest = |index: usize| latest(index).unwrap_or(i64::MAX);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(latest(*index)));
    for index in order {
        if latest(index) <= extent.end_ns {
            break;
        }
        extent.add(extent_of(groups, index, surveyed, drops_zeros)?);
    }
    Ok(extent)
}

/// The same of one row group.
fn extent_of(
    groups: &Groups,
    index: usize,
    surveyed: &Surveyed,
    drops_zeros: bool,
) -> Result<TimeSpan, TraceError> {
    let mut extent = TimeSpan::default();
    let mut block = groups.read(index, &["start", "duration", "kind", "category", "name"])?;
    let (start, duration) = (block.take("start"), block.take("duration"));
    let codes = Codes::of(&mut block);
    let is_meta = |event_type: &(EventKind, String, String)| {
        let number = surveyed.known.get(event_type);
        number.is_none_or(|number| surveyed.numbering.layers[*number as usize] == StackLayer::Meta)
    };
    let metas: Vec<bool> = codes.event_types.iter().map(is_meta).collect();
    for row in 0..block.rows {
        let start_ns = start.at(row);
        if metas[codes.event_type_of[row] as usize] || (drops_zeros && start_ns == 0) {
            continue;
        }
        let end_ns = start_ns.saturating_add(duration.at(row).max(0));
        extent.add(TimeSpan { start_ns, end_ns });
    }
    Ok(extent)
}

fn table_row(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Numbers of lanes and of kinds of events within a row group, in the order in which they are met.
struct Codes {
    lanes: Vec<(i64, u32)>,
    event_types: Vec<(EventKind, String, String)>,
    lane_of: Vec<u32>,
    event_type_of: Vec<u32>,
    kind: Column,
}

impl Codes {
    fn of(block: &mut Block) -> Self {
        let (process, thread) = (block.take("process"), block.take("thread"));
        let (lane_of, firsts) = number([&process, &thread], block.rows);
        let lane = |row: &usize| (process.at(*row), table_row(thread.at(*row)));
        let lanes = firsts.iter().map(lane).collect();
        let (kind, category, name) =
            (block.take("kind"), block.take("category"), block.take("name"));
        let (event_type_of, firsts) = number([&kind, &category, &name], block.rows);
        // What is not known was written by a later version, which says so; never mind.
        let known = |text: &str| EventKind::ALL.into_iter().find(|kind| kind.name() == text);
        let event_type = |row: &usize| {
            let kind = known(text(&kind, *row)).unwrap_or_default();
            (kind, text(&category, *row).to_owned(), text(&name, *row).to_owned())
        };
        let event_types = firsts.iter().map(event_type).collect();
        Self { lanes, event_types, lane_of, event_type_of, kind }
    }
}

/// Numbers of combinations of values, in the order in which they are met: that of every row, and the row at
/// which each was met first.
fn number<const N: usize>(columns: [&Column; N], rows: usize) -> (Vec<u32>, Vec<usize>) {
    let mut firsts = Vec::new();
    let all = columns.iter().try_fold(1_usize, |all, column| all.checked_mul(column.codes()));
    let Some(all) = all.filter(|all| *all <= TABLE) else {
        let mut known: FxHashMap<[i64; N], u32> = FxHashMap::default();
        let numbers = (0..rows).map(|row| {
            *known.entry(columns.map(|column| column.at(row))).or_insert_with(|| {
                firsts.push(row);
                firsts.len() as u32 - 1
            })
        });
        return (numbers.collect(), firsts);
    };
    let mut numbers = vec![0; rows];
    columns.iter().for_each(|column| column.append_codes(&mut numbers));
    // Plus 1.
    let mut known = vec![0_u32; all];
    for (row, number) in numbers.iter_mut().enumerate() {
        let known = &mut known[*number as usize];
        if *known == 0 {
            firsts.push(row);
            *known = firsts.len() as u32;
        }
        *number = *known - 1;
    }
    (numbers, firsts)
}

/// What rows need to know about kinds of events.
#[derive(Debug)]
pub(crate) struct Known {
    event_types: HashMap<(EventKind, String, String), u32>,
    lanes: FxHashMap<(i64, u32), u32>,
    measures: Vec<Measure>,
    drops_zeros: bool,
}

impl Known {
    pub(crate) fn new(
        groups: &Groups,
        lanes: &[crate::row::Lane],
        event_types: &[EventType],
    ) -> Self {
        let key = |event_type: &EventType| {
            (event_type.kind, event_type.category.clone(), event_type.name.clone())
        };
        let lane = |lane: &crate::row::Lane| (i64::from(lane.process), lane.thread);
        Self {
            event_types: event_types.iter().map(key).zip(0..).collect(),
            lanes: lanes.iter().map(lane).zip(0..).collect(),
            measures: event_types.iter().map(EventType::measure).collect(),
            drops_zeros: drops_zeros(groups),
        }
    }
}

/// When the first event of every row group begins, and the row groups in that order; without those whose
/// surveys have no selected rows.
pub(crate) fn turns(
    groups: &Groups,
    known: &Known,
    is_selected: &(dyn Fn(u32) -> bool + Sync),
) -> Vec<(i64, usize)> {
    let has_wanted = |survey: &RowGroupContents| {
        // What is not known is for the reading to complain about.
        survey.lanes.iter().any(|lane| known.lanes.get(lane).is_none_or(|lane| is_selected(*lane)))
    };
    let mut turns = by_beginning(groups);
    turns.retain(|(_, index)| groups.survey(*index).is_none_or(has_wanted));
    turns
}

fn by_beginning(groups: &Groups) -> Vec<(i64, usize)> {
    let least = |index: usize| groups.facts(index).starts_ns.map_or(i64::MIN, |(least, _)| least);
    let mut turns: Vec<(i64, usize)> =
        (0..groups.len()).map(|index| (least(index), index)).collect();
    turns.sort_unstable();
    turns
}

/// Memory that the rows and columns of the largest row group take.
pub(crate) fn largest_bytes(groups: &Groups) -> u64 {
    let rows = (0..groups.len()).map(|index| groups.facts(index).rows).max().unwrap_or(0);
    // Columns are gone before the rows travel, but both are there for a while.
    rows * 2 * size_of::<Row>() as u64
}

/// The selected rows of a row group, in their order.
pub(crate) fn rows(
    groups: &Groups,
    index: usize,
    known: &Known,
    layers: &Layers,
    is_selected: &(dyn Fn(u32) -> bool + Sync),
) -> Result<Vec<Row>, TraceError> {
    let mut block = groups.read(index, Columns::NAMES)?;
    let columns = Columns::new(&mut block);
    let windows = windows(groups, index, &columns.codes.kind)?;
    let making = Making::new(columns, known, windows, is_selected);
    // A survey speaks of all that is there.
    let making =
        making.ok_or_else(|| groups.wrong(index, "an event that is missing in its survey"))?;
    let mut rows = making.rows();
    settle_ties(&mut rows, layers);
    Ok(rows)
}

/// The texts of a row group that say how long summaries took, if it has any.
fn windows(groups: &Groups, index: usize, kind: &Column) -> Result<Option<Column>, TraceError> {
    if !kind.texts.iter().any(|text| text == EventKind::Summary.name()) {
        return Ok(None);
    }
    Ok(Some(groups.read(index, &["extra"])?.take("extra")))
}

/// From the first to the last call of a summary.
pub(crate) fn window_ns(extra: &str) -> Option<u64> {
    let rest = extra.split_once("\"window_ns\":")?.1;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// Declares the columns that rows are made of, beside those that [`Codes`] takes.
macro_rules! columns {
    ($($name:ident),*) => {
        struct Columns {
            codes: Codes,
            $($name: Column,)*
        }

        impl Columns {
            const NAMES: &[&str] =
                &["process", "thread", "kind", "category", "name", $(stringify!($name)),*];

            fn new(block: &mut Block) -> Self {
                Self { $($name: block.take(stringify!($name)),)* codes: Codes::of(block) }
            }
        }
    };
}

columns!(start, duration, file, offset, size, result, errno, epoch, step, count, value);

/// Rows that are made at a time: column by column, but so few that they stay close to the processor.
const TILE: usize = 512;

/// Rows that are being made.
struct Making<'a> {
    columns: Columns,
    known: &'a Known,
    windows: Option<Column>,
    /// By row: the trace's number of its lane, or [`NONE`] if it is not selected.
    lanes: Vec<u32>,
    /// By row: the row group's number of its kind of event.
    codes: Vec<u32>,
    /// By that number: the trace's, its kind, and which field holds its bytes.
    event_types: Vec<(u32, EventKind, Measure)>,
}

impl<'a> Making<'a> {
    /// `None` if there is something that the trace does not know of.
    fn new(
        mut columns: Columns,
        known: &'a Known,
        windows: Option<Column>,
        is_selected: &dyn Fn(u32) -> bool,
    ) -> Option<Self> {
        let mut lanes = std::mem::take(&mut columns.codes.lane_of);
        let codes = std::mem::take(&mut columns.codes.event_type_of);
        let number = |key: &(i64, u32)| {
            known.lanes.get(key).map(|lane| if is_selected(*lane) { *lane } else { NONE })
        };
        let numbers = columns.codes.lanes.iter().map(number).collect::<Option<Vec<u32>>>()?;
        lanes.iter_mut().for_each(|lane| *lane = numbers[*lane as usize]);
        let event_type = |key: &(EventKind, String, String)| {
            let number = *known.event_types.get(key)?;
            Some((number, key.0, known.measures[number as usize]))
        };
        let event_types =
            columns.codes.event_types.iter().map(event_type).collect::<Option<_>>()?;
        Some(Self { columns, known, windows, lanes, codes, event_types })
    }

    /// The selected rows, by their starts.
    fn rows(&self) -> Vec<Row> {
        let starts = &self.columns.start;
        let order = by_start(self.lanes.len(), |row| {
            let start_ns = starts.at(row);
            let is_no_time = start_ns == 0 && self.known.drops_zeros;
            (self.lanes[row] != NONE && !is_no_time).then_some(start_ns)
        });
        let mut rows = vec![self.template(); order.len()];
        for (tile, order) in rows.chunks_mut(TILE).zip(order.chunks(TILE)) {
            self.fill_who(tile, order);
            self.fill_numbers(tile, order);
            self.fill_bytes(tile, order);
        }
        rows
    }

    /// What all rows have in common: columns that are the same in all of them.
    fn template(&self) -> Row {
        let of = &self.columns;
        let only = |column: &Column| column.only().unwrap_or(0);
        Row {
            offset: absent_as(-1, only(&of.offset)),
            file: small(only(&of.file)),
            epoch: small(only(&of.epoch)),
            step: small(only(&of.step)),
            count: counted(only(&of.count)),
            errno: error(only(&of.errno)),
            ..Row::default()
        }
    }

    fn fill_who(&self, tile: &mut [Row], order: &[u32]) {
        for (row, number) in tile.iter_mut().zip(order) {
            let (event_type, kind, _) = self.event_types[self.codes[*number as usize] as usize];
            (row.lane, row.event_type) = (self.lanes[*number as usize], event_type);
            row.kind = kind;
        }
        self.columns.start.each(order, |place, start_ns| tile[place].start_ns = start_ns);
        self.columns.duration.each(order, |place, duration_ns| {
            let row = &mut tile[place];
            row.end_ns = row.start_ns.saturating_add(duration_ns.max(0));
        });
    }

    /// Columns that are the same in all rows are in the template.
    fn fill_numbers(&self, tile: &mut [Row], order: &[u32]) {
        let of = &self.columns;
        let mut fill = |column: &Column, put: fn(&mut Row, i64)| {
            if column.only().is_none() {
                column.each(order, |place, value| put(&mut tile[place], value));
            }
        };
        fill(&of.offset, |row, value| row.offset = absent_as(-1, value));
        fill(&of.file, |row, value| row.file = small(value));
        fill(&of.epoch, |row, value| row.epoch = small(value));
        fill(&of.step, |row, value| row.step = small(value));
        fill(&of.count, |row, value| row.count = counted(value));
        fill(&of.errno, |row, value| row.errno = error(value));
    }

    fn fill_bytes(&self, tile: &mut [Row], order: &[u32]) {
        let of = &self.columns;
        for (row, number) in tile.iter_mut().zip(order) {
            let number = *number as usize;
            let (_, kind, measure) = self.event_types[self.codes[number] as usize];
            row.bytes = match measure {
                Measure::Value => absent_as(0, of.value.at(number)).cast_unsigned(),
                Measure::Result => of.result.at(number).max(0).cast_unsigned(),
                Measure::Size => of.size.at(number).max(0).cast_unsigned(),
                Measure::Nothing => 0,
            };
            if kind == EventKind::Summary {
                row.offset = row.end_ns.saturating_sub(row.start_ns);
                let length_ns = self.window(number).unwrap_or(row.offset);
                row.end_ns = row.start_ns.saturating_add(length_ns);
            }
        }
    }

    #[cold]
    fn window(&self, row: usize) -> Option<i64> {
        let extra = text(self.windows.as_ref()?, row);
        i64::try_from(window_ns(extra)?).ok()
    }
}

fn absent_as(otherwise: i64, value: i64) -> i64 {
    if value == ABSENT { otherwise } else { value }
}

fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

fn counted(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn error(number: i64) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
