//! A segment: a head and slots of 64 bytes in a mapped file, written by one thread at a time.
//!
//! A writer takes slots by one instruction that adds, fills them, and completes them by storing the tag of
//! the segment's generation. So a signal handler that records in the middle of its thread's recording takes
//! the next slot, and a slot whose writer was killed half-way is never taken for a record.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::op;
use crate::record::{CallRecord, SLOT_BYTES};
use crate::ticks::ClockPair;

/// How the name of a segment's file ends.
pub const SEGMENT_SUFFIX: &str = ".segment";
/// How the name of a process's file ends.
pub const PROCESS_SUFFIX: &str = ".process";

/// Says that this is a segment.
pub(crate) const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"FLSEGM01");
/// Slots that the head takes the place of.
pub(crate) const HEAD_BYTES: usize = 256;
/// The first segment of a process: most processes of a shell script need no more.
pub(crate) const FIRST_BYTES: usize = 32 * 1024;
/// Every other segment. It fits into a core's own cache together with what the program does.
pub(crate) const OTHER_BYTES: usize = 256 * 1024;

/// State of a segment that a thread writes to.
pub(crate) const ACTIVE: u32 = 1;
/// No thread will take another slot.
pub(crate) const FULL: u32 = 2;
/// Read to the end; may be written from the start.
pub(crate) const DRAINED: u32 = 3;

/// The head of a segment.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) magic: AtomicU64,
    pub(crate) fingerprint: u64,
    /// With `pid`, the process.
    pub(crate) started: u64,
    pub(crate) pid: u32,
    pub(crate) number: u32,
    pub(crate) capacity: u32,
    pub(crate) state: AtomicU32,
    /// Which filling of the segment this is.
    pub(crate) generation: AtomicU32,
    /// Whether the process may use it again once it is drained.
    pub(crate) is_kept: u32,
    /// What complete records of this filling have in them, see [`tag_of`].
    pub(crate) tag: AtomicU32,
    pub(crate) reserved: u32,
    /// Calls that sampling left out.
    pub(crate) skipped: AtomicU64,
    pub(crate) from: ClockPair,
    pub(crate) to: ClockPair,
    /// The next free slot, in a cache line of its own.
    pub(crate) next: Line,
}

/// A counter that shares its cache lines with nothing.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Line(pub(crate) AtomicU32);

impl Line {
    /// Adds to the counter and gives what it was. A segment has one writer at a time, so only the signal
    /// handlers of its thread come between, and they cannot come into the middle of an instruction. Other
    /// processors need not be told, which is what makes an atomic addition dear.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn take(&self, count: u32) -> u32 {
        let mut value = count;
        // SAFETY: adds to memory of ours; readers elsewhere see one value or the other.
        unsafe {
            core::arch::asm!(
                "xadd dword ptr [{place}], {value:e}",
                place = in(reg) self.0.as_ptr(),
                value = inout(reg) value,
                options(nostack),
            );
        }
        value
    }

    /// Adds to the counter and gives what it was.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    fn take(&self, count: u32) -> u32 {
        self.0.fetch_add(count, Ordering::Relaxed)
    }
}

/// How many slots fit into a segment of this many bytes.
pub(crate) const fn capacity(bytes: usize) -> u32 {
    ((bytes - HEAD_BYTES) / SLOT_BYTES) as u32
}

impl Segment {
    /// Takes `slots` slots in a row. `None` if they are not there; what is left is then filled up.
    #[inline]
    pub(crate) fn reserve(&self, slots: u32) -> Option<NonNull<CallRecord>> {
        let first = self.next.take(slots);
        if first.saturating_add(slots) <= self.capacity {
            return Some(self.slot(first));
        }
        if first < self.capacity {
            let padding = CallRecord { op: op::PADDING, ..CallRecord::default() };
            self.complete(self.slot(first), padding);
        }
        None
    }

    /// The slot of a number, which is below the capacity.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> NonNull<CallRecord> {
        let base = NonNull::from(self).cast::<u8>();
        // SAFETY: the mapping of a head holds the head and `capacity` slots.
        unsafe { base.add(HEAD_BYTES + number as usize * SLOT_BYTES) }.cast()
    }

    /// Fills a slot that [`Self::reserve`] gave to this thread.
    #[inline]
    pub(crate) fn complete(&self, slot: NonNull<CallRecord>, record: CallRecord) {
        // The tag is written once more below, after everything else.
        let before = CallRecord { tag: 0, ..record };
        // SAFETY: the slot is this thread's own, in a mapping that stays.
        unsafe { slot.write(before) };
        Self::tag_in(slot).store(self.tag_now(), Ordering::Release);
        prefetch(slot);
    }

    /// The tag of complete records now.
    #[inline]
    pub(crate) fn tag_now(&self) -> u16 {
        // Tags stay below 2^16, see `tag_of`.
        self.tag.load(Ordering::Relaxed) as u16
    }

    /// Begins a filling. Those of one segment have numbers of their own: files of a trace name them.
    pub(crate) fn begin(&self, generation: u32) {
        self.generation.store(generation, Ordering::Relaxed);
        self.tag.store(tag_of(generation), Ordering::Relaxed);
    }

    /// The field of a slot by which it is complete.
    #[inline]
    pub(crate) fn tag_in<'a>(slot: NonNull<CallRecord>) -> &'a AtomicU16 {
        // SAFETY: the slot is in a mapping that outlives its use here; the field is aligned and
        // it is only written through this atomic, or before the slot is complete.
        unsafe { AtomicU16::from_ptr(&raw mut (*slot.as_ptr()).tag) }
    }
}

/// The tag of a generation: never 0, which is what empty slots have.
pub(crate) const fn tag_of(generation: u32) -> u32 {
    generation % (u16::MAX as u32) + 1
}

/// Brings the slot after the next one near: segments go round through more memory than caches hold, and
/// the next record comes too soon to wait for it then.
#[inline]
fn prefetch(slot: NonNull<CallRecord>) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; addresses that are not mapped do no harm.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slot.as_ptr().wrapping_add(2).cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

const _: () = assert!(size_of::<Segment>() <= HEAD_BYTES);
const _: () = assert!(core::mem::offset_of!(Segment, next).is_multiple_of(128));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_round_without_zero() {
        assert_eq!(tag_of(0), 1);
        assert_eq!(tag_of(65_534), 65_535);
        assert_eq!(tag_of(65_535), 1);
        assert_eq!(tag_of(u32::MAX), 1);
    }

    #[test]
    fn sizes_hold_what_the_notes_say() {
        assert_eq!(capacity(FIRST_BYTES), 508);
        assert_eq!(capacity(OTHER_BYTES), 4092);
    }
}
