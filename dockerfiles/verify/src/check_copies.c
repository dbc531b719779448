// Second copies of the cell's CUDA libraries, wherever they lie. An image that was made FROM a cell gets them from
// pip's nvidia-* wheels, from the distribution's packages, or from a COPY. The loader may not know their folder: a
// Python package opens its own copy by path, and what that process loads afterwards binds to it.
#include <stdio.h>
#include <string.h>

#include "check.h"

static const char check[] = "cuda.single";

enum origin { PIP, COPIED, OTHER, ORIGINS };

static const struct {
    const char *what, *cure;
} words[ORIGINS] = {
    [PIP] = {"brought by pip", "leave pip's nvidia-* packages out: pip install --no-deps, or a package without its own "
                               "CUDA; this image has the libraries"},
    [COPIED] = {"the same content, copied", "leave that COPY out: FROM the cell has the libraries already"},
    [OTHER] = {"brought by another package or step",
               "remove them, and what brought them (dpkg -S FILE tells): this image has the libraries"},
};

// Which of the cell's libraries is this a file of? libcudnn.so.8 and libcudnn.so.8.9.7 both are; NULL: none.
static const char *library_of(const struct scene *scene, const char *name) {
    for (size_t i = 0; i < scene->manifest.cuda_libraries.count; i++) {
        const char *library = scene->manifest.cuda_libraries.item[i];
        if (strcmp(name, library) == 0 || starts_with(name, text("%s.", library)))
            return library;
    }
    return NULL;
}

static enum origin origin_of(const char *path, const char *own) {
    if (strstr(path, "/nvidia/") != NULL && strstr(path, "/lib/") != NULL && !starts_with(path, "/usr/local/nvidia/"))
        return PIP;
    return same_content(path, own) ? COPIED : OTHER;
}

void check_copies(struct scene *scene) {
    if (!scene->manifest.present)
        return;
    struct names libraries[ORIGINS] = {0}, folders[ORIGINS] = {0};
    bool any = false;
    for (size_t i = 0; i < scene->files.count; i++) {
        const char *path = scene->files.item[i], *library = library_of(scene, base_name(path));
        char *folder = folder_of(path);
        if (library == NULL || same_place(folder, scene->manifest.cuda_folder) || names_has(&scene->hiding, folder))
            continue;
        char *own = text("%s/%s", scene->manifest.cuda_folder, library);
        if (!is_file(own) || same_place(own, path)) // a library that is elsewhere instead is told by other checks
            continue;
        enum origin origin = origin_of(path, own);
        names_add_once(&libraries[origin], library);
        names_add_once(&folders[origin], folder);
        any = true;
    }
    for (size_t i = 0; i < ORIGINS; i++)
        if (libraries[i].count > 0)
            report_add(scene->report, check, FAIL, words[i].cure, "a second %s in %s (%s): a process may load both, mixed",
                       names_join(&libraries[i], 3), names_join(&folders[i], 3), words[i].what);
    if (!any && scene->hiding.count == 0)
        report_add(scene->report, check, OK, NULL, "each library of the cell is there once");
}
