/* The program's own account of its calls, one line each, in memory until it is written by system calls
 * that go past the C library's symbols. Fields: thread, name, path, size, offset, argument, result, errno. */
#ifndef LOG_H
#define LOG_H
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOG_BYTES (1 << 20)
#ifndef ROOMS
#define ROOMS 64
#endif

/* With this set, what differs from run to run (addresses, process numbers, random names) is left out. */
static int stable;
static char log_folder[1024];
static _Thread_local char *log_text;
static _Thread_local size_t log_length;

/* A path below the thread's own folder; good for the next ROOMS calls. */
static _Thread_local const char *here;
static const char *below(const char *folder, const char *name)
{
    static _Thread_local char rooms[ROOMS][512];
    static _Thread_local unsigned next;
    char *room = rooms[next++ % ROOMS];
    snprintf(room, 512, "%s/%s", folder, name);
    return room;
}
#define P(name) below(here, name)

/* What the kernel calls a descriptor's file. */
static const char *link_of(int fd)
{
    static _Thread_local char rooms[ROOMS][512];
    static _Thread_local unsigned next;
    char *room = rooms[next++ % ROOMS];
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, path, room, 511);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

static void line(const char *format, ...)
{
    if (!log_text) {
        log_text = (char *)syscall(SYS_mmap, 0, (long)LOG_BYTES, 3L, 0x22L, -1L, 0L);
        log_length = 0;
    }
    va_list values;
    va_start(values, format);
    log_length += vsnprintf(log_text + log_length, LOG_BYTES - log_length, format, values);
    va_end(values);
    if (log_length + 4096 > LOG_BYTES)
        syscall(SYS_exit_group, 99);
}

/* A call whose other argument is a path, or none. */
static void say_to(const char *name, const char *path, uint64_t size, int64_t offset, const char *arg,
                   int64_t result, int error)
{
    line("%ld\t%s\t%s\t%" PRIu64 "\t%" PRId64 "\t%s\t%" PRId64 "\t%d\n",
         stable ? 0 : syscall(SYS_gettid), name, path, size, offset, arg, result, error);
}

static void say(const char *name, const char *path, uint64_t size, int64_t offset, uint64_t arg,
                int64_t result, int error)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, arg);
    say_to(name, path, size, offset, text, result, error);
}

/* Adds this thread's lines to the process's file. */
static void flush_log(void)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%ld.log", log_folder, syscall(SYS_getpid));
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || syscall(SYS_write, fd, log_text, log_length) != (long)log_length)
        syscall(SYS_exit_group, 98);
    syscall(SYS_close, fd);
    log_length = 0;
}

/* Makes a call, logs it, gives its result. `errno` is set before, to see that it is left alone. */
#define R(name, path, size, offset, arg, call)                                                       \
    ({                                                                                               \
        const char *path_ = (path);                                                                  \
        errno = 0;                                                                                   \
        int64_t result_ = (int64_t)(call);                                                           \
        int error_ = errno;                                                                          \
        say(name, path_, size, offset, arg, result_, result_ == -1 ? error_ : 0);                     \
        result_;                                                                                     \
    })
/* The same where the other argument is a path. */
#define RT(name, path, size, offset, arg, call)                                                      \
    ({                                                                                               \
        const char *path_ = (path);                                                                  \
        errno = 0;                                                                                   \
        int64_t result_ = (int64_t)(call);                                                           \
        int error_ = errno;                                                                          \
        say_to(name, path_, size, offset, arg, result_, result_ == -1 ? error_ : 0);                  \
        result_;                                                                                     \
    })
/* The same where the result is the error. */
#define RE(name, path, size, offset, arg, call)                                                      \
    ({                                                                                               \
        const char *path_ = (path);                                                                  \
        errno = 0;                                                                                   \
        int64_t result_ = (int64_t)(call);                                                           \
        say(name, path_, size, offset, arg, result_, (int)result_);                                   \
        result_;                                                                                     \
    })
/* A call without a result. */
#define RV(name, path, call)                                                                         \
    ({                                                                                               \
        call;                                                                                        \
        say(name, path, 0, 0, 0, 0, 0);                                                              \
    })
/* A call that gives a stream or a folder, logged by its descriptor. */
#define RF(name, path, call)                                                                         \
    ({                                                                                               \
        errno = 0;                                                                                   \
        __typeof__(call) made_ = (call);                                                             \
        int error_ = errno;                                                                          \
        int fd_ = -1;                                                                                \
        if (made_)                                                                                   \
            fd_ = _Generic(made_, FILE *: fileno, DIR *: dirfd)((void *)made_);                      \
        say(name, path, 0, 0, 0, fd_, made_ ? 0 : error_);                                           \
        made_;                                                                                       \
    })

static int64_t varying(int64_t value)
{
    return stable ? 0 : value;
}

static void must(int is_so, const char *what)
{
    if (!is_so) {
        syscall(SYS_write, 2, what, strlen(what));
        syscall(SYS_write, 2, "\n", 1);
        syscall(SYS_exit_group, 97);
    }
}

#endif
