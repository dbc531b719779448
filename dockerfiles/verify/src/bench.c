#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench_times.h"
#include "cJSON.h"
#include "cuda_settings.h"
#include "device.h"
#include "machine.h"
#include "nvml.h"
#include "run.h"
#include "talk.h"

// What every measured point of a session has in common.
struct bench {
    const struct bench_attempt *attempt;
    const struct run_wish *wish;
    const struct bench_wish *steps;
    struct ort ort;
    void *session;
    int device;
    bool idle; // NVML tells how busy the GPU is
};

static double rounded(double value) {
    return (double)(long long)(value * 1e6 + 0.5) / 1e6;
}

static void add_ms(cJSON *point, const char *key, double seconds) {
    cJSON_AddNumberToObject(point, key, rounded(1e3 * seconds));
}

// "x=64x256, mask=64"
static const char *shape_of(const struct feed *feed) {
    struct names words = {0};
    for (size_t i = 0; i < feed->inputs; i++)
        names_add(&words, text("%s=%s", feed->input_name[i], shape_words(&feed->input[i].shape)));
    return names_join(&words, 4);
}

static cJSON *new_point(const struct bench *bench, const struct feed *feed, int batch) {
    cJSON *point = cJSON_CreateObject();
    cJSON_AddStringToObject(point, "provider", bench->attempt->cuda ? "cuda" : "cpu");
    if (bench->attempt->cuda)
        cJSON_AddBoolToObject(point, "tf32", bench->attempt->tf32);
    cJSON_AddStringToObject(point, "shape", shape_of(feed));
    if (batch > 0)
        cJSON_AddNumberToObject(point, "batch", batch);
    return point;
}

static bool measure(const struct bench *bench, const struct feed *feed, int batch, bool bound, int threads,
                    double first) {
    struct load load = {&bench->ort, bench->session, feed, bound, bench->device, threads, bench->wish->warmup,
                        bench->wish->runs};
    struct times times;
    say("at measure %s with %d thread%s%s", shape_of(feed), threads, threads > 1 ? "s" : "",
        bound ? ", tensors on the GPU" : "");
    if (!times_measure(&load, &times))
        return false;
    cJSON *point = new_point(bench, feed, batch);
    cJSON_AddBoolToObject(point, "binding", bound);
    cJSON_AddNumberToObject(point, "concurrency", threads);
    if (first >= 0)
        add_ms(point, "first_ms", first);
    add_ms(point, "p50_ms", times.p50);
    add_ms(point, "p95_ms", times.p95);
    add_ms(point, "p99_ms", times.p99);
    add_ms(point, "mean_ms", times.mean);
    add_ms(point, "min_ms", times.least);
    add_ms(point, "max_ms", times.most);
    cJSON_AddNumberToObject(point, "per_second", rounded(times.per_second));
    if (bench->idle && threads == 1) {
        double idle = times_idle(&load);
        if (idle >= 0)
            cJSON_AddNumberToObject(point, "idle_share", rounded(idle));
    }
    put("points+", point);
    return true;
}

// One shape: its first run, then every way to call it.
static bool measure_shape(const struct bench *bench, size_t number, int batch) {
    size_t shapes;
    struct shape *shape = bench_case(bench->wish->shape, bench->wish->shapes, number, &shapes);
    struct feed feed;
    struct feed_wish feed_wish = {.shape = shape, .shapes = shapes, .batch = batch, .quiet = true};
    if (!feed_make(&bench->ort, bench->session, &feed_wish, &feed))
        return false;
    double first;
    say("at run %s for the first time", shape_of(&feed));
    if (!session_run(&bench->ort, bench->session, &feed, NULL, &first))
        return false;
    const struct steps *concurrency = &bench->steps->concurrency;
    // TF32 is held against the same calls without it, by one thread.
    size_t counts = bench->attempt->tf32 || concurrency->count == 0 ? 1 : concurrency->count;
    for (int bound = 0; bound <= (bench->attempt->cuda ? 1 : 0); bound++)
        for (size_t i = 0; i < counts; i++) {
            int threads = bench->attempt->tf32 || concurrency->count == 0 ? 1 : concurrency->value[i];
            if (!measure(bench, &feed, batch, bound, threads, bound == 0 && i == 0 ? first : -1))
                return false;
        }
    feed_free(&bench->ort, &feed);
    free(shape);
    return true;
}

static bool measure_all(const struct bench *bench) {
    const struct steps *batch = &bench->steps->batch;
    size_t cases = bench_cases(bench->wish->shape, bench->wish->shapes);
    for (size_t number = 0; number < cases; number++)
        for (size_t i = 0; i < (batch->count > 0 ? batch->count : 1); i++)
            if (!measure_shape(bench, number, batch->count > 0 ? batch->value[i] : 0))
                return false;
    return true;
}

static bool open_session(struct bench *bench, const struct session_wish *wish, const char *step) {
    double start = seconds_now(), before = bench->attempt->cuda ? device_free() : 0;
    bench->session = session_make(&bench->ort, wish, step);
    if (bench->session == NULL)
        return false;
    cJSON *session = cJSON_CreateObject();
    cJSON_AddStringToObject(session, "provider", bench->attempt->cuda ? "cuda" : "cpu");
    if (bench->attempt->cuda)
        cJSON_AddBoolToObject(session, "tf32", bench->attempt->tf32);
    cJSON_AddNumberToObject(session, "seconds", rounded(seconds_now() - start));
    if (bench->attempt->cuda)
        cJSON_AddNumberToObject(session, "memory_bytes", before - device_free());
    put("sessions+", session);
    return true;
}

// Which nodes the CPU would run is evidence here, and no fault: the model is measured as it would be used.
static void run_with_profile(const struct bench *bench, const struct session_wish *wish) {
    struct session_wish with = *wish;
    with.profile = bench->attempt->profile;
    size_t shapes;
    double seconds;
    struct shape *shape = bench_case(bench->wish->shape, bench->wish->shapes, 0, &shapes);
    struct feed_wish feed_wish = {.shape = shape, .shapes = shapes, .quiet = true};
    struct feed feed;
    void *session = session_make(&bench->ort, &with, "create the session with a profile");
    if (session != NULL && feed_make(&bench->ort, session, &feed_wish, &feed) &&
        session_run(&bench->ort, session, &feed, NULL, &seconds))
        session_end_profile(&bench->ort, session);
}

static void bench_cuda(struct bench *bench) {
    const struct bench_attempt *attempt = bench->attempt;
    const char *device = cuda_option_value(&bench->wish->cuda, "device_id");
    bench->device = device ? atoi(device) : 0;
    if (!device_open(bench->device, attempt->cudart))
        return;
    const char *fault = attempt->tf32 ? NULL : nvml_open(device_bus());
    bench->idle = fault == NULL && !attempt->tf32;
    if (!attempt->tf32)
        put_text("idle", fault ? text("not measured: %s", fault)
                               : "1 - NVML's utilisation of the whole GPU, read every 50 ms for 1.3 s while one thread "
                                 "runs the model without a pause");
    if (!ort_open(attempt->core, &bench->ort))
        return;
    say("at %s", step_options);
    const char *unknown = cuda_options_fit(&bench->wish->cuda, bench->ort.version);
    if (unknown != NULL) {
        say("error %s", unknown);
        return;
    }
    bool on;
    struct cuda_options wish = cuda_option_value(&bench->wish->cuda, tf32_option)
                                   ? bench->wish->cuda
                                   : cuda_with_tf32(&bench->wish->cuda, bench->ort.version, attempt->tf32);
    struct cuda_options cuda = cuda_settings(&wish, bench->ort.version, &on);
    struct session_wish session = {.model = bench->wish->model, .cuda = &cuda};
    if (open_session(bench, &session, step_cuda_session) && measure_all(bench) && attempt->profile != NULL)
        run_with_profile(bench, &session);
}

static void bench_cpu(struct bench *bench) {
    int threads = bench->steps->threads ? bench->steps->threads : machine_cores();
    machine_put(threads);
    if (!ort_open(bench->attempt->core, &bench->ort))
        return;
    put_text("ort", bench->ort.version);
    struct session_wish session = {.model = bench->wish->model, .threads = threads};
    if (open_session(bench, &session, "create the CPU session"))
        measure_all(bench);
}

void attempt_bench(int report, void *argument) {
    const struct bench_attempt *attempt = argument;
    struct bench bench = {
        .attempt = attempt, .wish = &attempt->options->run, .steps = &attempt->options->bench};
    talk_to(report);
    if (attempt->cuda)
        bench_cuda(&bench);
    else
        bench_cpu(&bench);
    say("end");
    _exit(0);
}
