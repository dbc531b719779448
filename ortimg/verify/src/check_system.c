// The base system around ONNX Runtime: environment, loader files, C++ run time, empty files.
#define _GNU_SOURCE
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

void check_environment(struct scene *scene) {
    static const char check[] = "loader.environment", directory[] = "loader.directory", nvidia[] = "container.environment", driver[] = "loader.driver";
    const char *preload = getenv("LD_PRELOAD"), *path = getenv("LD_LIBRARY_PATH");
    bool told = false;
    for (size_t i = 0; i < scene->variable.count && !told; i++)
        if (*scene->variable.item[i] != '/') {
            report_add(scene->report, directory, WARNING, "remove empty and relative parts, or better the whole variable",
                       "LD_LIBRARY_PATH=\"%s\" makes the loader search the current directory", path);
            told = true;
        }
    if (preload != NULL && *preload != 0) {
        report_add(scene->report, check, WARNING, "unset LD_PRELOAD: what it loads hides what the image has",
                   "LD_PRELOAD is set: %s", preload);
        told = true;
    }
    if (!told)
        report_add(scene->report, check, OK, NULL, "nothing in it turns the loader aside");

    // Without them the NVIDIA runtime hands no driver into the container.
    struct names unset = {0};
    static const char *const wanted[] = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"};
    for (size_t i = 0; i < 2; i++)
        if (getenv(wanted[i]) == NULL)
            names_add(&unset, wanted[i]);
    const char *libcuda = loader_find("libcuda.so.1"), *devices = getenv(wanted[0]), *capabilities = getenv(wanted[1]);
    if (scene->unpacked_root)
        report_add(scene->report, nvidia, SKIPPED, NULL, "an unpacked root has no environment");
    else if (unset.count > 0)
        report_add(scene->report, nvidia, scene->image_environment ? FAIL : WARNING,
                   "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                   "%s not set: the container gets no driver", names_join(&unset, 2));
    else if (libcuda == NULL && // with CDI it says "void" where there are GPUs
             (*devices == 0 || strcmp(devices, "void") == 0 || strcmp(devices, "none") == 0))
        report_add(scene->report, nvidia, scene->image_environment ? FAIL : WARNING, "ENV NVIDIA_VISIBLE_DEVICES=all",
                   "NVIDIA_VISIBLE_DEVICES=%s: the container gets no GPU", devices);
    else if (strstr(capabilities, "compute") == NULL && strstr(capabilities, "all") == NULL)
        report_add(scene->report, nvidia, scene->image_environment ? FAIL : WARNING,
                   "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                   "NVIDIA_DRIVER_CAPABILITIES=%s lacks compute: the container gets no libcuda.so.1", capabilities);
    else
        report_add(scene->report, nvidia, OK, NULL, "NVIDIA_VISIBLE_DEVICES and NVIDIA_DRIVER_CAPABILITIES are set");

    // A stub or an old driver in the image beats the host's: error 803.
    if (libcuda != NULL && (strstr(libcuda, "/stubs/") || strstr(libcuda, "/compat/")))
        report_add(scene->report, driver, FAIL, "take that folder out of ld.so.conf.d and LD_LIBRARY_PATH",
                   "libcuda.so.1 is taken from %s, which hides the host's driver", libcuda);
    else if (libcuda == NULL && loader_find("libnvidia-ml.so.1") != NULL)
        report_add(scene->report, driver, WARNING, "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                   "libnvidia-ml.so.1 is there and libcuda.so.1 is not: the driver was handed in without compute");
    else
        report_add(scene->report, driver, OK, NULL, libcuda ? "libcuda.so.1 is at %s" : "no libcuda.so.1%s",
                   libcuda ? libcuda : ": it comes from the host when the container starts");
}

bool check_readable(struct scene *scene) {
    const struct manifest *manifest = &scene->manifest;
    if (!manifest->present)
        return true;
    char *ort = manifest->python ? text("%s/onnxruntime/capi", manifest->python_site) : text("%s/lib", manifest->ort_prefix);
    const char *const folders[] = {ort, manifest->cuda_folder};
    for (size_t i = 0; i < 2; i++)
        if (access(folders[i], R_OK | X_OK) != 0 && errno == EACCES) {
            report_add(scene->report, "files.readable", FAIL,
                       "leave the folders of the cell as they are: owner 0:0, readable for every user",
                       "user %u may not read %s", geteuid(), folders[i]);
            return false;
        }
    report_add(scene->report, "files.readable", OK, NULL, "%s and %s", ort, manifest->cuda_folder);
    return true;
}

static bool conf_has(const struct scene *scene, const char *folder) {
    for (size_t i = 0; i < scene->conf.count; i++)
        if (same_place(scene->conf.item[i], folder))
            return true;
    return false;
}

static bool cache_has(const struct scene *scene, const char *name, const char *folder) {
    for (size_t i = 0; i < scene->cache.count; i++)
        if (strcmp(scene->cache.item[i].name, name) == 0 && same_place(folder_of(scene->cache.item[i].path), folder))
            return true;
    return false;
}

void check_loader_files(struct scene *scene) {
    static const char conf[] = "loader.conf", cache[] = "loader.cache";
    const struct manifest *manifest = &scene->manifest;
    if (scene->cache.fault != NULL)
        report_add(scene->report, cache, manifest->present ? FAIL : WARNING, "run ldconfig in the final stage", "%s",
                   scene->cache.fault);
    if (!manifest->present)
        return;
    const char *const folders[] = {manifest->cuda_folder, text("%s/lib", manifest->ort_prefix)};
    size_t count = manifest->python ? 1 : 2; // Python opens the wheel's libraries by their paths
    for (size_t i = 0; i < count; i++)
        if (!conf_has(scene, folders[i]))
            report_add(scene->report, conf, FAIL,
                       text("write %s into a file of /etc/ld.so.conf.d and run ldconfig", folders[i]),
                       "no file of /etc/ld.so.conf.d names %s", folders[i]);
    if (!report_failed(scene->report, conf))
        report_add(scene->report, conf, OK, NULL, count == 1 ? "%s" : "%s and %s", folders[0], folders[1]);
    if (scene->cache.fault != NULL)
        return;
    struct names absent = {0};
    if (count == 2 && !cache_has(scene, manifest->ort_soname, folders[1]))
        names_add(&absent, manifest->ort_soname);
    for (size_t i = 0; i < manifest->cuda_libraries.count; i++)
        if (!cache_has(scene, manifest->cuda_libraries.item[i], folders[0]))
            names_add(&absent, manifest->cuda_libraries.item[i]);
    if (absent.count > 0) // a warning: the checks of the libraries tell which of them matter, and why
        report_add(scene->report, cache, WARNING, "run ldconfig in the final stage, after the last COPY",
                   "/etc/ld.so.cache does not name %s", names_join(&absent, 8));
    else
        report_add(scene->report, cache, OK, NULL, "names all %zu libraries of the cell",
                   manifest->cuda_libraries.count + count - 1);
}

static void check_empty(struct scene *scene) {
    static const char check[] = "files.empty";
    struct names folders = default_folders(), empty = {0};
    for (size_t i = 0; i < scene->conf.count; i++)
        names_add_once(&folders, scene->conf.item[i]);
    if (scene->manifest.present)
        names_add_once(&folders, scene->manifest.cuda_folder);
    if (scene->core != NULL)
        names_add_once(&folders, folder_of(scene->core));
    for (size_t i = 0; i < folders.count; i++) {
        struct names entries = folder_entries(folders.item[i]);
        for (size_t k = 0; k < entries.count; k++) {
            char *path = text("%s/%s", folders.item[i], entries.item[k]);
            struct stat status;
            bool library = starts_with(entries.item[k], "lib") && strstr(entries.item[k], ".so") != NULL;
            if (library && lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
                names_add(&empty, path);
        }
    }
    if (empty.count > 0)
        report_add(scene->report, check, FAIL,
                   "remove them; a build under the nvidia runtime leaves such files: build with the default runtime",
                   "empty library files: %s", names_join(&empty, 5));
    else
        report_add(scene->report, check, OK, NULL, "no library file is empty");
}

void check_base(struct scene *scene) {
    static const char check[] = "base.libraries";
    struct names wanted = {0}, missing = {0};
    names_add(&wanted, "libstdc++.so.6");
    names_add(&wanted, "libgcc_s.so.1");
    names_add(&wanted, "libz.so.1"); // ORT 1.16 and cuDNN (cnn_infer of 8, graph of 9) are linked to it
    struct libraries found = loader_closure(NULL, &wanted);
    for (size_t i = 0; i < wanted.count; i++) {
        const struct library *library = library_named(&found, wanted.item[i]);
        if (library == NULL || library->path == NULL)
            names_add(&missing, wanted.item[i]);
        else if (*library->path != '/')
            report_add(scene->report, check, FAIL, "unset LD_LIBRARY_PATH", "%s is taken from the current directory",
                       wanted.item[i]);
    }
    report_missing(scene, check, &missing, NULL);
    const char *glibc = gnu_get_libc_version(), *promised = scene->manifest.glibc;
    if (promised != NULL && strcmp(glibc, promised) != 0)
        report_add(scene->report, "base.glibc", WARNING, "correct the base's row in the catalogue",
                   "glibc is %s, the manifest says %s", glibc, promised);
    if (missing.count == 0 && !report_failed(scene->report, check))
        report_add(scene->report, check, OK, NULL, "libstdc++.so.6, libgcc_s.so.1 and libz.so.1; glibc %s", glibc);
    check_empty(scene);
}
