/* A slow store below any program: preloaded, it makes the calls on data files take time.
 *
 *   gcc -O2 -shared -fPIC -o store_shim.so store_shim.c -ldl
 *   STORE_SHIM_FOLDER=/data LD_PRELOAD=./store_shim.so program
 *
 *   STORE_SHIM_FOLDER      files below this folder are the store; nothing else is touched
 *   STORE_SHIM_LATENCY_US  added to every open, read and pread (also those that return nothing)
 *   STORE_SHIM_RATE        bytes per second of all processes together that share the state
 *   STORE_SHIM_STATE       file with the counts and the bucket; made if missing
 *
 * It sees calls that go through the dynamic linker: those of CPython, Rust, libhdf5 and TensorFlow, but not
 * reads inside of libc (np.fromfile reads through a C FILE). stat costs nothing here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_DESCRIPTORS 65536
/* What a bucket holds while nobody reads, as time. */
#define BURST_NS 5000000LL

/* Layout of the state file; bench/fidelity.py reads the counts. */
struct state {
    _Atomic uint64_t opens, reads, preads, bytes;
    _Atomic int64_t free_at_ns;
};

static struct state unshared, *state = &unshared;
static char folder[4096];
static size_t folder_length;
static int64_t latency_ns;
static double ns_per_byte;
static _Atomic char held[MOST_DESCRIPTORS];

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_readv)(int, const struct iovec *, int);
static ssize_t (*real_preadv)(int, const struct iovec *, int, off_t);
static int (*real_dup)(int);
static int (*real_dup2)(int, int);
static int (*real_dup3)(int, int, int);
static int (*real_fcntl)(int, int, ...);

static void share(const char *path) {
    int fd = real_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (ftruncate(fd, sizeof *state) == 0) {
        void *place = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (place != MAP_FAILED) state = place;
    }
    real_close(fd);
}

/* Other libraries call before the constructor runs, so every wrapper asks for it. */
static void prepare(void) {
    static _Atomic int prepared;
    if (atomic_load(&prepared)) return;
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_read = dlsym(RTLD_NEXT, "read");
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_readv = dlsym(RTLD_NEXT, "readv");
    real_preadv = dlsym(RTLD_NEXT, "preadv64");
    real_dup = dlsym(RTLD_NEXT, "dup");
    real_dup2 = dlsym(RTLD_NEXT, "dup2");
    real_dup3 = dlsym(RTLD_NEXT, "dup3");
    real_fcntl = dlsym(RTLD_NEXT, "fcntl64");
    if (!real_fcntl) real_fcntl = dlsym(RTLD_NEXT, "fcntl");
    const char *text = getenv("STORE_SHIM_FOLDER");
    if (text && strlen(text) < sizeof folder - 1) {
        strcpy(folder, text);
        folder_length = strlen(folder);
        if (folder_length && folder[folder_length - 1] != '/') {
            folder[folder_length++] = '/';
            folder[folder_length] = 0;
        }
    }
    if ((text = getenv("STORE_SHIM_LATENCY_US"))) latency_ns = (int64_t)(atof(text) * 1e3);
    if ((text = getenv("STORE_SHIM_RATE")) && atof(text) > 0) ns_per_byte = 1e9 / atof(text);
    if ((text = getenv("STORE_SHIM_STATE"))) share(text);
    atomic_store(&prepared, 1);
}

__attribute__((constructor)) static void start(void) { prepare(); }

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(int64_t at_ns) {
    struct timespec at = {at_ns / 1000000000LL, at_ns % 1000000000LL};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
}

static int is_held(int fd) {
    return fd >= 0 && fd < MOST_DESCRIPTORS && atomic_load_explicit(&held[fd], memory_order_relaxed);
}

static void hold(int fd, int is_data) {
    if (fd >= 0 && fd < MOST_DESCRIPTORS) atomic_store(&held[fd], is_data);
}

/* Waits for one call, then for its bytes; all processes draw on one bucket. */
static void charge(int64_t began_ns, ssize_t bytes) {
    int kept = errno;
    if (latency_ns) sleep_until(began_ns + latency_ns);
    if (bytes > 0) {
        atomic_fetch_add(&state->bytes, bytes);
        if (ns_per_byte > 0) {
            int64_t cost = (int64_t)(bytes * ns_per_byte), free_at = atomic_load(&state->free_at_ns), next;
            do {
                int64_t earliest = now_ns() - BURST_NS;
                next = (free_at > earliest ? free_at : earliest) + cost;
            } while (!atomic_compare_exchange_weak(&state->free_at_ns, &free_at, next));
            if (next > now_ns()) sleep_until(next);
        }
    }
    errno = kept;
}

static int opened(int fd, const char *path, int64_t began_ns) {
    if (fd < 0 || !folder_length) return fd;
    int kept = errno;
    char link[64], target[4096];
    int is_data = 0;
    if (path[0] == '/') {
        is_data = strncmp(path, folder, folder_length) == 0;
    } else {
        /* Relative to a folder that only the kernel knows for sure. */
        strcpy(link, "/proc/self/fd/");
        char digits[16];
        int length = 0, rest = fd;
        do digits[length++] = '0' + rest % 10; while (rest /= 10);
        for (int i = 0; i < length; i++) link[14 + i] = digits[length - 1 - i];
        link[14 + length] = 0;
        ssize_t size = readlink(link, target, sizeof target - 1);
        if (size > 0) {
            target[size] = 0;
            is_data = strncmp(target, folder, folder_length) == 0;
        }
    }
    struct stat what;
    if (is_data && fstat(fd, &what) == 0 && S_ISDIR(what.st_mode)) is_data = 0;
    hold(fd, is_data);
    if (is_data) {
        atomic_fetch_add(&state->opens, 1);
        charge(began_ns, 0);
    }
    errno = kept;
    return fd;
}

#define MODE_OF(flags)                                    \
    mode_t mode = 0;                                      \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list rest;                                     \
        va_start(rest, flags);                            \
        mode = va_arg(rest, mode_t);                      \
        va_end(rest);                                     \
    }

int open(const char *path, int flags, ...) {
    prepare();
    MODE_OF(flags)
    int64_t began_ns = now_ns();
    return opened(real_open(path, flags, mode), path, began_ns);
}

int open64(const char *path, int flags, ...) {
    prepare();
    MODE_OF(flags)
    int64_t began_ns = now_ns();
    return opened(real_open(path, flags, mode), path, began_ns);
}

int openat(int at, const char *path, int flags, ...) {
    prepare();
    MODE_OF(flags)
    int64_t began_ns = now_ns();
    return opened(real_openat(at, path, flags, mode), path, began_ns);
}

int openat64(int at, const char *path, int flags, ...) {
    prepare();
    MODE_OF(flags)
    int64_t began_ns = now_ns();
    return opened(real_openat(at, path, flags, mode), path, began_ns);
}

int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }

int close(int fd) {
    prepare();
    hold(fd, 0);
    return real_close(fd);
}

ssize_t read(int fd, void *into, size_t size) {
    prepare();
    if (!is_held(fd)) return real_read(fd, into, size);
    int64_t began_ns = now_ns();
    ssize_t got = real_read(fd, into, size);
    atomic_fetch_add(&state->reads, 1);
    charge(began_ns, got);
    return got;
}

ssize_t __read_chk(int fd, void *into, size_t size, size_t room) {
    (void)room;
    return read(fd, into, size);
}

ssize_t pread64(int fd, void *into, size_t size, off64_t at) {
    prepare();
    if (!is_held(fd)) return real_pread(fd, into, size, at);
    int64_t began_ns = now_ns();
    ssize_t got = real_pread(fd, into, size, at);
    atomic_fetch_add(&state->preads, 1);
    charge(began_ns, got);
    return got;
}

ssize_t pread(int fd, void *into, size_t size, off_t at) { return pread64(fd, into, size, at); }

ssize_t __pread64_chk(int fd, void *into, size_t size, off64_t at, size_t room) {
    (void)room;
    return pread64(fd, into, size, at);
}

ssize_t __pread_chk(int fd, void *into, size_t size, off_t at, size_t room) {
    (void)room;
    return pread64(fd, into, size, at);
}

ssize_t readv(int fd, const struct iovec *into, int count) {
    prepare();
    if (!is_held(fd)) return real_readv(fd, into, count);
    int64_t began_ns = now_ns();
    ssize_t got = real_readv(fd, into, count);
    atomic_fetch_add(&state->reads, 1);
    charge(began_ns, got);
    return got;
}

ssize_t preadv64(int fd, const struct iovec *into, int count, off64_t at) {
    prepare();
    if (!is_held(fd)) return real_preadv(fd, into, count, at);
    int64_t began_ns = now_ns();
    ssize_t got = real_preadv(fd, into, count, at);
    atomic_fetch_add(&state->preads, 1);
    charge(began_ns, got);
    return got;
}

ssize_t preadv(int fd, const struct iovec *into, int count, off_t at) {
    return preadv64(fd, into, count, at);
}

int dup(int fd) {
    prepare();
    int made = real_dup(fd);
    hold(made, is_held(fd));
    return made;
}

int dup2(int fd, int wanted) {
    prepare();
    int made = real_dup2(fd, wanted);
    hold(made, is_held(fd));
    return made;
}

int dup3(int fd, int wanted, int flags) {
    prepare();
    int made = real_dup3(fd, wanted, flags);
    hold(made, is_held(fd));
    return made;
}

static int controlled(int fd, int command, void *argument) {
    prepare();
    int result = real_fcntl(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) hold(result, is_held(fd));
    return result;
}

int fcntl(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled(fd, command, argument);
}
