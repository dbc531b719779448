#define _GNU_SOURCE
#include "bench_times.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "nvml.h"

// NVML tells the mean over up to one second: what it says in the first one is not yet about us alone.
static const double settle = 1.2, watch = 1.3;

struct caller {
    const struct load *load;
    void *binding; // NULL: from host memory to host memory
    double *times;
    pthread_barrier_t *start;
    pthread_t thread;
    bool good;
};

static bool run_once(const struct caller *caller, double *seconds) {
    const struct load *load = caller->load;
    return caller->binding ? binding_run(load->ort, load->session, caller->binding, seconds)
                           : session_run(load->ort, load->session, load->feed, NULL, seconds);
}

static void *call(void *argument) {
    struct caller *caller = argument;
    double unused;
    caller->good = true;
    for (int i = 0; i < caller->load->warmup && caller->good; i++)
        caller->good = run_once(caller, &unused);
    if (caller->start != NULL)
        pthread_barrier_wait(caller->start);
    for (int i = 0; i < caller->load->runs && caller->good; i++)
        caller->good = run_once(caller, &caller->times[i]);
    return NULL;
}

static int by_size(const void *left, const void *right) {
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

// Nearest rank: the smallest time that at least `percent` of all do not exceed.
static double percentile(const double *sorted, size_t count, size_t percent) {
    return sorted[(count * percent + 99) / 100 - 1];
}

static void sum_up(double *times, size_t count, double wall, struct times *out) {
    double sum = 0;
    qsort(times, count, sizeof *times, by_size);
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    *out = (struct times){.p50 = percentile(times, count, 50),
                          .p95 = percentile(times, count, 95),
                          .p99 = percentile(times, count, 99),
                          .mean = sum / (double)count,
                          .least = times[0],
                          .most = times[count - 1],
                          .per_second = wall > 0 ? (double)count / wall : 0};
}

// One thread is the calling one: CUDA keeps things by thread, and the first run was here too.
static bool call_all(struct caller *caller, size_t count, double *wall) {
    if (count == 1) {
        struct load only_warm = *caller->load, only_runs = *caller->load;
        only_warm.runs = only_runs.warmup = 0;
        caller->load = &only_warm;
        call(caller);
        if (!caller->good)
            return false;
        double start = seconds_now();
        caller->load = &only_runs;
        call(caller);
        *wall = seconds_now() - start;
        return caller->good;
    }
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        caller[i].start = &start;
        if (pthread_create(&caller[i].thread, NULL, call, &caller[i]) != 0)
            abort();
    }
    pthread_barrier_wait(&start);
    double from = seconds_now();
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        pthread_join(caller[i].thread, NULL);
        good = good && caller[i].good;
    }
    *wall = seconds_now() - from;
    pthread_barrier_destroy(&start);
    return good;
}

bool times_measure(const struct load *load, struct times *out) {
    size_t count = (size_t)load->threads, each = (size_t)load->runs;
    struct caller *callers = calloc(count, sizeof *callers);
    double *times = calloc(count * each, sizeof *times), wall = 0;
    if (callers == NULL || times == NULL)
        abort();
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        callers[i] = (struct caller){.load = load, .times = times + i * each};
        if (load->bound)
            good = good && (callers[i].binding = binding_make(load->ort, load->session, load->feed, load->device));
    }
    good = good && call_all(callers, count, &wall);
    if (good)
        sum_up(times, count * each, wall, out);
    for (size_t i = 0; i < count; i++)
        if (callers[i].binding != NULL)
            binding_end(load->ort, callers[i].binding);
    free(callers);
    free(times);
    return good;
}

struct watcher {
    volatile bool stop;
    double busy;
    int samples;
};

static void *watch_gpu(void *argument) {
    struct watcher *watcher = argument;
    double start = seconds_now();
    nanosleep(&(struct timespec){(time_t)settle, (long)(1e9 * (settle - (double)(time_t)settle))}, NULL);
    while (seconds_now() - start < settle + watch) {
        double busy = nvml_busy();
        if (busy >= 0) {
            watcher->busy += busy;
            watcher->samples++;
        }
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    watcher->stop = true;
    return NULL;
}

double times_idle(const struct load *load) {
    struct watcher watcher = {.stop = false};
    struct caller caller = {.load = load};
    double seconds;
    if (load->bound && (caller.binding = binding_make(load->ort, load->session, load->feed, load->device)) == NULL)
        return -1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch_gpu, &watcher) != 0)
        abort();
    bool good = true;
    while (!watcher.stop && good)
        good = run_once(&caller, &seconds);
    pthread_join(thread, NULL);
    if (caller.binding != NULL)
        binding_end(load->ort, caller.binding);
    return good && watcher.samples > 0 ? 1 - watcher.busy / watcher.samples : -1;
}
