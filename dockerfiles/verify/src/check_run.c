// Tier run: a model runs on the GPU, all of it, and gives what the CPU gives. What went wrong is told by its cause,
// and a fault of the machine is not called one of the image.
#include <string.h>

#include "profile_place.h"
#include "run.h"
#include "run_judge.h"
#include "run_wheel.h"

static const char options_check[] = "run.options";

// ONNX Runtime says that the CPU would have to help: no session, and the profile tells which nodes.
static bool is_refusal(const struct step *step) {
    return strcmp(step->name, step_cuda_session) == 0 && step->error != NULL && strstr(step->error, needs_fallback);
}

const char *scene_cudart(const struct scene *scene) {
    for (size_t i = 0; i < scene->cuda_elf.needed.count; i++)
        if (starts_with(scene->cuda_elf.needed.item[i], "libcudart.so."))
            return scene->cuda_elf.needed.item[i];
    return NULL;
}

void check_run(struct scene *scene, const struct run_wish *wish) {
    for (size_t i = 0; i < wish->cuda.warnings.count; i++)
        report_add(scene->report, options_check, WARNING, "leave it out, or give the value that is meant", "%s",
                   wish->cuda.warnings.item[i]);
    // An extension module of Python has no C API to call.
    bool wheel = !starts_with(scene->core_name, "libonnxruntime.");
    if (wish->cpu)
        report_add(scene->report, "run.device", SKIPPED, "leave --provider cpu out, on a machine with a GPU",
                   "--provider cpu: no GPU was used, nothing is proved about CUDA");
    else if (loader_find("libcuda.so.1") == NULL) {
        blame_machine(scene, "start the container with --gpus all, on a machine with an NVIDIA GPU and its driver",
                      "no libcuda.so.1: there is no NVIDIA driver here");
        return;
    }
    char *folder = profile_folder();
    if (folder == NULL) {
        blame_machine(scene, "start the container with --tmpfs /tmp",
                      "no folder can be written to: ONNX Runtime's profile has no place");
        return;
    }
    struct run_attempt attempt = {scene->core_name, scene_cudart(scene), text("%s/profile", folder), wish};
    struct outcome outcome;
    struct reading reading;
    if (wheel)
        reading = run_wheel(scene, wish, attempt.profile, &outcome);
    else {
        outcome = child_run(attempt_run, &attempt, scene->seconds);
        reading = read_report(&outcome);
    }
    size_t length = 0;
    char *json = profile_take(folder, &length);
    const struct step *error = NULL;
    bool refused = false;
    for (size_t i = 0; i < reading.count && error == NULL; i++)
        if (is_refusal(&reading.step[i]))
            refused = true;
        else if (reading.step[i].error != NULL)
            error = &reading.step[i];

    cJSON_AddStringToObject(reading.kept, "model", wish->model ? base_name(wish->model) : own_model);
    scene->report->run = reading.kept;
    if (kept_item(reading.kept, "device.name") != NULL)
        tell_device(scene, reading.kept);
    judge_memory_limit(scene, wish, reading.kept);
    if (!reading.whole)
        judge_run_end(scene, &outcome, &reading);
    else if (error != NULL)
        judge_run_error(scene, wish, &outcome, &reading, error);
    else {
        if (!refused) {
            tell_run(scene, reading.kept);
            if (!wish->cpu)
                judge_outputs(scene, reading.kept);
            if (wish->reference != NULL)
                judge_reference(scene, reading.kept);
        }
        if (!wish->cpu)
            judge_nodes(scene, wish, reading.kept, json, length, refused);
    }
}
