#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 64 }; // folders; a root file system has about twenty

static void walk(const char *folder, dev_t device, int depth, bool (*wanted)(const char *name), struct names *found) {
    DIR *open = depth < DEEPEST ? opendir(folder) : NULL;
    if (open == NULL)
        return;
    struct names inner = {0};
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        bool unknown = entry->d_type == DT_UNKNOWN;
        if (entry->d_type != DT_DIR && !unknown && !(entry->d_type == DT_REG && wanted(name)))
            continue;
        struct stat status;
        char *path = text("%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
        if (lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode) && status.st_dev == device)
            names_add(&inner, path);
        else if (S_ISREG(status.st_mode) && wanted(name))
            names_add(found, path);
    }
    closedir(open);
    for (size_t i = 0; i < inner.count; i++)
        walk(inner.item[i], device, depth + 1, wanted, found);
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

struct names files_named(bool (*wanted)(const char *name)) {
    struct names found = {0};
    struct stat root;
    if (stat("/", &root) == 0)
        walk("/", root.st_dev, 0, wanted, &found);
    if (found.count > 0)
        qsort(found.item, found.count, sizeof *found.item, by_name);
    return found;
}
