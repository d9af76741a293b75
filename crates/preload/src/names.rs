//! Names of files: from what a call was given to the number of a text.
//!
//! A text is recorded when a path is seen for the first time; a small table of hashes knows those that
//! were. Two threads may miss it at once and record a text twice, which does no harm. A relative path
//! is recorded with the number of what it is relative to.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use feedline_recorder::{TextKind, UNNAMED, current_folder, recorder, tidy};

use crate::{fds, filter, scratch};

/// In place of a number: this file is not recorded.
pub(crate) const SKIP: u32 = u32::MAX;

const KNOWN: usize = 4096;

/// A path that has a number: one hash of it, and another one together with the number, so that a table
/// entry which two threads write at once is taken for neither path.
struct Entry {
    hash: AtomicU64,
    check_and_number: AtomicU64,
}

static TABLE: [Entry; KNOWN] =
    [const { Entry { hash: AtomicU64::new(0), check_and_number: AtomicU64::new(0) } }; KNOWN];

static FOLDER: AtomicU32 = AtomicU32::new(UNNAMED);

/// The number of the current folder's name.
pub(crate) fn folder() -> u32 {
    FOLDER.load(Ordering::Relaxed)
}

/// Looks up the current folder: at the start, and whenever the program goes to another one.
pub(crate) fn look_at_folder() {
    let number = scratch::with(|room| {
        let path = current_folder(room).and_then(|length| room.get(..length));
        path.map_or(UNNAMED, |path| number(TextKind::Path, UNNAMED, path))
    });
    FOLDER.store(number.unwrap_or(UNNAMED), Ordering::Relaxed);
}

/// Whether a path may be looked at that a call was given which had this error: whether the kernel could
/// read it. Some calls find other faults before they look at their paths.
pub(crate) fn is_readable(path: *const c_char, error: u16) -> bool {
    match c_int::from(error) {
        0 | libc::ENOENT | libc::ENOTDIR | libc::EEXIST | libc::EACCES | libc::EISDIR => true,
        // What `ls -l` gets for every file.
        libc::ENODATA | libc::EOPNOTSUPP => true,
        libc::EFAULT => false,
        _ => path.is_null() || is_readable_now(path),
    }
}

/// Whether the kernel can read a path: it walks it for us. Changes `errno`.
pub(crate) fn is_readable_now(path: *const c_char) -> bool {
    // SAFETY: the kernel looks for itself.
    let result = unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, 0) };
    // SAFETY: this thread's own variable.
    result == 0 || unsafe { *libc::__errno_location() } != libc::EFAULT
}

/// The number of a path that a call was given, relative to a folder's descriptor. [`SKIP`] if the user
/// does not want it.
///
/// # Safety
/// `path` is null, or the kernel can read it as a path: to its NUL, or as far as paths go.
pub(crate) unsafe fn at(folder_fd: c_int, path: *const c_char) -> u32 {
    if path.is_null() {
        return if folder_fd >= 0 { fds::file(folder_fd) } else { UNNAMED };
    }
    // SAFETY: the caller vouches for it.
    let path = unsafe {
        let length = libc::strnlen(path, scratch::PATH_BYTES);
        core::slice::from_raw_parts(path.cast::<u8>(), length)
    };
    if path.is_empty() {
        return if folder_fd >= 0 { fds::file(folder_fd) } else { UNNAMED };
    }
    if filter::is_set() && !is_wanted(folder_fd, path) {
        return SKIP;
    }
    let base = match path[0] {
        b'/' => UNNAMED,
        _ if folder_fd == libc::AT_FDCWD => folder(),
        _ => match fds::file(folder_fd) {
            SKIP => fds::name(folder_fd),
            number => number,
        },
    };
    number(TextKind::Path, base, path)
}

/// The number of a text.
pub(crate) fn number(kind: TextKind, base: u32, text: &[u8]) -> u32 {
    let (hash, check) = hashes(base, text);
    let Some(entry) = TABLE.get(hash as usize % KNOWN) else { return UNNAMED };
    let known = entry.check_and_number.load(Ordering::Acquire);
    if entry.hash.load(Ordering::Acquire) == hash && (known >> 32) as u32 == check {
        return known as u32;
    }
    let number = recorder().text(kind, base, text);
    if number != UNNAMED {
        entry.hash.store(hash, Ordering::Release);
        entry.check_and_number.store(u64::from(check) << 32 | u64::from(number), Ordering::Release);
    }
    number
}

fn hashes(base: u32, text: &[u8]) -> (u64, u32) {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    let (mut one, mut two) = (u64::from(base) ^ A, text.len() as u64 ^ B);
    let mut take = |word: u64| {
        one = (one ^ word).wrapping_mul(A);
        one ^= one >> 29;
        two = (two.rotate_left(23) ^ word).wrapping_mul(B);
        two ^= two >> 32;
    };
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        take(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    take(u64::from_le_bytes(last));
    (one, (two >> 32) as u32)
}

/// Whether the user wants a path, which is completed for that if it is relative.
fn is_wanted(folder_fd: c_int, path: &[u8]) -> bool {
    let is_tidy = !path.windows(2).any(|two| two == b"//" || two == b"/.");
    if path[0] == b'/' && is_tidy {
        return filter::takes_file(path);
    }
    scratch::with(|room| {
        let length = if path[0] == b'/' {
            Some(0)
        } else if folder_fd == libc::AT_FDCWD {
            current_folder(room)
        } else {
            fds::read_link(folder_fd, room)
        };
        let Some(length) = length else { return true };
        let Some(rest) = room.get_mut(length..length + 1 + path.len()) else { return true };
        let (slash, name) = rest.split_at_mut(1);
        slash.fill(b'/');
        name.copy_from_slice(path);
        let whole = room.get_mut(..length + 1 + path.len()).unwrap_or_default();
        let length = tidy(whole);
        filter::takes_file(whole.get(..length).unwrap_or_default())
    })
    .unwrap_or(true)
}
