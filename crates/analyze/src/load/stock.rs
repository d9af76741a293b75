//! Events of other tools on their way to rows, and to the cache if there is one.

use feedline_trace::{Batch, Event, Kind, Source, Tables};

use super::cache::Keeper;
use super::dftracer::Receiver;
use super::folder::window_ns;
use super::merge::Budget;
use super::numbering::{LONGEST_NS, Numbering};
use super::possible::is_moment;
use super::shelf::Shelf;
use super::{LoadError, Watch};

/// Whether a time of 0 is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zero {
    /// Clocks begin anywhere.
    IsTime,
    /// Clocks are those of walls.
    IsNone,
}

/// What takes events.
pub(crate) struct Stock {
    pub(crate) numbering: Numbering,
    pub(crate) shelf: Shelf,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) zero_times: u64,
    pub(crate) too_long: u64,
    pub(crate) impossible: u64,
    budget: Budget,
    zero: Zero,
}

impl Stock {
    pub(crate) fn new(budget: Budget, zero: Zero, keeper: Option<Keeper>) -> Self {
        Self {
            numbering: Numbering::default(),
            shelf: Shelf::new(budget.clone()),
            keeper,
            zero_times: 0,
            too_long: 0,
            impossible: 0,
            budget,
            zero,
        }
    }

    /// Reads a source from its beginning to its end.
    pub(crate) fn read(
        &mut self,
        source: &mut dyn Source,
        tables: &mut Tables,
        watch: &dyn Watch,
    ) -> Result<(), LoadError> {
        let mut batch = Batch::default();
        while source.next_batch(tables, &mut batch)? {
            self.take(tables, &batch)?;
            watch.progress("reading", self.shelf.len(), 0);
        }
        Ok(())
    }

    fn add(&mut self, tables: &Tables, batch: &Batch, event: &Event) -> Result<(), LoadError> {
        if event.start_ns == 0 && self.zero == Zero::IsNone {
            self.zero_times += 1;
            return Ok(());
        }
        if event.duration_ns > LONGEST_NS {
            self.too_long += 1;
            return Ok(());
        }
        let window = match (event.kind, event.extra) {
            (Kind::Summary, Some(extra)) => {
                batch.texts.get(extra as usize).and_then(|extra| window_ns(extra))
            }
            _ => None,
        };
        if !is_moment(event.start_ns) || window.is_some_and(|window| window > LONGEST_NS) {
            self.impossible += 1;
            return Ok(());
        }
        let row = self.numbering.row(tables, event, window);
        self.shelf.push(row, &self.numbering.layers)?;
        if let Some(keeper) = &mut self.keeper {
            keeper.put(tables, event, window);
        }
        Ok(())
    }
}

impl Receiver for Stock {
    fn restart(&mut self) {
        let keeper = self.keeper.take().and_then(Keeper::restarted);
        *self = Self::new(self.budget.clone(), self.zero, keeper);
    }

    fn take(&mut self, tables: &Tables, batch: &Batch) -> Result<(), LoadError> {
        batch.events.iter().try_for_each(|event| self.add(tables, batch, event))
    }
}
