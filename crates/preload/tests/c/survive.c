/* Programs that end badly, or are disturbed all the time. survive MODE FOLDER [N [HOW]]
 * What a program did stands in the file `shared` of its folder, whatever becomes of the program. */
#include <dirent.h>
#include "log.h"
#include <pthread.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;
#define THREADS 4

/* Reads that came back, by thread or by signal; for `jump`, one by one. */
static volatile uint32_t *shared;
static int file, other, third;
static char bytes[16];

static long pid_now(void)
{
    return syscall(SYS_getpid);
}

static void share(const char *folder)
{
    int fd = syscall(SYS_openat, AT_FDCWD, below(folder, "shared"), O_RDWR | O_CREAT, 0644);
    must(fd >= 0 && syscall(SYS_ftruncate, fd, 1L << 20) == 0, "shared");
    shared = (void *)syscall(SYS_mmap, 0L, 1L << 20, 3L, (long)MAP_SHARED, (long)fd, 0L);
    syscall(SYS_close, fd);
}

static int opened(const char *folder, const char *name)
{
    int fd = open(below(folder, name), O_RDWR | O_CREAT, 0644);
    must(fd >= 0, "open");
    return fd;
}

static void reads(int fd, long count)
{
    for (long i = 0; i < count; i++)
        pread(fd, bytes, 8, i);
}

static void die(const char *how)
{
    static char *const args[] = {"true", 0};
    if (!strcmp(how, "kill"))
        syscall(SYS_kill, pid_now(), SIGKILL);
    if (!strcmp(how, "term"))
        syscall(SYS_kill, pid_now(), SIGTERM);
    if (!strcmp(how, "segv"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exit_group"))
        syscall(SYS_exit_group, 5);
    if (!strcmp(how, "_exit"))
        _exit(5);
    if (!strcmp(how, "quick_exit"))
        quick_exit(5);
    if (!strcmp(how, "exec"))
        execv("/bin/true", args);
    must(0, "still alive");
}

static void *counted(void *number)
{
    long me = (long)number;
    for (uint32_t i = 0;; i++) {
        pread(file, bytes, 8, i);
        shared[me * 16] = i + 1;
        if (shared[200])
            return 0;
    }
}

static void start(pthread_t *threads, int count, void *(*work)(void *))
{
    for (long i = 0; i < count; i++)
        must(pthread_create(&threads[i], 0, work, (void *)i) == 0, "pthread_create");
}

static void threads_die(long count)
{
    pthread_t threads[THREADS];
    start(threads, THREADS, counted);
    for (;;) {
        long least = 1L << 30;
        for (int i = 0; i < THREADS; i++)
            least = shared[i * 16] < least ? shared[i * 16] : least;
        if (least > count)
            syscall(SYS_kill, pid_now(), SIGKILL);
        sched_yield();
    }
}

/* Handlers that read, and open files whose names nobody has seen, in the middle of reads. */
static void on_signal(int number)
{
    int error = errno, which = number == SIGALRM ? 1 : 2;
    uint32_t i = shared[which * 16];
    shared[which * 16] = i + 1;
    if (i % 64 == 0) {
        char name[32];
        snprintf(name, sizeof name, "/missing/%d/%u", which, i);
        open(name, O_RDONLY);
    }
    pread(which == 1 ? other : third, bytes, 8, i);
    errno = error;
}

/* Two timers that go off every few microseconds while this thread runs. */
static timer_t timers[2];
static void begin_storm(void (*handler)(int))
{
    static const int signals[2] = {SIGALRM, SIGUSR1};
    struct sigaction action = {.sa_handler = handler};
    for (int i = 0; i < 2; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signals[i]};
        struct itimerspec often = {{0, 13000 + i * 4000}, {0, 13000}};
        sigaction(signals[i], &action, 0);
        must(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0, "timer_create");
        timer_settime(timers[i], 0, &often, 0);
    }
}

static void end_storm(void)
{
    for (int i = 0; i < 2; i++)
        timer_delete(timers[i]);
}

static void disturbed(long signals)
{
    begin_storm(on_signal);
    for (uint32_t i = 0; shared[16] + shared[32] < signals; i++) {
        pread(file, bytes, 8, i);
        shared[0] = i + 1;
    }
    end_storm();
}

static sigjmp_buf back;
static volatile int may_jump;
static void on_jump(int number)
{
    if (may_jump)
        siglongjmp(back, 1);
}

static void jumps(long count)
{
    begin_storm(on_jump);
    for (volatile uint32_t i = 0; i < count; i++) {
        if (sigsetjmp(back, 1) == 0) {
            may_jump = 1;
            pread(file, bytes, 8, i);
            may_jump = 0;
            shared[1024 + i] = 1;
        } else {
            may_jump = 0;
            shared[201]++;
        }
    }
    end_storm();
}

static void cleaned(void *unused)
{
    shared[0] = 1;
    pread(file, bytes, 8, 77);
}

static int empty[2];
static void *blocked(void *unused)
{
    pthread_cleanup_push(cleaned, 0);
    shared[1] = 1;
    read(empty[0], bytes, 8);
    pthread_cleanup_pop(0);
    return 0;
}

static void *blocked_stream(void *unused)
{
    pthread_cleanup_push(cleaned, 0);
    shared[1] = 1;
    FILE *stream = fdopen(empty[0], "r");
    fgetc(stream);
    pthread_cleanup_pop(0);
    return 0;
}

static void canceled(void *(*work)(void *))
{
    pthread_t thread;
    void *result = 0;
    must(pipe(empty) == 0, "pipe");
    shared[0] = shared[1] = 0;
    start(&thread, 1, work);
    while (!shared[1])
        sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("canceled %d cleaned %u\n", result == PTHREAD_CANCELED, shared[0]);
}

static void raw_forks(void)
{
    int status;
    reads(file, 3);
    pid_t pid = syscall(SYS_fork);
    if (pid == 0) {
        reads(file, 5);
        syscall(SYS_exit_group, 0);
    }
    syscall(SYS_wait4, pid, &status, 0, 0);
    pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        reads(file, 6);
        syscall(SYS_exit_group, 0);
    }
    syscall(SYS_wait4, pid, &status, 0, 0);
    reads(file, 4);
}

static void forks_among_threads(long count)
{
    pthread_t threads[THREADS];
    int status;
    start(threads, THREADS, counted);
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            reads(other, 3);
            _exit(0);
        }
        must(waitpid(pid, &status, 0) == pid && status == 0, "child");
    }
    shared[200] = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
}

static void *one_read(void *number)
{
    pread(file, bytes, 8, (long)number);
    return 0;
}

static void short_threads(long count)
{
    pthread_t threads[8];
    for (long i = 0; i < count; i += 8) {
        for (long k = 0; k < 8; k++)
            must(pthread_create(&threads[k], 0, one_read, (void *)(i + k)) == 0, "pthread_create");
        for (int k = 0; k < 8; k++)
            pthread_join(threads[k], 0);
    }
}

int main(int count, char **args)
{
    must(count >= 3, "usage: survive MODE FOLDER [N [HOW]]");
    const char *mode = args[1], *folder = args[2];
    long n = count > 3 ? atol(args[3]) : 0;
    share(folder);
    file = opened(folder, "file");
    other = opened(folder, "other");
    third = opened(folder, "third");
    if (!strcmp(mode, "die")) {
        reads(file, n);
        die(args[4]);
    } else if (!strcmp(mode, "threads_die"))
        threads_die(n);
    else if (!strcmp(mode, "disturbed"))
        disturbed(n);
    else if (!strcmp(mode, "jumps"))
        jumps(n);
    else if (!strcmp(mode, "cancel")) {
        canceled(blocked);
        canceled(blocked_stream);
    } else if (!strcmp(mode, "raw_forks"))
        raw_forks();
    else if (!strcmp(mode, "forks"))
        forks_among_threads(n);
    else if (!strcmp(mode, "short"))
        short_threads(n);
    else
        must(0, "no such mode");
    return 0;
}
