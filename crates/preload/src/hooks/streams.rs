//! Buffered streams: opening, closing, blocks of bytes, positions. The system calls that the C library
//! makes underneath are not seen.

use core::ffi::{c_char, c_int, c_long, c_void};

use feedline_recorder::CallRecord;
use libc::{FILE, off_t, size_t};

use crate::hook::{Subject, closing, descriptor, fd, hooks, opened, path, stream};

fn opened_stream(record: &mut CallRecord, made: *mut FILE) {
    let file = descriptor(made);
    record.result = i64::from(file);
    opened(record, file);
}

/// A stream without a path of its own: the kernel is asked for its name at its first use.
fn unnamed_stream(record: &mut CallRecord, made: *mut FILE) {
    let file = descriptor(made);
    record.result = i64::from(file);
    if file >= 0 {
        crate::fds::clear(file);
        record.file = crate::fds::file(file);
    }
}

/// Bytes, where the C library counts elements.
fn elements(record: &mut CallRecord, size: size_t, count: size_t, done: size_t) {
    record.size = size.saturating_mul(count) as u64;
    record.arg = size as u64;
    record.result = size.saturating_mul(done).cast_signed() as i64;
}

fn sought(record: &mut CallRecord, offset: i64, whence: c_int) {
    record.offset = offset;
    record.arg = u64::from(whence.cast_unsigned());
}

/// The new file of a stream, or the stream's old one if only its mode changes.
fn reopening(old: *mut FILE, name: *const c_char) -> Subject {
    if crate::vfork::is_child() {
        return Subject::Nothing;
    }
    if name.is_null() {
        return closing(descriptor(old));
    }
    crate::fds::clear(descriptor(old));
    path(name)
}

hooks! {
    fn fopen(name: *const c_char, mode: *const c_char) -> *mut FILE
        = Fopen | fopen64 = Fopen64, path(name), opened_stream;
    fn fdopen(file: c_int, mode: *const c_char) -> *mut FILE
        = Fdopen, fd(file), |record, made| record.result = i64::from(descriptor(made));
    fn freopen(name: *const c_char, mode: *const c_char, old: *mut FILE) -> *mut FILE
        = Freopen | freopen64 = Freopen64, reopening(old, name), opened_stream;
    fn tmpfile() -> *mut FILE = Tmpfile | tmpfile64 = Tmpfile64, Subject::Nothing, unnamed_stream;
    fn fmemopen(buffer: *mut c_void, size: size_t, mode: *const c_char) -> *mut FILE
        = Fmemopen, Subject::Nothing, |record, _| record.result = -1;
    fn open_memstream(place: *mut *mut c_char, size: *mut size_t) -> *mut FILE
        = OpenMemstream, Subject::Nothing, |record, _| record.result = -1;
    fn fclose(file: *mut FILE) -> c_int = Fclose, closing(descriptor(file)), |_, _| ();
    fn fflush(file: *mut FILE) -> c_int
        = Fflush | fflush_unlocked = FflushUnlocked | feof = Feof | ferror = Ferror | ftrylockfile = Ftrylockfile, stream(file), |_, _| ();
    fn fread(to: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t
        = Fread | fread_unlocked = FreadUnlocked, stream(file), |record, done| elements(record, size, count, done);
    fn __fread_chk(to: *mut c_void, room: size_t, size: size_t, count: size_t, file: *mut FILE) -> size_t
        = FreadChk | __fread_unlocked_chk = FreadUnlockedChk, stream(file), |record, done| elements(record, size, count, done);
    fn fwrite(from: *const c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t
        = Fwrite | fwrite_unlocked = FwriteUnlocked, stream(file), |record, done| elements(record, size, count, done);
    fn fseek(file: *mut FILE, offset: c_long, whence: c_int) -> c_int
        = Fseek, stream(file), |record, _| sought(record, offset, whence);
    fn fseeko(file: *mut FILE, offset: off_t, whence: c_int) -> c_int
        = Fseeko | fseeko64 = Fseeko64, stream(file), |record, _| sought(record, offset, whence);
    fn ftell(file: *mut FILE) -> c_long = Ftell, stream(file), |_, _| ();
    fn ftello(file: *mut FILE) -> off_t = Ftello | ftello64 = Ftello64, stream(file), |_, _| ();
    fn rewind(file: *mut FILE) -> ()
        = Rewind | clearerr = Clearerr | flockfile = Flockfile | funlockfile = Funlockfile, stream(file), |_, ()| ();
    fn fgetpos(file: *mut FILE, place: *mut c_void) -> c_int
        = Fgetpos | fgetpos64 = Fgetpos64, stream(file), |_, _| ();
    fn fsetpos(file: *mut FILE, place: *const c_void) -> c_int
        = Fsetpos | fsetpos64 = Fsetpos64, stream(file), |_, _| ();
    fn setvbuf(file: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int
        = Setvbuf, stream(file), |record, _| { record.size = size as u64; record.arg = u64::from(mode.cast_unsigned()); };
}
