//! An event as the kernels see it.

use feedline_trace::EventKind;
use serde::{Deserialize, Serialize};

/// No file, no epoch, no step.
pub const NONE: u32 = u32::MAX;

/// An event in 64 bytes. Numbers of lanes, things and files are rows of the tables of its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// When it began, in nanoseconds since 1970.
    pub start_ns: i64,
    /// When it ended; never before it began.
    pub end_ns: i64,
    /// Bytes that it moved; for spans, the size that the program gave; 0 if there are none. The bits of the
    /// value of a counter.
    pub bytes: u64,
    /// Where in the file, -1 if that is not known. For summaries the time of all their calls together, which
    /// may be more or less than from their start to their end.
    pub offset: i64,
    /// Who did it: row of [`Lane`]s.
    pub lane: u32,
    /// What it was: row of [`EventType`](crate::EventType)s.
    pub event_type: u32,
    /// Row of the file that it is about, or [`NONE`].
    pub file: u32,
    /// The program's epoch, or [`NONE`].
    pub epoch: u32,
    /// The program's step, or [`NONE`].
    pub step: u32,
    /// How many calls it covers: 1, except for summaries.
    pub count: u32,
    /// The error of the call, 0 if there was none.
    pub errno: u16,
    /// What kind of event it was.
    pub kind: EventKind,
}

impl Row {
    /// How long it took.
    #[inline]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(0).cast_unsigned()
    }

    /// The order in which rows come: by start, what encloses others first.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.start_ns.cmp(&other.start_ns).then(other.end_ns.cmp(&self.end_ns))
    }
}

/// A thread of a process: at most one thing happens in it at a time, and things nest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Row of the process in the trace's tables.
    pub process: u32,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// What the thread is called, if anyone said so.
    pub name: Option<String>,
    /// How many events it has of each [`StackLayer`](crate::StackLayer), by the layer's number.
    pub events: [u64; crate::layer::LAYERS],
}
