//! Reading through descriptors.

use core::ffi::{c_int, c_void};

use feedline_recorder::CallRecord;
use libc::{iovec, off_t, size_t, ssize_t};

use crate::hook::{fd, hooks};

/// Bytes that vectors ask for; 0 unless the kernel accepted them.
pub(super) fn asked(record: &CallRecord, vectors: *const iovec, count: c_int) -> u64 {
    if record.result < 0 || vectors.is_null() {
        return 0;
    }
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the kernel has just read as many.
    let vectors = unsafe { core::slice::from_raw_parts(vectors, count) };
    vectors.iter().fold(0, |sum, vector| sum + vector.iov_len as u64)
}

hooks! {
    fn read(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t
        = Read, fd(file), |record, _| record.size = count as u64;
    fn __read_chk(file: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t
        = ReadChk, fd(file), |record, _| record.size = count as u64;
    fn pread(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t
        = Pread, fd(file), |record, _| { record.size = count as u64; record.offset = offset; };
    fn pread64(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t
        = Pread64, fd(file), |record, _| { record.size = count as u64; record.offset = offset; };
    fn __pread_chk(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t, room: size_t) -> ssize_t
        = PreadChk, fd(file), |record, _| { record.size = count as u64; record.offset = offset; };
    fn __pread64_chk(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t, room: size_t) -> ssize_t
        = Pread64Chk, fd(file), |record, _| { record.size = count as u64; record.offset = offset; };
    fn readv(file: c_int, vectors: *const iovec, count: c_int) -> ssize_t
        = Readv, fd(file), |record, _| { record.size = asked(record, vectors, count); record.arg = u64::from(count.unsigned_abs()); };
    fn preadv(file: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t
        = Preadv, fd(file), |record, _| { record.size = asked(record, vectors, count); record.offset = offset; record.arg = u64::from(count.unsigned_abs()); };
    fn preadv64(file: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t
        = Preadv64, fd(file), |record, _| { record.size = asked(record, vectors, count); record.offset = offset; record.arg = u64::from(count.unsigned_abs()); };
    fn preadv2(file: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
        = Preadv2, fd(file), |record, _| { record.size = asked(record, vectors, count); record.offset = offset; record.arg = u64::from(count.unsigned_abs()); };
    fn preadv64v2(file: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
        = Preadv64v2, fd(file), |record, _| { record.size = asked(record, vectors, count); record.offset = offset; record.arg = u64::from(count.unsigned_abs()); };
}
