/* Reads a file over and over in threads and prints the CPU time of a call, in nanoseconds, of each
 * thread: what a tracer adds is the difference to a run without it.
 * usage: preads FILE CALLS THREADS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 4096, MOST_THREADS = 64 };

static const char *path;
static long calls;

static double cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void *work(void *result) {
    static __thread char block[BLOCK];
    int fd = open(path, O_RDONLY);
    double start = cpu_ns();
    for (long call = 0; call < calls; call++) {
        if (pread(fd, block, BLOCK, call % BLOCKS * BLOCK) != BLOCK) {
            perror(path);
            exit(1);
        }
    }
    *(double *)result = (cpu_ns() - start) / calls;
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST_THREADS];
    double results[MOST_THREADS];
    int count = argc == 4 ? atoi(argv[3]) : 0;
    if (count < 1 || count > MOST_THREADS) {
        fprintf(stderr, "usage: preads FILE CALLS THREADS\n");
        return 2;
    }
    path = argv[1];
    calls = atol(argv[2]);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, &results[i]);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        printf("%.1f\n", results[i]);
    }
    return 0;
}
