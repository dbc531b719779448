#define _GNU_SOURCE
#include "session.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask.h"
#include "cJSON.h"
#include "model.h"

typedef void *(*run_function)(void *, void *, char **, void **, size_t, char **, size_t, void **);

enum { MOST_THREADS = 8 };

double seconds_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// A number of our own keeps ONNX Runtime from pinning threads to cores, which fails in many containers.
int session_threads(void) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return count < MOST_THREADS ? count : MOST_THREADS;
}

bool ort_open(const char *core, struct ort *out) {
    *out = (struct ort){0};
    void *library = open_library(core, RTLD_NOW);
    if (library == NULL)
        return false;
    say("at ask for the API");
    struct ort_base *(*get_base)(void);
    *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    out->api = get_base ? get_base()->get_api(API_VERSION) : NULL;
    if (out->api == NULL) {
        say("error no API of version %d: older than ONNX Runtime 1.14, or not ONNX Runtime", API_VERSION);
        return false;
    }
    out->version = get_base()->get_version();
    say("version %s", out->version);
    say("at create environment");
    return ASK(out, CREATE_ENV, (int, const char *, void **), LOG_ERROR, "ort-verify", &out->env) &&
           ASK(out, CREATE_CPU_MEMORY_INFO, (int, int, void **), ARENA_ALLOCATOR, MEMORY_DEFAULT, &out->memory) &&
           ASK(out, GET_DEFAULT_ALLOCATOR, (void **), &out->allocator);
}

static bool add_cuda(const struct ort *ort, void *options, const struct cuda_options *wish) {
    void *cuda = NULL;
    say("at open CUDA provider");
    if (!ASK(ort, CREATE_CUDA_PROVIDER_OPTIONS, (void **), &cuda))
        return false;
    say("at set the provider's options");
    return ASK(ort, UPDATE_CUDA_PROVIDER_OPTIONS, (void *, char **, char **, size_t), cuda, wish->key.item,
               wish->value.item, wish->key.count) &&
           ASK(ort, APPEND_CUDA_V2, (void *, void *), options, cuda);
}

void *session_make(const struct ort *ort, const struct session_wish *wish, const char *step) {
    void *options = NULL, *session = NULL;
    say("at create options");
    if (!ASK(ort, CREATE_SESSION_OPTIONS, (void **), &options) ||
        !ASK(ort, SET_INTRA_OP_NUM_THREADS, (void *, int), options,
             wish->threads ? wish->threads : session_threads()))
        return NULL;
    if (wish->profile != NULL && !ASK(ort, ENABLE_PROFILING, (void *, const char *), options, wish->profile))
        return NULL;
    // Known since 1.16, older ones take no notice: the profile tells in any case.
    if (wish->strict && !ASK(ort, ADD_SESSION_CONFIG_ENTRY, (void *, const char *, const char *), options,
                             "session.disable_cpu_ep_fallback", "1"))
        return NULL;
    if (wish->cuda != NULL && !add_cuda(ort, options, wish->cuda))
        return NULL;
    say("at %s", step);
    bool made = wish->model ? ASK(ort, CREATE_SESSION, (void *, const char *, void *, void **), ort->env, wish->model,
                                  options, &session)
                            : ASK(ort, CREATE_SESSION_FROM_ARRAY, (void *, const void *, size_t, void *, void **),
                                  ort->env, model_bytes, model_size, options, &session);
    return made ? session : NULL;
}

void session_end(const struct ort *ort, void *session) {
    ORT_CALL(ort->api, RELEASE_SESSION, void (*)(void *))(session);
}

bool session_end_profile(const struct ort *ort, void *session) {
    char *file = NULL;
    say("at write the profile");
    return ASK(ort, SESSION_END_PROFILING, (void *, void *, char **), session, ort->allocator, &file);
}

static bool read_info(const struct ort *ort, const void *info, int *kind, struct shape *shape) {
    size_t rank = 0;
    if (!ASK(ort, GET_TENSOR_ELEMENT_TYPE, (const void *, int *), info, kind) ||
        !ASK(ort, GET_DIMENSIONS_COUNT, (const void *, size_t *), info, &rank))
        return false;
    if (rank > MOST_DIMENSIONS) {
        say("error more than %d dimensions", MOST_DIMENSIONS);
        return false;
    }
    shape->rank = rank;
    return ASK(ort, GET_DIMENSIONS, (const void *, int64_t *, size_t), info, shape->size, rank);
}

// The shape that was asked for, or the model's own with 1 for what it leaves open.
static bool choose_shape(const char *name, const struct shape *wanted, const struct feed_wish *wish,
                         struct shape *out) {
    const struct shape *given = wish->shape;
    *out = *wanted;
    for (size_t i = 0; i < wanted->rank; i++)
        out->size[i] = wanted->size[i] < 0 ? 1 : wanted->size[i];
    for (size_t i = 0; i < wish->shapes; i++)
        if (strcmp(given[i].name, name) == 0) {
            if (!shape_fits(&given[i], wanted)) {
                say("error --shape %s=%s: the model wants %s", name, shape_words(&given[i]), shape_words(wanted));
                return false;
            }
            *out = given[i];
        }
    if (wish->batch > 0 && wanted->rank > 0 && wanted->size[0] < 0)
        out->size[0] = wish->batch;
    return true;
}

static void tell_input(const char *name, int kind, const struct shape *shape) {
    cJSON *told = cJSON_CreateObject();
    cJSON_AddStringToObject(told, "name", name);
    cJSON_AddStringToObject(told, "type", kind_name(kind));
    cJSON_AddStringToObject(told, "shape", shape_words(shape));
    put("inputs+", told);
}

static bool make_input(const struct ort *ort, void *session, size_t index, const struct feed_wish *wish,
                       struct feed *feed) {
    void *type = NULL;
    const void *info = NULL;
    char *name = NULL;
    int kind = 0;
    struct shape wanted = {0}, shape;
    if (!ASK(ort, SESSION_GET_INPUT_NAME, (void *, size_t, void *, char **), session, index, ort->allocator, &name) ||
        !ASK(ort, SESSION_GET_INPUT_TYPE_INFO, (void *, size_t, void **), session, index, &type) ||
        !ASK(ort, CAST_TYPE_INFO_TO_TENSOR_INFO, (const void *, const void **), type, &info))
        return false;
    feed->input_name[index] = name;
    if (info == NULL || !read_info(ort, info, &kind, &wanted)) {
        if (info == NULL)
            say("error input %s is no tensor: inputs of this kind are not made", name);
        return false;
    }
    if (kind_size(kind) == 0) {
        say("error input %s holds numbers of %s: inputs of this kind are not made", name, kind_name(kind));
        return false;
    }
    if (!choose_shape(name, &wanted, wish, &shape))
        return false;
    bool too_many;
    size_t numbers = shape_count(&shape, &too_many);
    void *data = too_many ? NULL : calloc(numbers + 1, kind_size(kind));
    if (data == NULL) {
        say("error --shape %s=%s: too large for this machine's memory", name, shape_words(&shape));
        return false;
    }
    tensor_fill(kind, data, numbers);
    feed->input[index] = (struct tensor){kind, shape, numbers, data};
    feed->open |= wanted.rank > 0 && wanted.size[0] < 0;
    if (!wish->quiet)
        tell_input(name, kind, &shape);
    return ASK(ort, CREATE_TENSOR_WITH_DATA, (void *, void *, size_t, const int64_t *, size_t, int, void **),
               ort->memory, data, numbers * kind_size(kind), shape.size, shape.rank, kind, &feed->value[index]);
}

static bool names_are_known(const struct feed *feed, const struct shape *given, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct names known = {0};
        for (size_t k = 0; k < feed->inputs; k++)
            names_add(&known, feed->input_name[k]);
        if (!names_has(&known, given[i].name)) {
            say("error --shape %s: the model has no such input; it has %s", given[i].name, names_join(&known, 20));
            return false;
        }
    }
    return true;
}

bool feed_make(const struct ort *ort, void *session, const struct feed_wish *wish, struct feed *out) {
    *out = (struct feed){0};
    say("at make the inputs");
    if (!ASK(ort, SESSION_GET_INPUT_COUNT, (void *, size_t *), session, &out->inputs) ||
        !ASK(ort, SESSION_GET_OUTPUT_COUNT, (void *, size_t *), session, &out->outputs))
        return false;
    out->input_name = calloc(out->inputs + 1, sizeof *out->input_name);
    out->output_name = calloc(out->outputs + 1, sizeof *out->output_name);
    out->value = calloc(out->inputs + 1, sizeof *out->value);
    out->input = calloc(out->inputs + 1, sizeof *out->input);
    if (!out->input_name || !out->output_name || !out->value || !out->input)
        abort();
    for (size_t i = 0; i < out->inputs; i++)
        if (!make_input(ort, session, i, wish, out))
            return false;
    for (size_t i = 0; i < out->outputs; i++)
        if (!ASK(ort, SESSION_GET_OUTPUT_NAME, (void *, size_t, void *, char **), session, i, ort->allocator,
                 &out->output_name[i]))
            return false;
    if (wish->batch > 0 && !out->open) {
        say("error --batch: no input of the model leaves its first dimension open");
        return false;
    }
    return names_are_known(out, wish->shape, wish->shapes);
}

void feed_free(const struct ort *ort, struct feed *feed) {
    for (size_t i = 0; i < feed->inputs; i++) {
        ORT_CALL(ort->api, RELEASE_VALUE, void (*)(void *))(feed->value[i]);
        free(feed->input[i].data);
    }
    *feed = (struct feed){0};
}

static bool keep_output(const struct ort *ort, void *value, struct tensor *out) {
    int is_tensor = 0;
    void *info = NULL, *data = NULL;
    *out = (struct tensor){0};
    if (value == NULL || !ASK(ort, IS_TENSOR, (const void *, int *), value, &is_tensor))
        return value == NULL;
    if (!is_tensor)
        return true;
    bool too_many;
    int kind = 0;
    if (!ASK(ort, GET_TENSOR_TYPE_AND_SHAPE, (const void *, void **), value, &info) ||
        !read_info(ort, info, &kind, &out->shape))
        return false;
    if (kind_size(kind) == 0) // text, and numbers of rare kinds
        return true;
    out->kind = kind;
    out->count = shape_count(&out->shape, &too_many);
    out->data = malloc(out->count * kind_size(kind) + 1);
    if (out->data == NULL)
        abort();
    if (!ASK(ort, GET_TENSOR_MUTABLE_DATA, (void *, void **), value, &data))
        return false;
    memcpy(out->data, data, out->count * kind_size(kind));
    return true;
}

bool session_run(const struct ort *ort, void *session, const struct feed *feed, struct tensor *out, double *seconds) {
    void **values = calloc(feed->outputs + 1, sizeof *values);
    if (values == NULL)
        abort();
    double start = seconds_now();
    void *status = ORT_CALL(ort->api, RUN, run_function)(session, NULL, feed->input_name, feed->value, feed->inputs,
                                                         feed->output_name, feed->outputs, values);
    *seconds = seconds_now() - start;
    bool good = status == NULL || went_well(ort->api, status);
    for (size_t i = 0; i < feed->outputs; i++) {
        good = good && (out == NULL || keep_output(ort, values[i], &out[i]));
        if (values[i] != NULL)
            ORT_CALL(ort->api, RELEASE_VALUE, void (*)(void *))(values[i]);
    }
    free(values);
    return good;
}
