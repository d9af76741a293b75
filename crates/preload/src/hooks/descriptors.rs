//! Descriptors made out of others, and made for things that are no files: those are not recorded, but
//! their numbers must not be taken for the files that had them before.

use core::ffi::{c_char, c_int, c_uint, c_void};

use feedline_recorder::CallRecord;
use libc::{off_t, sigset_t, sockaddr, socklen_t};

use crate::fds;
use crate::filter;
use crate::hook::{error_number, fd, hooks};
use crate::real::Real;
use crate::vfork;

fn copied(file: c_int, result: c_int) {
    if result >= 0 {
        fds::copy(file, result);
    }
}

fn controlled(
    record: &mut CallRecord,
    file: c_int,
    command: c_int,
    argument: usize,
    result: c_int,
) {
    record.arg = u64::from(command.cast_unsigned());
    let takes_number = matches!(
        command,
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETFD | libc::F_SETFL | libc::F_SETPIPE_SZ
    );
    if takes_number {
        record.offset = argument.cast_signed() as i64;
    }
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        copied(file, result);
    }
}

hooks! {
    fn dup(file: c_int) -> c_int = Dup, fd(file), |_, result| copied(file, result);
    fn dup2(file: c_int, to: c_int) -> c_int
        = Dup2, fd(file), |record, result| { record.arg = u64::from(to.cast_unsigned()); copied(file, result); };
    fn dup3(file: c_int, to: c_int, flags: c_int) -> c_int
        = Dup3, fd(file), |record, result| { record.arg = u64::from(to.cast_unsigned()); copied(file, result); };
    fn fcntl(file: c_int, command: c_int, argument: usize) -> c_int
        = Fcntl | fcntl64 = Fcntl64, fd(file), |record, result| controlled(record, file, command, argument, result);
    fn flock(file: c_int, operation: c_int) -> c_int
        = Flock, fd(file), |record, _| record.arg = u64::from(operation.cast_unsigned());
    fn posix_fadvise(file: c_int, offset: off_t, length: off_t, advice: c_int) -> c_int
        = PosixFadvise | posix_fadvise64 = PosixFadvise64, fd(file), |record, result| advised(record, offset, length, advice, result);
    fn readahead(file: c_int, offset: off_t, length: usize) -> isize
        = Readahead, fd(file), |record, _| { record.offset = offset; record.size = length as u64; };
}

/// The result is the error itself.
fn advised(record: &mut CallRecord, offset: off_t, length: off_t, advice: c_int, result: c_int) {
    record.offset = offset;
    record.size = length.cast_unsigned();
    record.arg = u64::from(advice.cast_unsigned());
    record.errno = error_number(result);
}

/// New descriptors: `fn name(arguments) -> c_int => descriptors;`
macro_rules! makers {
    ($(fn $name:ident($($arg:ident: $type:ty),*) => $made:expr;)+) => {
        $crate::real::named!(makers: $($name)+);
        pub(crate) use makers::resolve as resolve_makers;

        $(
            /// As in the C library.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> c_int {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                let place = makers::$name.get();
                if place.is_null() {
                    return crate::hook::missing();
                }
                // SAFETY: the C library's function of this name has this type.
                let function = unsafe { core::mem::transmute::<*mut c_void, Function>(place) };
                // SAFETY: the program's own arguments, unchanged.
                let result = unsafe { function($($arg),*) };
                if result >= 0 && filter::is_on() && !vfork::is_child() {
                    #[allow(clippy::redundant_closure_call, reason = "a closure sees the arguments")]
                    ($made)(result);
                }
                result
            }
        )+
    };
}

/// Forgets what two new descriptors were before.
fn forget_pair(pair: *const c_int) {
    // SAFETY: the kernel has just written both.
    let pair = unsafe { core::slice::from_raw_parts(pair, 2) };
    for file in pair {
        fds::clear(*file);
    }
}

makers! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) => fds::clear;
    fn accept(file: c_int, address: *mut sockaddr, length: *mut socklen_t) => fds::clear;
    fn accept4(file: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) => fds::clear;
    fn epoll_create(size: c_int) => fds::clear;
    fn epoll_create1(flags: c_int) => fds::clear;
    fn eventfd(value: c_uint, flags: c_int) => fds::clear;
    fn timerfd_create(clock: c_int, flags: c_int) => fds::clear;
    fn signalfd(file: c_int, mask: *const sigset_t, flags: c_int) => fds::clear;
    fn inotify_init() => fds::clear;
    fn inotify_init1(flags: c_int) => fds::clear;
    fn memfd_create(name: *const c_char, flags: c_uint) => fds::clear;
    fn pipe(pair: *mut c_int) => |_| forget_pair(pair);
    fn pipe2(pair: *mut c_int, flags: c_int) => |_| forget_pair(pair);
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) => |_| forget_pair(pair);
}

static CLOSEFROM: Real = Real::new(c"closefrom");

/// As in the C library, where it does not go through `close_range`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let place = CLOSEFROM.get();
    if place.is_null() {
        return crate::hook::missing();
    }
    // SAFETY: the C library's function of this name has this type.
    let function =
        unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(c_int)>(place) };
    if filter::is_on() && !vfork::is_child() {
        fds::clear_range(first.max(0).cast_unsigned(), u32::MAX);
    }
    // SAFETY: the program's own argument.
    unsafe { function(first) }
}
