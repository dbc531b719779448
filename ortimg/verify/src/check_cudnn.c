// cuDNN is a thin library that opens its parts when they are used: nothing NEEDs them, so nothing misses them
// until the first convolution.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "model.h"

static const char check[] = "cudnn.libraries";

static const char *const parts_8[] = {"ops_infer", "cnn_infer", "adv_infer", NULL};
static const char *const parts_9[] = {"graph", "engines_precompiled", "engines_runtime_compiled", "heuristic",
                                      "ops",   "cnn",                 "adv",                      NULL};

static int wanted_major(const struct scene *scene) {
    const struct names *const lists[] = {&scene->cuda_elf.needed, &scene->manifest.ort_dlopened};
    int major = 0;
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count && major == 0; i++)
            if (starts_with(lists[l]->item[i], "libcudnn.so."))
                major = atoi(lists[l]->item[i] + strlen("libcudnn.so."));
    // ORT 1.28 and later open cuDNN, a 9, only when they use it; that they link to the driver tells them apart.
    if (major == 0 && names_has(&scene->cuda_elf.needed, "libcuda.so.1"))
        major = 9;
    return major;
}

static struct names parts_of(const struct scene *scene, int major) {
    struct names parts = {0};
    const char *const *short_names = major == 8 ? parts_8 : parts_9;
    for (size_t i = 0; major >= 8 && short_names[i] != NULL; i++)
        names_add(&parts, text("libcudnn_%s.so.%d", short_names[i], major));
    // ORT 1.16–1.18 call this one, a BatchNormalization with training_mode=1 dies without it.
    if (major == 8 && elf_imports(&scene->cuda_elf, "cudnnBatchNormalizationForwardTraining"))
        names_add(&parts, "libcudnn_ops_train.so.8");
    return parts;
}

// libcudnn looks for its parts in LD_LIBRARY_PATH, then in its run path ($ORIGIN), then everywhere.
static char *part_path(const struct scene *scene, const char *cudnn, const char *part) {
    for (size_t i = 0; i < scene->variable.count; i++)
        if (is_file(text("%s/%s", scene->variable.item[i], part)))
            return text("%s/%s", scene->variable.item[i], part);
    struct elf elf;
    char *beside = text("%s/%s", folder_of(cudnn), part);
    if (elf_read(cudnn, &elf) == NULL && elf.runpath != NULL && strstr(elf.runpath, "$ORIGIN") && is_file(beside))
        return beside;
    return loader_find(part);
}

void check_cudnn(struct scene *scene) {
    if (scene->cuda == NULL) {
        report_add(scene->report, check, SKIPPED, NULL, "no CUDA provider to ask about");
        return;
    }
    for (size_t i = 0; i < scene->manifest.ort_dlopened.count; i++)
        names_add_once(&scene->touch, scene->manifest.ort_dlopened.item[i]);
    int major = scene->cudnn_major = wanted_major(scene);
    if (major == 0) {
        report_add(scene->report, check, WARNING, "make sure that no model needs a convolution",
                   "nothing says that this ONNX Runtime wants cuDNN");
        return;
    }
    char *name = text("libcudnn.so.%d", major), *cudnn = loader_find(name);
    struct names missing = {0}, elsewhere = {0}, parts = parts_of(scene, major);
    bool complete = true;
    if (cudnn == NULL && scene->manifest.without_cudnn) {
        scene->cudnn_major = 0;
        model_without_conv();
        report_add(scene->report, check, WARNING, "take the image with cuDNN if a model has convolutions",
                   "no cuDNN, as the image's manifest says: Conv not available");
        return;
    }
    if (cudnn == NULL) {
        names_add(&missing, name);
        report_missing(scene, check, &missing, "the CUDA provider");
        return;
    }
    for (size_t i = 0; i < parts.count; i++) {
        char *path = part_path(scene, cudnn, parts.item[i]);
        struct elf elf;
        const char *fault = path ? elf_read(path, &elf) : NULL;
        names_add_once(&scene->touch, parts.item[i]);
        if (path == NULL)
            names_add(&missing, parts.item[i]);
        else if (fault != NULL)
            report_add(scene->report, check, FAIL, "copy the file again", "%s is %s", path, fault);
        else if (elf.soname != NULL && strcmp(elf.soname, parts.item[i]) != 0)
            report_add(scene->report, check, FAIL, "copy the library whose SONAME is the name of the file",
                       "%s says it is %s", path, elf.soname);
        else if (!same_place(folder_of(path), folder_of(cudnn)))
            names_add(&elsewhere, path);
        else { // what a part needs in its turn: cnn_infer wants libz
            struct libraries found = loader_closure(path, NULL);
            struct names inner = {0};
            for (size_t k = 0; k < found.count; k++)
                if (found.item[k].path == NULL && strcmp(found.item[k].name, "libcuda.so.1") != 0 &&
                    !names_has(&parts, found.item[k].name)) // told by itself
                    names_add_once(&inner, found.item[k].name);
            report_missing(scene, check, &inner, parts.item[i]);
            complete = complete && inner.count == 0;
        }
    }
    report_missing(scene, check, &missing, text("%s, which opens it when it is used", name));
    if (elsewhere.count > 0 && !names_has(&scene->hiding, folder_of(cudnn))) // else it is told already
        report_add(scene->report, check, FAIL, "keep all of cuDNN in one folder, and unset LD_LIBRARY_PATH",
                   "%s is not from the folder of %s: two cuDNNs mixed", names_join(&elsewhere, 3), cudnn);
    if (complete && missing.count == 0 && elsewhere.count == 0 && !report_failed(scene->report, check))
        report_add(scene->report, check, OK, NULL, "%s and %s, all in %s", name, names_join(&parts, 20),
                   folder_of(cudnn));
}
