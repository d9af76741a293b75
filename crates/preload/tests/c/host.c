/* Loads a library for itself alone and runs it: host LIBRARY FOLDER LOGS. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **args)
{
    void *library = dlopen(args[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*work)(char **) = dlsym(library, "work");
    return work(args + 1);
}
