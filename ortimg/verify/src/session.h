// Sessions of ONNX Runtime, on CUDA and on the CPU, and runs of them. All of this tells its steps to the report.
#ifndef ORT_VERIFY_SESSION_H
#define ORT_VERIFY_SESSION_H

#include "cuda_options.h"
#include "tensor.h"

struct ort {
    const void *api;
    const char *version;
    void *env, *memory, *allocator;
};
// Opens the library by its bare name.
bool ort_open(const char *core, struct ort *out);

struct session_wish {
    const char *model;               // file; NULL: the model that ort-verify carries
    const struct cuda_options *cuda; // NULL: on the CPU
    bool strict;                     // a node that CUDA cannot run is an error, instead of running on the CPU
    const char *profile;             // start of the file's name; NULL: no profile
};
// NULL where a step went wrong.
void *session_make(const struct ort *ort, const struct session_wish *wish, const char *step);
void session_end(const struct ort *ort, void *session);
// Writes the profile.
bool session_end_profile(const struct ort *ort, void *session);

// What goes in, made once and used by every session of the model.
struct feed {
    size_t inputs, outputs;
    char **input_name, **output_name;
    void **value;
    struct tensor *input; // the same, as we hold them
};
// Inputs of the shapes given, with the same numbers each time. False where a shape is wrong, or none can be made.
bool feed_make(const struct ort *ort, void *session, const struct shape *shape, size_t shapes, struct feed *out);

// One run; `out` gets feed->outputs outputs (NULL: not wanted). `seconds` gets its time.
bool session_run(const struct ort *ort, void *session, const struct feed *feed, struct tensor *out, double *seconds);

double seconds_now(void);

#endif
