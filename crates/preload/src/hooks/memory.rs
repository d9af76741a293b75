//! Files in memory. Which pages a program touches is not visible here, only what it maps.

use core::ffi::{c_int, c_void};

use feedline_recorder::CallRecord;
use libc::{off_t, size_t};

use crate::hook::{Subject, fd, hooks};
use crate::{mappings, vfork};

/// Memory that is no file's is not recorded, but may take the place of a file.
fn mapped(address: *mut c_void, length: size_t, flags: c_int, file: c_int) -> Subject {
    if flags & libc::MAP_ANONYMOUS == 0 {
        return fd(file);
    }
    if flags & libc::MAP_FIXED != 0 {
        unmapped(address, length);
    }
    Subject::Unseen
}

fn at(address: *mut c_void) -> Subject {
    mappings::file_at(address.addr()).map_or(Subject::Unseen, Subject::File)
}

/// The file of a range that is about to be unmapped, as the kernel would accept it.
fn unmapped(address: *mut c_void, length: size_t) -> Subject {
    if vfork::is_child() || length == 0 || !address.addr().is_multiple_of(4096) {
        return at(address);
    }
    mappings::take(address.addr(), length).map_or(Subject::Unseen, Subject::File)
}

fn remember(
    record: &mut CallRecord,
    place: *mut c_void,
    length: size_t,
    offset: off_t,
    flags: c_int,
) {
    record.size = length as u64;
    record.offset = offset;
    record.arg = u64::from(flags.cast_unsigned());
    if record.errno == 0 {
        mappings::add(place.addr(), length, record.file);
    }
}

fn ranged(record: &mut CallRecord, address: *mut c_void, length: size_t, arg: c_int) {
    record.size = length as u64;
    record.offset = address.addr().cast_signed() as i64;
    record.arg = u64::from(arg.cast_unsigned());
}

hooks! {
    fn mmap(address: *mut c_void, length: size_t, protection: c_int, flags: c_int, file: c_int, offset: off_t) -> *mut c_void
        = Mmap | mmap64 = Mmap64, mapped(address, length, flags, file), |record, place| remember(record, place, length, offset, flags);
    fn munmap(address: *mut c_void, length: size_t) -> c_int
        = Munmap, unmapped(address, length),
        |record, _| ranged(record, address, length, 0);
    fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int
        = Msync, at(address), |record, _| ranged(record, address, length, flags);
    fn madvise(address: *mut c_void, length: size_t, advice: c_int) -> c_int
        = Madvise, at(address), |record, _| ranged(record, address, length, advice);
    fn mremap(address: *mut c_void, length: size_t, new_length: size_t, flags: c_int, new_address: *mut c_void) -> *mut c_void
        = Mremap, unmapped(address, length), |record, place| {
            ranged(record, address, new_length, flags);
            if record.errno == 0 {
                mappings::add(place.addr(), new_length, record.file);
            } else {
                mappings::add(address.addr(), length, record.file);
            }
        };
}
