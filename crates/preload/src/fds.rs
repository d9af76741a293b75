//! Which file a descriptor belongs to.
//!
//! One slot per descriptor, set when one is made and cleared before one is closed, so that another thread
//! that gets the same number right after finds its own. Descriptors that came from elsewhere (from the
//! parent process, through a socket) are asked for once.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use feedline_recorder::{Text, TextKind, UNNAMED};

use crate::names::{self, SKIP};
use crate::{filter, hook, scratch};

/// More descriptors than that are asked for at each use.
const MOST: usize = 1 << 20;

/// Zeros, which take no memory until they are written.
static FILES: [AtomicU32; MOST] = [const { AtomicU32::new(UNNAMED) }; MOST];

/// The highest descriptor that was ever known: programs that close all possible ones close a million.
static HIGHEST: AtomicU32 = AtomicU32::new(0);

fn slot(fd: c_int) -> Option<&'static AtomicU32> {
    FILES.get(usize::try_from(fd).ok()?)
}

/// The file of a descriptor: its number, [`SKIP`], or [`UNNAMED`] if it is not open.
#[inline]
pub(crate) fn file(fd: c_int) -> u32 {
    match slot(fd).map(|slot| slot.load(Ordering::Relaxed)) {
        Some(UNNAMED) | None => look_up(fd),
        Some(number) => number,
    }
}

/// Says which file a new descriptor belongs to.
pub(crate) fn set(fd: c_int, number: u32) {
    if let Some(slot) = slot(fd) {
        slot.store(number, Ordering::Relaxed);
        if number != UNNAMED {
            HIGHEST.fetch_max(fd.unsigned_abs(), Ordering::Relaxed);
        }
    }
}

/// Forgets a descriptor that is about to be closed, or was made without a name.
pub(crate) fn clear(fd: c_int) {
    set(fd, UNNAMED);
}

/// The file of a descriptor that is about to be closed.
pub(crate) fn take(fd: c_int) -> u32 {
    let number = file(fd);
    clear(fd);
    number
}

/// Forgets a range of descriptors.
pub(crate) fn clear_range(first: u32, last: u32) {
    let last = last.min(HIGHEST.load(Ordering::Relaxed));
    let end = (last as usize).saturating_add(1).min(MOST);
    for slot in FILES.get(first as usize..end).unwrap_or_default() {
        // Untouched pages are zeros, and stay untouched.
        if slot.load(Ordering::Relaxed) != UNNAMED {
            slot.store(UNNAMED, Ordering::Relaxed);
        }
    }
}

/// A descriptor was made out of another one.
pub(crate) fn copy(from: c_int, to: c_int) {
    set(to, slot(from).map_or(UNNAMED, |slot| slot.load(Ordering::Relaxed)));
}

#[cold]
fn look_up(fd: c_int) -> u32 {
    if fd < 0 {
        return UNNAMED;
    }
    let found = scratch::with(|room| {
        let length = hook::keep_errno(|| read_link(fd, room))?;
        let path = room.get(..length)?;
        let is_path = path.first() == Some(&b'/');
        let is_wanted = if is_path { filter::takes_file } else { filter::takes_object };
        if filter::is_set() && !is_wanted(path) {
            return Some(SKIP);
        }
        let kind = if is_path { TextKind::Path } else { TextKind::Object };
        Some(names::number(kind, UNNAMED, path))
    });
    let number = found.flatten().unwrap_or(UNNAMED);
    set(fd, number);
    number
}

/// The number of the name of a descriptor whose file the user does not want.
pub(crate) fn name(fd: c_int) -> u32 {
    let found = scratch::with(|room| {
        let length = hook::keep_errno(|| read_link(fd, room))?;
        Some(names::number(TextKind::Path, UNNAMED, room.get(..length)?))
    });
    found.flatten().unwrap_or(UNNAMED)
}

/// What the kernel calls the file of a descriptor.
pub(crate) fn read_link(fd: c_int, into: &mut [u8]) -> Option<usize> {
    let mut path = Text::<40>::new(b"/proc/self/fd/")?;
    path.push_number(u64::try_from(fd).ok()?);
    feedline_recorder::read_link(path.c_str()?, into)
}
