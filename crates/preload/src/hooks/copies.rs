//! Copies from descriptor to descriptor inside the kernel.

use core::ffi::{c_int, c_uint};

use feedline_recorder::{CallRecord, UNNAMED};
use libc::{off_t, size_t, ssize_t};

use crate::fds;
use crate::hook::{fd, hooks};
use crate::names::SKIP;

/// The offset behind a pointer, as the kernel left it minus what was moved: where the copy began. -1
/// where the descriptor's own position was used, and where the kernel may not have looked at it: after
/// an error, and if there was nothing to do.
fn began(record: &CallRecord, offset: *const off_t) -> i64 {
    if offset.is_null() || record.result < 0 || record.size == 0 {
        return -1;
    }
    // SAFETY: the kernel has just written it, or looked at it.
    unsafe { *offset }.saturating_sub(record.result.max(0))
}

/// The other descriptor's file, for the record.
fn other(file: c_int) -> u64 {
    match fds::file(file) {
        SKIP => u64::from(UNNAMED),
        number => u64::from(number),
    }
}

/// Notes how much was asked for, where the copy began and the file that it went to.
fn copied<R>(count: size_t, offset: *const off_t, to: c_int) -> impl FnOnce(&mut CallRecord, R) {
    move |record, _| {
        record.size = count as u64;
        record.offset = began(record, offset);
        record.arg = other(to);
    }
}

hooks! {
    fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t
        = Sendfile | sendfile64 = Sendfile64, fd(from), copied(count, offset, to);
    fn copy_file_range(from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, count: size_t, flags: c_uint) -> ssize_t
        = CopyFileRange | splice = Splice, fd(from), copied(count, from_offset, to);
}
