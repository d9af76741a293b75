//! Steps: when a rank waited for a batch, who brought it, and what that one did meanwhile.
//!
//! [`Steps`] takes rows in their order and holds, beside the steps it has found, only what is under way:
//! things that threads are in, batches that are worked on or ready, the step that is open. Ranks do not
//! touch each other, so shards that have whole ranks are put together by concatenation.
//!
//! What a stall is called:
//!
//! * The batch that ends a fetch has a producer: the lane whose `batch` span, or whose samples, have the
//!   same epoch and step; else the lane whose turn it is; else the lane that finished a sample last; else
//!   all lanes of the rank share the blame.
//! * While the producer works on the batch, the stall is called by the innermost thing it is in. After the
//!   batch is done it is hand-off. Before it was begun, it is start-up if that is the lane's first batch,
//!   too few workers if the lane was at work on others, and prefetch if it was idle.
//! * Without workers the consumer is the producer.

mod attribution;
mod borders;
mod checkpointing;
mod consumption;
mod lane_roles;
mod lane_work;
mod pending;
mod production;
mod rank_state;
mod record;
#[cfg(test)]
pub(crate) mod sketch;
#[cfg(test)]
mod tests;
mod window;

use feedline_trace::EventKind;

use crate::layer::{EventType, StackLayer, StallCause};
use crate::roster::Roster;
use crate::row::{Lane, NONE, Row};

pub(crate) use pending::NsByCause;
use rank_state::RankState;
pub(crate) use record::{
    BlockRecord, CheckpointRecord, Direction, PhaseRecord, RankSteps, StepRecord,
};

/// The steps of all ranks.
#[derive(Debug)]
pub(crate) struct Steps {
    /// By lane: its unit and its place in it.
    places: Vec<(u32, u32)>,
    /// By what an event is.
    classes: Vec<EventClass>,
    /// None for units without a consumer, which have no steps.
    units: Vec<Option<RankState>>,
}

impl Steps {
    pub(crate) fn new(roster: &Roster, lanes: &[Lane], event_types: &[EventType]) -> Self {
        let mut places = vec![(NONE, NONE); lanes.len()];
        let mut of_units: Vec<Vec<u32>> = vec![Vec::new(); roster.units.len()];
        for (lane, unit) in (0u32..).zip(&roster.unit_of) {
            if let Some(of_unit) = of_units.get_mut(*unit as usize) {
                places[lane as usize] = (*unit, of_unit.len() as u32);
                of_unit.push(lane);
            }
        }
        let units = roster.units.iter().zip(&of_units);
        Self {
            places,
            classes: event_types.iter().map(EventClass::new).collect(),
            units: units
                .map(|(unit, of_unit)| {
                    let has_consumer = unit.consumer != NONE;
                    has_consumer.then(|| RankState::new(unit, of_unit, lanes))
                })
                .collect(),
        }
    }

    /// Takes a row: in the order of [`Row::order`] among the rows of its rank.
    #[inline]
    pub(crate) fn row(&mut self, row: &Row) {
        let class = self.classes[row.event_type as usize];
        if class.layer == StackLayer::Meta || !matches!(row.kind, EventKind::Call | EventKind::Span)
        {
            return;
        }
        let (unit, slot) = self.places[row.lane as usize];
        if let Some(Some(unit)) = self.units.get_mut(unit as usize) {
            unit.row(slot, row, class);
        }
    }

    /// All rows have come: the steps of every rank, in the order of [`Roster::units`].
    pub(crate) fn finish(self) -> Vec<RankSteps> {
        let models = self.units.into_iter();
        models.map(|model| model.map(RankState::finish).unwrap_or_default()).collect()
    }
}

/// What an event is about, in few bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventClass {
    pub(crate) layer: StackLayer,
    pub(crate) cause: Option<StallCause>,
    pub(crate) hint: NameHint,
}

/// What the name of an event says beyond its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameHint {
    None,
    Train,
    Evaluate,
    Block,
    /// Of checkpoints.
    Save,
    Load,
    /// Of calls.
    Sync,
    Read,
    Write,
}

impl EventClass {
    fn new(what: &EventType) -> Self {
        use feedline_recorder::Class;
        let name = what.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let hint = match (what.layer, what.class) {
            (StackLayer::Pipeline, _) if has(&["block"]) => NameHint::Block,
            (StackLayer::Pipeline, _) if has(&["eval", "valid", "test"]) => NameHint::Evaluate,
            (StackLayer::Pipeline, _) if has(&["train"]) => NameHint::Train,
            (StackLayer::Checkpoint, _) if has(&["init"]) => NameHint::None,
            (StackLayer::Checkpoint, _) if has(&["restart", "load", "restore", "read"]) => {
                NameHint::Load
            }
            (StackLayer::Checkpoint, _) => NameHint::Save,
            (_, Some(Class::Sync)) => NameHint::Sync,
            (_, Some(Class::Read)) => NameHint::Read,
            (_, Some(Class::Write | Class::Copy)) => NameHint::Write,
            _ => NameHint::None,
        };
        Self { layer: what.layer, cause: what.cause, hint }
    }
}
