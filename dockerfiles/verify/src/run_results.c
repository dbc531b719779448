// What was seen in tier run: where the nodes ran, how far the outputs are from the CPU's, how long it took.
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "run_judge.h"

static const char device_check[] = "run.device", session_check[] = "run.session", nodes_check[] = "run.nodes",
                  outputs_check[] = "run.outputs", reference_check[] = "run.reference";
static const char on_cuda[] = "CUDAExecutionProvider", on_cpu[] = "CPUExecutionProvider";
static const double tolerance = 1e-3;

static void add_node(cJSON *list, const struct profile_node *node) {
    cJSON *told = cJSON_CreateObject();
    cJSON_AddStringToObject(told, "name", node->name);
    cJSON_AddStringToObject(told, "op", node->op);
    cJSON_AddStringToObject(told, "provider", node->provider);
    cJSON_AddItemToArray(list, told);
}

void judge_nodes(struct scene *scene, const struct run_wish *wish, cJSON *kept, const char *json, size_t length,
                 bool refused) {
    struct profile profile;
    const char *fault = json ? profile_read(json, length, &profile) : "there is none";
    if (fault != NULL) {
        report_add(scene->report, nodes_check, FAIL, "run it again; without it nobody knows where the model ran",
                   "ONNX Runtime's profile cannot be read: %s", fault);
        return;
    }
    size_t cuda = profile_count(&profile, on_cuda), cpu = profile_count(&profile, on_cpu);
    struct names unwanted = {0}, allowed = {0};
    cJSON *nodes = cJSON_AddObjectToObject(kept, "nodes");
    cJSON_AddNumberToObject(nodes, "total", (double)profile.count);
    cJSON_AddNumberToObject(nodes, "cuda", (double)cuda);
    cJSON_AddNumberToObject(nodes, "cpu", (double)cpu);
    cJSON_AddNumberToObject(nodes, "share_cuda", profile.count ? (double)cuda / (double)profile.count : 0);
    cJSON_AddNumberToObject(nodes, "copies", (double)profile.copies);
    cJSON *elsewhere = cJSON_AddArrayToObject(nodes, "not_on_cuda");
    for (size_t i = 0; i < profile.count; i++) {
        const struct profile_node *node = &profile.node[i];
        if (strcmp(node->provider, on_cuda) == 0)
            continue;
        add_node(elsewhere, node);
        names_add(names_has(&wish->allow_cpu, node->op) ? &allowed : &unwanted, text("%s (%s)", node->name, node->op));
    }
    const char *share = text("%zu of %zu nodes ran on CUDA (%.0f %%)", cuda, profile.count,
                             profile.count ? 100.0 * (double)cuda / (double)profile.count : 0.0);
    if (unwanted.count > 0)
        report_add(scene->report, nodes_check, FAIL,
                   "take operators that CUDA has, or say --allow-cpu OP,… where the CPU is meant",
                   "%s; on the CPU: %s", share, names_join(&unwanted, 12));
    else if (refused)
        report_add(scene->report, nodes_check, FAIL, "take operators that CUDA has",
                   "%s, but ONNX Runtime says that nodes which were not reached belong to the CPU", share);
    else if (cuda == 0)
        report_add(scene->report, nodes_check, FAIL, "a GPU is of no use to this model", "%s", share);
    else if (allowed.count > 0)
        report_add(scene->report, nodes_check, OK, NULL, "%s; on the CPU, as allowed: %s", share,
                   names_join(&allowed, 12));
    else
        report_add(scene->report, nodes_check, OK, NULL, "%s", share);
}

void judge_outputs(struct scene *scene, const cJSON *kept) {
    const cJSON *outputs = kept_item(kept, "outputs"), *output;
    struct names far = {0};
    size_t compared = 0;
    double largest = 0;
    cJSON_ArrayForEach(output, outputs) {
        if (kept_item(output, "skipped") != NULL)
            continue;
        compared++;
        const cJSON *error = kept_item(output, "relative_error");
        bool endless = !cJSON_IsNumber(error);
        if (!endless && error->valuedouble > largest)
            largest = error->valuedouble;
        if (endless || error->valuedouble > tolerance)
            names_add(&far, text("%s: %.6g on CUDA, %.6g on the CPU, relative error %s", kept_words(output, "name"),
                                 kept_number(output, "cuda"), kept_number(output, "cpu"),
                                 endless ? "endless" : text("%.1e", error->valuedouble)));
    }
    const char *tf32 = cJSON_IsTrue(kept_item(kept, "tf32")) ? "on" : "off";
    if (far.count > 0)
        report_add(scene->report, outputs_check, FAIL,
                   cJSON_IsTrue(kept_item(kept, "tf32")) ? "turn TF32 off: --option use_tf32=0"
                                                       : "the GPU computes something else than the CPU: do not use it",
                   "TF32 %s, limit %.0e: %s", tf32, tolerance, names_join(&far, 4));
    else if (compared == 0)
        report_add(scene->report, outputs_check, WARNING, "give the model an output of numbers",
                   "no output could be compared with the CPU's");
    else
        report_add(scene->report, outputs_check, OK, NULL,
                   "%zu output%s as on the CPU: largest relative error %.1e (limit %.0e, TF32 %s)", compared,
                   compared == 1 ? "" : "s", largest, tolerance, tf32);
}

void judge_reference(struct scene *scene, cJSON *kept) {
    cJSON *reference = cJSON_GetObjectItemCaseSensitive(kept, "reference");
    const char *other = cJSON_GetStringValue(kept_item(reference, "other_inputs"));
    const char *who = text("ONNX Runtime %s on %s", kept_words(reference, "ort"),
                           strcmp(kept_words(reference, "provider"), "cpu") == 0 ? "the CPU" : "CUDA");
    if (other != NULL) {
        report_add(scene->report, reference_check, FAIL, "give both runs the same model, --shape and ort-verify",
                   "the reference (%s) had other inputs: %s", who, other);
        return;
    }
    const cJSON *output;
    struct names far = {0};
    size_t compared = 0;
    double largest = 0;
    bool endless = false;
    cJSON_ArrayForEach(output, kept_item(reference, "outputs")) {
        const char *name = kept_words(output, "name"), *fault = cJSON_GetStringValue(kept_item(output, "fault"));
        const cJSON *error = kept_item(output, "relative_error");
        if (fault != NULL)
            names_add(&far, text("%s: %s", name, fault));
        if (fault != NULL || kept_item(output, "skipped") != NULL)
            continue;
        compared++;
        endless = endless || !cJSON_IsNumber(error);
        if (cJSON_IsNumber(error) && error->valuedouble > largest)
            largest = error->valuedouble;
        if (!cJSON_IsNumber(error) || error->valuedouble > tolerance)
            names_add(&far, text("%s: %.6g here, %.6g there, relative error %s", name, kept_number(output, "got"),
                                 kept_number(output, "wanted"),
                                 cJSON_IsNumber(error) ? text("%.1e", error->valuedouble) : "endless"));
    }
    cJSON_AddNumberToObject(reference, "limit", tolerance);
    if (endless || compared == 0)
        cJSON_AddNullToObject(reference, "largest_relative_error");
    else
        cJSON_AddNumberToObject(reference, "largest_relative_error", largest);
    if (far.count > 0)
        report_add(scene->report, reference_check, FAIL, "see which of both is right before you change over",
                   "not as %s, limit %.0e: %s", who, tolerance, names_join(&far, 4));
    else if (compared == 0)
        report_add(scene->report, reference_check, WARNING, "give the model an output of numbers",
                   "no output could be compared with the reference (%s)", who);
    else
        report_add(scene->report, reference_check, OK, NULL,
                   "%zu output%s as with %s: largest relative error %.1e (limit %.0e)", compared,
                   compared == 1 ? "" : "s", who, largest, tolerance);
}

void tell_device(struct scene *scene, const cJSON *kept) {
    const char *memory = bytes_words((unsigned long long)kept_number(kept, "device.memory_bytes"));
    report_add(scene->report, device_check, OK, NULL, "%s, compute %s, %s; driver %s for CUDA %s; CUDA run time %s",
               kept_words(kept, "device.name"), kept_words(kept, "device.compute"), memory,
               kept_words(kept, "device.driver"), kept_words(kept, "device.driver_cuda"),
               kept_words(kept, "device.runtime_cuda"));
}

void tell_run(struct scene *scene, const cJSON *kept) {
    double used = kept_number(kept, "memory.free_before_bytes") - kept_number(kept, "memory.free_after_bytes");
    bool cpu = strcmp(kept_words(kept, "provider"), "cpu") == 0;
    const char *model = cJSON_IsString(kept_item(kept, "model")) ? kept_words(kept, "model") : "the model";
    if (cpu)
        report_add(scene->report, session_check, OK, NULL, "%s ran on the CPU, no GPU was used", model);
    else
        report_add(scene->report, session_check, OK, NULL, "%s ran on CUDA%s; convolutions %s", model,
                   cJSON_IsTrue(kept_item(kept, "cpu_fallback")) ? "" : ", the CPU was locked out",
                   kept_words(kept, "options.cudnn_conv_algo_search"));
    report_add(scene->report, "run.time", OK, NULL, "session %.2f s, first run %.2f s, then %.3f ms (median of %.0f)",
               kept_number(kept, "seconds.session"), kept_number(kept, "seconds.first_run"),
               kept_number(kept, "runs.median_ms"), kept_number(kept, "runs.count"));
    if (kept_item(kept, "memory") != NULL)
        report_add(scene->report, "run.memory", OK, NULL, "%s of GPU memory in use by the session",
                   bytes_words(used > 0 ? (unsigned long long)used : 0));
}

void judge_memory_limit(struct scene *scene, const struct run_wish *wish, const cJSON *kept) {
    const char *limit = cuda_option_value(&wish->cuda, "gpu_mem_limit");
    double memory = kept_number(kept, "device.memory_bytes");
    if (limit != NULL && memory > 0 && strtod(limit, NULL) > memory)
        report_add(scene->report, "run.options", WARNING, "leave gpu_mem_limit out, or make it smaller than the memory",
                   "gpu_mem_limit of %s is more than the GPU has (%s): it limits nothing",
                   bytes_words(strtoull(limit, NULL, 10)), bytes_words((unsigned long long)memory));
}
