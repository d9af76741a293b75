/* Processes. Children log for themselves; what does not come back is logged before. */
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;
static char *const TRUE_ARGS[] = {"true", "a", 0};

/* A child that makes one call on a file of its parent's and then `work`. */
#define CHILD(name, fork_call, work)                                                                 \
    ({                                                                                               \
        pid_t pid_ = fork_call;                                                                      \
        if (pid_ == 0) {                                                                             \
            log_length = 0;                                                                          \
            R("pread", P("a"), 4, 0, 0, pread(child_fd, child_bytes, 4, 0));                         \
            work;                                                                                    \
            syscall(SYS_exit_group, 96);                                                             \
        }                                                                                            \
        must(pid_ > 0, name);                                                                        \
        say(name, "", 0, 0, 0, varying(pid_), 0);                                                    \
        pid_;                                                                                        \
    })
/* A last call, logged before. */
#define LAST(name, path, arg, call) (say(name, path, 0, 0, arg, 0, 0), flush_log(), call)

static int child_fd;
static char child_bytes[8];

#define WAITED(name, which, call)                                                                    \
    ({                                                                                               \
        int status = 0;                                                                              \
        errno = 0;                                                                                   \
        int64_t pid_ = (call);                                                                       \
        int error_ = errno;                                                                          \
        say(name, "", 0, status, varying((uint64_t)(int64_t)(which)), varying(pid_),                 \
            pid_ < 0 ? error_ : 0);                                                                  \
        status;                                                                                      \
    })

static void endings(void)
{
    struct rusage usage;
    pid_t pid = CHILD("fork", fork(), LAST("_exit", "", 3, _exit(3)));
    must(WAITED("waitpid", pid, waitpid(pid, &status, 0)) == 3 << 8, "_exit");
    pid = CHILD("_Fork", _Fork(), LAST("_Exit", "", 4, _Exit(4)));
    must(WAITED("wait", -1, wait(&status)) == 4 << 8, "_Exit");
    pid = CHILD("fork", fork(), LAST("quick_exit", "", 5, quick_exit(5)));
    must(WAITED("wait3", -1, wait3(&status, 0, &usage)) == 5 << 8, "quick_exit");
    pid = CHILD("fork", fork(), (flush_log(), exit(6)));
    must(WAITED("wait4", pid, wait4(pid, &status, 0, 0)) == 6 << 8, "exit");
    pid = CHILD("fork", fork(), (flush_log(), syscall(SYS_kill, syscall(SYS_getpid), SIGKILL)));
    siginfo_t info;
    R("waitid", "", 0, 0, varying(pid), waitid(P_PID, pid, &info, WEXITED));
    WAITED("waitpid", -1, waitpid(-1, &status, 0));
    R("wait3", "", 0, 0, varying(-1), wait3(0, WNOHANG, 0));
}

static void exec_in_children(void)
{
    const char *t = "/bin/true";
#define BECOMES(name, path, call)                                                                    \
    ({                                                                                               \
        pid_t pid = CHILD("fork", fork(), LAST(name, path, 0, call));                                \
        must(WAITED("waitpid", pid, waitpid(pid, &status, 0)) == 0, name);                           \
    })
    BECOMES("execve", t, execve(t, TRUE_ARGS, environ));
    BECOMES("execv", t, execv(t, TRUE_ARGS));
    BECOMES("execvp", "true", execvp("true", TRUE_ARGS));
    BECOMES("execvpe", "true", execvpe("true", TRUE_ARGS, environ));
    BECOMES("execl", t, execl(t, "true", "1", "2", "3", "4", "5", "6", "7", (char *)0));
    BECOMES("execlp", "true", execlp("true", "true", (char *)0));
    BECOMES("execle", t, execle(t, "true", "1", "2", "3", "4", "5", "6", (char *)0, environ));
    int fd = R("open", t, 0, 0, O_RDONLY | O_CLOEXEC, open(t, O_RDONLY | O_CLOEXEC));
    BECOMES("fexecve", link_of(fd), fexecve(fd, TRUE_ARGS, environ));
    R("close", t, 0, 0, 0, close(fd));
    int folder = R("open", "/bin", 0, 0, O_DIRECTORY, open("/bin", O_DIRECTORY));
    BECOMES("execveat", t, execveat(folder, "true", TRUE_ARGS, environ, 0));
    R("close", "/bin", 0, 0, 0, close(folder));
}

static void exec_in_vain(void)
{
    const char *no = P("missing");
    R("execve", no, 0, 0, 0, execve(no, TRUE_ARGS, environ));
    R("execve", "", 0, 0, 0, execve(BAD, TRUE_ARGS, environ));
    R("execv", no, 0, 0, 0, execv(no, TRUE_ARGS));
    R("execvp", "no-such-program", 0, 0, 0, execvp("no-such-program", TRUE_ARGS));
    R("execvpe", "no-such-program", 0, 0, 0, execvpe("no-such-program", TRUE_ARGS, environ));
    R("execl", no, 0, 0, 0, execl(no, "x", (char *)0));
    R("execlp", no, 0, 0, 0, execlp(no, "x", (char *)0));
    R("execle", no, 0, 0, 0, execle(no, "x", (char *)0, environ));
    R("fexecve", "", 0, 0, 0, fexecve(-1, TRUE_ARGS, environ));
    R("execveat", no, 0, 0, 0, execveat(AT_FDCWD, no, TRUE_ARGS, environ, 0));
}

static int cloned(void *argument)
{
    log_length = 0;
    R("pread", P("a"), 4, 0, 0, pread(child_fd, child_bytes, 4, 0));
    flush_log();
    syscall(SYS_exit_group, 8);
    return 0;
}

static int cloned_in_place(void *argument)
{
    /* In its parent's memory, which must not learn of this. */
    dup2(child_fd, 0);
    close(child_fd);
    _exit(9);
}

static void clones(void)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    pid_t pid = clone(cloned, stack + sizeof stack, SIGCHLD, 0);
    must(pid > 0, "clone");
    say("clone", "", 0, 0, SIGCHLD, varying(pid), 0);
    must(WAITED("waitpid", pid, waitpid(pid, &status, 0)) == 8 << 8, "clone");
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid = clone(cloned_in_place, stack + sizeof stack, flags, 0);
    must(pid > 0, "clone");
    say("clone", "", 0, 0, flags, varying(pid), 0);
    must(WAITED("waitpid", pid, waitpid(pid, &status, 0)) == 9 << 8, "clone");
    R("pread", P("a"), 4, 0, 0, pread(child_fd, child_bytes, 4, 0));
    errno = 0;
    must(clone(cloned, 0, SIGCHLD, 0) == -1 && errno == EINVAL, "clone");
    say("clone", "", 0, 0, SIGCHLD, -1, EINVAL);
    pid = vfork();
    if (pid == 0) {
        dup2(child_fd, 0);
        dup2(1, child_fd);
        execve("/bin/true", TRUE_ARGS, environ);
        _exit(96);
    }
    say("vfork", "", 0, 0, 0, 0, 0);
    say("execve", "/bin/true", 0, 0, varying(pid), 0, 0);
    must(WAITED("waitpid", pid, waitpid(pid, &status, 0)) == 0, "vfork");
    R("pread", P("a"), 4, 0, 0, pread(child_fd, child_bytes, 4, 0));
    R("lseek", P("in"), 0, 0, SEEK_SET, lseek(0, 0, SEEK_SET));
}

static void spawns(void)
{
    pid_t pid = 0;
    int error = posix_spawn(&pid, "/bin/true", 0, 0, TRUE_ARGS, environ);
    must(error == 0, "posix_spawn");
    say("posix_spawn", "/bin/true", 0, 0, 0, varying(pid), 0);
    WAITED("waitpid", pid, waitpid(pid, &status, 0));
    error = posix_spawnp(&pid, "true", 0, 0, TRUE_ARGS, environ);
    must(error == 0, "posix_spawnp");
    say("posix_spawnp", "true", 0, 0, 0, varying(pid), 0);
    WAITED("waitpid", pid, waitpid(pid, &status, 0));
    error = posix_spawn(&pid, P("missing"), 0, 0, TRUE_ARGS, environ);
    say("posix_spawn", P("missing"), 0, 0, 0, -1, error);
    error = posix_spawn(&pid, BAD, 0, 0, TRUE_ARGS, environ);
    say("posix_spawn", "", 0, 0, 0, -1, error);
    R("system", "exit 3", 0, 0, 0, system("exit 3"));
    FILE *f = RF("popen", "read x", popen("read x", "w"));
    R("fputs", "read x", 2, 0, 0, fputs("x\n", f) < 0 ? -1 : 2);
    R("pclose", "read x", 0, 0, 0, pclose(f));
}

static void processes(void)
{
    child_fd = R("open", P("a"), 0, 0, O_RDONLY, open(P("a"), O_RDONLY));
    endings();
    exec_in_children();
    exec_in_vain();
    clones();
    spawns();
    R("close", P("a"), 0, 0, 0, close(child_fd));
}
