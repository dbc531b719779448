// What the CUDA provider needs, resolved by the loader, against what the cell is meant to have.
#include <string.h>

#include "check.h"

static const char needed_check[] = "cuda.needed", libraries_check[] = "cuda.libraries", symbols_check[] = "base.symbols";

bool is_cuda(const char *name) {
    static const char *const families[] = {"libcublas.",   "libcublasLt.", "libcudart.",   "libcufft.",  "libcurand.",
                                           "libcudnn",     "libnvrtc",     "libnvJitLink", "libcusparse", "libcusolver"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (starts_with(name, families[i]))
            return true;
    return false;
}

// NEEDED is read from the file: neither a version nor a file name tells it (archives were wrong before).
static void check_needed(struct scene *scene) {
    struct names foreign = {0}, cuda = {0};
    for (size_t i = 0; i < scene->cuda_elf.needed.count; i++) {
        const char *name = scene->cuda_elf.needed.item[i];
        if (!is_cuda(name))
            continue;
        names_add(&cuda, name);
        if (scene->manifest.present && !names_has(&scene->manifest.cuda_libraries, name))
            names_add(&foreign, name);
    }
    struct names promised = {0};
    for (size_t i = 0; i < scene->manifest.ort_needed.count; i++)
        if (!names_has(&cuda, scene->manifest.ort_needed.item[i]) && is_cuda(scene->manifest.ort_needed.item[i]))
            names_add(&promised, scene->manifest.ort_needed.item[i]);
    if (cuda.count == 0)
        report_add(scene->report, needed_check, FAIL, "take the GPU archive of ONNX Runtime",
                   "%s needs no CUDA library: not a CUDA provider", scene->cuda);
    else if (foreign.count > 0)
        report_add(scene->report, needed_check, FAIL,
                   "take the archive that was built for this CUDA and cuDNN major, or the CUDA set that fits it",
                   "%s needs %s, which is not of this cell's CUDA %s and cuDNN %d", base_name(scene->cuda),
                   names_join(&foreign, 8), scene->manifest.cuda_version ? scene->manifest.cuda_version : "set",
                   scene->manifest.cudnn_major);
    else if (promised.count > 0)
        report_add(scene->report, needed_check, FAIL,
                   "the archive is another one than the catalogue knows: changed upstream, or the wrong file",
                   "%s does not need %s, as the catalogue says it does", base_name(scene->cuda),
                   names_join(&promised, 8));
    else
        report_add(scene->report, needed_check, OK, NULL, "%s", names_join(&cuda, 20));
}

// Which files ask for a missing library: one name is enough to look at.
static const char *asker(const char *file, const struct libraries *found, const char *name) {
    struct elf first;
    if (elf_read(file, &first) == NULL && names_has(&first.needed, name))
        return base_name(file);
    for (size_t i = 0; i < found->count; i++) {
        struct elf elf;
        if (found->item[i].path != NULL && elf_read(found->item[i].path, &elf) == NULL && names_has(&elf.needed, name))
            return found->item[i].name;
    }
    return NULL;
}

// LD_LIBRARY_PATH is a normal way to find CUDA in other people's images; hiding a second copy with it is not.
static void check_shadow(struct scene *scene, const struct library *library) {
    bool variable = false;
    for (size_t i = 0; i < scene->variable.count; i++)
        variable = variable || same_place(scene->variable.item[i], folder_of(library->path));
    for (size_t i = 0; i < scene->cache.count && variable; i++)
        if (strcmp(scene->cache.item[i].name, library->name) == 0 &&
            !same_place(scene->cache.item[i].path, library->path))
            report_add(scene->report, "loader.environment", WARNING, "unset LD_LIBRARY_PATH",
                       "LD_LIBRARY_PATH makes the loader take %s instead of %s", library->path,
                       scene->cache.item[i].path);
}

static void check_found(struct scene *scene, const struct library *library) {
    struct elf elf;
    const char *fault = elf_read(library->path, &elf);
    if (fault != NULL)
        report_add(scene->report, libraries_check, FAIL, "copy the file again", "%s is %s", library->path, fault);
    else if (*library->path != '/')
        report_add(scene->report, "ort.runpath", FAIL, "cut the run paths of ONNX Runtime's files to $ORIGIN",
                   "%s was taken from the current directory", library->name);
    else if (!is_cuda(library->name))
        return;
    else if (elf.soname != NULL && strcmp(elf.soname, library->name) != 0)
        report_add(scene->report, libraries_check, FAIL, "copy the library whose SONAME is the name of the file",
                   "%s is named %s, but says it is %s", library->path, library->name, elf.soname);
    else if (scene->manifest.present && !same_place(folder_of(library->path), scene->manifest.cuda_folder))
        names_add_once(&scene->hiding, folder_of(library->path)), names_add_once(&scene->hidden, library->name);
    else
        check_shadow(scene, library);
}

// The rest of the cell's set: nobody NEEDs it, cuBLAS and cuDNN open it when they compile kernels.
static void check_rest_of_set(struct scene *scene, const struct names *known) {
    struct names rest = {0}, missing = {0};
    for (size_t i = 0; i < scene->manifest.cuda_libraries.count; i++)
        if (!names_has(known, scene->manifest.cuda_libraries.item[i]))
            names_add(&rest, scene->manifest.cuda_libraries.item[i]);
    struct libraries found = loader_closure(NULL, &rest);
    if (found.fault != NULL)
        return; // told with the provider's own libraries
    for (size_t i = 0; i < rest.count; i++) {
        const struct library *library = library_named(&found, rest.item[i]);
        names_add_once(&scene->touch, rest.item[i]);
        if (library == NULL || library->path == NULL) {
            if (!starts_with(rest.item[i], "libcudnn")) // check_cudnn tells more about these
                names_add(&missing, rest.item[i]);
        } else
            check_found(scene, library);
    }
    report_missing(scene, libraries_check, &missing, "the cell's CUDA set");
}

// "PROGRAM: /path/libcublas.so.12: version `…' not found (required by …)": which library lacks the version decides.
static const char *cure_of(const char *complaint) {
    const char *end = strstr(complaint, ": version `"), *start = complaint;
    for (const char *at = complaint; end != NULL && at < end; at++)
        if (*at == '/' || *at == ' ')
            start = at + 1;
    if (end != NULL && is_cuda(start))
        return "take all of CUDA and cuDNN from one release: two are mixed here";
    if (end != NULL && is_core(start))
        return "take all files of ONNX Runtime from one archive: two are mixed here";
    return "take a newer base, or an older ONNX Runtime";
}

// A file that is cut kills the loader (SIGBUS), so the files are looked at first.
static bool files_are_sound(struct scene *scene) {
    bool sound = true;
    for (size_t i = 0; i < scene->cache.count; i++) {
        const struct library *library = &scene->cache.item[i];
        struct elf elf;
        const char *fault = is_cuda(library->name) && is_file(library->path) ? elf_read(library->path, &elf) : NULL;
        if (fault == NULL)
            continue;
        sound = false;
        report_add(scene->report, libraries_check, FAIL, "copy the file again", "%s is %s", library->path, fault);
    }
    return sound;
}

// One finding for all that is hidden, however many libraries that are.
static void report_hidden(struct scene *scene) {
    bool variable = false;
    for (size_t i = 0; i < scene->variable.count; i++)
        for (size_t k = 0; k < scene->hiding.count; k++)
            variable = variable || same_place(scene->variable.item[i], scene->hiding.item[k]);
    if (scene->hidden.count > 0)
        report_add(scene->report, libraries_check, FAIL,
                   variable ? "unset LD_LIBRARY_PATH: the libraries of this image are found without it"
                            : "remove the other copy, or the line of /etc/ld.so.conf.d that names it; then run ldconfig",
                   "%s %s taken from %s, not from %s%s", names_join(&scene->hidden, 6),
                   scene->hidden.count == 1 ? "is" : "are", names_join(&scene->hiding, 3), scene->manifest.cuda_folder,
                   variable ? ": LD_LIBRARY_PATH names that folder" : "");
}

void check_cuda(struct scene *scene) {
    if (scene->cuda == NULL) {
        report_add(scene->report, libraries_check, SKIPPED, NULL, "no CUDA provider to ask about");
        return;
    }
    check_needed(scene);
    if (!files_are_sound(scene))
        return;
    const char *const files[] = {scene->cuda, scene->shared, scene->core};
    struct names reported = {0}, resolved = {0};
    bool all_found = true;
    for (size_t f = 0; f < 3; f++) {
        if (files[f] == NULL)
            continue;
        struct libraries found = loader_closure(files[f], NULL);
        if (found.fault != NULL) {
            report_add(scene->report, libraries_check, FAIL, "see what ldd says about the file",
                       "the loader cannot tell what %s needs: %s", files[f], found.fault);
            continue;
        }
        struct names missing = {0};
        for (size_t i = 0; i < found.count; i++) {
            const struct library *library = &found.item[i];
            if (names_has(&reported, library->name))
                continue;
            names_add(&reported, library->name);
            if (library->path != NULL) {
                check_found(scene, library);
                if (is_cuda(library->name))
                    names_add(&resolved, library->name);
            } else if (strcmp(library->name, "libcuda.so.1") != 0) // the driver's, NEEDED from 1.27 on
                names_add_once(&missing, library->name);
        }
        const char *by = missing.count > 0 ? asker(files[f], &found, missing.item[0]) : NULL;
        report_missing(scene, libraries_check, &missing, by);
        all_found = all_found && missing.count == 0;
        for (size_t i = 0; i < found.complaints.count; i++)
            report_add(scene->report, symbols_check, FAIL, cure_of(found.complaints.item[i]), "%s",
                       found.complaints.item[i]);
    }
    check_rest_of_set(scene, &reported);
    report_hidden(scene);
    if (all_found && !report_failed(scene->report, libraries_check))
        report_add(scene->report, libraries_check, OK, NULL, "all found: %s", names_join(&resolved, 30));
    if (!report_failed(scene->report, symbols_check))
        report_add(scene->report, symbols_check, OK, NULL, "the base has every symbol version that is asked for");
}
