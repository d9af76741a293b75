//! Which calls are recorded, and what the fields of their records mean.
//!
//! One entry per entry point of the C library, under the name by which programs call it: `open64` and
//! `open` are two entries, as in other tracers. Calls whose records look alike share a row. Numbers are
//! private to one build (the segments say which); trace files hold names.

/// The layer that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// System calls on files and processes.
    Posix,
    /// Buffered streams of the C library.
    Stdio,
    /// Requests through liburing.
    Uring,
    /// What the program itself reported.
    App,
}

impl Category {
    /// The name in trace files; those of other tracers where they have one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Posix => "POSIX",
            Self::Stdio => "STDIO",
            Self::Uring => "IO_URING",
            Self::App => "APP",
        }
    }
}

/// What a call does, for switches and summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it; the table says which calls")]
pub enum Class {
    Open,
    Close,
    Read,
    Write,
    Copy,
    Seek,
    Sync,
    Stat,
    Namespace,
    Advice,
    Descriptor,
    Directory,
    Map,
    Process,
    State,
    Submit,
    Wait,
    Request,
    Span,
    Counter,
}

impl Class {
    /// The name in trace files and in lists of calls.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Seek => "seek",
            Self::Sync => "sync",
            Self::Stat => "stat",
            Self::Namespace => "name",
            Self::Advice => "advice",
            Self::Descriptor => "descriptor",
            Self::Directory => "directory",
            Self::Map => "map",
            Self::Process => "process",
            Self::State => "state",
            Self::Submit => "submit",
            Self::Wait => "wait",
            Self::Request => "request",
            Self::Span => "span",
            Self::Counter => "counter",
        }
    }

    /// Whether the call's result counts bytes that moved.
    pub const fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Copy)
    }
}

/// A row of the table: an empty name says that the field is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInfo {
    /// Name of the symbol in the C library.
    pub name: &'static str,
    /// The interface that it belongs to, such as POSIX or STDIO.
    pub category: Category,
    /// What the call does, such as reading or opening.
    pub class: Class,
    /// What [`CallRecord::size`](crate::CallRecord::size) holds.
    pub size: &'static str,
    /// What [`CallRecord::offset`](crate::CallRecord::offset) holds.
    pub offset: &'static str,
    /// What [`CallRecord::arg`](crate::CallRecord::arg) holds.
    pub arg: &'static str,
}

macro_rules! ops {
    ($($category:ident $class:ident $size:literal $offset:literal $arg:literal {
        $($variant:ident = $name:literal),+ $(,)?
    })+) => {
        /// A recorded call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[expect(missing_docs, reason = "each is the symbol of its name")]
        pub enum Op { $($($variant,)+)+ }

        /// Every call, in the order of their numbers.
        pub const OPS: &[Op] = &[$($(Op::$variant,)+)+];

        const INFOS: &[OpInfo] = &[$($(OpInfo {
            name: $name,
            category: Category::$category,
            class: Class::$class,
            size: $size,
            offset: $offset,
            arg: $arg,
        },)+)+];
    };
}

ops! {
    Posix Open "mode" "" "flags" {
        Open = "open", Open64 = "open64", Open2 = "__open_2", Open642 = "__open64_2",
        Openat = "openat", Openat64 = "openat64", Openat2 = "__openat_2",
        Openat642 = "__openat64_2", ShmOpen = "shm_open",
    }
    Posix Open "mode" "" "" { Creat = "creat", Creat64 = "creat64" }
    Posix Open "" "" "flags" {
        Mkstemp = "mkstemp", Mkstemp64 = "mkstemp64", Mkostemp = "mkostemp",
        Mkostemp64 = "mkostemp64", Mkstemps = "mkstemps", Mkstemps64 = "mkstemps64",
        Mkostemps = "mkostemps", Mkostemps64 = "mkostemps64",
    }
    Posix Close "" "" "" { Close = "close" }
    Posix Close "last" "" "flags" { CloseRange = "close_range" }
    Posix Read "count" "" "" { Read = "read", ReadChk = "__read_chk" }
    Posix Read "count" "offset" "" {
        Pread = "pread", Pread64 = "pread64", PreadChk = "__pread_chk",
        Pread64Chk = "__pread64_chk",
    }
    Posix Read "count" "" "iovcnt" { Readv = "readv" }
    Posix Read "count" "offset" "iovcnt" {
        Preadv = "preadv", Preadv64 = "preadv64", Preadv2 = "preadv2", Preadv64v2 = "preadv64v2",
    }
    Posix Write "count" "" "" { Write = "write" }
    Posix Write "count" "offset" "" { Pwrite = "pwrite", Pwrite64 = "pwrite64" }
    Posix Write "count" "" "iovcnt" { Writev = "writev" }
    Posix Write "count" "offset" "iovcnt" {
        Pwritev = "pwritev", Pwritev64 = "pwritev64", Pwritev2 = "pwritev2",
        Pwritev64v2 = "pwritev64v2",
    }
    Posix Copy "count" "offset" "to" {
        Sendfile = "sendfile", Sendfile64 = "sendfile64", CopyFileRange = "copy_file_range",
        Splice = "splice",
    }
    Posix Seek "" "offset" "whence" { Lseek = "lseek", Lseek64 = "lseek64" }
    Posix Sync "" "" "" {
        Fsync = "fsync", Fdatasync = "fdatasync", Syncfs = "syncfs", Sync = "sync",
    }
    Posix Sync "count" "offset" "flags" { SyncFileRange = "sync_file_range" }
    Posix Stat "" "" "" {
        Stat = "stat", Stat64 = "stat64", Lstat = "lstat", Lstat64 = "lstat64", Fstat = "fstat",
        Fstat64 = "fstat64", Xstat = "__xstat", Xstat64 = "__xstat64", Lxstat = "__lxstat",
        Lxstat64 = "__lxstat64", Fxstat = "__fxstat", Fxstat64 = "__fxstat64",
    }
    Posix Stat "" "" "flags" {
        Fstatat = "fstatat", Fstatat64 = "fstatat64", Fxstatat = "__fxstatat",
        Fxstatat64 = "__fxstatat64",
    }
    Posix Stat "mask" "" "flags" { Statx = "statx" }
    Posix Stat "" "" "mode" { Access = "access", Eaccess = "eaccess", Euidaccess = "euidaccess" }
    Posix Stat "flags" "" "mode" { Faccessat = "faccessat" }
    Posix Stat "" "" "" {
        Statvfs = "statvfs", Statvfs64 = "statvfs64", Fstatvfs = "fstatvfs",
        Fstatvfs64 = "fstatvfs64", Statfs = "statfs", Statfs64 = "statfs64", Fstatfs = "fstatfs",
        Fstatfs64 = "fstatfs64",
    }
    Posix Stat "bufsize" "" "" {
        Readlink = "readlink", Readlinkat = "readlinkat", ReadlinkChk = "__readlink_chk",
        ReadlinkatChk = "__readlinkat_chk",
    }
    Posix Stat "" "" "" { Realpath = "realpath", RealpathChk = "__realpath_chk" }
    Posix Stat "count" "" "" {
        Getxattr = "getxattr", Lgetxattr = "lgetxattr", Fgetxattr = "fgetxattr",
        Listxattr = "listxattr", Llistxattr = "llistxattr", Flistxattr = "flistxattr",
    }
    Posix Namespace "count" "" "flags" {
        Setxattr = "setxattr", Lsetxattr = "lsetxattr", Fsetxattr = "fsetxattr",
    }
    Posix Namespace "" "" "mode" {
        Mkdir = "mkdir", Mkdirat = "mkdirat", Mkfifo = "mkfifo", Mkfifoat = "mkfifoat",
        Mknod = "mknod", Mknodat = "mknodat", Xmknod = "__xmknod",
    }
    Posix Namespace "" "" "" { Rmdir = "rmdir", Unlink = "unlink", Remove = "remove" }
    Posix Namespace "" "" "flags" { Unlinkat = "unlinkat" }
    Posix Namespace "" "" "newpath" {
        Rename = "rename", Renameat = "renameat", Link = "link", Symlink = "symlink",
        Symlinkat = "symlinkat",
    }
    Posix Namespace "flags" "" "newpath" { Renameat2 = "renameat2", Linkat = "linkat" }
    Posix Namespace "" "" "mode" { Chmod = "chmod", Fchmod = "fchmod", Fchmodat = "fchmodat" }
    Posix Namespace "group" "" "owner" {
        Chown = "chown", Lchown = "lchown", Fchown = "fchown", Fchownat = "fchownat",
    }
    Posix Namespace "length" "" "" {
        Truncate = "truncate", Truncate64 = "truncate64", Ftruncate = "ftruncate",
        Ftruncate64 = "ftruncate64",
    }
    Posix Namespace "" "" "" {
        Utime = "utime", Utimes = "utimes", Utimensat = "utimensat", Futimens = "futimens",
    }
    Posix Namespace "len" "offset" "" {
        PosixFallocate = "posix_fallocate", PosixFallocate64 = "posix_fallocate64",
    }
    Posix Namespace "len" "offset" "mode" { Fallocate = "fallocate", Fallocate64 = "fallocate64" }
    Posix Advice "len" "offset" "advice" {
        PosixFadvise = "posix_fadvise", PosixFadvise64 = "posix_fadvise64",
    }
    Posix Advice "len" "offset" "" { Readahead = "readahead" }
    Posix Descriptor "" "" "operation" { Flock = "flock" }
    Posix Descriptor "" "argument" "cmd" { Fcntl = "fcntl", Fcntl64 = "fcntl64" }
    Posix Descriptor "" "" "to" { Dup = "dup", Dup2 = "dup2", Dup3 = "dup3" }
    Posix Directory "" "" "" {
        Chdir = "chdir", Fchdir = "fchdir", Opendir = "opendir", Fdopendir = "fdopendir",
        Readdir = "readdir", Readdir64 = "readdir64", Closedir = "closedir",
        Rewinddir = "rewinddir", Scandir = "scandir", Scandir64 = "scandir64",
    }
    Posix Directory "count" "" "" { Getdents64 = "getdents64" }
    Posix Map "length" "offset" "flags" { Mmap = "mmap", Mmap64 = "mmap64" }
    Posix Map "length" "address" "" { Munmap = "munmap" }
    Posix Map "length" "address" "flags" { Msync = "msync" }
    Posix Map "length" "address" "advice" { Madvise = "madvise" }
    Posix Map "length" "address" "flags" { Mremap = "mremap" }
    Posix Process "" "" "" { Fork = "fork", ForkBare = "_Fork", Vfork = "vfork" }
    Posix Process "" "" "flags" { Clone = "clone" }
    Posix Process "" "" "" {
        PosixSpawn = "posix_spawn", PosixSpawnp = "posix_spawnp", Execve = "execve",
        Execv = "execv", Execvp = "execvp", Execvpe = "execvpe", Execl = "execl", Execlp = "execlp",
        Execle = "execle", Fexecve = "fexecve", Execveat = "execveat",
    }
    Posix Process "" "status" "pid" {
        Wait = "wait", Waitpid = "waitpid", Wait3 = "wait3", Wait4 = "wait4", Waitid = "waitid",
    }
    Posix Process "" "" "status" { ExitNow = "_exit", ExitIso = "_Exit", QuickExit = "quick_exit" }
    Posix Process "" "" "" { System = "system", Popen = "popen", Pclose = "pclose" }
    Stdio Open "" "" "" {
        Fopen = "fopen", Fopen64 = "fopen64", Fdopen = "fdopen", Freopen = "freopen",
        Freopen64 = "freopen64", Tmpfile = "tmpfile", Tmpfile64 = "tmpfile64",
        Fmemopen = "fmemopen", OpenMemstream = "open_memstream",
    }
    Stdio Close "" "" "" { Fclose = "fclose" }
    Stdio Sync "" "" "" { Fflush = "fflush", FflushUnlocked = "fflush_unlocked" }
    Stdio Read "count" "" "size" {
        Fread = "fread", FreadUnlocked = "fread_unlocked", FreadChk = "__fread_chk",
        FreadUnlockedChk = "__fread_unlocked_chk",
    }
    Stdio Write "count" "" "size" { Fwrite = "fwrite", FwriteUnlocked = "fwrite_unlocked" }
    Stdio Read "count" "" "" {
        Fgetc = "fgetc", Getc = "getc", IoGetc = "_IO_getc", FgetcUnlocked = "fgetc_unlocked",
        GetcUnlocked = "getc_unlocked", Getchar = "getchar", GetcharUnlocked = "getchar_unlocked",
        Getw = "getw",
    }
    Stdio Write "count" "" "" {
        Fputc = "fputc", Putc = "putc", IoPutc = "_IO_putc", FputcUnlocked = "fputc_unlocked",
        PutcUnlocked = "putc_unlocked", Putchar = "putchar", PutcharUnlocked = "putchar_unlocked",
        Putw = "putw",
    }
    Stdio Read "count" "" "" {
        Fgets = "fgets", FgetsChk = "__fgets_chk", FgetsUnlocked = "fgets_unlocked",
        FgetsUnlockedChk = "__fgets_unlocked_chk", Getline = "getline", Getdelim = "getdelim",
        GetdelimAlias = "__getdelim",
    }
    Stdio Write "count" "" "" { Fputs = "fputs", FputsUnlocked = "fputs_unlocked", Puts = "puts" }
    Stdio Write "" "" "" {
        Vfprintf = "vfprintf", Vprintf = "vprintf", VfprintfChk = "__vfprintf_chk",
        VprintfChk = "__vprintf_chk", Fprintf = "fprintf", Printf = "printf",
        FprintfChk = "__fprintf_chk", PrintfChk = "__printf_chk",
    }
    Stdio State "" "" "" {
        Vfscanf = "vfscanf", Isoc99Vfscanf = "__isoc99_vfscanf", Isoc23Vfscanf = "__isoc23_vfscanf",
        Fscanf = "fscanf", Isoc99Fscanf = "__isoc99_fscanf", Isoc23Fscanf = "__isoc23_fscanf",
    }
    Stdio Seek "" "offset" "whence" { Fseek = "fseek", Fseeko = "fseeko", Fseeko64 = "fseeko64" }
    Stdio Seek "" "" "" {
        Ftell = "ftell", Ftello = "ftello", Ftello64 = "ftello64", Rewind = "rewind",
        Fgetpos = "fgetpos", Fgetpos64 = "fgetpos64", Fsetpos = "fsetpos", Fsetpos64 = "fsetpos64",
    }
    Stdio State "" "" "" {
        Ungetc = "ungetc", Clearerr = "clearerr", Feof = "feof", Ferror = "ferror",
        Flockfile = "flockfile", Funlockfile = "funlockfile", Ftrylockfile = "ftrylockfile",
    }
    Stdio State "size" "" "mode" { Setvbuf = "setvbuf" }
    Uring Submit "" "" "wait" {
        IoUringSubmit = "io_uring_submit", IoUringSubmitAndWait = "io_uring_submit_and_wait",
        IoUringSubmitAndWaitTimeout = "io_uring_submit_and_wait_timeout",
        IoUringSubmitAndGetEvents = "io_uring_submit_and_get_events",
    }
    Uring Wait "" "" "wait" {
        IoUringWaitCqes = "io_uring_wait_cqes", IoUringWaitCqeTimeout = "io_uring_wait_cqe_timeout",
        IoUringGetCqe = "__io_uring_get_cqe", IoUringPeekBatchCqe = "io_uring_peek_batch_cqe",
    }
    Uring Request "count" "offset" "user_data" { UringSubmitted = "io_uring.submitted" }
    Uring Request "" "" "user_data" { UringCompleted = "io_uring.completed" }
    App Span "" "" "" { Span = "span" }
    App Counter "" "" "" { Counter = "counter" }
    App Request "count" "offset" "site" { AppCall = "app_call" }
}

/// The op number of texts (paths, names of spans) between records.
pub(crate) const TEXT: u16 = u16::MAX;
/// The number of the filler at the end of a segment into which a text did not fit.
pub(crate) const PADDING: u16 = u16::MAX - 1;
/// The op number of a record that summarizes many calls, see [`Summary`](crate::Summary).
pub(crate) const SUMMARY: u16 = u16::MAX - 2;

impl Op {
    /// The row of this call.
    pub const fn info(self) -> &'static OpInfo {
        &INFOS[self as usize]
    }

    /// The call of a number, if this build has one.
    pub fn from_number(number: u16) -> Option<Self> {
        OPS.get(usize::from(number)).copied()
    }
}

/// To be raised when records, segments or heads of processes change their fields.
const LAYOUT: u64 = 3;

/// A number that changes when the table does, or the layout of what is recorded: recordings of another
/// build are not read.
pub const fn fingerprint() -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ LAYOUT;
    let mut row = 0;
    while row < INFOS.len() {
        let name = INFOS[row].name.as_bytes();
        let mut byte = 0;
        while byte < name.len() {
            hash = (hash ^ name[byte] as u64).wrapping_mul(0x0100_0000_01b3);
            byte += 1;
        }
        hash = (hash ^ 0xff).wrapping_mul(0x0100_0000_01b3);
        row += 1;
    }
    hash
}

/// A mark in the preload library by which its launcher sees whether both are of one build.
pub const fn build_mark() -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    let mut at = 0;
    while at < MARK_BEGIN.len() {
        mark[at] = MARK_BEGIN[at];
        at += 1;
    }
    let mut rest = fingerprint();
    while at < MARK_BYTES {
        mark[at] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        at += 1;
    }
    mark
}

/// How a mark begins.
pub const MARK_BEGIN: &[u8] = b"feedline recordings of build ";
/// Bytes of a mark.
pub const MARK_BYTES: usize = MARK_BEGIN.len() + 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_numbers_lead_back() {
        for (number, op) in OPS.iter().enumerate() {
            assert_eq!(Op::from_number(u16::try_from(number).unwrap()), Some(*op));
            assert_eq!(OPS.iter().filter(|o| o.info().name == op.info().name).count(), 1);
        }
        assert_eq!(Op::from_number(SUMMARY), None);
        assert_eq!(Op::Pread64.info().name, "pread64");
        assert_eq!(Op::Pread64.info().offset, "offset");
    }
}
