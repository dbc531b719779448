#define _GNU_SOURCE
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cJSON.h"
#include "cuda_settings.h"
#include "device.h"
#include "saved.h"
#include "session.h"
#include "talk.h"

const char own_model[] = "the model of ort-verify";
const char step_options[] = "check the options", step_inputs[] = "make the inputs",
           step_cuda_session[] = "create the CUDA session", step_compare[] = "compare with the CPU",
           step_save[] = "save the outputs", step_reference[] = "compare with the reference";
const char needs_fallback[] = "fallback to CPU EP has been explicitly disabled";

static const char step_cpu_session[] = "create the CPU session";

void put_time(const char *place, double time) {
    put_number(place, (double)(long long)(time * 1e6 + 0.5) / 1e6);
}

static int by_size(const void *left, const void *right) {
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

// Warm-up and timed runs; the first of all is told apart. The last one's outputs are kept.
static bool time_runs(const struct ort *ort, void *session, const struct feed *feed, const struct run_wish *wish,
                      struct tensor *out) {
    int total = 1 + wish->warmup + wish->runs;
    double seconds, *times = calloc((size_t)wish->runs, sizeof *times);
    if (times == NULL)
        abort();
    for (int i = 0; i < total; i++) {
        if (i == 0)
            say("at run for the first time");
        else if (i == 1)
            say("at run again");
        if (!session_run(ort, session, feed, i == total - 1 ? out : NULL, &seconds))
            return false;
        if (i == 0)
            put_time("seconds.first_run", seconds);
        else if (i > wish->warmup)
            times[i - 1 - wish->warmup] = seconds;
    }
    qsort(times, (size_t)wish->runs, sizeof *times, by_size);
    put_number("runs.warmup", wish->warmup);
    put_number("runs.count", wish->runs);
    put_time("runs.median_ms", 1e3 * times[wish->runs / 2]);
    put_time("runs.p95_ms", 1e3 * times[(size_t)(wish->runs * 95 + 99) / 100 - 1]);
    put_time("runs.max_ms", 1e3 * times[wish->runs - 1]);
    free(times);
    return true;
}

static bool same_form(const char *name, const struct tensor *got, const struct tensor *wanted) {
    if (got->kind == wanted->kind && shape_fits(&got->shape, &wanted->shape))
        return true;
    say("error output %s is %s %s on CUDA, %s %s on the CPU", name, kind_name(got->kind), shape_words(&got->shape),
        kind_name(wanted->kind), shape_words(&wanted->shape));
    return false;
}

bool outputs_compare(const struct feed *feed, const struct tensor *got, const struct tensor *wanted) {
    say("at %s", step_compare);
    for (size_t i = 0; i < feed->outputs; i++) {
        const char *name = feed->output_name[i];
        if (!same_form(name, &got[i], &wanted[i]))
            return false;
        cJSON *told = cJSON_CreateObject();
        cJSON_AddStringToObject(told, "name", name);
        if (got[i].kind == 0)
            cJSON_AddStringToObject(told, "skipped", "no tensor of numbers");
        else {
            struct difference worst = tensor_difference(got[i].kind, got[i].data, wanted[i].data, got[i].count);
            cJSON_AddStringToObject(told, "type", kind_name(got[i].kind));
            cJSON_AddStringToObject(told, "shape", shape_words(&got[i].shape));
            cJSON_AddNumberToObject(told, "relative_error", worst.largest); // null: endless
            cJSON_AddNumberToObject(told, "at", (double)worst.at);
            cJSON_AddNumberToObject(told, "cuda", worst.got);
            cJSON_AddNumberToObject(told, "cpu", worst.wanted);
        }
        put("outputs+", told);
    }
    return true;
}

// A session and its runs, without a profile, which costs time.
static void *run_timed(const struct ort *ort, const struct session_wish *session_wish, const char *step,
                       const struct run_wish *wish, struct feed *feed, struct tensor **out) {
    double start = seconds_now();
    void *session = session_make(ort, session_wish, step);
    if (session == NULL)
        return NULL;
    put_time("seconds.session", seconds_now() - start);
    if (!feed_make(ort, session, &(struct feed_wish){.shape = wish->shape, .shapes = wish->shapes}, feed))
        return NULL;
    *out = calloc(feed->outputs + 1, sizeof **out);
    if (*out == NULL)
        abort();
    return time_runs(ort, session, feed, wish, *out) ? session : NULL;
}

static bool run_on_cuda(const struct ort *ort, const struct session_wish *session_wish, const struct run_wish *wish,
                        struct feed *feed, struct tensor **out) {
    double before = device_free();
    void *session = run_timed(ort, session_wish, step_cuda_session, wish, feed, out);
    if (session == NULL)
        return false;
    put_number("memory.free_before_bytes", before);
    put_number("memory.free_after_bytes", device_free());
    session_end(ort, session);
    return true;
}

// What a run made is kept, and held against what another one kept.
static bool share(const struct ort *ort, const struct run_wish *wish, bool tf32_on, const struct feed *feed,
                  const struct tensor *got) {
    const char *fault = NULL;
    struct maker maker = {ort->version, wish->model ? base_name(wish->model) : own_model, wish->cpu, tf32_on};
    if (wish->reference != NULL) {
        say("at %s", step_reference);
        fault = saved_compare(wish->reference, feed, got);
    }
    if (fault == NULL && wish->save != NULL) {
        say("at %s", step_save);
        fault = saved_write(wish->save, &maker, feed, got);
    }
    if (fault != NULL)
        say("error %s", fault);
    return fault == NULL;
}

static bool run_on_cpu(const struct ort *ort, const struct run_wish *wish, const struct feed *feed,
                       const struct tensor *got) {
    struct tensor *wanted = calloc(feed->outputs + 1, sizeof *wanted);
    double seconds;
    if (wanted == NULL)
        abort();
    void *session = session_make(ort, &(struct session_wish){.model = wish->model}, step_cpu_session);
    if (session == NULL)
        return false;
    say("at run on the CPU");
    if (!session_run(ort, session, feed, wanted, &seconds))
        return false;
    put_time("seconds.cpu_run", seconds);
    session_end(ort, session);
    return outputs_compare(feed, got, wanted);
}

// Nodes may run on the CPU here: the profile names those that do.
static bool run_with_profile(const struct ort *ort, const struct session_wish *session_wish,
                             const struct run_attempt *attempt, struct feed *feed) {
    struct session_wish loose = *session_wish;
    loose.strict = false;
    loose.profile = attempt->profile;
    void *session = session_make(ort, &loose, "create the session with a profile");
    double seconds;
    struct feed_wish feed_wish = {.shape = attempt->wish->shape, .shapes = attempt->wish->shapes};
    if (session == NULL || (feed->value == NULL && !feed_make(ort, session, &feed_wish, feed)))
        return false;
    say("at run with a profile");
    return session_run(ort, session, feed, NULL, &seconds) && session_end_profile(ort, session);
}

static void try_on_the_cpu(const struct run_attempt *attempt) {
    const struct run_wish *wish = attempt->wish;
    struct ort ort;
    if (!ort_open(attempt->core, &ort))
        return;
    put_text("ort", ort.version);
    struct feed feed = {0};
    struct tensor *got = NULL;
    if (run_timed(&ort, &(struct session_wish){.model = wish->model}, step_cpu_session, wish, &feed, &got) != NULL)
        share(&ort, wish, false, &feed, got);
}

static void try_on_cuda(const struct run_attempt *attempt) {
    const struct run_wish *wish = attempt->wish;
    const char *device = cuda_option_value(&wish->cuda, "device_id");
    double start = seconds_now();
    if (!device_open(device ? atoi(device) : 0, attempt->cudart))
        return;
    put_time("seconds.device", seconds_now() - start);
    struct ort ort;
    if (!ort_open(attempt->core, &ort))
        return;
    put_text("ort", ort.version);
    say("at %s", step_options);
    const char *unknown = cuda_options_fit(&wish->cuda, ort.version);
    if (unknown != NULL) {
        say("error %s", unknown);
        return;
    }
    bool tf32_on;
    struct cuda_options cuda = cuda_settings(&wish->cuda, ort.version, &tf32_on);
    bool strict = wish->allow_cpu.count == 0;
    put("cpu_fallback", cJSON_CreateBool(!strict));
    struct session_wish session_wish = {.model = wish->model, .cuda = &cuda, .strict = strict};
    struct feed feed = {0};
    struct tensor *got = NULL;
    if (run_on_cuda(&ort, &session_wish, wish, &feed, &got)
            ? run_on_cpu(&ort, wish, &feed, got) && share(&ort, wish, tf32_on, &feed, got)
            : last_error_has(needs_fallback))
        run_with_profile(&ort, &session_wish, attempt, &feed);
}

void run_start(int report, const struct run_wish *wish) {
    talk_to(report);
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    put_text("date", date);
    put_text("provider", wish->cpu ? "cpu" : "cuda");
}

void attempt_run(int report, void *argument) {
    const struct run_attempt *attempt = argument;
    run_start(report, attempt->wish);
    if (attempt->wish->cpu)
        try_on_the_cpu(attempt);
    else
        try_on_cuda(attempt);
    say("end");
    _exit(0); // no destructors: what counts has been seen
}
