/* Requests through liburing: uring FOLDER LOGS. With -DPLUGIN it is a library that a host loads. */
#include <dirent.h>
#include "log.h"
#include <liburing.h>

static struct io_uring ring;
static char bytes[4096];
static struct iovec vector = {bytes, 300};

static struct io_uring_sqe *next(uint64_t user_data)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    must(sqe != 0, "no request is free");
    return sqe;
}

/* Logs a request that was just prepared. */
static void prepared(struct io_uring_sqe *sqe, const char *path, uint64_t size, uint64_t user_data)
{
    io_uring_sqe_set_data64(sqe, user_data);
    say("io_uring.submitted", path, size, (int64_t)sqe->off, user_data, sqe->opcode, 0);
}

static void called(const char *name, unsigned wait, int result)
{
    say(name, "", 0, 0, wait, result, result < 0 ? -result : 0);
}

/* Logs and consumes what is in the completion ring, without a call. */
static unsigned consume(void)
{
    unsigned head, count = 0;
    struct io_uring_cqe *cqe;
    io_uring_for_each_cqe(&ring, head, cqe)
    {
        say("io_uring.completed", "", 0, 0, cqe->user_data, cqe->res, cqe->res < 0 ? -cqe->res : 0);
        count++;
    }
    io_uring_cq_advance(&ring, count);
    return count;
}

static void consume_all(unsigned count)
{
    while (count > 0)
        count -= consume();
}

static void requests(const char *path)
{
    struct io_uring_cqe *cqe, *batch[16];
    struct __kernel_timespec time = {10, 0};
    struct io_uring_sqe *sqe;
    int fd = R("open", path, 0600, 0, O_RDWR | O_CREAT, open(path, O_RDWR | O_CREAT, 0600));
    for (int i = 0; i < 4; i++) {
        sqe = next(0);
        io_uring_prep_write(sqe, fd, bytes, 512, i * 512);
        prepared(sqe, path, 512, 100 + i);
    }
    called("io_uring_submit", 0, io_uring_submit(&ring));
    called("__io_uring_get_cqe", 4, __io_uring_get_cqe(&ring, &cqe, 0, 4, 0));
    consume_all(4);
    for (int i = 0; i < 3; i++) {
        sqe = next(0);
        io_uring_prep_read(sqe, fd, bytes, 1000, i * 1000);
        prepared(sqe, path, 1000, 200 + i);
    }
    sqe = next(0);
    io_uring_prep_readv(sqe, fd, &vector, 1, 7);
    prepared(sqe, path, 0, 300);
    sqe = next(0);
    io_uring_prep_nop(sqe);
    prepared(sqe, "", 0, 301);
    sqe = next(0);
    io_uring_prep_read(sqe, -1, bytes, 10, 0);
    prepared(sqe, "", 10, 302);
    called("io_uring_submit_and_wait", 6, io_uring_submit_and_wait(&ring, 6));
    called("io_uring_peek_batch_cqe", 0, io_uring_peek_batch_cqe(&ring, batch, 16));
    consume_all(6);
    called("io_uring_peek_batch_cqe", 0, io_uring_peek_batch_cqe(&ring, batch, 16));
    sqe = next(0);
    io_uring_prep_fsync(sqe, fd, 0);
    prepared(sqe, path, 0, 400);
    called("io_uring_submit_and_wait_timeout", 1, io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &time, 0));
    consume_all(1);
    sqe = next(0);
    io_uring_prep_read(sqe, fd, bytes, 11, -1);
    prepared(sqe, path, 11, 500);
    called("io_uring_submit", 0, io_uring_submit(&ring));
    called("io_uring_wait_cqes", 1, io_uring_wait_cqes(&ring, &cqe, 1, &time, 0));
    consume_all(1);
    sqe = next(0);
    io_uring_prep_read(sqe, fd, bytes, 12, 0);
    prepared(sqe, path, 12, 600);
    called("io_uring_submit_and_get_events", 0, io_uring_submit_and_get_events(&ring));
    called("io_uring_wait_cqe_timeout", 1, io_uring_wait_cqe_timeout(&ring, &cqe, &time));
    consume_all(1);
    time.tv_sec = 0;
    time.tv_nsec = 1000;
    called("io_uring_wait_cqe_timeout", 1, io_uring_wait_cqe_timeout(&ring, &cqe, &time));
    R("close", path, 0, 0, 0, close(fd));
}

/* More completions than the ring holds at once, seen without any call but to submit. */
static void rounds(const char *path)
{
    int fd = R("open", path, 0, 0, O_RDWR, open(path, O_RDWR));
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 5; k++) {
            struct io_uring_sqe *sqe = next(0);
            io_uring_prep_read(sqe, fd, bytes, k, i);
            prepared(sqe, path, k, 1000 + i * 5 + k);
        }
        called("io_uring_submit", 0, io_uring_submit(&ring));
        consume_all(5);
    }
    R("close", path, 0, 0, 0, close(fd));
}

/* A descriptor that the ring closes is another file's soon after. */
static void closed_by_the_ring(const char *path, const char *other)
{
    int fd = R("open", path, 0, 0, O_RDWR, open(path, O_RDWR));
    struct io_uring_sqe *sqe = next(0);
    io_uring_prep_close(sqe, fd);
    prepared(sqe, path, 0, 700);
    called("io_uring_submit_and_wait", 1, io_uring_submit_and_wait(&ring, 1));
    consume_all(1);
    int pair[2];
    must(pipe(pair) == 0 && pair[0] == fd, "the descriptor is not free");
    R("write", link_of(pair[1]), 1, 0, 0, write(pair[1], "x", 1));
    R("read", link_of(pair[0]), 1, 0, 0, read(pair[0], bytes, 1));
    R("close", link_of(pair[0]), 0, 0, 0, close(pair[0]));
    R("close", link_of(pair[1]), 0, 0, 0, close(pair[1]));
}

int work(char **args)
{
    snprintf(log_folder, sizeof log_folder, "%s", args[2]);
    here = args[1];
    /* Two rings, one after the other in the same place, the second one not given back. */
    for (int i = 0; i < 2; i++) {
        int result = io_uring_queue_init(8, &ring, 0);
        must(result == 0, "io_uring is not available");
        requests(P("file"));
        rounds(P("file"));
        closed_by_the_ring(P("file"), P("other"));
        if (i == 0)
            io_uring_queue_exit(&ring);
    }
    flush_log();
    return 0;
}

#ifndef PLUGIN
int main(int count, char **args)
{
    must(count == 3, "usage: uring FOLDER LOGS");
    return work(args);
}
#endif
