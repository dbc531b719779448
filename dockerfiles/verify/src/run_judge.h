// What an attempt of tier run means: its faults by their causes, and what it saw.
#ifndef ORT_VERIFY_RUN_JUDGE_H
#define ORT_VERIFY_RUN_JUDGE_H

#include "check.h"
#include "kept.h"
#include "reading.h"

// The machine is at fault, so the image could not be judged.
void blame_machine(struct scene *scene, const char *cure, const char *evidence);
// A step that said why it failed. Ends the program where the command line was wrong.
void judge_run_error(struct scene *scene, const struct run_wish *wish, const struct outcome *outcome,
                     const struct reading *reading, const struct step *step);
// An attempt that did not come to its end: a crash, a hang, a cut report.
void judge_run_end(struct scene *scene, const struct outcome *outcome, const struct reading *reading);

void tell_device(struct scene *scene, const cJSON *kept);
void tell_run(struct scene *scene, const cJSON *kept);
// Where the nodes ran, from ONNX Runtime's profile (NULL: there is none); its numbers go into `kept`.
// `refused`: ONNX Runtime said that the CPU would have to run some.
void judge_nodes(struct scene *scene, const struct run_wish *wish, cJSON *kept, const char *json, size_t length,
                 bool refused);
void judge_outputs(struct scene *scene, const cJSON *kept);
// The outputs against those of another run; its limit and the largest error go into `kept`.
void judge_reference(struct scene *scene, cJSON *kept);
void judge_memory_limit(struct scene *scene, const struct run_wish *wish, const cJSON *kept);

#endif
