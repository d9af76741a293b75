//! Names, attributes and sizes of files.

use core::ffi::{c_char, c_int, c_uint, c_void};

use feedline_recorder::{CallRecord, UNNAMED};
use libc::{dev_t, gid_t, mode_t, off_t, size_t, ssize_t, timespec, uid_t};

use crate::hook::{at, fd, hooks, path};
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
    fn stat(name: *const c_char, to: *mut c_void) -> c_int = Stat, path(name), |_, _| ();
    fn stat64(name: *const c_char, to: *mut c_void) -> c_int = Stat64, path(name), |_, _| ();
    fn lstat(name: *const c_char, to: *mut c_void) -> c_int = Lstat, path(name), |_, _| ();
    fn lstat64(name: *const c_char, to: *mut c_void) -> c_int = Lstat64, path(name), |_, _| ();
    fn fstat(file: c_int, to: *mut c_void) -> c_int = Fstat, fd(file), |_, _| ();
    fn fstat64(file: c_int, to: *mut c_void) -> c_int = Fstat64, fd(file), |_, _| ();
    fn __xstat(version: c_int, name: *const c_char, to: *mut c_void) -> c_int = Xstat, path(name), |_, _| ();
    fn __xstat64(version: c_int, name: *const c_char, to: *mut c_void) -> c_int = Xstat64, path(name), |_, _| ();
    fn __lxstat(version: c_int, name: *const c_char, to: *mut c_void) -> c_int = Lxstat, path(name), |_, _| ();
    fn __lxstat64(version: c_int, name: *const c_char, to: *mut c_void) -> c_int = Lxstat64, path(name), |_, _| ();
    fn __fxstat(version: c_int, file: c_int, to: *mut c_void) -> c_int = Fxstat, fd(file), |_, _| ();
    fn __fxstat64(version: c_int, file: c_int, to: *mut c_void) -> c_int = Fxstat64, fd(file), |_, _| ();
    fn fstatat(folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fstatat, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn fstatat64(folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fstatat64, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn __fxstatat(version: c_int, folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fxstatat, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn __fxstatat64(version: c_int, folder: c_int, name: *const c_char, to: *mut c_void, flags: c_int) -> c_int
        = Fxstatat64, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn statx(folder: c_int, name: *const c_char, flags: c_int, mask: c_uint, to: *mut c_void) -> c_int
        = Statx, at(folder, name), |record, _| { record.arg = u64::from(flags.cast_unsigned()); record.size = u64::from(mask); };
    fn access(name: *const c_char, mode: c_int) -> c_int
        = Access, path(name), |record, _| record.arg = u64::from(mode.cast_unsigned());
    fn eaccess(name: *const c_char, mode: c_int) -> c_int
        = Eaccess, path(name), |record, _| record.arg = u64::from(mode.cast_unsigned());
    fn euidaccess(name: *const c_char, mode: c_int) -> c_int
        = Euidaccess, path(name), |record, _| record.arg = u64::from(mode.cast_unsigned());
    fn faccessat(folder: c_int, name: *const c_char, mode: c_int, flags: c_int) -> c_int
        = Faccessat, at(folder, name), |record, _| { record.arg = u64::from(mode.cast_unsigned()); record.size = u64::from(flags.cast_unsigned()); };
    fn statvfs(name: *const c_char, to: *mut c_void) -> c_int = Statvfs, path(name), |_, _| ();
    fn statvfs64(name: *const c_char, to: *mut c_void) -> c_int = Statvfs64, path(name), |_, _| ();
    fn fstatvfs(file: c_int, to: *mut c_void) -> c_int = Fstatvfs, fd(file), |_, _| ();
    fn fstatvfs64(file: c_int, to: *mut c_void) -> c_int = Fstatvfs64, fd(file), |_, _| ();
    fn statfs(name: *const c_char, to: *mut c_void) -> c_int = Statfs, path(name), |_, _| ();
    fn statfs64(name: *const c_char, to: *mut c_void) -> c_int = Statfs64, path(name), |_, _| ();
    fn fstatfs(file: c_int, to: *mut c_void) -> c_int = Fstatfs, fd(file), |_, _| ();
    fn fstatfs64(file: c_int, to: *mut c_void) -> c_int = Fstatfs64, fd(file), |_, _| ();
    fn readlink(name: *const c_char, to: *mut c_char, size: size_t) -> ssize_t
        = Readlink, path(name), |record, _| record.size = size as u64;
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
        = Getxattr, path(name), |record, _| record.size = size as u64;
    fn lgetxattr(name: *const c_char, key: *const c_char, to: *mut c_void, size: size_t) -> ssize_t
        = Lgetxattr, path(name), |record, _| record.size = size as u64;
    fn fgetxattr(file: c_int, key: *const c_char, to: *mut c_void, size: size_t) -> ssize_t
        = Fgetxattr, fd(file), |record, _| record.size = size as u64;
    fn listxattr(name: *const c_char, to: *mut c_char, size: size_t) -> ssize_t
        = Listxattr, path(name), |record, _| record.size = size as u64;
    fn llistxattr(name: *const c_char, to: *mut c_char, size: size_t) -> ssize_t
        = Llistxattr, path(name), |record, _| record.size = size as u64;
    fn flistxattr(file: c_int, to: *mut c_char, size: size_t) -> ssize_t
        = Flistxattr, fd(file), |record, _| record.size = size as u64;
    fn setxattr(name: *const c_char, key: *const c_char, from: *const c_void, size: size_t, flags: c_int) -> c_int
        = Setxattr, path(name), |record, _| { record.size = size as u64; record.arg = u64::from(flags.cast_unsigned()); };
    fn lsetxattr(name: *const c_char, key: *const c_char, from: *const c_void, size: size_t, flags: c_int) -> c_int
        = Lsetxattr, path(name), |record, _| { record.size = size as u64; record.arg = u64::from(flags.cast_unsigned()); };
    fn fsetxattr(file: c_int, key: *const c_char, from: *const c_void, size: size_t, flags: c_int) -> c_int
        = Fsetxattr, fd(file), |record, _| { record.size = size as u64; record.arg = u64::from(flags.cast_unsigned()); };
    fn mkdir(name: *const c_char, mode: mode_t) -> c_int = Mkdir, path(name), |record, _| record.arg = u64::from(mode);
    fn mkdirat(folder: c_int, name: *const c_char, mode: mode_t) -> c_int
        = Mkdirat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn mkfifo(name: *const c_char, mode: mode_t) -> c_int = Mkfifo, path(name), |record, _| record.arg = u64::from(mode);
    fn mkfifoat(folder: c_int, name: *const c_char, mode: mode_t) -> c_int
        = Mkfifoat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn mknod(name: *const c_char, mode: mode_t, device: dev_t) -> c_int
        = Mknod, path(name), |record, _| record.arg = u64::from(mode);
    fn mknodat(folder: c_int, name: *const c_char, mode: mode_t, device: dev_t) -> c_int
        = Mknodat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn __xmknod(version: c_int, name: *const c_char, mode: mode_t, device: *mut dev_t) -> c_int
        = Xmknod, path(name), |record, _| record.arg = u64::from(mode);
    fn rmdir(name: *const c_char) -> c_int = Rmdir, path(name), |_, _| ();
    fn unlink(name: *const c_char) -> c_int = Unlink, path(name), |_, _| ();
    fn remove(name: *const c_char) -> c_int = Remove, path(name), |_, _| ();
    fn unlinkat(folder: c_int, name: *const c_char, flags: c_int) -> c_int
        = Unlinkat, at(folder, name), |record, _| record.arg = u64::from(flags.cast_unsigned());
    fn rename(old: *const c_char, new: *const c_char) -> c_int
        = Rename, path(old), |record, _| record.arg = other(record, HERE, new);
    fn renameat(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int
        = Renameat, at(old_folder, old), |record, _| record.arg = other(record, new_folder, new);
    fn renameat2(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_uint) -> c_int
        = Renameat2, at(old_folder, old), |record, _| { record.arg = other(record, new_folder, new); record.size = u64::from(flags); };
    fn link(old: *const c_char, new: *const c_char) -> c_int
        = Link, path(old), |record, _| record.arg = other(record, HERE, new);
    fn linkat(old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_int) -> c_int
        = Linkat, at(old_folder, old), |record, _| { record.arg = other(record, new_folder, new); record.size = u64::from(flags.cast_unsigned()); };
    fn symlink(old: *const c_char, new: *const c_char) -> c_int
        = Symlink, path(old), |record, _| record.arg = other(record, HERE, new);
    fn symlinkat(old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int
        = Symlinkat, path(old), |record, _| record.arg = other(record, new_folder, new);
    fn chmod(name: *const c_char, mode: mode_t) -> c_int = Chmod, path(name), |record, _| record.arg = u64::from(mode);
    fn fchmod(file: c_int, mode: mode_t) -> c_int = Fchmod, fd(file), |record, _| record.arg = u64::from(mode);
    fn fchmodat(folder: c_int, name: *const c_char, mode: mode_t, flags: c_int) -> c_int
        = Fchmodat, at(folder, name), |record, _| record.arg = u64::from(mode);
    fn chown(name: *const c_char, owner: uid_t, group: gid_t) -> c_int
        = Chown, path(name), |record, _| owned(record, owner, group);
    fn lchown(name: *const c_char, owner: uid_t, group: gid_t) -> c_int
        = Lchown, path(name), |record, _| owned(record, owner, group);
    fn fchown(file: c_int, owner: uid_t, group: gid_t) -> c_int
        = Fchown, fd(file), |record, _| owned(record, owner, group);
    fn fchownat(folder: c_int, name: *const c_char, owner: uid_t, group: gid_t, flags: c_int) -> c_int
        = Fchownat, at(folder, name), |record, _| owned(record, owner, group);
    fn truncate(name: *const c_char, length: off_t) -> c_int
        = Truncate, path(name), |record, _| record.size = length.cast_unsigned();
    fn truncate64(name: *const c_char, length: off_t) -> c_int
        = Truncate64, path(name), |record, _| record.size = length.cast_unsigned();
    fn ftruncate(file: c_int, length: off_t) -> c_int
        = Ftruncate, fd(file), |record, _| record.size = length.cast_unsigned();
    fn ftruncate64(file: c_int, length: off_t) -> c_int
        = Ftruncate64, fd(file), |record, _| record.size = length.cast_unsigned();
    fn utime(name: *const c_char, times: *const c_void) -> c_int = Utime, path(name), |_, _| ();
    fn utimes(name: *const c_char, times: *const c_void) -> c_int = Utimes, path(name), |_, _| ();
    fn utimensat(folder: c_int, name: *const c_char, times: *const timespec, flags: c_int) -> c_int
        = Utimensat, at(folder, name), |_, _| ();
    fn futimens(file: c_int, times: *const timespec) -> c_int = Futimens, fd(file), |_, _| ();
    fn posix_fallocate(file: c_int, offset: off_t, length: off_t) -> c_int
        = PosixFallocate, fd(file), |record, result| { record.offset = offset; record.size = length.cast_unsigned(); record.errno = u16::try_from(result).unwrap_or(u16::MAX); };
    fn posix_fallocate64(file: c_int, offset: off_t, length: off_t) -> c_int
        = PosixFallocate64, fd(file), |record, result| { record.offset = offset; record.size = length.cast_unsigned(); record.errno = u16::try_from(result).unwrap_or(u16::MAX); };
    fn fallocate(file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
        = Fallocate, fd(file), |record, _| { record.offset = offset; record.size = length.cast_unsigned(); record.arg = u64::from(mode.cast_unsigned()); };
    fn fallocate64(file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
        = Fallocate64, fd(file), |record, _| { record.offset = offset; record.size = length.cast_unsigned(); record.arg = u64::from(mode.cast_unsigned()); };
    fn chdir(name: *const c_char) -> c_int = Chdir, path(name), |_, result| went(result);
    fn fchdir(file: c_int) -> c_int = Fchdir, fd(file), |_, result| went(result);
}
