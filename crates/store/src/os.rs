//! System calls that the standard library lacks, except those for mappings and rings.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Pages are looked up in stretches of this size, a multiple of every page size,
const STRETCH_BYTES: u64 = 256 << 10;
/// and in at most this many per file.
const STRETCHES: u64 = 32;

/// Bytes an unprivileged user can still write to the file system of `path`; none if it counts no
/// blocks at all, as those in memory without a limit and some in user space do not.
pub(crate) fn free_bytes(path: &Path) -> io::Result<Option<u64>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends with a zero and `found` has room for the answer.
    let status = unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it has filled `found`.
    let found = unsafe { found.assume_init() };
    Ok((found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize)))
}

/// Lets two names of one file system trade places, in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let one = CString::new(one.as_os_str().as_bytes())?;
    let other = CString::new(other.as_os_str().as_bytes())?;
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: both paths end with a zero; the call only reads them.
    match unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks for huge pages where whole ones fit into `memory`. A hint: a system without any does nothing.
pub(crate) fn prefer_huge_pages(memory: &mut [u8]) {
    let first = memory.as_ptr().align_offset(page_bytes()).min(memory.len());
    let memory = &mut memory[first..];
    // SAFETY: the range is ours alone and begins at a page; its bytes stay what they are.
    unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), libc::MADV_HUGEPAGE) };
}

/// Lets this process have as many files open as the system allows it to: readers that keep files open
/// soon reach the usual 1024.
pub fn allow_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a whole and valid value; a refusal changes nothing and is reported.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Drops the file's clean pages from the page cache.
pub(crate) fn drop_pages(file: &File) -> io::Result<()> {
    // SAFETY: takes and returns plain numbers; a length of 0 means up to the end.
    let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Whether the system tells this process what of a file is in the page cache: only who owns the file
/// or may write it is told; to others every page looks resident.
pub(crate) fn tells_residency(file: &File, path: &Path) -> io::Result<bool> {
    let owner = std::os::unix::fs::MetadataExt::uid(&file.metadata()?);
    // SAFETY: takes nothing and returns a plain number.
    let user = unsafe { libc::geteuid() };
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` ends with a zero.
    let may_write = unsafe { libc::access(path.as_ptr(), libc::W_OK) } == 0;
    Ok(user == 0 || user == owner || may_write)
}

/// Bytes of whole pages of the file in the page cache, by `cachestat`: one call that maps nothing.
/// `None` where the kernel does not have it (before 6.5), or does not tell this user.
pub(crate) fn cached_bytes(file: &File) -> Option<u64> {
    /// The same number on every architecture; the C library has no function for it.
    const CACHESTAT: libc::c_long = 451;
    #[repr(C)]
    struct Range {
        offset: u64,
        len: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Pages {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let (whole, mut pages) = (Range { offset: 0, len: 0 }, Pages::default());
    // SAFETY: takes nothing and returns a plain number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // SAFETY: both structures have the kernel's layout and live until the call returns.
    let failed =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const whole, &raw mut pages, 0) };
    (failed == 0).then(|| pages.cached.saturating_mul(page_bytes.max(1) as u64))
}

/// How many of the file's first `len` bytes are in the page cache; see [`tells_residency`].
///
/// Large files are estimated from evenly spaced stretches: looking at every page of a terabyte would
/// take longer than many a run.
pub(crate) fn resident_bytes(file: &File, len: u64) -> io::Result<u64> {
    if len <= STRETCHES * STRETCH_BYTES {
        return resident_in(file, 0, len as usize);
    }
    let mut resident = 0;
    for i in 0..STRETCHES {
        let last = (len - STRETCH_BYTES) / STRETCH_BYTES;
        let offset = i * last / (STRETCHES - 1) * STRETCH_BYTES;
        resident += resident_in(file, offset, STRETCH_BYTES as usize)?;
    }
    let share = resident as f64 / (STRETCHES * STRETCH_BYTES) as f64;
    Ok((share * len as f64) as u64)
}

fn resident_in(file: &File, offset: u64, len: usize) -> io::Result<u64> {
    if len == 0 {
        return Ok(0);
    }
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: asks for a fresh mapping at an address of the system's choice; nothing is read.
    let mapping = unsafe {
        let null = std::ptr::null_mut();
        libc::mmap(null, len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    if mapping == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let page = page_bytes();
    let mut pages = vec![0u8; len.div_ceil(page)];
    // SAFETY: the mapping is `len` bytes long and `pages` has a byte for each page of it.
    let status = unsafe { libc::mincore(mapping, len, pages.as_mut_ptr().cast()) };
    let answer = if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: this is the mapping made above, and nothing refers to it any more.
    unsafe { libc::munmap(mapping, len) };
    answer?;
    let sizes = (0..len).step_by(page).map(|start| page.min(len - start));
    Ok(sizes.zip(pages).filter(|(_, flags)| flags & 1 == 1).map(|(size, _)| size as u64).sum())
}

/// Whether a process with this id exists, of any user.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(pid @ 1..) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: takes and returns plain numbers; signal 0 is only checked, not sent.
    let status = unsafe { libc::kill(pid, 0) };
    status == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// The size of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: takes and returns plain numbers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("every Linux knows its page size")
}
