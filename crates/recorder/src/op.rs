//! Which calls are recorded, and what the fields of their records mean.
//!
//! One row an entry point of the C library, under the name by which programs call it: `open64` and
//! `open` are two rows, as other tracers tell them apart too. Numbers are private to one build (the
//! segments say which); trace files hold names.

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
    ($($variant:ident = $name:literal $category:ident $class:ident
       $size:literal $offset:literal $arg:literal,)+) => {
        /// A recorded call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[expect(missing_docs, reason = "each is the symbol of its name")]
        pub enum Op { $($variant,)+ }

        /// Every call, in the order of their numbers.
        pub const OPS: &[Op] = &[$(Op::$variant,)+];

        const INFOS: &[OpInfo] = &[$(OpInfo {
            name: $name,
            category: Category::$category,
            class: Class::$class,
            size: $size,
            offset: $offset,
            arg: $arg,
        },)+];
    };
}

ops! {
    Open = "open" Posix Open "mode" "" "flags",
    Open64 = "open64" Posix Open "mode" "" "flags",
    Open2 = "__open_2" Posix Open "mode" "" "flags",
    Open642 = "__open64_2" Posix Open "mode" "" "flags",
    Openat = "openat" Posix Open "mode" "" "flags",
    Openat64 = "openat64" Posix Open "mode" "" "flags",
    Openat2 = "__openat_2" Posix Open "mode" "" "flags",
    Openat642 = "__openat64_2" Posix Open "mode" "" "flags",
    ShmOpen = "shm_open" Posix Open "mode" "" "flags",
    Creat = "creat" Posix Open "mode" "" "",
    Creat64 = "creat64" Posix Open "mode" "" "",
    Mkstemp = "mkstemp" Posix Open "" "" "flags",
    Mkstemp64 = "mkstemp64" Posix Open "" "" "flags",
    Mkostemp = "mkostemp" Posix Open "" "" "flags",
    Mkostemp64 = "mkostemp64" Posix Open "" "" "flags",
    Mkstemps = "mkstemps" Posix Open "" "" "flags",
    Mkstemps64 = "mkstemps64" Posix Open "" "" "flags",
    Mkostemps = "mkostemps" Posix Open "" "" "flags",
    Mkostemps64 = "mkostemps64" Posix Open "" "" "flags",
    Close = "close" Posix Close "" "" "",
    CloseRange = "close_range" Posix Close "last" "" "flags",
    Read = "read" Posix Read "count" "" "",
    ReadChk = "__read_chk" Posix Read "count" "" "",
    Pread = "pread" Posix Read "count" "offset" "",
    Pread64 = "pread64" Posix Read "count" "offset" "",
    PreadChk = "__pread_chk" Posix Read "count" "offset" "",
    Pread64Chk = "__pread64_chk" Posix Read "count" "offset" "",
    Readv = "readv" Posix Read "count" "" "iovcnt",
    Preadv = "preadv" Posix Read "count" "offset" "iovcnt",
    Preadv64 = "preadv64" Posix Read "count" "offset" "iovcnt",
    Preadv2 = "preadv2" Posix Read "count" "offset" "iovcnt",
    Preadv64v2 = "preadv64v2" Posix Read "count" "offset" "iovcnt",
    Write = "write" Posix Write "count" "" "",
    Pwrite = "pwrite" Posix Write "count" "offset" "",
    Pwrite64 = "pwrite64" Posix Write "count" "offset" "",
    Writev = "writev" Posix Write "count" "" "iovcnt",
    Pwritev = "pwritev" Posix Write "count" "offset" "iovcnt",
    Pwritev64 = "pwritev64" Posix Write "count" "offset" "iovcnt",
    Pwritev2 = "pwritev2" Posix Write "count" "offset" "iovcnt",
    Pwritev64v2 = "pwritev64v2" Posix Write "count" "offset" "iovcnt",
    Sendfile = "sendfile" Posix Copy "count" "offset" "to",
    Sendfile64 = "sendfile64" Posix Copy "count" "offset" "to",
    CopyFileRange = "copy_file_range" Posix Copy "count" "offset" "to",
    Splice = "splice" Posix Copy "count" "offset" "to",
    Lseek = "lseek" Posix Seek "" "offset" "whence",
    Lseek64 = "lseek64" Posix Seek "" "offset" "whence",
    Fsync = "fsync" Posix Sync "" "" "",
    Fdatasync = "fdatasync" Posix Sync "" "" "",
    Syncfs = "syncfs" Posix Sync "" "" "",
    Sync = "sync" Posix Sync "" "" "",
    SyncFileRange = "sync_file_range" Posix Sync "count" "offset" "flags",
    Stat = "stat" Posix Stat "" "" "",
    Stat64 = "stat64" Posix Stat "" "" "",
    Lstat = "lstat" Posix Stat "" "" "",
    Lstat64 = "lstat64" Posix Stat "" "" "",
    Fstat = "fstat" Posix Stat "" "" "",
    Fstat64 = "fstat64" Posix Stat "" "" "",
    Xstat = "__xstat" Posix Stat "" "" "",
    Xstat64 = "__xstat64" Posix Stat "" "" "",
    Lxstat = "__lxstat" Posix Stat "" "" "",
    Lxstat64 = "__lxstat64" Posix Stat "" "" "",
    Fxstat = "__fxstat" Posix Stat "" "" "",
    Fxstat64 = "__fxstat64" Posix Stat "" "" "",
    Fstatat = "fstatat" Posix Stat "" "" "flags",
    Fstatat64 = "fstatat64" Posix Stat "" "" "flags",
    Fxstatat = "__fxstatat" Posix Stat "" "" "flags",
    Fxstatat64 = "__fxstatat64" Posix Stat "" "" "flags",
    Statx = "statx" Posix Stat "mask" "" "flags",
    Access = "access" Posix Stat "" "" "mode",
    Eaccess = "eaccess" Posix Stat "" "" "mode",
    Euidaccess = "euidaccess" Posix Stat "" "" "mode",
    Faccessat = "faccessat" Posix Stat "flags" "" "mode",
    Statvfs = "statvfs" Posix Stat "" "" "",
    Statvfs64 = "statvfs64" Posix Stat "" "" "",
    Fstatvfs = "fstatvfs" Posix Stat "" "" "",
    Fstatvfs64 = "fstatvfs64" Posix Stat "" "" "",
    Statfs = "statfs" Posix Stat "" "" "",
    Statfs64 = "statfs64" Posix Stat "" "" "",
    Fstatfs = "fstatfs" Posix Stat "" "" "",
    Fstatfs64 = "fstatfs64" Posix Stat "" "" "",
    Readlink = "readlink" Posix Stat "bufsize" "" "",
    Readlinkat = "readlinkat" Posix Stat "bufsize" "" "",
    ReadlinkChk = "__readlink_chk" Posix Stat "bufsize" "" "",
    ReadlinkatChk = "__readlinkat_chk" Posix Stat "bufsize" "" "",
    Realpath = "realpath" Posix Stat "" "" "",
    RealpathChk = "__realpath_chk" Posix Stat "" "" "",
    Getxattr = "getxattr" Posix Stat "count" "" "",
    Lgetxattr = "lgetxattr" Posix Stat "count" "" "",
    Fgetxattr = "fgetxattr" Posix Stat "count" "" "",
    Listxattr = "listxattr" Posix Stat "count" "" "",
    Llistxattr = "llistxattr" Posix Stat "count" "" "",
    Flistxattr = "flistxattr" Posix Stat "count" "" "",
    Setxattr = "setxattr" Posix Namespace "count" "" "flags",
    Lsetxattr = "lsetxattr" Posix Namespace "count" "" "flags",
    Fsetxattr = "fsetxattr" Posix Namespace "count" "" "flags",
    Mkdir = "mkdir" Posix Namespace "" "" "mode",
    Mkdirat = "mkdirat" Posix Namespace "" "" "mode",
    Mkfifo = "mkfifo" Posix Namespace "" "" "mode",
    Mkfifoat = "mkfifoat" Posix Namespace "" "" "mode",
    Mknod = "mknod" Posix Namespace "" "" "mode",
    Mknodat = "mknodat" Posix Namespace "" "" "mode",
    Xmknod = "__xmknod" Posix Namespace "" "" "mode",
    Rmdir = "rmdir" Posix Namespace "" "" "",
    Unlink = "unlink" Posix Namespace "" "" "",
    Remove = "remove" Posix Namespace "" "" "",
    Unlinkat = "unlinkat" Posix Namespace "" "" "flags",
    Rename = "rename" Posix Namespace "" "" "newpath",
    Renameat = "renameat" Posix Namespace "" "" "newpath",
    Link = "link" Posix Namespace "" "" "newpath",
    Symlink = "symlink" Posix Namespace "" "" "newpath",
    Symlinkat = "symlinkat" Posix Namespace "" "" "newpath",
    Renameat2 = "renameat2" Posix Namespace "flags" "" "newpath",
    Linkat = "linkat" Posix Namespace "flags" "" "newpath",
    Chmod = "chmod" Posix Namespace "" "" "mode",
    Fchmod = "fchmod" Posix Namespace "" "" "mode",
    Fchmodat = "fchmodat" Posix Namespace "" "" "mode",
    Chown = "chown" Posix Namespace "group" "" "owner",
    Lchown = "lchown" Posix Namespace "group" "" "owner",
    Fchown = "fchown" Posix Namespace "group" "" "owner",
    Fchownat = "fchownat" Posix Namespace "group" "" "owner",
    Truncate = "truncate" Posix Namespace "length" "" "",
    Truncate64 = "truncate64" Posix Namespace "length" "" "",
    Ftruncate = "ftruncate" Posix Namespace "length" "" "",
    Ftruncate64 = "ftruncate64" Posix Namespace "length" "" "",
    Utime = "utime" Posix Namespace "" "" "",
    Utimes = "utimes" Posix Namespace "" "" "",
    Utimensat = "utimensat" Posix Namespace "" "" "",
    Futimens = "futimens" Posix Namespace "" "" "",
    PosixFallocate = "posix_fallocate" Posix Namespace "len" "offset" "",
    PosixFallocate64 = "posix_fallocate64" Posix Namespace "len" "offset" "",
    Fallocate = "fallocate" Posix Namespace "len" "offset" "mode",
    Fallocate64 = "fallocate64" Posix Namespace "len" "offset" "mode",
    PosixFadvise = "posix_fadvise" Posix Advice "len" "offset" "advice",
    PosixFadvise64 = "posix_fadvise64" Posix Advice "len" "offset" "advice",
    Readahead = "readahead" Posix Advice "len" "offset" "",
    Flock = "flock" Posix Descriptor "" "" "operation",
    Fcntl = "fcntl" Posix Descriptor "" "argument" "cmd",
    Fcntl64 = "fcntl64" Posix Descriptor "" "argument" "cmd",
    Dup = "dup" Posix Descriptor "" "" "to",
    Dup2 = "dup2" Posix Descriptor "" "" "to",
    Dup3 = "dup3" Posix Descriptor "" "" "to",
    Chdir = "chdir" Posix Directory "" "" "",
    Fchdir = "fchdir" Posix Directory "" "" "",
    Opendir = "opendir" Posix Directory "" "" "",
    Fdopendir = "fdopendir" Posix Directory "" "" "",
    Readdir = "readdir" Posix Directory "" "" "",
    Readdir64 = "readdir64" Posix Directory "" "" "",
    Closedir = "closedir" Posix Directory "" "" "",
    Rewinddir = "rewinddir" Posix Directory "" "" "",
    Scandir = "scandir" Posix Directory "" "" "",
    Scandir64 = "scandir64" Posix Directory "" "" "",
    Getdents64 = "getdents64" Posix Directory "count" "" "",
    Mmap = "mmap" Posix Map "length" "offset" "flags",
    Mmap64 = "mmap64" Posix Map "length" "offset" "flags",
    Munmap = "munmap" Posix Map "length" "address" "",
    Msync = "msync" Posix Map "length" "address" "flags",
    Madvise = "madvise" Posix Map "length" "address" "advice",
    Mremap = "mremap" Posix Map "length" "address" "flags",
    Fork = "fork" Posix Process "" "" "",
    ForkBare = "_Fork" Posix Process "" "" "",
    Vfork = "vfork" Posix Process "" "" "",
    Clone = "clone" Posix Process "" "" "flags",
    PosixSpawn = "posix_spawn" Posix Process "" "" "",
    PosixSpawnp = "posix_spawnp" Posix Process "" "" "",
    Execve = "execve" Posix Process "" "" "",
    Execv = "execv" Posix Process "" "" "",
    Execvp = "execvp" Posix Process "" "" "",
    Execvpe = "execvpe" Posix Process "" "" "",
    Execl = "execl" Posix Process "" "" "",
    Execlp = "execlp" Posix Process "" "" "",
    Execle = "execle" Posix Process "" "" "",
    Fexecve = "fexecve" Posix Process "" "" "",
    Execveat = "execveat" Posix Process "" "" "",
    Wait = "wait" Posix Process "" "status" "pid",
    Waitpid = "waitpid" Posix Process "" "status" "pid",
    Wait3 = "wait3" Posix Process "" "status" "pid",
    Wait4 = "wait4" Posix Process "" "status" "pid",
    Waitid = "waitid" Posix Process "" "status" "pid",
    ExitNow = "_exit" Posix Process "" "" "status",
    ExitIso = "_Exit" Posix Process "" "" "status",
    QuickExit = "quick_exit" Posix Process "" "" "status",
    System = "system" Posix Process "" "" "",
    Popen = "popen" Posix Process "" "" "",
    Pclose = "pclose" Posix Process "" "" "",
    Fopen = "fopen" Stdio Open "" "" "",
    Fopen64 = "fopen64" Stdio Open "" "" "",
    Fdopen = "fdopen" Stdio Open "" "" "",
    Freopen = "freopen" Stdio Open "" "" "",
    Freopen64 = "freopen64" Stdio Open "" "" "",
    Tmpfile = "tmpfile" Stdio Open "" "" "",
    Tmpfile64 = "tmpfile64" Stdio Open "" "" "",
    Fmemopen = "fmemopen" Stdio Open "" "" "",
    OpenMemstream = "open_memstream" Stdio Open "" "" "",
    Fclose = "fclose" Stdio Close "" "" "",
    Fflush = "fflush" Stdio Sync "" "" "",
    FflushUnlocked = "fflush_unlocked" Stdio Sync "" "" "",
    Fread = "fread" Stdio Read "count" "" "size",
    FreadUnlocked = "fread_unlocked" Stdio Read "count" "" "size",
    FreadChk = "__fread_chk" Stdio Read "count" "" "size",
    FreadUnlockedChk = "__fread_unlocked_chk" Stdio Read "count" "" "size",
    Fwrite = "fwrite" Stdio Write "count" "" "size",
    FwriteUnlocked = "fwrite_unlocked" Stdio Write "count" "" "size",
    Fgetc = "fgetc" Stdio Read "count" "" "",
    Getc = "getc" Stdio Read "count" "" "",
    IoGetc = "_IO_getc" Stdio Read "count" "" "",
    FgetcUnlocked = "fgetc_unlocked" Stdio Read "count" "" "",
    GetcUnlocked = "getc_unlocked" Stdio Read "count" "" "",
    Getchar = "getchar" Stdio Read "count" "" "",
    GetcharUnlocked = "getchar_unlocked" Stdio Read "count" "" "",
    Getw = "getw" Stdio Read "count" "" "",
    Fputc = "fputc" Stdio Write "count" "" "",
    Putc = "putc" Stdio Write "count" "" "",
    IoPutc = "_IO_putc" Stdio Write "count" "" "",
    FputcUnlocked = "fputc_unlocked" Stdio Write "count" "" "",
    PutcUnlocked = "putc_unlocked" Stdio Write "count" "" "",
    Putchar = "putchar" Stdio Write "count" "" "",
    PutcharUnlocked = "putchar_unlocked" Stdio Write "count" "" "",
    Putw = "putw" Stdio Write "count" "" "",
    Fgets = "fgets" Stdio Read "count" "" "",
    FgetsChk = "__fgets_chk" Stdio Read "count" "" "",
    FgetsUnlocked = "fgets_unlocked" Stdio Read "count" "" "",
    FgetsUnlockedChk = "__fgets_unlocked_chk" Stdio Read "count" "" "",
    Getline = "getline" Stdio Read "count" "" "",
    Getdelim = "getdelim" Stdio Read "count" "" "",
    GetdelimAlias = "__getdelim" Stdio Read "count" "" "",
    Fputs = "fputs" Stdio Write "count" "" "",
    FputsUnlocked = "fputs_unlocked" Stdio Write "count" "" "",
    Puts = "puts" Stdio Write "count" "" "",
    Vfprintf = "vfprintf" Stdio Write "" "" "",
    Vprintf = "vprintf" Stdio Write "" "" "",
    VfprintfChk = "__vfprintf_chk" Stdio Write "" "" "",
    VprintfChk = "__vprintf_chk" Stdio Write "" "" "",
    Fprintf = "fprintf" Stdio Write "" "" "",
    Printf = "printf" Stdio Write "" "" "",
    FprintfChk = "__fprintf_chk" Stdio Write "" "" "",
    PrintfChk = "__printf_chk" Stdio Write "" "" "",
    Vfscanf = "vfscanf" Stdio State "" "" "",
    Isoc99Vfscanf = "__isoc99_vfscanf" Stdio State "" "" "",
    Isoc23Vfscanf = "__isoc23_vfscanf" Stdio State "" "" "",
    Fscanf = "fscanf" Stdio State "" "" "",
    Isoc99Fscanf = "__isoc99_fscanf" Stdio State "" "" "",
    Isoc23Fscanf = "__isoc23_fscanf" Stdio State "" "" "",
    Fseek = "fseek" Stdio Seek "" "offset" "whence",
    Fseeko = "fseeko" Stdio Seek "" "offset" "whence",
    Fseeko64 = "fseeko64" Stdio Seek "" "offset" "whence",
    Ftell = "ftell" Stdio Seek "" "" "",
    Ftello = "ftello" Stdio Seek "" "" "",
    Ftello64 = "ftello64" Stdio Seek "" "" "",
    Rewind = "rewind" Stdio Seek "" "" "",
    Fgetpos = "fgetpos" Stdio Seek "" "" "",
    Fgetpos64 = "fgetpos64" Stdio Seek "" "" "",
    Fsetpos = "fsetpos" Stdio Seek "" "" "",
    Fsetpos64 = "fsetpos64" Stdio Seek "" "" "",
    Ungetc = "ungetc" Stdio State "" "" "",
    Clearerr = "clearerr" Stdio State "" "" "",
    Feof = "feof" Stdio State "" "" "",
    Ferror = "ferror" Stdio State "" "" "",
    Flockfile = "flockfile" Stdio State "" "" "",
    Funlockfile = "funlockfile" Stdio State "" "" "",
    Ftrylockfile = "ftrylockfile" Stdio State "" "" "",
    Setvbuf = "setvbuf" Stdio State "size" "" "mode",
    IoUringSubmit = "io_uring_submit" Uring Submit "" "" "wait",
    IoUringSubmitAndWait = "io_uring_submit_and_wait" Uring Submit "" "" "wait",
    IoUringSubmitAndWaitTimeout = "io_uring_submit_and_wait_timeout" Uring Submit "" "" "wait",
    IoUringSubmitAndGetEvents = "io_uring_submit_and_get_events" Uring Submit "" "" "wait",
    IoUringWaitCqes = "io_uring_wait_cqes" Uring Wait "" "" "wait",
    IoUringWaitCqeTimeout = "io_uring_wait_cqe_timeout" Uring Wait "" "" "wait",
    IoUringGetCqe = "__io_uring_get_cqe" Uring Wait "" "" "wait",
    IoUringPeekBatchCqe = "io_uring_peek_batch_cqe" Uring Wait "" "" "wait",
    UringSubmitted = "io_uring.submitted" Uring Request "count" "offset" "user_data",
    UringCompleted = "io_uring.completed" Uring Request "" "" "user_data",
    Span = "span" App Span "" "" "",
    Counter = "counter" App Counter "" "" "",
    AppCall = "app_call" App Request "count" "offset" "site",
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
