/* Programs in need: harmless MODE FOLDER [COUNT]. Says on standard output what it did and got. */
#include <dirent.h>
#define ROOMS 1
#include "log.h"
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static long allocations;
void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *place, size_t size)
{
    allocations++;
    return __libc_realloc(place, size);
}
void free(void *place)
{
    allocations++;
    __libc_free(place);
}

static const char *folder;
static int file;
static char bytes[64];
static void *volatile nowhere = (void *)8;

static void reads(long count)
{
    for (long i = 0; i < count; i++)
        must(pread(file, bytes, 8, i % 8) == 8, "pread");
}

static void limit(int what, rlim_t to)
{
    struct rlimit limit;
    getrlimit(what, &limit);
    limit.rlim_cur = to;
    must(setrlimit(what, &limit) == 0, "setrlimit");
}

/* Opens, names and reads that take segments, and no memory. */
static void memory(long count)
{
    long before = allocations;
    for (long i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/missing-%ld", folder, i);
        must(open(name, O_RDONLY) < 0, "open");
        reads(20);
    }
    printf("allocations %ld of %ld\n", allocations - before, before);
}

static volatile long handled;
static void on_signal(int number)
{
    pread(file, bytes, 8, 0);
    handled++;
}

static void *small(void *count)
{
    /* The smallest stack for signals, with a page below that must not be touched. */
    size_t size = (sysconf(_SC_MINSIGSTKSZ) + 2048 + 4095) / 4096 * 4096;
    char *place = mmap(0, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(place, 4096, PROT_NONE);
    stack_t stack = {.ss_sp = place + 4096, .ss_size = size};
    must(sigaltstack(&stack, 0) == 0, "sigaltstack");
    for (long i = 0; i < (long)count; i++) {
        syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGUSR1);
        reads(1);
    }
    return 0;
}

static void stacks(long count)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0, "setstacksize");
    pthread_t thread;
    must(pthread_create(&thread, &attributes, small, (void *)count) == 0, "pthread_create");
    pthread_join(thread, 0);
    printf("handled %ld\n", handled);
}

static void no_descriptors(long count)
{
    int made[64], n = 0;
    limit(RLIMIT_NOFILE, 64);
    while ((made[n] = dup(file)) >= 0)
        n++;
    printf("descriptors %d errno %d\n", n, errno);
    reads(count);
    printf("last %d\n", made[n - 1]);
    for (int i = 0; i < n; i++)
        close(made[i]);
    printf("next %d\n", dup(file));
    /* `dup` n times and once in vain, as many `close`, and once more. */
    printf("made %ld\n", 1 + n + 1 + count + n + 1);
}

static void small_files(long count)
{
    limit(RLIMIT_FSIZE, 65536);
    signal(SIGXFSZ, SIG_IGN);
    reads(count);
    errno = 0;
    ssize_t written = pwrite(file, bytes, 64, 65536);
    printf("write %zd errno %d\n", written, errno);
    printf("made %ld\n", 1 + count + 1);
}

static void small_memory(long count)
{
    limit(RLIMIT_AS, 0);
    reads(count);
    errno = 0;
    void *place = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    printf("mmap %d errno %d\n", place != MAP_FAILED, errno);
    limit(RLIMIT_AS, RLIM_INFINITY);
    printf("made %ld\n", 1 + count + 1);
}

/* Calls of known sizes on three files, for filters and summaries. */
static void mixed(const char *ending)
{
    int wanted = open(below(folder, "keep/a.npz"), O_RDONLY);
    int unwanted = open(below(folder, "skip/b.txt"), O_RDONLY);
    FILE *stream = fopen(below(folder, "skip/s.txt"), "w");
    must(wanted >= 0 && unwanted >= 0 && stream, "open");
    for (int i = 0; i < 1000; i++) {
        pread(wanted, bytes, 8, i % 16);
        if (i % 4 == 0)
            pread(unwanted, bytes, 4, 0);
        if (i % 10 == 0)
            pread(wanted, nowhere, 8, 0);
    }
    for (int i = 0; i < 100; i++)
        fputc('x', stream);
    if (!strcmp(ending, "kill"))
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    /* A wanted descriptor becomes an unwanted file, and the other way round. */
    int third = dup(wanted);
    dup2(unwanted, third);
    pread(third, bytes, 2, 0);
    dup2(wanted, third);
    pread(third, bytes, 3, 0);
    close(third);
    fclose(stream);
    close(unwanted);
    close(wanted);
}

int main(int count, char **args)
{
    must(count >= 3, "usage: harmless MODE FOLDER [COUNT]");
    const char *mode = args[1];
    long n = count > 3 ? atol(args[3]) : 0;
    folder = args[2];
    setvbuf(stdout, __libc_malloc(4096), _IOFBF, 4096);
    if (!strcmp(mode, "mixed")) {
        mixed(args[3]);
        return 0;
    }
    file = open(below(folder, "file"), O_RDWR);
    must(file >= 0, "open");
    if (!strcmp(mode, "memory"))
        memory(n);
    else if (!strcmp(mode, "stacks"))
        stacks(n);
    else if (!strcmp(mode, "no_descriptors"))
        no_descriptors(n);
    else if (!strcmp(mode, "small_files"))
        small_files(n);
    else if (!strcmp(mode, "small_memory"))
        small_memory(n);
    else if (!strcmp(mode, "reads")) {
        reads(n);
        printf("made %ld\n", 1 + n);
    } else
        must(0, "no such mode");
    return 0;
}
