//! The few system calls that recording needs, made directly.
//!
//! Inside the preload library the names `open`, `mmap` and so on are our own hooks, so they are not
//! called by name here; `syscall` is not one of them. It takes any arguments, so those that the kernel
//! takes for 64 bits must have them. The caller's `errno` is the business of [`keep_errno`].

use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

/// Does something and leaves `errno` as it was.
pub(crate) fn keep_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: always a valid pointer to this thread's own variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; no other thread writes it.
    let before = unsafe { *place };
    let result = work();
    // SAFETY: as above.
    unsafe { *place = before };
    result
}

/// Does something while this thread takes no signals.
pub(crate) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let all = u64::MAX;
    let mut before = 0_u64;
    let set = |how: c_int, to: *const u64, old: *mut u64| {
        // SAFETY: both are null or valid, and as long as said.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, to, old, size_of::<u64>()) }
    };
    let is_set = set(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
    let result = work();
    if is_set {
        set(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
    }
    result
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970 of the clock on the wall.
pub(crate) fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The function is not one of our hooks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Both clocks are past zero.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The number of this thread.
pub(crate) fn thread_id() -> u32 {
    id(libc::SYS_gettid)
}

/// The number of this process, asked from the kernel each time.
pub(crate) fn process_id() -> u32 {
    id(libc::SYS_getpid)
}

/// The number of the parent process.
pub(crate) fn parent_id() -> u32 {
    id(libc::SYS_getppid)
}

fn id(call: libc::c_long) -> u32 {
    // SAFETY: these calls take no arguments and cannot fail.
    u32::try_from(unsafe { libc::syscall(call) }).unwrap_or(0)
}

/// The start of a file; `None` if it cannot be read.
pub(crate) fn read_file(path: &CStr, into: &mut [u8]) -> Option<usize> {
    let fd = open(path, libc::O_RDONLY | libc::O_CLOEXEC)?;
    // SAFETY: the buffer is ours and as long as said.
    let read = unsafe { libc::syscall(libc::SYS_read, fd, into.as_mut_ptr(), into.len()) };
    close(fd);
    usize::try_from(read).ok()
}

/// Where a link leads; `None` if it is not a link, or longer than `into`.
pub fn read_link(path: &CStr, into: &mut [u8]) -> Option<usize> {
    // SAFETY: the path ends with NUL, the buffer is ours and as long as said.
    let length = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            path.as_ptr(),
            into.as_mut_ptr(),
            into.len(),
        )
    };
    usize::try_from(length).ok().filter(|length| *length < into.len())
}

/// The current folder; `None` if there is none, or its path is longer than `into`.
pub fn current_folder(into: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer is ours and as long as said.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, into.as_mut_ptr(), into.len()) };
    // The kernel counts the NUL.
    usize::try_from(length).ok()?.checked_sub(1).filter(|length| *length > 0)
}

/// Adds the name of this machine to a path.
pub(crate) fn push_host<const N: usize>(path: &mut crate::Text<N>) -> bool {
    let mut host = [0; 65];
    let length = host_name(&mut host);
    path.push(host.get(..length).unwrap_or_default())
}

/// The name of this machine, or of the container.
pub fn host() -> String {
    let mut name = [0; 65];
    let length = host_name(&mut name);
    String::from_utf8_lossy(name.get(..length).unwrap_or_default()).into_owned()
}

/// The same without memory of its own, for programs that are traced.
pub(crate) fn host_name(into: &mut [u8]) -> usize {
    // SAFETY: all fields are arrays of bytes, for which zeros are fine.
    let mut names: libc::utsname = unsafe { core::mem::zeroed() };
    // SAFETY: `names` is valid for writing.
    unsafe { libc::uname(&raw mut names) };
    let mut length = 0;
    for (to, from) in into.iter_mut().zip(names.nodename) {
        if from == 0 {
            break;
        }
        // Characters of C have a sign on some machines only.
        [*to] = from.to_ne_bytes();
        length += 1;
    }
    length
}

fn open(path: &CStr, flags: c_int) -> Option<c_int> {
    // SAFETY: the path ends with NUL.
    let fd =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
    c_int::try_from(fd).ok().filter(|fd| *fd >= 0)
}

fn close(fd: c_int) {
    // SAFETY: ours, from `open`.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// The largest file that this process may write; larger ones would get it a deadly signal.
fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// Why there is no file to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFile {
    /// The file could not be created.
    Open,
    /// The file system has no space for it.
    Room,
    /// The file could not be mapped.
    Map,
}

/// A new file of zeros that is really there (a write into a hole on a full disk would end the
/// program with a signal), mapped for writing, shared with every process that maps the file.
pub(crate) fn map_new_file(path: &CStr, bytes: usize) -> Result<NonNull<u8>, NoFile> {
    if largest_file() < bytes as u64 {
        return Err(NoFile::Room);
    }
    let fd = open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC)
        .ok_or(NoFile::Open)?;
    let mapped = if allocate(fd, bytes) {
        map(fd, bytes, libc::MAP_SHARED | libc::MAP_POPULATE).ok_or(NoFile::Map)
    } else {
        Err(NoFile::Room)
    };
    close(fd);
    if mapped.is_err() {
        // SAFETY: the path ends with NUL.
        unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
    }
    mapped
}

fn allocate(fd: c_int, bytes: usize) -> bool {
    // SAFETY: takes numbers only.
    if unsafe { libc::syscall(libc::SYS_fallocate, fd, 0, 0_i64, bytes) } == 0 {
        return true;
    }
    // SAFETY: this thread's own variable.
    if unsafe { *libc::__errno_location() } != libc::EOPNOTSUPP {
        return false;
    }
    // The file system cannot set room aside; zeros take it.
    static ZEROS: [u8; 4096] = [0; 4096];
    let zeros = &ZEROS;
    (0..bytes).step_by(zeros.len()).all(|offset| {
        // SAFETY: the buffer is ours and as long as said.
        let written =
            unsafe { libc::syscall(libc::SYS_pwrite64, fd, zeros.as_ptr(), zeros.len(), offset) };
        usize::try_from(written).is_ok_and(|written| written == zeros.len())
    })
}

fn map(fd: c_int, bytes: usize, flags: c_int) -> Option<NonNull<u8>> {
    // SAFETY: a new mapping at a place of the kernel's choice.
    let place = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            core::ptr::null_mut::<u8>(),
            bytes,
            i64::from(libc::PROT_READ | libc::PROT_WRITE),
            i64::from(flags),
            i64::from(fd),
            0_i64,
        )
    };
    NonNull::new(core::ptr::with_exposed_provenance_mut(place as usize)).filter(|_| place != -1)
}

/// A file that exists, mapped whole, with its size.
pub(crate) fn map_file(fd: c_int, bytes: usize) -> Option<NonNull<u8>> {
    map(fd, bytes, libc::MAP_SHARED)
}

/// Gives a mapping back.
///
/// # Safety
/// Nothing may point into it any more.
pub(crate) unsafe fn unmap(place: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller vouches for it.
    unsafe { libc::syscall(libc::SYS_munmap, place.as_ptr(), bytes) };
}

/// Maps anonymous memory, which is all zeros.
pub(crate) fn map_memory(bytes: usize) -> Option<NonNull<u8>> {
    map(-1, bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
}

/// A page of zeros that is zeros again in every forked child.
pub(crate) fn map_page_of_this_process() -> Option<NonNull<u8>> {
    const BYTES: usize = 4096;
    let place = map_memory(BYTES)?;
    // SAFETY: advice on a mapping of ours.
    let advised =
        unsafe { libc::syscall(libc::SYS_madvise, place.as_ptr(), BYTES, libc::MADV_WIPEONFORK) };
    (advised == 0).then_some(place)
}
