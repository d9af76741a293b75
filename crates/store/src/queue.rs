//! Many reads under way at a time, without a thread for each.

use feedline_clock::Clock;

use crate::{Ended, Op, StoreError};

/// A stretch of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The object.
    pub key: String,
    /// First byte.
    pub offset: u64,
    /// How many bytes; `None` means up to the object's end, which costs asking for its size.
    pub len: Option<u64>,
}

/// A call that a queue has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// What was asked for: to open, the size, or bytes.
    pub op: Op,
    /// Of which object: that of the extent of this number.
    pub extent: usize,
    /// First byte that was asked for, when that was bytes.
    pub offset: u64,
    /// How many bytes were asked for.
    pub asked: u64,
    /// From asking to having the answer, other calls meanwhile included.
    pub duration_ns: u64,
    /// How it went.
    pub ended: Ended,
}

/// Reads of several objects under way together, up to the depth the queue was made with.
///
/// For clients that want the bytes moved and nothing else: they arrive in the queue's own buffers
/// and are dropped. Make one for each worker and use it again; a queue allocates when it is made.
pub trait ReadQueue: Send {
    /// Reads every extent whole, in pieces of [`Store::read_bytes`](crate::Store::read_bytes), and
    /// shows each finished call to `seen`; gives the bytes that were asked for and read.
    ///
    /// Extents of one object that follow each other share one open. Fewer bytes than asked for are
    /// a [`StoreError::Short`] that names the object. At an error nothing stays under way.
    fn read(&mut self, extents: &[Extent], seen: &mut dyn FnMut(Call)) -> Result<u64, StoreError>;
}

/// A call that moves no bytes.
pub(crate) const NO_BYTES: (u64, u64) = (0, 0);

/// Makes a call about the extent of this number that is over when it returns, and shows it. If it
/// succeeds it has moved so many bytes from that place on.
pub(crate) fn show<T>(
    seen: &mut dyn FnMut(Call),
    clock: &Clock,
    (op, extent, (offset, asked)): (Op, usize, (u64, u64)),
    call: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let began_ns = clock.now();
    let result = call();
    let duration_ns = clock.now().saturating_sub(began_ns);
    let ended = if result.is_ok() { Ended::Well { bytes: asked } } else { Ended::Badly };
    seen(Call { op, extent, offset, asked, duration_ns, ended });
    result
}
