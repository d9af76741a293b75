/* Descriptors, names, folders and memory. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <utime.h>

/* A place where nothing is; the compiler must not know. */
static void *volatile bad = (void *)8;
#define BAD bad
/* A function that headers hide. */
#define HIDDEN(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_DEFAULT, name))
#define U(x) ((uint64_t)(uint32_t)(x))

/* Numbers of descriptors from here on are this thread's alone. */
static _Thread_local int own = 500;
/* No other thread makes calls. */
static int alone = 1;

static void opens(void)
{
    int fd = R("open", P("a"), 0640, 0, O_RDWR | O_CREAT, open(P("a"), O_RDWR | O_CREAT, 0640));
    R("close", P("a"), 0, 0, 0, close(fd));
    R("close", "", 0, 0, 0, close(own));
    R("close", "", 0, 0, 0, close(-7));
    fd = R("open64", P("a"), 0, 0, O_RDONLY, open64(P("a"), O_RDONLY));
    R("close", P("a"), 0, 0, 0, close(fd));
    R("open", P("missing"), 0, 0, O_RDONLY, open(P("missing"), O_RDONLY));
    R("open", "", 0, 0, O_RDONLY, open(BAD, O_RDONLY));
    /* Refused for its flags before the kernel looks at the path. */
    R("open", "", 0600, 0, O_TMPFILE, open(BAD, O_TMPFILE, 0600));
    R("open", "", 0, 0, O_RDONLY, open("", O_RDONLY));
    R("open", "", 0, 0, O_RDONLY, open(0, O_RDONLY));
    static char longest[4097];
    memset(longest, '/', 4096);
    R("open", longest, 0, 0, O_RDONLY, open(longest, O_RDONLY));
    fd = R("__open_2", P("a"), 0, 0, O_RDWR, HIDDEN(int, "__open_2", const char *, int)(P("a"), O_RDWR));
    R("close", P("a"), 0, 0, 0, close(fd));
    fd = R("__open64_2", P("a"), 0, 0, O_RDWR, HIDDEN(int, "__open64_2", const char *, int)(P("a"), O_RDWR));
    R("close", P("a"), 0, 0, 0, close(fd));
    int folder = R("open", here, 0, 0, O_DIRECTORY, open(here, O_DIRECTORY));
    fd = R("openat", P("b"), 0600, 0, O_RDWR | O_CREAT, openat(folder, "b", O_RDWR | O_CREAT, 0600));
    R("close", P("b"), 0, 0, 0, close(fd));
    fd = R("openat64", P("b"), 0, 0, O_RDONLY, openat64(AT_FDCWD, P("b"), O_RDONLY));
    R("close", P("b"), 0, 0, 0, close(fd));
    R("openat", "b", 0, 0, O_RDONLY, openat(-9, "b", O_RDONLY));
    fd = R("__openat_2", P("b"), 0, 0, O_RDONLY, HIDDEN(int, "__openat_2", int, const char *, int)(folder, "b", O_RDONLY));
    R("close", P("b"), 0, 0, 0, close(fd));
    fd = R("__openat64_2", P("b"), 0, 0, O_RDONLY, HIDDEN(int, "__openat64_2", int, const char *, int)(folder, "b", O_RDONLY));
    R("close", P("b"), 0, 0, 0, close(fd));
    R("close", here, 0, 0, 0, close(folder));
    fd = R("creat", P("c"), 0604, 0, 0, creat(P("c"), 0604));
    R("write", P("c"), 3, 0, 0, write(fd, "abc", 3));
    R("close", P("c"), 0, 0, 0, close(fd));
    fd = R("creat64", P("c"), 0604, 0, 0, creat64(P("c"), 0604));
    R("close", P("c"), 0, 0, 0, close(fd));
    fd = R("open", here, 0600, 0, O_RDWR | O_TMPFILE, open(here, O_RDWR | O_TMPFILE, 0600));
    if (!stable)
        R("write", link_of(fd), 2, 0, 0, write(fd, "xy", 2));
    R("close", stable ? "" : link_of(fd), 0, 0, 0, close(fd));
}

/* Temporary names: the path in the log is what the template became. */
#define TEMPORARY(name, suffix, flags, call)                                                         \
    ({                                                                                               \
        char path[512];                                                                              \
        snprintf(path, sizeof path, "%s/tmp-XXXXXX%s", here, suffix);                                \
        errno = 0;                                                                                   \
        int fd_ = call;                                                                              \
        say(name, stable ? "" : path, 0, 0, flags, fd_, fd_ < 0 ? errno : 0);                        \
        R("close", stable ? "" : path, 0, 0, 0, close(fd_));                                         \
        R("unlink", stable ? "" : path, 0, 0, 0, unlink(path));                                      \
    })

static void temporaries(void)
{
    TEMPORARY("mkstemp", "", 0, mkstemp(path));
    TEMPORARY("mkstemp64", "", 0, mkstemp64(path));
    TEMPORARY("mkostemp", "", O_CLOEXEC, mkostemp(path, O_CLOEXEC));
    TEMPORARY("mkostemp64", "", O_CLOEXEC, mkostemp64(path, O_CLOEXEC));
    TEMPORARY("mkstemps", ".d", 0, mkstemps(path, 2));
    TEMPORARY("mkstemps64", ".d", 0, mkstemps64(path, 2));
    TEMPORARY("mkostemps", ".d", O_CLOEXEC, mkostemps(path, 2, O_CLOEXEC));
    TEMPORARY("mkostemps64", ".d", O_CLOEXEC, mkostemps64(path, 2, O_CLOEXEC));
    char name[64], path[128];
    snprintf(name, sizeof name, "/feedline-%ld", stable ? 0 : syscall(SYS_gettid));
    snprintf(path, sizeof path, "/dev/shm%s", name);
    int fd = R("shm_open", path, 0600, 0, O_RDWR | O_CREAT, shm_open(name, O_RDWR | O_CREAT, 0600));
    R("write", path, 4, 0, 0, write(fd, "data", 4));
    R("close", path, 0, 0, 0, close(fd));
    shm_unlink(name);
    R("shm_open", path, 0, 0, O_RDWR, shm_open(name, O_RDWR, 0));
}

static void moves(void)
{
    char bytes[64] = "0123456789abcdef";
    const char *a = P("a");
    int fd = R("open", a, 0, 0, O_RDWR, open(a, O_RDWR));
    struct iovec two[2] = {{bytes, 4}, {bytes + 8, 8}};
    R("write", a, 16, 0, 0, write(fd, bytes, 16));
    R("write", a, 5, 0, 0, write(fd, BAD, 5));
    R("write", "", 5, 0, 0, write(-1, bytes, 5));
    R("pwrite", a, 10, 3, 0, pwrite(fd, bytes, 10, 3));
    R("pwrite64", a, 10, 1 << 20, 0, pwrite64(fd, bytes, 10, 1 << 20));
    R("pwrite", a, 10, -5, 0, pwrite(fd, bytes, 10, -5));
    R("writev", a, 12, 0, 2, writev(fd, two, 2));
    R("writev", a, 0, 0, 2, writev(fd, BAD, 2));
    R("pwritev", a, 12, 100, 2, pwritev(fd, two, 2, 100));
    R("pwritev64", a, 12, 100, 2, pwritev64(fd, two, 2, 100));
    R("pwritev2", a, 12, 100, 2, pwritev2(fd, two, 2, 100, RWF_DSYNC));
    R("pwritev64v2", a, 12, 100, 2, pwritev64v2(fd, two, 2, 100, 0));
    R("lseek", a, 0, 0, SEEK_SET, lseek(fd, 0, SEEK_SET));
    R("lseek64", a, 0, 2, SEEK_CUR, lseek64(fd, 2, SEEK_CUR));
    R("lseek", a, 0, -1, 77, lseek(fd, -1, 77));
    R("read", a, 8, 0, 0, read(fd, bytes, 8));
    R("read", a, 8, 0, 0, read(fd, BAD, 8));
    R("__read_chk", a, 8, 0, 0, HIDDEN(ssize_t, "__read_chk", int, void *, size_t, size_t)(fd, bytes, 8, 64));
    R("pread", a, 8, 4, 0, pread(fd, bytes, 8, 4));
    R("pread64", a, 8, 4, 0, pread64(fd, bytes, 8, 4));
    R("__pread_chk", a, 8, 4, 0, HIDDEN(ssize_t, "__pread_chk", int, void *, size_t, off_t, size_t)(fd, bytes, 8, 4, 64));
    R("__pread64_chk", a, 8, 4, 0, HIDDEN(ssize_t, "__pread64_chk", int, void *, size_t, off_t, size_t)(fd, bytes, 8, 4, 64));
    R("readv", a, 12, 0, 2, readv(fd, two, 2));
    R("preadv", a, 12, 1, 2, preadv(fd, two, 2, 1));
    R("preadv64", a, 12, 1, 2, preadv64(fd, two, 2, 1));
    R("preadv2", a, 12, 1, 2, preadv2(fd, two, 2, 1, RWF_HIPRI));
    R("preadv64v2", a, 12, 1, 2, preadv64v2(fd, two, 2, 1, 0));
    R("preadv2", a, 0, 1, 2, preadv2(fd, two, 2, 1, 1 << 30));
    int second = R("dup", a, 0, 0, 0, dup(fd));
    R("read", a, 8, 0, 0, read(second, bytes, 8));
    R("close", a, 0, 0, 0, close(fd));
    R("read", a, 8, 0, 0, read(second, bytes, 8));
    fd = R("dup2", a, 0, 0, own, dup2(second, own));
    R("pread", a, 8, 0, 0, pread(fd, bytes, 8, 0));
    R("close", a, 0, 0, 0, close(second));
    second = R("dup3", a, 0, 0, own + 1, dup3(fd, own + 1, O_CLOEXEC));
    R("pread", a, 8, 0, 0, pread(second, bytes, 8, 0));
    R("close", a, 0, 0, 0, close(second));
    R("dup", "", 0, 0, 0, dup(own + 1));
    second = R("fcntl", a, 0, 40, F_DUPFD, fcntl(fd, F_DUPFD, 40));
    R("pread", a, 8, 0, 0, pread(second, bytes, 8, 0));
    R("close", a, 0, 0, 0, close(second));
    second = R("fcntl64", a, 0, 41, F_DUPFD_CLOEXEC, fcntl64(fd, F_DUPFD_CLOEXEC, 41));
    R("close", a, 0, 0, 0, close(second));
    R("fcntl", a, 0, 0, F_GETFL, fcntl(fd, F_GETFL));
    R("fcntl", a, 0, 0, 999, fcntl(fd, 999, 5));
    R("flock", a, 0, 0, LOCK_EX, flock(fd, LOCK_EX));
    R("flock", a, 0, 0, LOCK_UN, flock(fd, LOCK_UN));
    R("fsync", a, 0, 0, 0, fsync(fd));
    R("fdatasync", a, 0, 0, 0, fdatasync(fd));
    R("sync_file_range", a, 100, 10, SYNC_FILE_RANGE_WRITE, sync_file_range(fd, 10, 100, SYNC_FILE_RANGE_WRITE));
    RE("posix_fadvise", a, 100, 10, POSIX_FADV_DONTNEED, posix_fadvise(fd, 10, 100, POSIX_FADV_DONTNEED));
    RE("posix_fadvise64", a, 100, 10, 99, posix_fadvise64(fd, 10, 100, 99));
    R("readahead", a, 100, 10, 0, readahead(fd, 10, 100));
    R("close", a, 0, 0, 0, close(fd));
}

static void copies(void)
{
    const char *a = P("a"), *b = P("b");
    int from = R("open", a, 0, 0, O_RDWR, open(a, O_RDWR));
    int to = R("open", b, 0, 0, O_RDWR, open(b, O_RDWR));
    off_t offset = 2;
    RT("sendfile", a, 10, 2, b, sendfile(to, from, &offset, 10));
    RT("sendfile64", a, 10, -1, b, sendfile64(to, from, 0, 10));
    RT("sendfile", a, 10, -1, b, sendfile(to, from, BAD, 10));
    off_t other = 7;
    offset = 3;
    RT("copy_file_range", a, 10, 3, b, copy_file_range(from, &offset, to, &other, 10, 0));
    /* Refused for the descriptor before the kernel looks at the offset. */
    RT("copy_file_range", "", 10, -1, b, copy_file_range(-1, BAD, to, 0, 10, 0));
    int pair[2];
    must(pipe(pair) == 0, "pipe");
    const char *in_pipe = stable ? "" : link_of(pair[0]);
    offset = 4;
    RT("splice", a, 10, 4, in_pipe, splice(from, &offset, pair[1], 0, 10, 0));
    RT("splice", in_pipe, 10, -1, b, splice(pair[0], 0, to, 0, 10, 0));
    RT("splice", in_pipe, 0, -1, b, splice(pair[0], BAD, to, BAD, 0, 0));
    R("write", in_pipe, 2, 0, 0, write(pair[1], "ab", 2));
    R("close", in_pipe, 0, 0, 0, close(pair[0]));
    R("close", in_pipe, 0, 0, 0, close(pair[1]));
    R("close", a, 0, 0, 0, close(from));
    R("close", b, 0, 0, 0, close(to));
    /* A descriptor of something else in the place of a file. */
    from = R("open", a, 0, 0, O_RDONLY, open(a, O_RDONLY));
    must(pipe(pair) == 0, "pipe");
    must(dup2(pair[1], from) == from, "dup2");
    say("dup2", stable ? "" : link_of(pair[1]), 0, 0, from, from, 0);
    R("write", stable ? "" : link_of(from), 1, 0, 0, write(from, "x", 1));
    for (int i = 0; i < 2; i++)
        R("close", stable ? "" : link_of(pair[i]), 0, 0, 0, close(pair[i]));
    R("close", stable ? "" : link_of(from), 0, 0, 0, close(from));
}

static void stats(void)
{
    struct stat s;
    struct stat64 s64;
    struct statvfs v;
    struct statvfs64 v64;
    struct statfs f;
    struct statfs64 f64;
    struct statx x;
    const char *a = P("a"), *no = P("missing");
    int fd = R("open", a, 0, 0, O_RDONLY, open(a, O_RDONLY));
    int folder = R("open", here, 0, 0, O_DIRECTORY, open(here, O_DIRECTORY));
    R("stat", a, 0, 0, 0, stat(a, &s));
    R("stat", no, 0, 0, 0, stat(no, &s));
    R("stat", "", 0, 0, 0, stat(BAD, &s));
    R("stat64", a, 0, 0, 0, stat64(a, &s64));
    R("lstat", a, 0, 0, 0, lstat(a, &s));
    R("lstat64", a, 0, 0, 0, lstat64(a, &s64));
    R("fstat", a, 0, 0, 0, fstat(fd, &s));
    R("fstat", "", 0, 0, 0, fstat(-3, &s));
    R("fstat64", a, 0, 0, 0, fstat64(fd, &s64));
    R("__xstat", a, 0, 0, 0, HIDDEN(int, "__xstat", int, const char *, void *)(1, a, &s));
    R("__xstat64", a, 0, 0, 0, HIDDEN(int, "__xstat64", int, const char *, void *)(1, a, &s));
    R("__lxstat", a, 0, 0, 0, HIDDEN(int, "__lxstat", int, const char *, void *)(1, a, &s));
    R("__lxstat64", a, 0, 0, 0, HIDDEN(int, "__lxstat64", int, const char *, void *)(1, a, &s));
    R("__fxstat", a, 0, 0, 0, HIDDEN(int, "__fxstat", int, int, void *)(1, fd, &s));
    R("__fxstat64", a, 0, 0, 0, HIDDEN(int, "__fxstat64", int, int, void *)(1, fd, &s));
    R("fstatat", P("b"), 0, 0, AT_SYMLINK_NOFOLLOW, fstatat(folder, "b", &s, AT_SYMLINK_NOFOLLOW));
    R("fstatat64", a, 0, 0, AT_EMPTY_PATH, fstatat64(fd, "", &s64, AT_EMPTY_PATH));
    R("__fxstatat", P("b"), 0, 0, 0, HIDDEN(int, "__fxstatat", int, int, const char *, void *, int)(1, folder, "b", &s, 0));
    R("__fxstatat64", P("b"), 0, 0, 0, HIDDEN(int, "__fxstatat64", int, int, const char *, void *, int)(1, folder, "b", &s, 0));
    R("statx", a, STATX_SIZE, 0, AT_EMPTY_PATH, statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &x));
    R("statx", P("b"), STATX_SIZE, 0, 0, statx(folder, "b", 0, STATX_SIZE, &x));
    R("access", a, 0, 0, R_OK, access(a, R_OK));
    R("access", a, 0, 0, 0777, access(a, 0777));
    R("access", "", 0, 0, 0777, access(BAD, 0777));
    R("eaccess", a, 0, 0, R_OK, eaccess(a, R_OK));
    R("euidaccess", no, 0, 0, R_OK, euidaccess(no, R_OK));
    R("faccessat", P("b"), AT_EACCESS, 0, W_OK, faccessat(folder, "b", W_OK, AT_EACCESS));
    R("statvfs", a, 0, 0, 0, statvfs(a, &v));
    R("statvfs64", a, 0, 0, 0, statvfs64(a, &v64));
    R("fstatvfs", a, 0, 0, 0, fstatvfs(fd, &v));
    R("fstatvfs64", a, 0, 0, 0, fstatvfs64(fd, &v64));
    R("statfs", a, 0, 0, 0, statfs(a, &f));
    R("statfs64", a, 0, 0, 0, statfs64(a, &f64));
    R("fstatfs", a, 0, 0, 0, fstatfs(fd, &f));
    R("fstatfs64", a, 0, 0, 0, fstatfs64(fd, &f64));
    R("close", a, 0, 0, 0, close(fd));
    R("close", here, 0, 0, 0, close(folder));
}

static void links(void)
{
    char to[4096];
    const char *a = P("a"), *l = P("link");
    int folder = R("open", here, 0, 0, O_DIRECTORY, open(here, O_DIRECTORY));
    RT("symlink", a, 0, 0, l, symlink(a, l));
    R("readlink", l, 100, 0, 0, readlink(l, to, 100));
    R("readlink", a, 100, 0, 0, readlink(a, to, 100));
    R("readlinkat", l, 100, 0, 0, readlinkat(folder, "link", to, 100));
    R("__readlink_chk", l, 100, 0, 0, HIDDEN(ssize_t, "__readlink_chk", const char *, char *, size_t, size_t)(l, to, 100, 4096));
    R("__readlinkat_chk", l, 100, 0, 0, HIDDEN(ssize_t, "__readlinkat_chk", int, const char *, char *, size_t, size_t)(folder, "link", to, 100, 4096));
    errno = 0;
    must(realpath(l, to) == to, "realpath");
    say("realpath", l, 0, 0, 0, 0, 0);
    must(!realpath(P("missing"), to), "realpath");
    say("realpath", P("missing"), 0, 0, 0, 0, ENOENT);
    must(HIDDEN(char *, "__realpath_chk", const char *, char *, size_t)(l, to, 4096) == to, "realpath");
    say("__realpath_chk", l, 0, 0, 0, 0, 0);
    RT("symlinkat", a, 0, 0, P("link2"), symlinkat(a, folder, "link2"));
    RT("link", a, 0, 0, P("hard"), link(a, P("hard")));
    /* The first path is not there, so the kernel does not look at the second one. */
    RT("link", P("missing"), 0, 0, "", link(P("missing"), BAD));
    RT("linkat", a, AT_SYMLINK_FOLLOW, 0, P("hard2"), linkat(folder, "a", folder, "hard2", AT_SYMLINK_FOLLOW));
    RT("rename", P("hard"), 0, 0, P("hard3"), rename(P("hard"), P("hard3")));
    RT("renameat", P("hard3"), 0, 0, P("hard4"), renameat(folder, "hard3", AT_FDCWD, P("hard4")));
    RT("renameat2", P("hard4"), RENAME_NOREPLACE, 0, a, renameat2(folder, "hard4", folder, "a", RENAME_NOREPLACE));
    R("unlink", P("hard4"), 0, 0, 0, unlink(P("hard4")));
    R("unlinkat", P("hard2"), 0, 0, 0, unlinkat(folder, "hard2", 0));
    R("remove", P("link2"), 0, 0, 0, remove(P("link2")));
    R("unlink", l, 0, 0, 0, unlink(l));
    R("unlink", l, 0, 0, 0, unlink(l));
    R("close", here, 0, 0, 0, close(folder));
}

static void names(void)
{
    const char *a = P("a");
    struct timespec times[2] = {{1000, 0}, {2000, 0}};
    struct timeval times_us[2] = {{1000, 0}, {2000, 0}};
    struct utimbuf seconds = {1000, 2000};
    dev_t device = 0;
    int fd = R("open", a, 0, 0, O_RDWR, open(a, O_RDWR));
    int folder = R("open", here, 0, 0, O_DIRECTORY, open(here, O_DIRECTORY));
    R("mkdir", P("d"), 0, 0, 0750, mkdir(P("d"), 0750));
    R("mkdir", P("d"), 0, 0, 0750, mkdir(P("d"), 0750));
    R("mkdirat", P("d/e"), 0, 0, 0700, mkdirat(folder, "d/e", 0700));
    R("rmdir", P("d"), 0, 0, 0, rmdir(P("d")));
    R("rmdir", P("d/e"), 0, 0, 0, rmdir(P("d/e")));
    R("unlinkat", P("d"), 0, 0, AT_REMOVEDIR, unlinkat(folder, "d", AT_REMOVEDIR));
    R("mkfifo", P("f"), 0, 0, 0600, mkfifo(P("f"), 0600));
    R("mkfifoat", P("f2"), 0, 0, 0600, mkfifoat(folder, "f2", 0600));
    R("mknod", P("n"), 0, 0, S_IFREG | 0600, mknod(P("n"), S_IFREG | 0600, 0));
    R("mknodat", P("n2"), 0, 0, S_IFREG | 0600, mknodat(folder, "n2", S_IFREG | 0600, 0));
    R("__xmknod", P("n3"), 0, 0, S_IFREG | 0600, HIDDEN(int, "__xmknod", int, const char *, mode_t, dev_t *)(0, P("n3"), S_IFREG | 0600, &device));
    R("chmod", a, 0, 0, 0644, chmod(a, 0644));
    R("fchmod", a, 0, 0, 0600, fchmod(fd, 0600));
    R("fchmodat", a, 0, 0, 0640, fchmodat(folder, "a", 0640, 0));
    R("chown", a, U(-1), 0, U(-1), chown(a, -1, -1));
    R("lchown", a, U(-1), 0, U(-1), lchown(a, -1, -1));
    R("fchown", a, U(-1), 0, U(-1), fchown(fd, -1, -1));
    R("fchownat", a, U(-1), 0, U(-1), fchownat(folder, "a", -1, -1, 0));
    R("truncate", a, 5000, 0, 0, truncate(a, 5000));
    R("truncate64", a, 6000, 0, 0, truncate64(a, 6000));
    R("truncate", "", (uint64_t)-1, 0, 0, truncate(BAD, -1));
    R("ftruncate", a, 7000, 0, 0, ftruncate(fd, 7000));
    R("ftruncate64", a, 8192, 0, 0, ftruncate64(fd, 8192));
    R("utime", a, 0, 0, 0, utime(a, &seconds));
    R("utimes", a, 0, 0, 0, utimes(a, times_us));
    R("utimensat", a, 0, 0, 0, utimensat(folder, "a", times, 0));
    R("futimens", a, 0, 0, 0, futimens(fd, times));
    RE("posix_fallocate", a, 100, 10, 0, posix_fallocate(fd, 10, 100));
    RE("posix_fallocate64", a, 100, 10, 0, posix_fallocate64(fd, 10, 100));
    RE("posix_fallocate", "", 100, 10, 0, posix_fallocate(-1, 10, 100));
    R("fallocate", a, 100, 10, FALLOC_FL_KEEP_SIZE, fallocate(fd, FALLOC_FL_KEEP_SIZE, 10, 100));
    R("fallocate64", a, 100, 10, 0, fallocate64(fd, 0, 10, 100));
    char value[16];
    R("setxattr", a, 3, 0, 0, setxattr(a, "user.x", "abc", 3, 0));
    R("lsetxattr", a, 3, 0, XATTR_REPLACE, lsetxattr(a, "user.x", "abc", 3, XATTR_REPLACE));
    R("fsetxattr", a, 3, 0, XATTR_CREATE, fsetxattr(fd, "user.x", "abc", 3, XATTR_CREATE));
    R("getxattr", a, 16, 0, 0, getxattr(a, "user.x", value, 16));
    R("lgetxattr", a, 1, 0, 0, lgetxattr(a, "user.x", value, 1));
    R("fgetxattr", a, 16, 0, 0, fgetxattr(fd, "user.y", value, 16));
    R("listxattr", a, 16, 0, 0, listxattr(a, value, 16));
    R("llistxattr", a, 16, 0, 0, llistxattr(a, value, 16));
    R("flistxattr", a, 16, 0, 0, flistxattr(fd, value, 16));
    static const char *const left[] = {"f", "f2", "n", "n2", "n3", 0};
    for (int i = 0; left[i]; i++)
        R("unlink", P(left[i]), 0, 0, 0, unlink(P(left[i])));
    R("close", a, 0, 0, 0, close(fd));
    R("close", here, 0, 0, 0, close(folder));
}

static void listings(void)
{
    char bytes[4096];
    DIR *all = RF("opendir", here, opendir(here));
    struct dirent *entry;
    do {
        entry = readdir(all);
        say("readdir", here, 0, 0, 0, entry != 0, 0);
    } while (entry);
    RV("rewinddir", here, rewinddir(all));
    struct dirent64 *wide;
    do {
        errno = 0;
        wide = readdir64(all);
        must(errno == 0, "readdir64 changes errno at the end");
        say("readdir64", here, 0, 0, 0, wide != 0, 0);
    } while (wide);
    R("closedir", here, 0, 0, 0, closedir(all));
    RF("opendir", P("missing"), opendir(P("missing")));
    int fd = R("open", here, 0, 0, O_DIRECTORY, open(here, O_DIRECTORY));
    R("getdents64", here, 4096, 0, 0, getdents64(fd, bytes, 4096));
    all = RF("fdopendir", here, fdopendir(fd));
    R("closedir", here, 0, 0, 0, closedir(all));
    struct dirent **list;
    int count = R("scandir", here, 0, 0, 0, scandir(here, &list, 0, alphasort));
    while (count-- > 0)
        free(list[count]);
    struct dirent64 **wide_list;
    count = R("scandir64", here, 0, 0, 0, scandir64(here, &wide_list, 0, alphasort64));
    while (count-- > 0)
        free(wide_list[count]);
}

static void maps(void)
{
    const char *a = P("a"), *b = P("b");
    int fd = R("open", a, 0, 0, O_RDWR, open(a, O_RDWR));
    char *place = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(place != MAP_FAILED, "mmap");
    say("mmap", a, 8192, 0, MAP_SHARED, varying((int64_t)place), 0);
    R("close", a, 0, 0, 0, close(fd));
    place[5000] = 1;
    R("msync", a, 4096, varying((int64_t)place + 4096), MS_SYNC, msync(place + 4096, 4096, MS_SYNC));
    R("madvise", a, 8192, varying((int64_t)place), MADV_SEQUENTIAL, madvise(place, 8192, MADV_SEQUENTIAL));
    R("munmap", a, 8192, varying((int64_t)place + 1), 0, munmap(place + 1, 8192));
    char *moved = mremap(place, 8192, 4096, MREMAP_MAYMOVE);
    must(moved != MAP_FAILED, "mremap");
    say("mremap", a, 4096, varying((int64_t)place), MREMAP_MAYMOVE, varying((int64_t)moved), 0);
    R("munmap", a, 4096, varying((int64_t)moved), 0, munmap(moved, 4096));
    /* Memory of the program's own, none of it recorded, in the place of a file and beside it. */
    fd = R("open", b, 0, 0, O_RDWR, open(b, O_RDWR));
    R("ftruncate", b, 20000, 0, 0, ftruncate(fd, 20000));
    place = mmap64(0, 16384, PROT_READ, MAP_PRIVATE, fd, 4096);
    must(place != MAP_FAILED, "mmap64");
    say("mmap64", b, 16384, 4096, MAP_PRIVATE, varying((int64_t)place), 0);
    must(mmap(place + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place + 4096, "mmap");
    must(munmap(place + 4096, 4096) == 0, "munmap");
    R("munmap", b, 4096, varying((int64_t)place), 0, munmap(place, 4096));
    R("munmap", b, 8192, varying((int64_t)place + 8192), 0, munmap(place + 8192, 8192));
    /* What is unmapped may be another thread's by now. */
    if (alone)
        must(munmap(place, 16384) == 0, "munmap");
    R("mmap", b, 0, 0, MAP_PRIVATE, mmap(0, 0, PROT_READ, MAP_PRIVATE, fd, 0));
    R("close", b, 0, 0, 0, close(fd));
    R("mmap", "", 4096, 0, MAP_PRIVATE, mmap(0, 4096, PROT_READ, MAP_PRIVATE, -1, 0));
}

static void files(void)
{
    opens();
    temporaries();
    moves();
    copies();
    stats();
    links();
    names();
    listings();
    maps();
}

/* What is the whole process's: its folder, ranges of descriptors, the machine's disks. */
static void folders_alone(void)
{
    char bytes[8];
    R("chdir", here, 0, 0, 0, chdir(here));
    R("mkdir", P("sub"), 0, 0, 0755, mkdir("sub", 0755));
    int fd = R("open", P("a"), 0, 0, O_RDONLY, open("a", O_RDONLY));
    int up = R("open", P("."), 0, 0, O_DIRECTORY, open(".", O_DIRECTORY));
    R("chdir", P("sub"), 0, 0, 0, chdir("sub"));
    R("chdir", P("sub/missing"), 0, 0, 0, chdir("missing"));
    R("access", P("sub/../a"), 0, 0, F_OK, access("../a", F_OK));
    R("read", P("a"), 8, 0, 0, read(fd, bytes, 8));
    int other = R("openat", P("./a"), 0, 0, O_RDONLY, openat(up, "a", O_RDONLY));
    R("fchdir", P("."), 0, 0, 0, fchdir(up));
    R("access", P("a"), 0, 0, F_OK, access("a", F_OK));
    R("syncfs", P("a"), 0, 0, 0, syncfs(fd));
    RV("sync", "", sync());
    R("close_range", "", other, 0, 0, close_range(other, other, 0));
    R("close_range", "", 1, 0, 0, close_range(2, 1, 0));
    fd = R("dup2", P("a"), 0, 0, 200, dup2(fd, 200));
    closefrom(200);
    R("read", "", 8, 0, 0, read(200, bytes, 8));
    R("close", P("."), 0, 0, 0, close(up));
    /* Inherited: the kernel knows its name. */
    R("read", P("in"), 2, 0, 0, read(0, bytes, 2));
}
