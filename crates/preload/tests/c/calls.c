/* Makes every call that the library knows, and logs what it asked and what it got.
 * calls MODE FOLDER LOGS: MODE is `alone`, `threads` or `stable` (alone, without what varies). */
#include <dirent.h>
#include "log.h"
#include "calls_files.h"
#include "calls_streams.h"
#include "calls_processes.h"

/* Functions that the C library lacks: the library has them, and says so like the kernel does. */
static void missing(void)
{
    static const char *const names[] = {"__isoc23_fscanf", "__isoc23_vfscanf", 0};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    must(libc != 0, "libc.so.6 is not loaded");
    for (int i = 0; names[i]; i++) {
        int (*ours)(FILE *, const char *, va_list) = dlsym(RTLD_DEFAULT, names[i]);
        if (dlsym(libc, names[i]) || !ours)
            continue;
        errno = 0;
        va_list none = {};
        must(ours(stdin, "", none) == -1 && errno == ENOSYS, "a missing function does something");
    }
}

static void *all_files(void *folder)
{
    here = folder;
    own += 10 * (here[strlen(here) - 1] - '0' + 1);
    files();
    streams();
    flush_log();
    return 0;
}

int main(int count, char **args)
{
    must(count == 4, "usage: calls MODE FOLDER LOGS");
    stable = !strcmp(args[1], "stable");
    snprintf(log_folder, sizeof log_folder, "%s", args[3]);
    if (!strcmp(args[1], "threads")) {
        alone = 0;
        pthread_t threads[8];
        static char folders[8][1024];
        for (int i = 0; i < 8; i++) {
            snprintf(folders[i], 1024, "%s/t%d", args[2], i);
            syscall(SYS_mkdirat, AT_FDCWD, folders[i], 0755);
        }
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], 0, all_files, folders[i]);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], 0);
        return 0;
    }
    here = args[2];
    files();
    streams();
    folders_alone();
    streams_alone();
    processes();
    missing();
    flush_log();
    return 7;
}
