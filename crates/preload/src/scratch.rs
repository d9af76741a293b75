//! Room for a path, without using the caller's stack: signal handlers may have very little of it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// The longest path that the kernel takes, with its NUL.
pub(crate) const PATH_BYTES: usize = 4096;
/// As many threads as may look for a path at once; untouched, they take no memory.
const ROOMS: usize = 256;

struct Room {
    is_taken: AtomicBool,
    bytes: UnsafeCell<[u8; PATH_BYTES]>,
}

// SAFETY: the bytes belong to the thread that set `is_taken`.
unsafe impl Sync for Room {}

static ALL: [Room; ROOMS] =
    [const { Room { is_taken: AtomicBool::new(false), bytes: UnsafeCell::new([0; PATH_BYTES]) } };
        ROOMS];

/// Lends a room for a path to `work`; `None` if all are lent out, and then the path has no name.
pub(crate) fn with<T>(work: impl FnOnce(&mut [u8; PATH_BYTES]) -> T) -> Option<T> {
    let room = ALL.iter().find(|room| !room.is_taken.swap(true, Ordering::Acquire))?;
    // SAFETY: taken just now, so no other thread has it.
    let result = work(unsafe { &mut *room.bytes.get() });
    room.is_taken.store(false, Ordering::Release);
    Some(result)
}

/// Gives all rooms back: those that other threads had taken when their process was forked.
pub(crate) fn free_all() {
    for room in &ALL {
        room.is_taken.store(false, Ordering::Release);
    }
}
