//! Requests through liburing.
//!
//! A call that submits is an event, and so is each request that it takes out of the submission ring;
//! each completion is one when a call comes back after the kernel has put it into the completion ring.
//! liburing's header looks at rings without any call where it can: what completes there is seen by the
//! next call on the ring, or when the ring is given back, unless the ring has gone round meanwhile.
//!
//! Programs that make the system calls themselves are not seen. Rings are read by the layout that
//! liburing 2 promises to programs that were compiled against its header.

use core::cell::Cell;
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use feedline_recorder::{CallRecord, Class, Op, UNNAMED, now, recorder};

use crate::hook::{Subject, keep_errno, missing, observe};
use crate::names::SKIP;
use crate::real::Real;
use crate::{fds, filter, vfork};

#[repr(C)]
struct SubmissionQueue {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const u32,
    entries: *const u32,
    flags: *const u32,
    dropped: *const u32,
    array: *const u32,
    requests: *const Request,
    /// The first request that is not in the ring yet, and the end of them.
    first: u32,
    end: u32,
    ring_bytes: usize,
    ring: *const c_void,
    mask_copy: u32,
    entries_copy: u32,
    reserved: [u32; 2],
}

#[repr(C)]
struct CompletionQueue {
    head: *const AtomicU32,
    tail: *const AtomicU32,
    mask: *const u32,
    entries: *const u32,
    flags: *const u32,
    overflow: *const u32,
    completions: *const Completion,
    ring_bytes: usize,
    ring: *const c_void,
    mask_copy: u32,
    entries_copy: u32,
    reserved: [u32; 2],
}

/// `struct io_uring`, as far as it is looked at.
#[repr(C)]
pub(crate) struct Ring {
    submissions: SubmissionQueue,
    completions: CompletionQueue,
    flags: u32,
    fd: c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Request {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: c_int,
    offset: u64,
    address: u64,
    length: u32,
    more: u32,
    user_data: u64,
    rest: [u64; 3],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Completion>() == 16);

const REQUESTS_OF_128_BYTES: u32 = 1 << 10;
const COMPLETIONS_OF_32_BYTES: u32 = 1 << 11;
/// The descriptor of the request is a number of the ring's own.
const REGISTERED: u8 = 1;
const READV: u8 = 1;
const WRITEV: u8 = 2;
const CLOSE: u8 = 19;

/// How far completions of a ring were seen. The 65th ring at a time is not remembered, and its
/// completions are not seen.
struct Seen {
    ring: AtomicUsize,
    tail: AtomicU32,
}

static SEEN: [Seen; 64] =
    [const { Seen { ring: AtomicUsize::new(0), tail: AtomicU32::new(0) } }; 64];

fn seen(ring: *const Ring) -> Option<&'static Seen> {
    let address = ring.addr();
    if let Some(seen) = SEEN.iter().find(|seen| seen.ring.load(Ordering::Acquire) == address) {
        return Some(seen);
    }
    let is_free = |seen: &&Seen| {
        seen.ring.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    // Whoever gives a place back has set its tail to 0, where rings begin.
    SEEN.iter().find(is_free)
}

/// Records requests that are not in the ring yet, of which there are `end - first`.
///
/// # Safety
/// `ring` is one that liburing has set up.
unsafe fn submitted(ring: *const Ring, first: u32, end: u32) {
    if !filter::takes(filter::bit(Op::UringSubmitted.info())) {
        return;
    }
    // SAFETY: the caller vouches for it, here and below.
    let (queue, flags) = unsafe { (&(*ring).submissions, (*ring).flags) };
    let shift = u32::from(flags & REQUESTS_OF_128_BYTES != 0);
    // SAFETY: as above.
    let mask = unsafe { *queue.mask };
    let count = end.wrapping_sub(first).min(mask.wrapping_add(1));
    for index in 0..count {
        let place = (first.wrapping_add(index) & mask) << shift;
        // SAFETY: the mask keeps it inside the ring; the program has filled it.
        let request = unsafe { *queue.requests.add(place as usize) };
        let file = if request.flags & REGISTERED != 0 { UNNAMED } else { fds::file(request.fd) };
        if request.opcode == CLOSE && request.flags & REGISTERED == 0 {
            fds::clear(request.fd);
        }
        if file == SKIP {
            recorder().count_filtered();
            continue;
        }
        let start = now();
        let record = CallRecord {
            start,
            end: start,
            // The length of a vector is not that of what it describes.
            size: if matches!(request.opcode, READV | WRITEV) { 0 } else { request.length.into() },
            offset: request.offset.cast_signed(),
            arg: request.user_data,
            result: request.opcode.into(),
            file,
            ..CallRecord::default()
        };
        recorder().commit(Op::UringSubmitted, &record);
    }
}

/// Records completions that nobody has seen yet, each one once.
///
/// # Safety
/// `ring` is one that liburing has set up.
unsafe fn completed(ring: *const Ring) {
    let Some(seen) = seen(ring) else { return };
    // SAFETY: the caller vouches for it, here and below.
    let (queue, flags) = unsafe { (&(*ring).completions, (*ring).flags) };
    let shift = u32::from(flags & COMPLETIONS_OF_32_BYTES != 0);
    // SAFETY: as above.
    let (tail, mask) = unsafe { (&*queue.tail, *queue.mask) };
    let entries = mask.wrapping_add(1);
    let end = tail.load(Ordering::Acquire);
    let ahead = |last: u32| (end.wrapping_sub(last).cast_signed() > 0).then_some(end);
    let Ok(last) = seen.tail.fetch_update(Ordering::AcqRel, Ordering::Acquire, ahead) else {
        return;
    };
    let count = end.wrapping_sub(last);
    if !filter::takes(filter::bit(Op::UringCompleted.info())) {
        return;
    }
    for back in (1..=count.min(entries)).rev() {
        let index = end.wrapping_sub(back);
        // SAFETY: the mask keeps it inside the ring; the kernel has filled it.
        let completion = unsafe { *queue.completions.add(((index & mask) << shift) as usize) };
        if tail.load(Ordering::Acquire).wrapping_sub(index) > entries {
            continue;
        }
        let start = now();
        let error = u16::try_from(completion.result.wrapping_neg()).unwrap_or(0);
        let record = CallRecord {
            start,
            end: start,
            arg: completion.user_data,
            result: completion.result.into(),
            errno: error,
            ..CallRecord::default()
        };
        recorder().commit(Op::UringCompleted, &record);
    }
}

/// A call on a ring, with what it submits and what completes by then.
///
/// # Safety
/// `ring` is one that liburing has set up.
unsafe fn watched(op: Op, ring: *const Ring, wait: c_uint, call: impl FnOnce() -> c_int) -> c_int {
    if !filter::is_on() || vfork::is_child() || ring.is_null() {
        return call();
    }
    // liburing calls some of its functions by their names, so they come here: they are parts of the
    // call that the program made. One that it jumped out of ended further up on the stack.
    let frame = (&raw const ring).addr();
    let outer = OUTER.replace(frame);
    if outer > frame {
        OUTER.set(outer);
        return call();
    }
    // SAFETY: as for this function.
    let result = unsafe { watched_alone(op, ring, wait, call) };
    OUTER.set(0);
    result
}

thread_local! {
    /// Where on the stack this thread is in a call, 0 if it is in none.
    static OUTER: Cell<usize> = const { Cell::new(0) };
}

/// The same for a call that is no part of another one.
///
/// # Safety
/// As for `watched`.
unsafe fn watched_alone(
    op: Op,
    ring: *const Ring,
    wait: c_uint,
    call: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller vouches for it, here and below.
    let (first, end) = unsafe { ((*ring).submissions.first, (*ring).submissions.end) };
    let submits = op.info().class == Class::Submit;
    if submits {
        // SAFETY: as above.
        keep_errno(|| unsafe { submitted(ring, first, end) });
    }
    let result = if filter::takes(filter::bit(op.info())) {
        observe(op, Subject::Nothing, call, |record, result| {
            record.arg = wait.into();
            // The error is the result.
            record.errno = u16::try_from(result.wrapping_neg()).unwrap_or(0);
        })
    } else {
        call()
    };
    keep_errno(|| {
        // Old kernels wait for a time by a request, which takes those before it along.
        // SAFETY: as above.
        let moved = unsafe { (*ring).submissions.first };
        if !submits && moved != first {
            // SAFETY: as above.
            unsafe { submitted(ring, first, end) };
        }
        // SAFETY: as above.
        unsafe { completed(ring) };
    });
    result
}

/// Hooks: `fn name(arguments) -> type = Op, ring, number to wait for;`
macro_rules! rings {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $op:ident, $wait:expr;)+) => {$(
        /// As in liburing.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(ring: *mut Ring $(, $arg: $type)*) -> $result {
            type Function = unsafe extern "C-unwind" fn(*mut Ring $(, $type)*) -> $result;
            static REAL: Real = Real::named(concat!(stringify!($name), "\0"));
            let place = REAL.get_anywhere();
            if place.is_null() {
                return missing::<c_int>().wrapping_mul(libc::ENOSYS) as $result;
            }
            // SAFETY: liburing's function of this name has this type.
            let function = unsafe { core::mem::transmute::<*mut c_void, Function>(place) };
            // SAFETY: the program's own arguments, unchanged.
            let call = || unsafe { function(ring $(, $arg)*) } as c_int;
            // SAFETY: the program vouches for its ring.
            unsafe { watched(Op::$op, ring, $wait, call) as $result }
        }
    )+};
}

rings! {
    fn io_uring_submit() -> c_int = IoUringSubmit, 0;
    fn io_uring_submit_and_wait(wait: c_uint) -> c_int = IoUringSubmitAndWait, wait;
    fn io_uring_submit_and_wait_timeout(into: *mut c_void, wait: c_uint, time: *mut c_void, mask: *mut c_void) -> c_int
        = IoUringSubmitAndWaitTimeout, wait;
    fn io_uring_submit_and_get_events() -> c_int = IoUringSubmitAndGetEvents, 0;
    fn io_uring_wait_cqes(into: *mut c_void, wait: c_uint, time: *mut c_void, mask: *mut c_void) -> c_int
        = IoUringWaitCqes, wait;
    fn io_uring_wait_cqe_timeout(into: *mut c_void, time: *mut c_void) -> c_int
        = IoUringWaitCqeTimeout, 1;
    fn __io_uring_get_cqe(into: *mut c_void, submit: c_uint, wait: c_uint, mask: *mut c_void) -> c_int
        = IoUringGetCqe, wait;
    fn io_uring_peek_batch_cqe(into: *mut c_void, count: c_uint) -> c_uint = IoUringPeekBatchCqe, 0;
}

/// A ring is set up at this place, or given back.
fn forget(ring: *const Ring) {
    if let Some(seen) = SEEN.iter().find(|s| s.ring.load(Ordering::Acquire) == ring.addr()) {
        seen.tail.store(0, Ordering::Relaxed);
        seen.ring.store(0, Ordering::Release);
    }
}

/// Functions that set rings up: `fn name(arguments) sets ring;`
macro_rules! beginnings {
    ($(fn $name:ident($($arg:ident: $type:ty),*) sets $ring:ident;)+) => {$(
        /// As in liburing.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> c_int {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
            static REAL: Real = Real::named(concat!(stringify!($name), "\0"));
            let place = REAL.get_anywhere();
            if place.is_null() {
                return missing::<c_int>().wrapping_mul(libc::ENOSYS);
            }
            forget($ring);
            // SAFETY: liburing's function of this name has this type.
            let function = unsafe { core::mem::transmute::<*mut c_void, Function>(place) };
            // SAFETY: the program's own arguments, unchanged.
            unsafe { function($($arg),*) }
        }
    )+};
}

beginnings! {
    fn io_uring_queue_init(entries: c_uint, ring: *mut Ring, flags: c_uint) sets ring;
    fn io_uring_queue_init_params(entries: c_uint, ring: *mut Ring, facts: *mut c_void) sets ring;
    fn io_uring_queue_mmap(file: c_int, facts: *mut c_void, ring: *mut Ring) sets ring;
}

static QUEUE_EXIT: Real = Real::new(c"io_uring_queue_exit");

/// As in liburing. The last time to see what completed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn io_uring_queue_exit(ring: *mut Ring) {
    let place = QUEUE_EXIT.get_anywhere();
    if place.is_null() {
        return missing();
    }
    if filter::is_on() && !vfork::is_child() && !ring.is_null() {
        // SAFETY: the program vouches for its ring.
        keep_errno(|| unsafe {
            completed(ring);
            fds::clear((*ring).fd);
        });
        forget(ring);
    }
    type Function = unsafe extern "C-unwind" fn(*mut Ring);
    // SAFETY: liburing's function of this name has this type.
    let function = unsafe { core::mem::transmute::<*mut c_void, Function>(place) };
    // SAFETY: the program's own argument.
    unsafe { function(ring) }
}
