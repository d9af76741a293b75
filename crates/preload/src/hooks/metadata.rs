//! Names, attributes and sizes of files.

use core::ffi::{c_char, c_int, c_uint, c_void};

use feedline_recorder::{CallRecord, UNNAMED};
use libc::{dev_t, gid_t, mode_t, off_t, size_t, ssize_t, timespec, uid_t};

use crate::hook::{at, error_number, fd, hooks, path};
use crate::names::{self, SKIP};

/// The number of the call's other path.
fn other(record: &CallRecord, folder: c_int, name: *const c_char) -> u64 {
    // After an error the kernel may have looked at the first path only.
    if record.errno != 0 && !(name.is_null() || names::is_readable_now(name)) {
        return u64::from(UNNAMED);
    }
    // SAFETY: the kernel can read it.
    match unsafe { names::at(folder, name) } {
        SKIP => u64::from(UNNAMED),
        number => u64::from(number),
    }
}

fn owned(record: &mut CallRecord, owner: uid_t, group: gid_t) {
    record.arg = u64::from(owner);
    record.size = u64::from(group);
}

fn went(result: c_int) {
    if result == 0 {
        names::look_at_folder();
    }
}

const HERE: c_int = libc::AT_FDCWD;

hooks! {
    fn stat(name: *const c_char, to: *mut c_void) -> c_int
        = Stat | stat64 = Stat64 | lstat = Lstat | lstat64 = Lstat64 | statvfs = Statvfs | statvfs64 = Statvfs64 | statfs = Statfs | statfs64 = Statfs64,
        path(name), |_, _| ();
    fn fstat(file: c_int, to: *mut c_void) -> c_int
        = Fstat | fstat64 = Fstat64 | fstatvfs = Fstatvfs | fstatvfs64 = Fstatvfs64 | fstatfs = Fstatfs | fstatfs64 = Fstatfs64, fd(file), |_, _| ();
    fn __xstat(version: c_int, name: *const c_char, to: *mut c_void) -> c_int
        = Xstat | __xstat64 = Xstat64 | __lxstat = Lxstat | __lxstat64 = Lxstat64, path(name), |_, _| ();
    fn __fxstat(version: c_int, file: c_int, to: *mut c_void) -> c_int
        = Fxstat | __fxstat64 = Fxstat64, fd(file), |_, _| ();
    fn fstatat(folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fstatat | fstatat64 = Fstatat64, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn __fxstatat(version: c_int, folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fxstatat | __fxstatat64 = Fxstatat64, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn statx(folder: c_int, name: *const c_char, flags: c_int, mask: c_uint, to: *mut c_void) -> c_int
        = Statx, at(folder, name), |record, _| { record.arg = u64::from(flags.cast_unsigned()); record.size = u64::from(mask); };
    fn access(name: *const c_char, mode: c_int) -> c_int
        = Access | eaccess = Eaccess | euidaccess = Euidaccess, path(name), |record, _| record.arg = u64::from(mode.cast_unsigned());
    fn faccessat(folder: c_int, name: *const c_char, mode: c_int, flags: c_int) -> c_int
        = Faccessat, at(folder, name), |record, _| { record.arg = u64::from(mode.cast_unsigned()); record.size = u64::from(flags.cast_unsigned()); };
    fn readlink(name: *const c_char, to: *mut c_char, size: size_t) -> ssize_t
        = Readlink | listxattr = Listxattr | llistxattr = Llistxattr, path(name), |record, _| record.size = size as u64;
    fn readlinkat(folder: c_int, name: *const c_char, to: *mut c_char, size: size_t) -> ssize_t
        = Readlinkat, at(folder, name), |record, _| record.size = size as u64;
    fn __readlink_chk(name: *const c_char, to: *mut c_char, size: size_t, room: size_t) -> ssize_t
        = ReadlinkChk, path(name), |record, _| record.size = size as u64;
    fn __readlinkat_chk(folder: c_int, name: *const c_char, to: *mut c_char, size: size_t, room: size_t) -> ssize_t
        = ReadlinkatChk, at(folder, name), |record, _| record.size = size as u64;
    fn realpath(name: *const c_char, to: *mut c_char) -> *mut c_char
        = Realpath, path(name), |record, _| record.result = 0;
    fn __realpath_chk(name: *const c_char, to: *mut c_char, room: size_t) -> *mut c_char
        = RealpathChk, path(name), |record, _| record.result = 0;
    fn getxattr(name: *const c_char, key: *const c_char, to: *mut c_void, size: size_t) -> ssize_t
        = Getxattr | lgetxattr = Lgetxattr, path(name), |record, _| record.size = size as u64;
    fn fgetxattr(file: c_int, key: *const c_char, to: *mut c_void, size: size_t) -> ssize_t
        = Fgetxattr, fd(file), |record, _| record.size = size as u64;
    fn flistxattr(file: c_int, to: *mut c_char, size: size_t) -> ssize_t
        = Flistxattr, fd(file), |record, _| record.size = size as u64;
    fn setxattr(name: *const c_char, key: *const c_char, from: *const c_void, size: size_t, flags: c_int) -> c_int
        = Setxattr | lsetxattr = Lsetxattr, path(name), |record, _| { record.size = size as u64; record.arg = u64::from(flags.cast_unsigned()); };
    fn fsetxattr(file: c_int, key: *const c_char, from: *const c_void, size: size_t, flags: c_int) -> c_int
        = Fsetxattr, fd(file), |record, _| { record.size = size as u64; record.arg = u64::from(flags.cast_unsigned()); };
    fn mkdir(name: *const c_char, mode: mode_t) -> c_int
        = Mkdir | mkfifo = Mkfifo | chmod = Chmod, path(name), |record, _| record.arg = u64::from(mode);
    fn mkdirat(folder: c_int, name: *const c_char, mode: mode_t) -> c_int
        = Mkdirat | mkfifoat = Mkfifoat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn mknod(name: *const c_char, mode: mode_t, device: dev_t) -> c_int
        = Mknod, path(name), |record, _| record.arg = u64::from(mode);
    fn mknodat(folder: c_int, name: *const c_char, mode: mode_t, device: dev_t) -> c_int
        = Mknodat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn __xmknod(version: c_int, name: *const c_char, mode: mode_t, device: *mut dev_t) -> c_int
        = Xmknod, path(name), |record, _| record.arg = u64::from(mode);
    fn rmdir(name: *const c_char) -> c_int = Rmdir | unlink = Unlink | remove = Remove, path(name), |_, _| ();
    fn unlinkat(folder: c_int, name: *const c_char, flags: c_int) -> c_int
        = Unlinkat, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn rename(old: *const c_char, new: *const c_char) -> c_int
        = Rename | link = Link | symlink = Symlink, path(old), |record, _| record.arg = other(record, HERE, new);
    fn renameat(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int
        = Renameat, at(old_folder, old), |record, _| record.arg = other(record, new_folder, new);
    fn renameat2(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_uint) -> c_int
        = Renameat2, at(old_folder, old), |record, _| { record.arg = other(record, new_folder, new); record.size = u64::from(flags); };
    fn linkat(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_int) -> c_int
        = Linkat, at(old_folder, old), |record, _| { record.arg = other(record, new_folder, new); record.size = u64::from(flags.cast_unsigned()); };
    fn symlinkat(old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int
        = Symlinkat, path(old), |record, _| record.arg = other(record, new_folder, new);
    fn fchmod(file: c_int, mode: mode_t) -> c_int = Fchmod, fd(file), |record, _| record.arg = u64::from(mode);
    fn fchmodat(folder: c_int, name: *const c_char, mode: mode_t, flags: c_int) -> c_int
        = Fchmodat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn chown(name: *const c_char, owner: uid_t, group: gid_t) -> c_int
        = Chown | lchown = Lchown, path(name), |record, _| owned(record, owner, group);
    fn fchown(file: c_int, owner: uid_t, group: gid_t) -> c_int
        = Fchown, fd(file), |record, _| owned(record, owner, group);
    fn fchownat(folder: c_int, name: *const c_char, owner: uid_t, group: gid_t, flags: c_int) -> c_int
        = Fchownat, at(folder, name), |record, _| owned(record, owner, group);
    fn truncate(name: *const c_char, length: off_t) -> c_int
        = Truncate | truncate64 = Truncate64, path(name), |record, _| record.size = length.cast_unsigned();
    fn ftruncate(file: c_int, length: off_t) -> c_int
        = Ftruncate | ftruncate64 = Ftruncate64, fd(file), |record, _| record.size = length.cast_unsigned();
    fn utime(name: *const c_char, times: *const c_void) -> c_int = Utime | utimes = Utimes, path(name), |_, _| ();
    fn utimensat(folder: c_int, name: *const c_char, times: *const timespec, flags: c_int) -> c_int
        = Utimensat, at(folder, name), |_, _| ();
    fn futimens(file: c_int, times: *const timespec) -> c_int = Futimens, fd(file), |_, _| ();
    fn posix_fallocate(file: c_int, offset: off_t, length: off_t) -> c_int
        = PosixFallocate | posix_fallocate64 = PosixFallocate64,
        fd(file), |record, result| { record.offset = offset; record.size = length.cast_unsigned(); record.errno = error_number(result); };
    fn fallocate(file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
        = Fallocate | fallocate64 = Fallocate64,
        fd(file), |record, _| { record.offset = offset; record.size = length.cast_unsigned(); record.arg = u64::from(mode.cast_unsigned()); };
    fn chdir(name: *const c_char) -> c_int = Chdir, path(name), |_, result| went(result);
    fn fchdir(file: c_int) -> c_int = Fchdir, fd(file), |_, result| went(result);
}
