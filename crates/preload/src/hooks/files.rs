//! Opening, closing and positions. `open` and its like take a mode only with some flags; it travels in
//! a register that is passed on as it is, whether it means something or not.

use core::ffi::{CStr, c_char, c_int, c_uint};

use feedline_recorder::{CallRecord, TextKind, UNNAMED};
use libc::{mode_t, off_t};

use crate::hook::{Subject, at, closing, fd, hooks, opened, path};
use crate::names::{self, SKIP};
use crate::{fds, filter};

fn flagged(record: &mut CallRecord, file: c_int, flags: c_int, mode: c_uint) {
    record.arg = u64::from(flags.cast_unsigned());
    if flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE {
        record.size = u64::from(mode);
    }
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        // The path was that of its folder; the kernel has a name for the file.
        if file >= 0 {
            fds::clear(file);
        }
        return;
    }
    opened(record, file);
}

/// Shared memory: files in a folder of their own.
fn shared(record: &mut CallRecord, name: *const c_char, file: c_int, flags: c_int, mode: mode_t) {
    record.arg = u64::from(flags.cast_unsigned());
    if flags & libc::O_CREAT != 0 {
        record.size = u64::from(mode);
    }
    if file >= 0 {
        fds::clear(file);
        record.file = fds::file(file);
    } else if filter::is_set() {
        record.file = SKIP;
    } else if !name.is_null() {
        // SAFETY: the C library has read it to its NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let folder = names::number(TextKind::Path, UNNAMED, b"/dev/shm");
        record.file =
            names::number(TextKind::Path, folder, name.strip_prefix(b"/").unwrap_or(name));
    }
}

hooks! {
    fn open(name: *const c_char, flags: c_int, mode: c_uint) -> c_int
        = Open | open64 = Open64, path(name), |record, file| flagged(record, file, flags, mode);
    fn __open_2(name: *const c_char, flags: c_int) -> c_int
        = Open2 | __open64_2 = Open642, path(name), |record, file| flagged(record, file, flags, 0);
    fn openat(folder: c_int, name: *const c_char, flags: c_int, mode: c_uint) -> c_int
        = Openat | openat64 = Openat64, at(folder, name), |record, file| flagged(record, file, flags, mode);
    fn __openat_2(folder: c_int, name: *const c_char, flags: c_int) -> c_int
        = Openat2 | __openat64_2 = Openat642, at(folder, name), |record, file| flagged(record, file, flags, 0);
    fn creat(name: *const c_char, mode: mode_t) -> c_int
        = Creat | creat64 = Creat64, path(name), |record, file| { record.size = u64::from(mode); opened(record, file); };
    fn mkstemp(name: *mut c_char) -> c_int
        = Mkstemp | mkstemp64 = Mkstemp64, path(name), |record, file| opened(record, file);
    fn mkostemp(name: *mut c_char, flags: c_int) -> c_int
        = Mkostemp | mkostemp64 = Mkostemp64, path(name), |record, file| { record.arg = u64::from(flags.cast_unsigned()); opened(record, file); };
    fn mkstemps(name: *mut c_char, behind: c_int) -> c_int
        = Mkstemps | mkstemps64 = Mkstemps64, path(name), |record, file| opened(record, file);
    fn mkostemps(name: *mut c_char, behind: c_int, flags: c_int) -> c_int
        = Mkostemps | mkostemps64 = Mkostemps64, path(name), |record, file| { record.arg = u64::from(flags.cast_unsigned()); opened(record, file); };
    fn shm_open(name: *const c_char, flags: c_int, mode: mode_t) -> c_int
        = ShmOpen, Subject::Nothing, |record, file| shared(record, name, file, flags, mode);
    fn close(file: c_int) -> c_int = Close, closing(file), |_, _| ();
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int
        = CloseRange, Subject::Nothing, |record, result| {
            record.size = u64::from(last);
            record.arg = u64::from(flags.cast_unsigned());
            // Flags say that they are closed later, or that a table of their own is made first.
            if result == 0 && flags & 4 == 0 {
                fds::clear_range(first, last);
            }
        };
    fn lseek(file: c_int, offset: off_t, whence: c_int) -> off_t
        = Lseek | lseek64 = Lseek64, fd(file), |record, _| { record.offset = offset; record.arg = u64::from(whence.cast_unsigned()); };
}
