// The checks of the tiers. Each adds its findings to the report; what one finds, later ones use.
#ifndef ORT_VERIFY_CHECK_H
#define ORT_VERIFY_CHECK_H

#include "elf.h"
#include "loader.h"
#include "manifest.h"
#include "options.h"
#include "report.h"

struct scene {
    struct report *report;
    struct manifest manifest;
    bool image_environment; // our environment is the image's own, so what it lacks is a fault
    bool unpacked_root;     // there is no image, so no environment to look at
    const char *stub;       // file of the stub driver, NULL: none
    int seconds;            // limit of one attempt
    bool no_gpu;            // none is wanted: the model runs on the CPU

    struct names conf, variable; // folders of ld.so.conf, of LD_LIBRARY_PATH
    struct libraries cache;      // ld.so.cache
    struct names files;          // libraries of CUDA and of ONNX Runtime, anywhere; only where there is a manifest

    char *core, *shared, *cuda; // libonnxruntime and its two providers, as the loader takes them; NULL: not found
    const char *core_name;      // name it is opened by
    struct elf cuda_elf;
    struct names told;  // missing libraries that a finding has named already
    struct names hiding, hidden; // folders whose libraries hide the cell's own; these, by name
    struct names touch; // libraries that are opened only when they are used
    int cudnn_major;    // 0: no cuDNN wanted
};

bool check_readable(struct scene *scene);     // this user may read the cell's folders; else nothing more is told
void check_environment(struct scene *scene);  // LD_LIBRARY_PATH, LD_PRELOAD, NVIDIA_*
void check_ort(struct scene *scene);          // files of ONNX Runtime, one copy of it
void check_run_paths(struct scene *scene);    // nobody searches the current directory
void check_loader_files(struct scene *scene); // ld.so.conf.d and ld.so.cache
void check_cuda(struct scene *scene);         // what the CUDA provider needs, resolved
void check_copies(struct scene *scene);       // each CUDA library only once
void check_cudnn(struct scene *scene);        // the parts that cuDNN opens by itself
void check_base(struct scene *scene);         // libstdc++, libgcc_s, libz, empty files
void check_load(struct scene *scene);         // the EP comes up until "no device"
void check_touch(struct scene *scene);        // every lazily opened library opens
// A model runs on the GPU, all of it, and gives what the CPU gives.
void check_run(struct scene *scene, const struct run_wish *wish);
// How long the model takes, on the CPU and on CUDA.
void check_bench(struct scene *scene, const struct options *options);
// Is this a file name of CUDA's libraries, or of ONNX Runtime's core?
bool is_cuda(const char *name);
bool is_core(const char *name);
// Name of the CUDA run time that the provider needs, NULL: unknown.
const char *scene_cudart(const struct scene *scene);

// Why a library is not found, without its name ("in /x, but …"), and what to do.
struct explanation {
    char *cause;
    const char *cure;
};
struct explanation explain_missing(const struct scene *scene, const char *name);
// One finding for all names that are missing for one cause; what was told before is left out. `needed_by` may be NULL.
void report_missing(struct scene *scene, const char *check, const struct names *missing, const char *needed_by);

#endif
