//! Reading through descriptors.

use core::ffi::{c_int, c_void};

use feedline_recorder::CallRecord;
use libc::{iovec, off_t, size_t, ssize_t};

use crate::hook::{fd, hooks};

/// Notes how much was asked for.
pub(super) fn sized<R>(count: size_t) -> impl FnOnce(&mut CallRecord, R) {
    move |record, _| record.size = count as u64
}

/// Notes how much was asked for, and where.
pub(super) fn sized_at<R>(count: size_t, offset: off_t) -> impl FnOnce(&mut CallRecord, R) {
    move |record, _| {
        record.size = count as u64;
        record.offset = offset;
    }
}

/// Notes how many vectors there were, and how much they asked for: 0 unless the kernel accepted them.
pub(super) fn vectored<R>(vectors: *const iovec, count: c_int) -> impl FnOnce(&mut CallRecord, R) {
    move |record, _| {
        record.arg = u64::from(count.unsigned_abs());
        record.size = 0;
        if record.result >= 0 && !vectors.is_null() {
            let count = usize::try_from(count).unwrap_or(0);
            // SAFETY: the kernel has just read as many.
            let vectors = unsafe { core::slice::from_raw_parts(vectors, count) };
            record.size = vectors.iter().fold(0, |sum, vector| sum + vector.iov_len as u64);
        }
    }
}

/// The same for a place in the file.
pub(super) fn vectored_at<R>(
    vectors: *const iovec,
    count: c_int,
    offset: off_t,
) -> impl FnOnce(&mut CallRecord, R) {
    move |record, result| {
        vectored(vectors, count)(record, result);
        record.offset = offset;
    }
}

hooks! {
    fn read(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t = Read, fd(file), sized(count);
    fn __read_chk(file: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t
        = ReadChk, fd(file), sized(count);
    fn pread(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t
        = Pread | pread64 = Pread64, fd(file), sized_at(count, offset);
    fn __pread_chk(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t, room: size_t) -> ssize_t
        = PreadChk | __pread64_chk = Pread64Chk, fd(file), sized_at(count, offset);
    fn readv(file: c_int, vectors: *const iovec, count: c_int) -> ssize_t
        = Readv, fd(file), vectored(vectors, count);
    fn preadv(file: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t
        = Preadv | preadv64 = Preadv64, fd(file), vectored_at(vectors, count, offset);
    fn preadv2(file: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
        = Preadv2 | preadv64v2 = Preadv64v2, fd(file), vectored_at(vectors, count, offset);
}
