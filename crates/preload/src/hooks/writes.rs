//! Writing through descriptors, and making it last.

use core::ffi::{c_int, c_uint, c_void};

use libc::{iovec, off_t, size_t, ssize_t};

use super::reads::{sized, sized_at, vectored, vectored_at};
use crate::hook::{Subject, fd, hooks};

hooks! {
    fn write(file: c_int, buffer: *const c_void, count: size_t) -> ssize_t = Write, fd(file), sized(count);
    fn pwrite(file: c_int, buffer: *const c_void, count: size_t, offset: off_t) -> ssize_t
        = Pwrite | pwrite64 = Pwrite64, fd(file), sized_at(count, offset);
    fn writev(file: c_int, vectors: *const iovec, count: c_int) -> ssize_t
        = Writev, fd(file), vectored(vectors, count);
    fn pwritev(file: c_int, vectors: *const iovec, count: c_int, offset: off_t) -> ssize_t
        = Pwritev | pwritev64 = Pwritev64, fd(file), vectored_at(vectors, count, offset);
    fn pwritev2(file: c_int, vectors: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t
        = Pwritev2 | pwritev64v2 = Pwritev64v2, fd(file), vectored_at(vectors, count, offset);
    fn fsync(file: c_int) -> c_int = Fsync | fdatasync = Fdatasync | syncfs = Syncfs, fd(file), |_, _| ();
    fn sync() -> () = Sync, Subject::Nothing, |_, ()| ();
    fn sync_file_range(file: c_int, offset: off_t, count: off_t, flags: c_uint) -> c_int
        = SyncFileRange, fd(file), |record, _| { record.size = count.cast_unsigned(); record.offset = offset; record.arg = u64::from(flags); };
}
