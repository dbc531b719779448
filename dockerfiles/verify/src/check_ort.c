// The files of ONNX Runtime: complete, found by the loader, and only once.
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

static const char files_check[] = "ort.files", single_check[] = "ort.single", path_check[] = "ort.runpath",
                  stack_check[] = "ort.stack";
static const char shared_name[] = "libonnxruntime_providers_shared.so",
                  cuda_name[] = "libonnxruntime_providers_cuda.so", module_name[] = "onnxruntime_pybind11_state";
static const char copy_all[] = "copy the whole lib folder of the ONNX Runtime GPU archive, links included";

static void add_cores(struct names *names, const char *name) {
    if (starts_with(name, "libonnxruntime.so"))
        names_add_once(names, name);
}

// Names under which programs may ask for it. A program is linked to the SONAME, so versioned names come first.
static struct names core_names(const struct scene *scene) {
    struct names names = {0}, found = {0}, standard = default_folders();
    if (scene->manifest.present) {
        names_add(&names, scene->manifest.ort_soname);
        return names;
    }
    const struct names *const folders[] = {&scene->variable, &scene->conf, &standard};
    for (size_t l = 0; l < 3; l++)
        for (size_t i = 0; i < folders[l]->count; i++) {
            struct names entries = folder_entries(folders[l]->item[i]);
            for (size_t k = 0; k < entries.count; k++)
                add_cores(&found, entries.item[k]);
        }
    for (size_t i = 0; i < scene->cache.count; i++)
        add_cores(&found, scene->cache.item[i].name);
    for (size_t i = 0; i < found.count; i++)
        if (strstr(found.item[i], ".so.") != NULL)
            names_add(&names, found.item[i]);
    names_add(&names, "libonnxruntime.so");
    return names;
}

// ORT opens its providers next to itself (the path as loaded), then by their bare names.
static char *provider(const struct scene *scene, const char *name) {
    char *beside = text("%s/%s", folder_of(scene->core), name);
    return is_file(beside) ? beside : loader_find(name);
}

static bool elf_is_sound(struct scene *scene, const char *path, struct elf *elf) {
    const char *fault = elf_read(path, elf);
    if (fault != NULL)
        report_add(scene->report, files_check, FAIL, copy_all, "%s is %s", path, fault);
    return fault == NULL;
}

// In the wheel the extension module takes the place of libonnxruntime; the providers lie beside it.
static void find_module(struct scene *scene) {
    char *folder = text("%s/onnxruntime/capi", scene->manifest.python_site);
    struct names entries = folder_entries(folder);
    for (size_t i = 0; i < entries.count && scene->core == NULL; i++)
        if (starts_with(entries.item[i], module_name) && ends_with(entries.item[i], ".so")) {
            scene->core = text("%s/%s", folder, entries.item[i]);
            scene->core_name = entries.item[i];
        }
    if (scene->core == NULL)
        report_add(scene->report, files_check, FAIL, "install the wheel onnxruntime-gpu, whole", "%s*.so missing in %s",
                   module_name, folder);
}

// The cell's own folder must be complete, whatever the loader found.
static void check_own_folder(struct scene *scene) {
    const struct manifest *manifest = &scene->manifest;
    const char *const names[] = {"libonnxruntime.so", manifest->ort_soname, shared_name, cuda_name};
    struct names missing = {0};
    for (size_t i = 0; i < 4; i++)
        if (!is_file(text("%s/lib/%s", manifest->ort_prefix, names[i])))
            names_add(&missing, names[i]);
    bool core_is_there = !names_has(&missing, names[0]) || !names_has(&missing, names[1]);
    if (core_is_there && names_has(&missing, shared_name) && names_has(&missing, cuda_name))
        report_add(scene->report, files_check, FAIL, "take the GPU archive (its name has \"gpu\" or \"cuda12\")",
                   "%s/lib holds the CPU archive: %s and %s are not in it", manifest->ort_prefix, cuda_name,
                   shared_name);
    else if (missing.count > 0)
        report_add(scene->report, files_check, FAIL, copy_all, "%s missing in %s/lib", names_join(&missing, 4),
                   manifest->ort_prefix);
    if (scene->core != NULL && !same_place(folder_of(scene->core), text("%s/lib", manifest->ort_prefix)))
        report_add(scene->report, files_check, FAIL, "remove the other copy and run ldconfig",
                   "the loader takes %s, not the one of %s/lib", scene->core, manifest->ort_prefix);
}

static void check_providers(struct scene *scene) {
    scene->shared = provider(scene, shared_name);
    scene->cuda = provider(scene, cuda_name);
    if (scene->shared == NULL && scene->cuda == NULL)
        report_add(scene->report, files_check, FAIL, "take the GPU archive (its name has \"gpu\" or \"cuda12\")",
                   "%s and %s are neither beside %s nor on the loader's path: a CPU archive, or the file was moved alone",
                   cuda_name, shared_name, scene->core);
    else if (scene->shared == NULL || scene->cuda == NULL)
        report_add(scene->report, files_check, FAIL, copy_all, "%s is neither beside %s nor on the loader's path",
                   scene->shared == NULL ? shared_name : cuda_name, scene->core);
    else if (!same_place(folder_of(scene->shared), folder_of(scene->cuda)) ||
             !same_place(folder_of(scene->core), folder_of(scene->cuda)))
        report_add(scene->report, files_check, FAIL, copy_all, "one installation in several folders: %s, %s, %s",
                   scene->core, scene->shared, scene->cuda);
}

static void find_core(struct scene *scene) {
    struct names names = core_names(scene);
    for (size_t i = 0; i < names.count && scene->core == NULL; i++) {
        scene->core = loader_find(names.item[i]);
        scene->core_name = names.item[i];
    }
    if (scene->core == NULL) {
        struct names missing = {0};
        names_add(&missing, scene->manifest.present ? scene->manifest.ort_soname : "libonnxruntime.so");
        report_missing(scene, files_check, &missing, NULL);
    }
    if (scene->manifest.present)
        check_own_folder(scene);
}

bool is_core(const char *name) {
    return starts_with(name, "libonnxruntime.so") || (starts_with(name, module_name) && ends_with(name, ".so"));
}

// pip knows onnxruntime and onnxruntime-gpu as two packages, and installs either over the other.
static const char *cure_of(const struct scene *scene, const struct names *others) {
    bool module = false;
    for (size_t i = 0; i < others->count; i++)
        module = module || starts_with(base_name(others->item[i]), module_name);
    if (!module)
        return "keep one ONNX Runtime in an image and remove the others";
    return scene->manifest.python ? "keep onnxruntime and onnxruntime-gpu out of pip's list: this image has the GPU package"
                                  : "keep ONNX Runtime out of pip's list, or take the Python flavour of this image";
}

static void check_packages(struct scene *scene) {
    struct names entries = folder_entries(scene->manifest.python_site);
    for (size_t i = 0; i < entries.count; i++)
        if (starts_with(entries.item[i], "onnxruntime-") && ends_with(entries.item[i], ".dist-info"))
            report_add(scene->report, single_check, FAIL,
                       "keep onnxruntime out of pip's list: this image has onnxruntime-gpu, and both have the same files",
                       "%s/%s: the CPU package was installed over onnxruntime-gpu", scene->manifest.python_site,
                       entries.item[i]);
}

void check_ort(struct scene *scene) {
    if (scene->manifest.python)
        find_module(scene);
    else
        find_core(scene);
    if (scene->core == NULL)
        return;
    struct elf core;
    if (elf_is_sound(scene, scene->core, &core) && core.soname != NULL) {
        if (scene->manifest.present && strcmp(core.soname, scene->manifest.ort_soname) != 0)
            report_add(scene->report, files_check, FAIL, "unpack the archive of the cell's own version",
                       "%s says it is %s, the cell wants %s", scene->core, core.soname, scene->manifest.ort_soname);
        scene->core_name = core.soname;
        if (loader_find(core.soname) == NULL) {
            struct names missing = {0};
            names_add(&missing, core.soname);
            report_missing(scene, files_check, &missing, "programs that are linked to ONNX Runtime");
        }
    }
    if (!report_failed(scene->report, files_check))
        check_providers(scene);
    struct elf shared;
    if (scene->shared != NULL)
        elf_is_sound(scene, scene->shared, &shared);
    if (scene->cuda != NULL && !elf_is_sound(scene, scene->cuda, &scene->cuda_elf))
        scene->cuda = NULL;
    if (!report_failed(scene->report, files_check))
        report_add(scene->report, files_check, OK, NULL,
                   scene->manifest.python ? "%s is %s, providers beside it"
                                          : "%s found by the loader as %s, providers beside it",
                   scene->core_name, scene->core);

    // Copies elsewhere: whichever the loader meets first wins, today this one.
    static const char *const places[] = {
        "/lib/libonnxruntime.so*", "/lib64/libonnxruntime.so*", "/usr/lib/libonnxruntime.so*",
        "/usr/lib64/libonnxruntime.so*", "/usr/lib/x86_64-linux-gnu/libonnxruntime.so*",
        "/usr/local/lib/libonnxruntime.so*", "/usr/local/lib64/libonnxruntime.so*",
        "/opt/onnxruntime*/lib/libonnxruntime.so*", "/opt/onnxruntime/*/lib/libonnxruntime.so*"};
    struct names files = {0}, others = {0}, copies = {0}, beside_core = folder_entries(folder_of(scene->core));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) == 0) {
            for (size_t k = 0; k < found.gl_pathc; k++)
                names_add_once(&files, found.gl_pathv[k]);
            globfree(&found);
        }
    }
    for (size_t i = 0; i < scene->cache.count; i++)
        if (starts_with(scene->cache.item[i].name, "libonnxruntime.so"))
            names_add_once(&files, scene->cache.item[i].path);
    for (size_t i = 0; i < beside_core.count; i++)
        if (starts_with(beside_core.item[i], "libonnxruntime.so"))
            names_add_once(&files, text("%s/%s", folder_of(scene->core), beside_core.item[i]));
    for (size_t i = 0; i < scene->variable.count; i++)
        names_add_once(&files, text("%s/%s", scene->variable.item[i], scene->core_name));
    for (size_t i = 0; i < scene->files.count; i++)
        if (is_core(base_name(scene->files.item[i])))
            names_add_once(&files, scene->files.item[i]);
    for (size_t i = 0; i < files.count; i++) {
        bool known = !is_file(files.item[i]) || same_place(files.item[i], scene->core);
        for (size_t k = 0; k < others.count && !known; k++)
            known = same_place(files.item[i], others.item[k]);
        for (size_t k = 0; k < copies.count && !known; k++)
            known = same_place(files.item[i], copies.item[k]);
        bool beside = same_place(folder_of(files.item[i]), folder_of(scene->core));
        if (beside && scene->manifest.python) // the wheel has both, since 1.19
            continue;
        if (!known && beside && same_content(files.item[i], scene->core))
            names_add(&copies, files.item[i]);
        else if (!known)
            names_add(&others, files.item[i]);
    }
    if (others.count > 0)
        report_add(scene->report, single_check, FAIL, cure_of(scene, &others), "a second ONNX Runtime beside %s: %s",
                   scene->core, names_join(&others, 5));
    // What `cp -L` and a COPY with a glob leave. A process that asks by two names gets two run times.
    if (copies.count > 0)
        report_add(scene->report, single_check, scene->manifest.present ? FAIL : WARNING, "copy the whole folder: that keeps the links",
                   "%s has the same content as %s and is no link to it", names_join(&copies, 5), scene->core);
    if (scene->manifest.python)
        check_packages(scene);
    if (others.count == 0 && copies.count == 0 && !report_failed(scene->report, single_check))
        report_add(scene->report, single_check, OK, NULL, "%s is the only one", scene->core);
}

static bool has_empty_part(const char *run_path) {
    struct names parts = split(run_path, ':');
    for (size_t i = 0; i < parts.count; i++)
        if (*parts.item[i] != '/' && *parts.item[i] != '$')
            return true; // empty or relative: both start from the current directory
    return false;
}

void check_run_paths(struct scene *scene) {
    const char *const paths[] = {scene->core, scene->shared, scene->cuda};
    bool searched = false, stack = false, any = false;
    for (size_t i = 0; i < 3; i++) {
        struct elf elf;
        if (paths[i] == NULL || elf_read(paths[i], &elf) != NULL)
            continue;
        any = true;
        const char *path = elf.runpath ? elf.runpath : elf.rpath;
        if (path != NULL && has_empty_part(path)) {
            searched = true;
            report_add(scene->report, path_check, FAIL, "cut the run path to $ORIGIN while unpacking",
                       "%s searches the current directory for its libraries: %s is \"%s\"", paths[i],
                       elf.runpath ? "RUNPATH" : "RPATH", path);
        }
        if (elf.executable_stack) {
            stack = true;
            report_add(scene->report, stack_check, WARNING,
                       "newer glibc (2.41) and hardened kernels refuse it: take a newer ONNX Runtime",
                       "%s asks for an executable stack", paths[i]);
        }
    }
    if (any && !searched)
        report_add(scene->report, path_check, OK, NULL, "no file of ONNX Runtime searches the current directory");
    if (any && !stack)
        report_add(scene->report, stack_check, OK, NULL, "no executable stack asked for");
}
