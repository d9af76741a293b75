//! One event.

use serde::{Deserialize, Serialize};

/// What kind of event this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A call of the C library.
    #[default]
    Call,
    /// Something that the program or its framework did, as it says itself.
    Span,
    /// A number at a moment.
    Counter,
    /// Many calls of one kind in one: see [`Event::count`].
    Summary,
    /// A moment without a duration.
    Instant,
}

impl EventKind {
    /// All kinds, in the order of the variants.
    pub const ALL: [Self; 5] =
        [Self::Call, Self::Span, Self::Counter, Self::Summary, Self::Instant];

    /// The name in trace files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Span => "span",
            Self::Counter => "counter",
            Self::Summary => "summary",
            Self::Instant => "instant",
        }
    }
}

/// One event. Numbers of names, files and processes are rows of [`Tables`](crate::Tables).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Event {
    /// Row of the process.
    pub process: u32,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: i64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// Call, span, counter, summary or instant.
    pub kind: EventKind,
    /// Row of the category's name: `POSIX`, `STDIO`, or the program's own.
    pub category: u32,
    /// Row of the name: the symbol that was called, or the program's own.
    pub name: u32,
    /// Row of the file that it is about.
    pub file: Option<u32>,
    /// Row of the other file of a `rename`, `link`, `copy_file_range`.
    pub other_file: Option<u32>,
    /// Where in the file; for mappings, the address.
    pub offset: Option<i64>,
    /// Bytes asked for; for spans, the size that the program gave.
    pub size: Option<i64>,
    /// What the call returned: bytes done in calls that move bytes, else the C library's result.
    pub result: Option<i64>,
    /// The error of the call, 0 if there was none.
    pub errno: u16,
    /// The call's other argument: flags of an `open`, command of a `fcntl`. Its name is in
    /// [`OpInfo::arg`](feedline_recorder::OpInfo::arg).
    pub arg: Option<i64>,
    /// Epoch, as the program counts it.
    pub epoch: Option<i64>,
    /// Step, as the program counts it.
    pub step: Option<i64>,
    /// Number of the sample, as the program counts it.
    pub sample: Option<i64>,
    /// How many calls a summary covers; 1 for everything else.
    pub count: u64,
    /// The shortest call of a summary.
    pub shortest_ns: Option<u64>,
    /// The longest call of a summary.
    pub longest_ns: Option<u64>,
    /// The number of a counter.
    pub value: Option<f64>,
    /// Row of [`Batch::texts`]: everything else that is known, a JSON object.
    pub extra: Option<u32>,
}

impl Event {
    /// The numbers that it has, by the names that viewers show; those of a summary only for one.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let signed = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
        let calls = (self.kind == EventKind::Summary).then_some(self.count);
        let all = [
            ("offset", self.offset),
            ("size", self.size),
            ("result", self.result),
            ("errno", (self.errno != 0).then_some(i64::from(self.errno))),
            ("arg", self.arg),
            ("epoch", self.epoch),
            ("step", self.step),
            ("sample", self.sample),
            ("count", signed(calls)),
            ("shortest_ns", signed(self.shortest_ns)),
            ("longest_ns", signed(self.longest_ns)),
        ];
        all.into_iter().filter_map(|(name, number)| Some((name, number?)))
    }
}

/// Events that travel together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Events in the order of their source.
    pub events: Vec<Event>,
    /// What their [`Event::extra`] names.
    pub texts: Vec<String>,
}

impl Batch {
    /// Everything else that is known about one of its events: a JSON object.
    pub(crate) fn extra(&self, event: &Event) -> Option<&str> {
        self.texts.get(event.extra? as usize).map(String::as_str)
    }

    /// Takes everything out and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.texts.clear();
    }
}
