#define _GNU_SOURCE
#include "loader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"

// The x86-64 ABI fixes this path, it stands in every program.
static const char loader[] = "/lib64/ld-linux-x86-64.so.2";

enum { PATIENCE = 30 }; // seconds; it takes milliseconds, a network disk may need more

static void add_library(struct libraries *list, const char *name, const char *path) {
    struct library *grown = realloc(list->item, (list->count + 1) * sizeof *grown);
    if (grown == NULL)
        abort();
    grown[list->count++] = (struct library){text("%s", name), path ? text("%s", path) : NULL};
    list->item = grown;
}

const struct library *library_named(const struct libraries *libraries, const char *name) {
    for (size_t i = 0; i < libraries->count; i++)
        if (strcmp(libraries->item[i].name, name) == 0)
            return &libraries->item[i];
    return NULL;
}

struct question {
    const char *file;
    const struct names *also;
};

// What ldd does. LD_PRELOAD takes bare names and looks for them like for NEEDED ones.
static void ask(int report, void *argument) {
    const struct question *question = argument;
    const char *inherited = getenv("LD_PRELOAD");
    char *preload = text("%s", inherited ? inherited : "");
    for (size_t i = 0; question->also != NULL && i < question->also->count; i++)
        preload = text("%s %s", preload, question->also->item[i]);
    setenv("LD_PRELOAD", preload, 1);
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    unsetenv("LD_DEBUG");
    unsetenv("LD_WARN");
    unsetenv("LD_BIND_NOW");
    dup2(report, STDOUT_FILENO);
    execl(loader, loader, question->file, (char *)NULL);
    _exit(127);
}

struct libraries loader_closure(const char *file, const struct names *also) {
    struct libraries found = {0};
    Dl_info libc;
    if (file == NULL) { // any file will do to carry the bare names
        if (dladdr((void *)puts, &libc) == 0) {
            found.fault = "libc cannot be found";
            return found;
        }
        file = libc.dli_fname;
    }
    struct outcome outcome = child_run(ask, &(struct question){file, also}, PATIENCE);
    if (!outcome.complete) {
        found.fault = text("%s: %s", outcome_words(&outcome, PATIENCE), last_line(outcome.errors));
        return found;
    }
    struct names lines = split(outcome.report, '\n'), errors = split(outcome.errors, '\n');
    for (size_t i = 0; i < lines.count; i++) {
        char *line = lines.item[i] + strspn(lines.item[i], "\t ");
        char *arrow = strstr(line, " => "), *address = strstr(line, " (0x");
        if (strstr(line, "version `") != NULL)
            names_add_once(&found.complaints, line);
        else if (arrow != NULL) {
            *arrow = 0;
            char *path = arrow + strlen(" => ");
            if (address != NULL)
                *address = 0;
            add_library(&found, line, strcmp(path, "not found") == 0 ? NULL : path);
        } else if (address != NULL && !starts_with(line, "linux-vdso")) {
            // Without an arrow the loader took the name as it stands: a full path, or the current directory.
            *address = 0;
            add_library(&found, base_name(line), strchr(line, '/') ? line : text("./%s", line));
        }
    }
    for (size_t i = 0; i < errors.count; i++)
        if (strstr(errors.item[i], "version `") != NULL)
            names_add_once(&found.complaints, errors.item[i]);
    for (size_t i = 0; also != NULL && i < also->count; i++)
        if (library_named(&found, base_name(also->item[i])) == NULL)
            add_library(&found, base_name(also->item[i]), NULL);
    return found;
}

char *loader_find(const char *name) {
    struct names one = {0};
    names_add(&one, name);
    struct libraries found = loader_closure(NULL, &one);
    const struct library *library = library_named(&found, name);
    return library ? library->path : NULL;
}

struct names environment_folders(void) {
    struct names folders = {0};
    const char *path = getenv("LD_LIBRARY_PATH");
    if (path == NULL || *path == 0)
        return folders;
    char *commas = text("%s", path); // ld.so takes ';' too
    for (char *c = commas; *c; c++)
        if (*c == ';')
            *c = ':';
    return split(commas, ':');
}

struct names default_folders(void) {
    static const char *const known[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
                                        "/lib", "/usr/lib"};
    struct names folders = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct stat status;
        bool again = stat(known[i], &status) != 0 || !S_ISDIR(status.st_mode);
        for (size_t k = 0; k < folders.count && !again; k++)
            again = same_place(folders.item[k], known[i]); // /lib is a link to /usr/lib on most systems
        if (!again)
            names_add(&folders, known[i]);
    }
    return folders;
}
