//! Events on their way into columns.

use feedline_recorder::OPS;

use super::column::{Gathered, Numbers, Texts};
use super::row_group_contents::{ContentColumns, RowGroupContents};
use super::schema::{EVENTS, Type};
use crate::event::{Batch, Event, EventKind};
use crate::tables::Tables;

/// Events that are taken apart at a time.
const CHUNK: usize = 256;

/// The columns of the table of events.
#[derive(Debug)]
pub(crate) struct EventColumns {
    rows: usize,
    /// In the order of the table; texts are not there.
    numbers: Vec<Numbers>,
    kind: Texts,
    category: Texts,
    name: Texts,
    class: Texts,
    extra: Texts,
    /// By the row of a name: the call of that name, if there is one. `None` if it was not looked up yet.
    classes: Vec<Option<Option<u32>>>,
}

impl EventColumns {
    pub(crate) fn new() -> Self {
        let numbers = EVENTS.columns.iter().filter(|column| column.kind != Type::Text);
        let texts = |name: &str| {
            let column = EVENTS.columns.iter().find(|column| column.name == name);
            Texts::new(column.is_some_and(|column| column.is_optional))
        };
        Self {
            rows: 0,
            numbers: numbers.map(|c| Numbers::new(c.kind, c.is_optional)).collect(),
            kind: texts("kind"),
            category: texts("category"),
            name: texts("name"),
            class: texts("class"),
            extra: texts("extra"),
            classes: Vec::new(),
        }
    }

    /// Rows that wait to be written.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes events. `first_id` is the number of this writer's first row of every table.
    pub(crate) fn push(&mut self, tables: &Tables, batch: &Batch, events: &[Event], first_id: i64) {
        // Column by column, but of so few events that they stay close to the processor.
        for some in events.chunks(CHUNK) {
            self.push_numbers(some, first_id);
            let kinds = |kind: u32| EventKind::ALL[kind as usize].name();
            self.kind.extend(some, |event| Some(event.kind as u32), kinds);
            self.category.extend(some, |event| Some(event.category), |row| tables.name(row));
            self.name.extend(some, |event| Some(event.name), |row| tables.name(row));
            for event in some {
                self.look_up(tables, event.name);
            }
            let classes = &self.classes;
            let class = |event: &Event| match event.kind {
                EventKind::Call | EventKind::Summary => {
                    classes.get(event.name as usize).copied().flatten()?
                }
                EventKind::Span | EventKind::Counter | EventKind::Instant => None,
            };
            self.class.extend(some, class, |op| OPS[op as usize].info().class.name());
            self.push_extra(batch, some);
        }
        self.rows += events.len();
    }

    fn push_extra(&mut self, batch: &Batch, events: &[Event]) {
        if events.iter().all(|event| event.extra.is_none()) {
            self.extra.extend(events, |_| None, |_| "");
            return;
        }
        for event in events {
            self.extra.push(batch.extra(event));
        }
    }

    /// Makes sure that it is known which call a name is.
    #[inline]
    fn look_up(&mut self, tables: &Tables, name: u32) {
        if !matches!(self.classes.get(name as usize), Some(Some(_))) {
            self.look_up_first(tables, name);
        }
    }

    #[cold]
    fn look_up_first(&mut self, tables: &Tables, name: u32) {
        let text = tables.name(name);
        let op = OPS.iter().position(|op| op.info().name == text).map(|op| op as u32);
        let row = name as usize;
        if self.classes.len() <= row {
            self.classes.resize(row + 1, None);
        }
        self.classes[row] = Some(op);
    }

    /// The columns of numbers, in the order of the table.
    fn push_numbers(&mut self, events: &[Event], first_id: i64) {
        let id = |row: u32| first_id + i64::from(row);
        // A duration or a count above 292 years in nanoseconds is not one.
        let unsigned = |number: u64| number.cast_signed();
        let mut columns = self.numbers.iter_mut();
        macro_rules! columns {
            ($($value:expr;)+) => {$(
                if let Some(column) = columns.next() {
                    column.extend(events, $value);
                }
            )+};
        }
        columns! {
            |event: &Event| Some(id(event.process));
            |event: &Event| Some(i64::from(event.thread));
            |event: &Event| Some(event.start_ns);
            |event: &Event| Some(unsigned(event.duration_ns));
            |event: &Event| event.file.map(id);
            |event: &Event| event.other_file.map(id);
            |event: &Event| event.offset;
            |event: &Event| event.size;
            |event: &Event| event.result;
            |event: &Event| Some(i64::from(event.errno));
            |event: &Event| event.arg;
            |event: &Event| event.epoch;
            |event: &Event| event.step;
            |event: &Event| event.sample;
            |event: &Event| Some(unsigned(event.count));
            |event: &Event| event.shortest_ns.map(unsigned);
            |event: &Event| event.longest_ns.map(unsigned);
            |event: &Event| event.value.map(|value| value.to_bits().cast_signed());
        }
    }

    /// Who did what, if it is worth keeping. None of these columns is optional.
    pub(crate) fn survey(&self) -> Option<RowGroupContents> {
        let column = |name: &str| {
            let numbers = EVENTS.columns.iter().filter(|column| column.kind != Type::Text);
            let place = numbers.into_iter().position(|column| column.name == name)?;
            self.numbers.get(place).map(Numbers::values)
        };
        RowGroupContents::of(ContentColumns {
            processes: column("process")?,
            threads: column("thread")?,
            starts: column("start")?,
            counts: column("count")?,
            texts: [self.kind.places(), self.category.places(), self.name.places()],
        })
    }

    /// All columns in the order of the table.
    pub(crate) fn gathered(&mut self) -> Vec<Gathered<'_>> {
        self.rows = 0;
        let Self { numbers, kind, category, name, class, extra, .. } = self;
        let mut numbers = numbers.iter_mut();
        let mut texts = [kind, category, name, class, extra].into_iter();
        let columns = EVENTS.columns.iter().filter_map(|column| match column.kind {
            Type::Text => texts.next().map(Gathered::Texts),
            _ => numbers.next().map(Gathered::Numbers),
        });
        columns.collect()
    }
}
