// The attempt of tier run: a model on the GPU, then on the CPU, then on the GPU with a profile. It runs in a child.
#ifndef ORT_VERIFY_RUN_H
#define ORT_VERIFY_RUN_H

#include "options.h"
#include "session.h"

struct run_attempt {
    const char *core;    // bare name of libonnxruntime
    const char *cudart;  // name of the CUDA run time, NULL: unknown
    const char *profile; // where ONNX Runtime's profile goes: folder and start of the name
    const struct run_wish *wish;
};
// A time, to six digits behind the point: the clock does not tell more.
void put_time(const char *place, double time);
// Begins the report: when, and on what.
void run_start(int report, const struct run_wish *wish);
void attempt_run(int report, void *run_attempt);

// Steps that the judge asks for by name.
extern const char step_options[], step_inputs[], step_cuda_session[], step_compare[], step_save[], step_reference[];
// Tells the report how far each output is from what the CPU gives. False where they have not the same form.
bool outputs_compare(const struct feed *feed, const struct tensor *got, const struct tensor *wanted);

// How the model is called that ort-verify carries.
extern const char own_model[];
// What ONNX Runtime says where CUDA does not run all nodes and the CPU must not.
extern const char needs_fallback[];

#endif
