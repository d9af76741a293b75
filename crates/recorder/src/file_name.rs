//! Room for the path of a new file.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::config::Text;

pub(crate) type PathOfFile = Text<1200>;

struct Room {
    is_taken: AtomicBool,
    path: UnsafeCell<PathOfFile>,
}

// SAFETY: the path belongs to the thread that set `is_taken`.
unsafe impl Sync for Room {}

static ROOMS: [Room; 8] =
    [const { Room { is_taken: AtomicBool::new(false), path: UnsafeCell::new(PathOfFile::EMPTY) } };
        8];

/// Lends room for a path that is not on the stack: a signal handler may have hardly any. Only when many
/// threads do this at once, it is.
pub(crate) fn with_path<T>(work: impl FnOnce(&mut PathOfFile) -> T) -> T {
    #[cold]
    #[inline(never)]
    fn on_the_stack<T>(work: impl FnOnce(&mut PathOfFile) -> T) -> T {
        let mut path = PathOfFile::EMPTY;
        work(&mut path)
    }
    let Some(room) = ROOMS.iter().find(|room| !room.is_taken.swap(true, Ordering::Acquire)) else {
        return on_the_stack(work);
    };
    // SAFETY: taken just now, so no other thread has it.
    let result = work(unsafe { &mut *room.path.get() });
    room.is_taken.store(false, Ordering::Release);
    result
}
