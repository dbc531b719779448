// One attempt of --bench: one provider, with or without TF32, all shapes. It runs in a child, so that a crash of one
// provider leaves the other's numbers.
#ifndef ORT_VERIFY_BENCH_H
#define ORT_VERIFY_BENCH_H

#include "options.h"

struct bench_attempt {
    const char *core;    // bare name of libonnxruntime
    const char *cudart;  // name of the CUDA run time, NULL: unknown
    const char *profile; // where ONNX Runtime's profile goes; NULL: none is wanted
    const struct options *options;
    bool cuda, tf32;
};
void attempt_bench(int report, void *bench_attempt);

#endif
