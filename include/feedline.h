/* Events of your own in a Feedline trace.
 *
 *     #include <feedline.h>
 *
 *     void step(int epoch, int step) {
 *         FEEDLINE_SPAN(span, "pipeline", "step");
 *         feedline_tag_step(&span, epoch, step);
 *         ...                                        // the span ends with the scope
 *     }
 *
 * Nothing has to be linked. A program that was not started by `feedline trace` (or with the preload
 * library and FEEDLINE_TRACE) pays one load and one branch at each place. C99 or later, C++11 or later;
 * GCC or Clang on Linux. With other compilers, or with FEEDLINE_DISABLED defined, nothing is recorded.
 *
 * Forked children go on recording. All functions may be called from any thread.
 */
#ifndef FEEDLINE_H
#define FEEDLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in the program. One for each pair of category and name, with static storage. */
typedef struct feedline_site {
    const char *category;
    const char *name;
    uint32_t number; /* given at the first event; 0 before */
} feedline_site;

#define FEEDLINE_SITE(category, name) { (category), (name), 0 }

/* Something that has begun. Negative tags are not there. */
typedef struct feedline_span {
    feedline_site *site; /* NULL if nobody records */
    uint64_t start;
    int64_t epoch;
    int64_t step;
    int64_t sample;
    int64_t size; /* bytes */
} feedline_span;

/* What goes to the library. Its first field says how long it is. */
struct feedline_event {
    uint32_t bytes;
    uint32_t kind; /* 1 a span, 2 a counter */
    uint32_t site;
    uint32_t reserved;
    uint64_t start;
    uint64_t end;
    int64_t epoch;
    int64_t step;
    int64_t sample;
    int64_t size;
    double value;
};

#if defined(__GNUC__) && defined(__linux__) && !defined(FEEDLINE_DISABLED)
#define FEEDLINE_HAS_LIBRARY 1
/* Weak: without the library they are NULL, and the program links and runs all the same. And not through
 * a linkage table: linkers settle for NULL at once where a program that is not position-independent
 * takes such an address directly. */
#define FEEDLINE_FROM_LIBRARY_ __attribute__((weak, noplt))
extern int feedline_api_is_on(void) FEEDLINE_FROM_LIBRARY_;
extern uint32_t feedline_api_site(const char *text, size_t length) FEEDLINE_FROM_LIBRARY_;
extern uint64_t feedline_api_now(void) FEEDLINE_FROM_LIBRARY_;
extern void feedline_api_put(const struct feedline_event *event) FEEDLINE_FROM_LIBRARY_;
#else
#define FEEDLINE_HAS_LIBRARY 0
#endif

/* Whether events are recorded. */
static inline int feedline_is_on(void) {
#if FEEDLINE_HAS_LIBRARY
    return feedline_api_is_on != NULL && feedline_api_is_on() != 0;
#else
    return 0;
#endif
}

#if FEEDLINE_HAS_LIBRARY
/* The number of a site, 0 if it could not be registered. Two threads that come first together both
 * register it, which does no harm. */
static inline uint32_t feedline_number_(feedline_site *site) {
    char text[256];
    size_t category, name;
    uint32_t number = __atomic_load_n(&site->number, __ATOMIC_RELAXED);
    if (number != 0) {
        return number;
    }
    category = strlen(site->category);
    name = strlen(site->name);
    if (category > 100) {
        category = 100;
    }
    if (name > sizeof text - 1 - category) {
        name = sizeof text - 1 - category;
    }
    memcpy(text, site->category, category);
    text[category] = '\0';
    memcpy(text + category + 1, site->name, name);
    number = feedline_api_site(text, category + 1 + name);
    __atomic_store_n(&site->number, number, __ATOMIC_RELAXED);
    return number;
}
#endif

/* Something begins at `site`. */
static inline feedline_span feedline_begin(feedline_site *site) {
    feedline_span span = {NULL, 0, -1, -1, -1, -1};
#if FEEDLINE_HAS_LIBRARY
    if (__builtin_expect(feedline_api_is_on != NULL, 0) && feedline_api_is_on()) {
        span.site = site;
        span.start = feedline_api_now();
    }
#else
    (void)site;
#endif
    return span;
}

/* It has ended. A second end does nothing. */
static inline void feedline_end(feedline_span *span) {
#if FEEDLINE_HAS_LIBRARY
    if (__builtin_expect(span->site != NULL, 0)) {
        struct feedline_event event = {sizeof(struct feedline_event), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.0};
        event.end = feedline_api_now();
        event.start = span->start;
        event.site = feedline_number_(span->site);
        event.epoch = span->epoch;
        event.step = span->step;
        event.sample = span->sample;
        event.size = span->size;
        feedline_api_put(&event);
    }
#endif
    span->site = NULL;
}

/* It was none: nothing is recorded. */
static inline void feedline_cancel(feedline_span *span) {
    span->site = NULL;
}

/* What it is about. */
static inline void feedline_tag_step(feedline_span *span, int64_t epoch, int64_t step) {
    span->epoch = epoch;
    span->step = step;
}

static inline void feedline_tag_sample(feedline_span *span, int64_t sample) {
    span->sample = sample;
}

static inline void feedline_tag_size(feedline_span *span, int64_t size_bytes) {
    span->size = size_bytes;
}

/* `site` has this value now. */
static inline void feedline_count(feedline_site *site, double value) {
#if FEEDLINE_HAS_LIBRARY
    if (__builtin_expect(feedline_api_is_on != NULL, 0) && feedline_api_is_on()) {
        struct feedline_event event = {sizeof(struct feedline_event), 2, 0, 0, 0, 0, -1, -1, -1, -1, 0.0};
        event.start = event.end = feedline_api_now();
        event.site = feedline_number_(site);
        event.value = value;
        feedline_api_put(&event);
    }
#else
    (void)site;
    (void)value;
#endif
}

#ifdef __cplusplus
}
#endif

#define FEEDLINE_JOIN2_(a, b) a##b
#define FEEDLINE_JOIN_(a, b) FEEDLINE_JOIN2_(a, b)
#define FEEDLINE_PLACE_(variable) FEEDLINE_JOIN_(feedline_site_of_, variable)

/* Declares the span `variable`, which begins here and ends with the scope, however that is left. */
#ifdef __cplusplus
struct feedline_scope_ : feedline_span {
    explicit feedline_scope_(feedline_site *site) : feedline_span(feedline_begin(site)) {}
    ~feedline_scope_() { feedline_end(this); }
    feedline_scope_(const feedline_scope_ &) = delete;
    feedline_scope_ &operator=(const feedline_scope_ &) = delete;
};
#define FEEDLINE_SPAN(variable, category, name)                                        \
    static feedline_site FEEDLINE_PLACE_(variable) = FEEDLINE_SITE(category, name);    \
    feedline_scope_ variable(&FEEDLINE_PLACE_(variable))
#elif defined(__GNUC__)
#define FEEDLINE_SPAN(variable, category, name)                                        \
    static feedline_site FEEDLINE_PLACE_(variable) = FEEDLINE_SITE(category, name);    \
    feedline_span variable __attribute__((cleanup(feedline_end))) =                    \
        feedline_begin(&FEEDLINE_PLACE_(variable))
#endif

/* Records the value of a counter. */
#define FEEDLINE_COUNT(category, name, value)                                          \
    do {                                                                               \
        static feedline_site feedline_place_ = FEEDLINE_SITE(category, name);          \
        feedline_count(&feedline_place_, (value));                                     \
    } while (0)

#endif
