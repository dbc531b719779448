// What went wrong in tier run, by its cause. A fault of the machine is not called one of the image.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "run_judge.h"

static const char device_check[] = "run.device", session_check[] = "run.session";

void blame_machine(struct scene *scene, const char *cure, const char *evidence) {
    scene->report->environment = true;
    report_add(scene->report, device_check, SKIPPED, cure, "%s", evidence);
}

static const char *visible_words(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible ? text("CUDA_VISIBLE_DEVICES is \"%s\"", visible) : "CUDA_VISIBLE_DEVICES is not set";
}

// Numbers of cudaError and CUresult that speak of the machine, and what to do.
static const struct {
    int code;
    const char *cure;
} faults[] = {
#include "gpu_faults.inc"
};

static bool is_machines_fault(struct scene *scene, int failure, const char *error) {
    bool device = failure == 100 || failure == 101;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].code == failure) {
            blame_machine(scene, faults[i].cure, device ? text("%s; %s", error, visible_words()) : error);
            return true;
        }
    return false;
}

static bool is_out_of_memory(const char *error) {
    return cuda_failure(error) == 2 || strstr(error, "Available memory of") != NULL ||
           strstr(error, "Failed to allocate memory") != NULL || strstr(error, "out of memory") != NULL ||
           strstr(error, "_STATUS_ALLOC_FAILED") != NULL; // of cuBLAS and cuDNN
}

static void blame_memory(struct scene *scene, const struct run_wish *wish, const cJSON *kept, const struct step *step) {
    const char *limit = cuda_option_value(&wish->cuda, "gpu_mem_limit");
    if (limit != NULL)
        report_add(scene->report, session_check, FAIL, "give gpu_mem_limit more bytes: 4G is 4294967296",
                   "gpu_mem_limit of %s is too small for this model, at \"%s\": %s",
                   bytes_words(strtoull(limit, NULL, 10)), step->name, step->error);
    else
        blame_machine(scene, "end what else uses the GPU, or take one with more memory",
                      text("the GPU's memory (%s) is too small or in use, at \"%s\": %s",
                           bytes_words((unsigned long long)kept_number(kept, "device.memory_bytes")), step->name,
                           step->error));
}

static void blame_library(struct scene *scene, const char *library, const char *where) {
    struct explanation why = explain_missing(scene, library);
    report_add(scene->report, session_check, FAIL, why.cure, "%s cannot be opened (%s): %s", library, where, why.cause);
}

void judge_run_error(struct scene *scene, const struct run_wish *wish, const struct outcome *outcome,
                        const struct reading *reading, const struct step *step) {
    int failure = cuda_failure(step->error);
    char *library = library_in(step->error);
    if (strcmp(step->name, step_options) == 0)
        options_wrong(text("--option %s", step->error));
    if (strcmp(step->name, step_inputs) == 0 && starts_with(step->error, "--"))
        options_wrong(step->error);
    if (strcmp(step->name, step_reference) == 0)
        options_wrong(text("--reference: %s", step->error));
    if (strcmp(step->name, step_save) == 0) {
        blame_machine(scene, text("let uid %u write to the folder of --save-outputs", (unsigned)getuid()), step->error);
        return;
    }
    if (library == NULL && failure < 0)
        library = library_in(outcome->errors); // since 1.22 the name is only there
    if (library != NULL)
        blame_library(scene, library, text("at \"%s\"", step->name));
    else if (is_machines_fault(scene, failure, step->error))
        return;
    else if (is_out_of_memory(step->error))
        blame_memory(scene, wish, reading->kept, step);
    else if (failure == 209 || strstr(step->error, "no kernel image") != NULL)
        report_add(scene->report, session_check, FAIL, "take a newer ONNX Runtime or CUDA: see `ortimg fit`",
                   "the libraries hold no code for this GPU, compute %s, at \"%s\": %s",
                   kept_words(reading->kept, "device.compute"), step->name, step->error);
    else
        report_add(scene->report, session_check, FAIL, "see ONNX Runtime's text", "at \"%s\": %s", step->name,
                   step->error);
}

void judge_run_end(struct scene *scene, const struct outcome *outcome, const struct reading *reading) {
    const char *step = reading->count > 0 ? reading->step[reading->count - 1].name : "start";
    const char *how = outcome_words(outcome, scene->seconds);
    char *library = library_in(outcome->errors);
    if (library != NULL)
        blame_library(scene, library, text("%s at \"%s\"", how, step));
    else
        report_add(scene->report, session_check, FAIL,
                   outcome->hung ? "give --timeout more seconds if the GPU needs them to compile its kernels; if not, "
                                   "the model or the driver hangs"
                                 : "see the last words",
                   "%s at \"%s\", last words: %s", how, step, last_line(outcome->errors));
}
