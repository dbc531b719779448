// From "not found" to its cause: the file is elsewhere, unknown to the loader, of another major, or nowhere.
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static void add_matches(struct names *folders, const char *pattern) {
    glob_t found;
    if (glob(pattern, GLOB_ONLYDIR, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            names_add_once(folders, found.gl_pathv[i]);
        globfree(&found);
    }
}

static void add_all(struct names *folders, const struct names *more) {
    for (size_t i = 0; i < more->count; i++)
        if (*more->item[i] != 0)
            names_add_once(folders, more->item[i]);
}

// Where people put such libraries.
static struct names likely_folders(const struct scene *scene) {
    static const char *const patterns[] = {
        "/usr/local/cuda*/lib64", "/usr/local/cuda*/lib", "/usr/local/lib", "/usr/local/lib64",
        "/opt/onnxruntime*/lib", "/opt/onnxruntime/*/lib",
        // pip's wheels
        "/usr/local/lib/python3*/*-packages/onnxruntime/capi", "/opt/*/lib/python3*/site-packages/onnxruntime/capi",
        "/usr/lib/python3*/site-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
        "/opt/*/lib/python3*/site-packages/nvidia/*/lib"};
    struct names folders = {0}, standard = default_folders();
    if (scene->manifest.present) {
        names_add(&folders, scene->manifest.cuda_folder);
        names_add_once(&folders, text("%s/lib", scene->manifest.ort_prefix));
    }
    add_all(&folders, &scene->conf);
    add_all(&folders, &scene->variable);
    add_all(&folders, &standard);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        add_matches(&folders, patterns[i]);
    return folders;
}

static const char *package_of(const char *name) {
    if (strcmp(name, "libz.so.1") == 0)
        return "install it in the base: zlib1g (Debian, Ubuntu), zlib (Rocky)";
    if (strcmp(name, "libstdc++.so.6") == 0)
        return "install it in the base: libstdc++6 (Debian, Ubuntu), libstdc++ (Rocky)";
    if (strcmp(name, "libgcc_s.so.1") == 0)
        return "install it in the base: libgcc-s1 (Debian, Ubuntu), libgcc (Rocky)";
    if (strcmp(name, "libcuda.so.1") == 0)
        return "it belongs to the driver: start the container with --gpus all; while building, give --stub FILE";
    if (starts_with(name, "libonnxruntime"))
        return "copy the whole lib folder of the ONNX Runtime GPU archive, links included";
    return "add it to the CUDA libraries of this image and run ldconfig";
}

static bool searched(const struct scene *scene, const char *folder) {
    struct names standard = default_folders();
    const struct names *const lists[] = {&scene->conf, &standard};
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (same_place(lists[l]->item[i], folder))
                return true;
    return false;
}

static bool cached(const struct scene *scene, const char *path) {
    for (size_t i = 0; i < scene->cache.count; i++)
        if (same_place(scene->cache.item[i].path, path) &&
            strcmp(base_name(scene->cache.item[i].path), base_name(path)) == 0)
            return true;
    return false;
}

static struct explanation explain_present(const struct scene *scene, const char *path) {
    char *folder = folder_of(path);
    struct elf elf;
    const char *fault = elf_read(path, &elf);
    if (fault != NULL)
        return (struct explanation){text("%s is %s", path, fault), "copy the file again"};
    if (elf.soname != NULL && strcmp(elf.soname, base_name(path)) != 0 && strstr(base_name(path), ".so."))
        return (struct explanation){text("%s says it is %s", path, elf.soname),
                                    "copy the library whose SONAME is the name of the file"};
    if (!searched(scene, folder))
        return (struct explanation){
            text("in %s, but no file of /etc/ld.so.conf.d names that folder", folder),
            text("write %s into a file of /etc/ld.so.conf.d and run ldconfig", folder)};
    if (!cached(scene, path))
        return (struct explanation){text("in %s, but not in /etc/ld.so.cache: ldconfig has not run since", folder),
                                    "run ldconfig in the final stage, after the last COPY"};
    return (struct explanation){text("in %s and in /etc/ld.so.cache, yet the loader does not take it", folder),
                                text("see what it says: LD_DEBUG=libs LD_PRELOAD=%s /bin/true", base_name(path))};
}

struct explanation explain_missing(const struct scene *scene, const char *name) {
    struct names folders = likely_folders(scene), others = {0};
    char *stem = unversioned(name);
    for (size_t i = 0; i < folders.count; i++) {
        char *path = text("%s/%s", folders.item[i], name);
        struct stat status;
        if (stat(path, &status) == 0)
            return explain_present(scene, path);
        if (errno == EACCES)
            return (struct explanation){text("%s cannot be looked into as user %u", folders.item[i], geteuid()),
                                        "let every user read it: chmod -R a+rX, or COPY without --chmod"};
        if (lstat(path, &status) == 0)
            return (struct explanation){text("%s is a link to nothing", path),
                                        "copy the file that it points to, or make the link again with ldconfig"};
        struct names entries = folder_entries(folders.item[i]);
        for (size_t k = 0; k < entries.count; k++)
            if (starts_with(entries.item[k], stem))
                names_add_once(&others, entries.item[k]);
    }
    if (others.count > 0)
        return (struct explanation){
            text("not in this image, which has %s: another version", names_join(&others, 3)),
            "take the CUDA and cuDNN major that this ONNX Runtime archive was built for, or the archive for these"};
    return (struct explanation){text("not in this image"), package_of(name)};
}

void report_missing(struct scene *scene, const char *check, const struct names *missing, const char *needed_by) {
    for (size_t i = 0; i < missing->count; i++) {
        if (names_has(&scene->told, missing->item[i]))
            continue;
        struct explanation first = explain_missing(scene, missing->item[i]);
        struct names same = {0};
        for (size_t k = i; k < missing->count; k++) {
            struct explanation other = explain_missing(scene, missing->item[k]);
            if (!names_has(&scene->told, missing->item[k]) && strcmp(first.cause, other.cause) == 0 &&
                strcmp(first.cure, other.cure) == 0) {
                names_add(&same, missing->item[k]);
                names_add(&scene->told, missing->item[k]);
            }
        }
        report_add(scene->report, check, FAIL, first.cure, "%s not found%s%s: %s", names_join(&same, 8),
                   needed_by ? ", needed by " : "", needed_by ? needed_by : "", first.cause);
    }
}
