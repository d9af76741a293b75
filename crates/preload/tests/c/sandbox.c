/* Locks itself in, in one of the ways in which programs do, and goes on writing; or becomes a daemon.
 * usage: sandbox filter|raw|strict|counter|daemon FOLDER */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int lock_in(const char *how) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_exit),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (strcmp(how, "counter") == 0) return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    if (strcmp(how, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    if (strcmp(how, "raw") == 0) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv) {
    (void)argc;
    if (chdir(argv[2]) != 0) return 2;
    int log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write(log, "before\n", 7);
    int locked = strcmp(argv[1], "daemon") == 0 ? daemon(0, 0) : lock_in(argv[1]);
    if (locked != 0) return 3;
    /* More than a segment holds. */
    for (int i = 0; i < 10000; i++) write(log, "after\n", 6);
    if (strcmp(argv[1], "strict") == 0) syscall(SYS_exit, 0);
    _exit(0);
}
