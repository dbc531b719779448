// What an attempt's report says.
#ifndef ORT_VERIFY_READING_H
#define ORT_VERIFY_READING_H

#include "child.h"

struct step {
    char *name;
    char *error; // NULL: went well, or nothing said
};

struct reading {
    struct step *step;
    size_t count;
    char *version;
    struct cJSON *kept; // what it put aside, an object; its numbers count also where the rest is cut
    bool whole; // the report has its end, and the process too
};

struct reading read_report(const struct outcome *outcome);
// The step, or NULL.
const struct step *step_named(const struct reading *reading, const char *name);
// The first error of any step, or NULL.
const struct step *first_error(const struct reading *reading);
// The library that a text says cannot be opened ("libfoo.so.1: cannot open…", "Could not load library libfoo…"), or NULL.
char *library_in(const char *output);
// N of "CUDA failure N:", -1 where there is none.
int cuda_failure(const char *error);

#endif
