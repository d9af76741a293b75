//! Listing folders.

use core::ffi::{c_char, c_int, c_void};

use feedline_recorder::CallRecord;
use libc::{DIR, size_t, ssize_t};

use crate::hook::{Subject, closing, fd, hooks, opened, path};

/// The descriptor of a folder's stream.
fn descriptor(folder: *mut DIR) -> c_int {
    if folder.is_null() {
        return -1;
    }
    // SAFETY: the program vouches for it; `dirfd` is no hook of ours and sets no error for a stream.
    unsafe { libc::dirfd(folder) }
}

fn listing(folder: *mut DIR) -> Subject {
    fd(descriptor(folder))
}

/// Whether there was an entry. The end and an error look alike but for an `errno` that was set, and it
/// may have been set before.
fn found(record: &mut CallRecord, entry: *mut c_void) {
    record.result = i64::from(!entry.is_null());
    record.errno = 0;
}

fn opened_folder(record: &mut CallRecord, folder: *mut DIR) {
    let file = descriptor(folder);
    record.result = i64::from(file);
    opened(record, file);
}

hooks! {
    fn opendir(name: *const c_char) -> *mut DIR = Opendir, path(name), opened_folder;
    fn fdopendir(file: c_int) -> *mut DIR
        = Fdopendir, fd(file), |record, folder| record.result = i64::from(descriptor(folder));
    fn readdir(folder: *mut DIR) -> *mut c_void = Readdir | readdir64 = Readdir64, listing(folder), found;
    fn closedir(folder: *mut DIR) -> c_int = Closedir, closing(descriptor(folder)), |_, _| ();
    fn rewinddir(folder: *mut DIR) -> () = Rewinddir, listing(folder), |_, ()| ();
    fn scandir(name: *const c_char, list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int
        = Scandir | scandir64 = Scandir64, path(name), |_, _| ();
    fn getdents64(file: c_int, buffer: *mut c_void, size: size_t) -> ssize_t
        = Getdents64, fd(file), |record, _| record.size = size as u64;
}
