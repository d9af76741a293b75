//! What each thread knows: its segment, its number, its open summaries.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU16, Ordering, compiler_fence};

use crate::op;
use crate::os;
use crate::record::{CallRecord, SLOT_BYTES, TextKind};
use crate::segment::{HEAD_BYTES, Segment};

/// Summaries that a thread keeps open.
const OPEN_SUMMARIES: usize = 64;

/// A summary that calls are added to.
#[derive(Clone, Copy)]
pub(crate) struct OpenSummary {
    pub(crate) segment: NonNull<Segment>,
    pub(crate) slot: NonNull<CallRecord>,
    pub(crate) file: u32,
    pub(crate) op: u16,
}

/// A page of them.
pub(crate) type OpenSummaries = [Cell<Option<OpenSummary>>; OPEN_SUMMARIES];

/// What a thread knows. Small, since it takes from the stacks of the program's threads. Zeros are what a
/// new thread knows.
#[repr(C)]
pub(crate) struct Thread {
    /// Atomic because of signal handlers: only the code that takes a segment out closes it.
    pub(crate) segment: AtomicPtr<Segment>,
    /// A segment that was closed inside a signal handler while a record was under way outside it.
    pub(crate) retired: AtomicPtr<Segment>,
    pub(crate) epoch: Cell<u32>,
    pub(crate) id: Cell<u32>,
    /// How many records this thread is in the middle of; more than one inside a signal handler. One
    /// that a handler jumped out of is never finished; nothing depends on that but unmapping.
    pub(crate) depth: Cell<u32>,
    pub(crate) calls: Cell<u32>,
    /// Segments that it has had.
    pub(crate) turns: Cell<u32>,
    pub(crate) has_vforked: Cell<bool>,
    /// Made at the first use.
    pub(crate) summaries: Cell<*mut OpenSummaries>,
}

/// A text on its way into a segment.
pub(crate) struct Note {
    pub(crate) number: u32,
    pub(crate) base: u32,
    pub(crate) kind: TextKind,
}

// Rust's own thread-local variables may call the allocator at their first use in a library, which a
// signal handler must not. This one is in the block that every thread is born with, and costs two
// instructions to find.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .tbss.feedline_thread,\"awT\",@nobits",
    ".balign 16",
    ".hidden feedline_thread",
    ".globl feedline_thread",
    ".type feedline_thread,@object",
    ".size feedline_thread,{size}",
    "feedline_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Thread>(),
);

#[cfg(not(target_arch = "x86_64"))]
std::thread_local! {
    static THREAD: Thread = const {
        Thread {
            segment: AtomicPtr::new(ptr::null_mut()),
            retired: AtomicPtr::new(ptr::null_mut()),
            epoch: Cell::new(0),
            id: Cell::new(0),
            depth: Cell::new(0),
            calls: Cell::new(0),
            turns: Cell::new(0),
            has_vforked: Cell::new(false),
            summaries: Cell::new(ptr::null_mut()),
        }
    };
}

const _: () = assert!(align_of::<Thread>() <= 16);

impl Thread {
    /// This thread.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn this() -> &'static Self {
        let place: *const Self;
        // SAFETY: computes an address from the thread's base and its distance, which the loader knows.
        unsafe {
            core::arch::asm!(
                "mov {place}, qword ptr fs:[0]",
                "add {place}, qword ptr [rip + feedline_thread@GOTTPOFF]",
                place = out(reg) place,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: zeros at first, which are fine, and this thread's as long as it lives. The reference
        // does not leave the thread: `Thread` is not `Sync`.
        unsafe { &*place }
    }

    /// This thread.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(crate) fn this() -> &'static Self {
        // SAFETY: it has no destructor, so it is there as long as its thread.
        THREAD.with(|thread| unsafe { &*ptr::from_ref(thread) })
    }

    /// Where the summary of such calls is, if there is memory for it.
    pub(crate) fn summary(&self, file: u32, op: u16) -> Option<&Cell<Option<OpenSummary>>> {
        if self.summaries.get().is_null() {
            let place = os::map_memory(size_of::<OpenSummaries>())?.cast::<OpenSummaries>();
            // SAFETY: new memory, large enough and aligned to a page.
            unsafe { place.write([const { Cell::new(None) }; OPEN_SUMMARIES]) };
            self.summaries.set(place.as_ptr());
        }
        let spread = (file ^ (u32::from(op) << 7)).wrapping_mul(0x9e37_79b1) >> 26;
        // SAFETY: this thread's memory.
        unsafe { self.summaries.get().as_ref() }?.get(spread as usize)
    }

    /// The segment that holds them no longer belongs to this thread.
    pub(crate) fn forget_summaries(&self) {
        // SAFETY: null, or this thread's memory.
        for open in unsafe { self.summaries.get().as_ref() }.into_iter().flatten() {
            open.set(None);
        }
    }

    /// The head says how many slots the text takes before the text is there, so that readers find the
    /// next record whatever happens to this one.
    pub(crate) fn write_text(
        &self,
        segment: &Segment,
        place: NonNull<CallRecord>,
        note: Note,
        text: &[u8],
    ) {
        let head = CallRecord {
            op: op::TEXT,
            file: note.number,
            offset: i64::from(note.base),
            arg: note.kind as u64,
            size: text.len() as u64,
            thread: self.id.get(),
            ..CallRecord::default()
        };
        segment.complete(place, head);
        // SAFETY: `place` is the first of as many slots as the text needs after it, all ours.
        unsafe {
            let bytes = place.as_ptr().add(1).cast::<u8>();
            ptr::copy_nonoverlapping(text.as_ptr(), bytes, text.len());
            AtomicU16::from_ptr(&raw mut (*place.as_ptr()).more).store(1, Ordering::Release);
        }
    }
}

/// Does something for this thread. While it is at it, no segment of the thread is unmapped by a signal
/// handler.
#[inline]
pub(crate) fn in_thread<T>(work: impl FnOnce(&Thread) -> T) -> T {
    let thread = Thread::this();
    thread.depth.set(thread.depth.get() + 1);
    // The compiler must not move what follows before that, nor what comes after.
    compiler_fence(Ordering::SeqCst);
    let result = work(thread);
    compiler_fence(Ordering::SeqCst);
    thread.depth.set(thread.depth.get().saturating_sub(1));
    if thread.depth.get() == 0 && !thread.retired.load(Ordering::Relaxed).is_null() {
        unmap(thread.retired.swap(ptr::null_mut(), Ordering::Relaxed));
    }
    result
}

/// Unmaps a segment that will not be read.
pub(crate) fn unmap(segment: *mut Segment) {
    // SAFETY: null, or mapped until here.
    if let Some(head) = unsafe { segment.as_ref() } {
        let bytes = HEAD_BYTES + head.capacity as usize * SLOT_BYTES;
        // SAFETY: the caller was the last one to have it.
        unsafe { os::unmap(NonNull::from(head).cast(), bytes) };
    }
}
