// --bench: how long a model takes on the CPU and on CUDA. What was measured goes into the report; a judgement is the
// reader's. Where there is no GPU that is said, and the CPU is measured all the same.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "cuda_settings.h"
#include "profile.h"
#include "profile_place.h"
#include "run.h"
#include "run_judge.h"

static const char cpu_check[] = "bench.cpu", cuda_check[] = "bench.cuda";

static void tell_points(struct scene *scene, const cJSON *points, const char *check) {
    const cJSON *point;
    cJSON_ArrayForEach(point, points) {
        double threads = kept_number(point, "concurrency");
        char *words = text("%s", kept_words(point, "shape"));
        if (check == cuda_check)
            words = text("%s, %s%s", words, cJSON_IsTrue(kept_item(point, "binding")) ? "on the GPU" : "with copies",
                         cJSON_IsTrue(kept_item(point, "tf32")) ? ", TF32" : "");
        if (threads > 1)
            words = text("%s, %.0f threads", words, threads);
        words = text("%s: P50 %.3f, P95 %.3f, P99 %.3f ms; %.0f/s", words, kept_number(point, "p50_ms"),
                     kept_number(point, "p95_ms"), kept_number(point, "p99_ms"), kept_number(point, "per_second"));
        if (kept_item(point, "first_ms") != NULL)
            words = text("%s; first run %.1f ms", words, kept_number(point, "first_ms"));
        if (kept_item(point, "idle_share") != NULL)
            words = text("%s; GPU idle %.0f %%", words, 100 * kept_number(point, "idle_share"));
        report_add(scene->report, check, OK, NULL, "%s", words);
    }
}

// What a child measured goes into the report, also where it came to no good end. Its other numbers are returned.
static bool run_child(struct scene *scene, const struct bench_attempt *attempt, const char *check) {
    struct outcome outcome = child_run(attempt_bench, (void *)attempt, scene->seconds);
    struct reading reading = read_report(&outcome);
    const struct step *error = first_error(&reading);
    tell_points(scene, kept_item(reading.kept, "points"), check);
    if (!reading.whole)
        judge_run_end(scene, &outcome, &reading);
    else if (error != NULL)
        judge_run_error(scene, &attempt->options->run, &outcome, &reading, error);
    kept_merge(scene->report->bench, reading.kept);
    return reading.whole && error == NULL;
}

static void keep_nodes(cJSON *bench, const char *folder) {
    size_t length = 0;
    char *json = profile_take(folder, &length);
    struct profile profile;
    if (json == NULL || profile_read(json, length, &profile) != NULL)
        return;
    cJSON *nodes = cJSON_AddObjectToObject(bench, "nodes");
    cJSON_AddNumberToObject(nodes, "total", (double)profile.count);
    cJSON_AddNumberToObject(nodes, "cuda", (double)profile_count(&profile, "CUDAExecutionProvider"));
    cJSON_AddNumberToObject(nodes, "cpu", (double)profile_count(&profile, "CPUExecutionProvider"));
    cJSON_AddNumberToObject(nodes, "copies", (double)profile.copies);
    struct names operators = {0};
    for (size_t i = 0; i < profile.count; i++)
        if (strcmp(profile.node[i].provider, "CPUExecutionProvider") == 0)
            names_add_once(&operators, profile.node[i].op);
    cJSON *list = cJSON_AddArrayToObject(nodes, "cpu_operators");
    for (size_t i = 0; i < operators.count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(operators.item[i]));
}

static void bench_cuda(struct scene *scene, struct bench_attempt attempt) {
    cJSON *bench = scene->report->bench;
    const char *wanted = cuda_option_value(&attempt.options->run.cuda, tf32_option);
    char *folder = profile_folder();
    attempt.cuda = true;
    attempt.cudart = scene_cudart(scene);
    attempt.profile = folder ? text("%s/profile", folder) : NULL;
    attempt.tf32 = wanted != NULL && strcmp(wanted, "1") == 0;
    bool good = run_child(scene, &attempt, cuda_check);
    if (folder != NULL)
        keep_nodes(bench, folder);
    if (!good || wanted != NULL)
        return;
    // TF32 came with compute capability 8.0.
    if (strtod(kept_words(bench, "device.compute"), NULL) < 8) {
        cJSON_AddStringToObject(bench, "tf32_not_measured", "this GPU has no TF32 (compute 8.0 is the first with it)");
        return;
    }
    attempt.profile = NULL;
    attempt.tf32 = true;
    run_child(scene, &attempt, cuda_check);
}

void check_bench(struct scene *scene, const struct options *options) {
    const struct run_wish *wish = &options->run;
    for (size_t i = 0; i < wish->cuda.warnings.count; i++)
        report_add(scene->report, "run.options", WARNING, "leave it out, or give the value that is meant", "%s",
                   wish->cuda.warnings.item[i]);
    if (!starts_with(scene->core_name, "libonnxruntime.")) {
        scene->report->environment = true;
        report_add(scene->report, cpu_check, SKIPPED, "measure the image without Python, or your own program",
                   "--bench needs libonnxruntime.so, and this image holds %s", scene->core_name);
        return;
    }
    cJSON *bench = scene->report->bench = cJSON_CreateObject();
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    cJSON_AddStringToObject(bench, "model", wish->model ? base_name(wish->model) : own_model);
    cJSON_AddStringToObject(bench, "date", date);
    cJSON_AddNumberToObject(bench, "warmup", wish->warmup);
    cJSON_AddNumberToObject(bench, "runs", wish->runs);
    struct bench_attempt attempt = {.core = scene->core_name, .options = options};
    run_child(scene, &attempt, cpu_check);
    if (wish->cpu)
        return;
    if (loader_find("libcuda.so.1") == NULL) {
        const char *why = "no GPU here (no libcuda.so.1)";
        cJSON_AddStringToObject(bench, "cuda_not_measured", why);
        scene->report->environment = true;
        report_add(scene->report, cuda_check, SKIPPED,
                   "start the container with --gpus all, on a machine with an NVIDIA GPU and its driver",
                   "CUDA not measured: %s", why);
        return;
    }
    bench_cuda(scene, attempt);
}
