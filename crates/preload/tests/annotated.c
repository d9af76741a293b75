/* Says what it does, and whether anybody listens. Also compiled as C++. */
#include <feedline.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static feedline_site whole = FEEDLINE_SITE("ai_root", "ai_root");

static int step(int epoch, int number) {
    FEEDLINE_SPAN(span, "pipeline", "step");
    feedline_tag_step(&span, epoch, number);
    feedline_tag_sample(&span, 10 * number);
    feedline_tag_size(&span, 4096);
    if (number == 2) {
        return 1;
    }
    FEEDLINE_COUNT("loader", "queue", 1.5 * number);
    return 0;
}

int main(void) {
    feedline_span span = feedline_begin(&whole);
    int number;
    for (number = 1; number <= 3; number++) {
        step(1, number);
    }
    feedline_end(&span);
    feedline_end(&span);
    {
        FEEDLINE_SPAN(never, "never", "seen");
        feedline_cancel(&never);
    }
    fflush(stdout);
    {
        pid_t child = fork();
        if (child == 0) {
            step(2, 4);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    printf("%d\n", feedline_is_on());
    return 0;
}
