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
    int threads;                     // for one operator; 0: as many as may run, but few
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
    bool open;            // the model leaves the first dimension of an input open
};
struct feed_wish {
    const struct shape *shape; // those given
    size_t shapes;
    int batch;  // size of a first dimension that the model leaves open; 0: as given, or 1
    bool quiet; // the report is not told
};
// Inputs of the shapes given, with the same numbers each time. False where a shape is wrong, or none can be made.
bool feed_make(const struct ort *ort, void *session, const struct feed_wish *wish, struct feed *out);
void feed_free(const struct ort *ort, struct feed *feed);

// One run; `out` gets feed->outputs outputs (NULL: not wanted). `seconds` gets its time.
bool session_run(const struct ort *ort, void *session, const struct feed *feed, struct tensor *out, double *seconds);

// Inputs on the GPU `device` and outputs that stay there, for runs without copies. NULL where a step went wrong.
void *binding_make(const struct ort *ort, void *session, const struct feed *feed, int device);
bool binding_run(const struct ort *ort, void *session, void *binding, double *seconds);
void binding_end(const struct ort *ort, void *binding);

// Threads for one operator where nothing else is asked for.
int session_threads(void);

double seconds_now(void);

#endif
