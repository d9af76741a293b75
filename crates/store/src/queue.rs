//! Many reads under way at a time, without a thread for each.

use feedline_clock::Clock;

use crate::{CallOutcome, Op, Result};

/// A range of bytes of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRange {
    /// Key of the object within its store.
    pub key: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Its length in bytes; `None` means up to the object's end, which costs asking for its size.
    pub len: Option<u64>,
}

/// Where the bytes of a read go, and what an error means to it.
#[derive(Debug)]
pub enum Destination<'d, 'b> {
    /// Nowhere: they are moved into the queue's own memory and dropped. The first error ends the
    /// read, which returns it.
    Discard,
    /// Into one buffer per range. An error ends only its own range, in whose buffer it is left.
    Buffers(&'d mut [ReadBuffer<'b>]),
}

/// Memory for one range, and what came of reading it. Used for one read.
#[derive(Debug)]
pub struct ReadBuffer<'b> {
    memory: &'b mut [u8],
    result: Result<u64>,
}

impl<'b> ReadBuffer<'b> {
    /// Lets a range be read to the beginning of `memory`. Without a copy where the storage allows
    /// it: with direct I/O, whole blocks into an [`AlignedBuf`](crate::AlignedBuf).
    pub fn new(memory: &'b mut [u8]) -> ReadBuffer<'b> {
        ReadBuffer { memory, result: Ok(0) }
    }

    /// How many bytes were read, or why they could not be. Final once [`ReadQueue::read`] has
    /// returned `Ok`; after an error, the content of the memory is unspecified.
    pub fn into_result(self) -> Result<u64> {
        self.result
    }
}

/// A call to the storage that a queue has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// An open, a question for the size, or a read.
    pub op: Op,
    /// Which object: that of the range at this index.
    pub range: usize,
    /// First byte of a read.
    pub offset: u64,
    /// How many bytes a read asked for.
    pub asked: u64,
    /// From asking to having the answer, other calls meanwhile included.
    pub duration_ns: u64,
    /// Whether it succeeded, and how many bytes it moved.
    pub outcome: CallOutcome,
}

impl Call {
    /// A call that is about to be made, and moves no bytes.
    pub(crate) fn new(op: Op, range: usize) -> Call {
        Call { op, range, offset: 0, asked: 0, duration_ns: 0, outcome: CallOutcome::Failed }
    }

    /// Makes the call, which is over when `call` returns, and shows it. If it succeeds it has moved
    /// what was asked for.
    pub(crate) fn make<T>(
        self,
        seen: &mut dyn FnMut(Call),
        clock: &Clock,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let began_ns = clock.now();
        let result = call();
        let duration_ns = clock.now().saturating_sub(began_ns);
        let outcome = if result.is_ok() {
            CallOutcome::Done { bytes: self.asked }
        } else {
            CallOutcome::Failed
        };
        seen(Call { duration_ns, outcome, ..self });
        result
    }
}

/// Reads of several objects under way together, up to the depth the queue was made with.
///
/// Make one per worker and reuse it: a queue allocates its memory when it is made.
///
/// ```
/// # use feedline_store::{Destination, Looped, ObjectRange, ReadBuffer, Store, StoreError};
/// # let store = Looped::new([("a".to_owned(), b"0123456789".as_slice().into())]);
/// let range = |key: &str| ObjectRange { key: key.to_owned(), offset: 3, len: Some(4) };
/// let (mut first, mut second) = ([0; 4], [0; 4]);
/// let mut buffers = [ReadBuffer::new(&mut first), ReadBuffer::new(&mut second)];
/// let mut queue = store.queue(16)?.expect("this store has queues");
/// let to = Destination::Buffers(&mut buffers);
/// let bytes = queue.read(&[range("a"), range("missing")], to, &mut |_call| ())?;
/// let [read, refused] = buffers.map(ReadBuffer::into_result);
/// assert_eq!((bytes, read?, &first), (4, 4, b"3456"));
/// assert!(refused.unwrap_err().is_missing());
/// # Ok::<(), StoreError>(())
/// ```
pub trait ReadQueue: Send {
    /// Reads every range whole, in pieces of [`Store::read_bytes`](crate::Store::read_bytes), and
    /// shows each finished call to `seen`; gives the bytes of all ranges that were read.
    ///
    /// Consecutive ranges of one object share one open. Fewer bytes than asked for are a
    /// [`Short`](crate::StoreError::Short) that names the object. Nothing stays under way when this
    /// returns, whatever it returns.
    ///
    /// # Panics
    /// If there are buffers, but not one per range that is as long as the range.
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64>;
}

/// The destinations and results of one read, by range.
pub(crate) struct Delivery<'d, 'b> {
    to: Destination<'d, 'b>,
    bytes: u64,
}

impl<'d, 'b> Delivery<'d, 'b> {
    pub(crate) fn new(ranges: &[ObjectRange], to: Destination<'d, 'b>) -> Delivery<'d, 'b> {
        if let Destination::Buffers(buffers) = &to {
            assert_eq!(buffers.len(), ranges.len(), "a buffer per range");
            for (buffer, range) in buffers.iter().zip(ranges) {
                let len = range.len.unwrap_or(0);
                assert!(buffer.memory.len() as u64 >= len, "a buffer as long as its range");
            }
        }
        Delivery { to, bytes: 0 }
    }

    /// Takes the memory of the range at this index, which is read now; `None` if it is discarded.
    pub(crate) fn memory(&mut self, range: usize) -> Option<&'b mut [u8]> {
        match &mut self.to {
            Destination::Discard => None,
            Destination::Buffers(buffers) => Some(std::mem::take(&mut buffers[range].memory)),
        }
    }

    /// Whether a read of the range has gone wrong, so that its other bytes are of no use.
    pub(crate) fn has_failed(&self, range: usize) -> bool {
        matches!(&self.to, Destination::Buffers(buffers) if buffers[range].result.is_err())
    }

    /// Enters what came of a piece of a range. Gives back an error that has no buffer to stay in.
    pub(crate) fn settle(&mut self, range: usize, result: Result<u64>) -> Result<()> {
        match &mut self.to {
            Destination::Discard => self.bytes += result?,
            Destination::Buffers(buffers) => {
                let whole = &mut buffers[range].result;
                if let Ok(before) = whole {
                    *whole = result.map(|bytes| *before + bytes);
                }
            }
        }
        Ok(())
    }

    /// The bytes of all ranges that were read.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.to {
            Destination::Discard => self.bytes,
            Destination::Buffers(buffers) => {
                buffers.iter().filter_map(|buffer| buffer.result.as_ref().ok()).sum()
            }
        }
    }
}
