//! One call as it is stored in a segment: 64 bytes, a cache line.

/// A recorded call. Recording sets `thread`, `op` and `tag`. What `size`, `offset` and `arg` hold depends on the call: see
/// [`OpInfo`](crate::OpInfo).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct CallRecord {
    /// Ticks when the call began.
    pub start: u64,
    /// Ticks when it returned.
    pub end: u64,
    /// Bytes asked for, in calls that move bytes.
    pub size: u64,
    /// What the call returned; bytes done, in calls that move bytes.
    pub result: i64,
    /// A position in the file, in calls that name one.
    pub offset: i64,
    /// The call's other argument.
    pub arg: u64,
    /// The text that names the file, 0 if none is known.
    pub file: u32,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The number of the [`Op`](crate::Op), or of a text or a summary.
    pub op: u16,
    /// The error, 0 if there was none.
    pub errno: u16,
    /// Equal to the segment's own once the record is complete.
    pub tag: u16,
    /// For texts: 1 once the bytes after it are complete. For summaries: the number of the call.
    pub more: u16,
}

/// Bytes of a record, and of each slot that a text takes after its head.
pub(crate) const SLOT_BYTES: usize = size_of::<CallRecord>();

/// Many calls of one kind on one file by one thread, in two slots that are updated in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Summary {
    /// Ticks of the shortest call.
    pub shortest: u64,
    /// Ticks of the longest call.
    pub longest: u64,
    /// Ticks of all calls together.
    pub total: u64,
    /// Number of calls in the interval.
    pub calls: u64,
    /// How many of them had an error.
    pub errors: u64,
    /// The smallest number of bytes done.
    pub least: u64,
    /// The largest number of bytes done.
    pub most: u64,
    /// Reserved for later fields.
    pub reserved: u64,
}

impl Summary {
    /// Takes a call into account.
    pub(crate) fn add(&mut self, duration: u64, done: u64, errno: u16) {
        self.shortest = self.shortest.min(duration);
        self.longest = self.longest.max(duration);
        self.total += duration;
        self.calls += 1;
        self.errors += u64::from(errno != 0);
        self.least = self.least.min(done);
        self.most = self.most.max(done);
    }
}

/// What a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum TextKind {
    /// A path; relative to the path of its base, if it has one.
    Path = 1,
    /// A category and a name of spans, with a NUL between them.
    Span = 2,
    /// Not a path: `pipe:[7]`, `socket:[9]`, `anon_inode:[eventpoll]`.
    Object = 3,
}

impl TextKind {
    /// The kind of a number.
    pub fn from_number(number: u64) -> Option<Self> {
        [Self::Path, Self::Span, Self::Object].into_iter().find(|kind| *kind as u64 == number)
    }
}
