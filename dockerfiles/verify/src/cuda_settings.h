// The CUDA provider's options as they are set: what the user wants, and our own where that is silent.
#ifndef ORT_VERIFY_CUDA_SETTINGS_H
#define ORT_VERIFY_CUDA_SETTINGS_H

#include "cuda_options.h"

extern const char tf32_option[];
// Tells them to the report, and whether TF32 is on.
struct cuda_options cuda_settings(const struct cuda_options *wish, const char *version, bool *tf32_on);
// The same wish with TF32, or without it. A version without the option is told by its environment.
struct cuda_options cuda_with_tf32(const struct cuda_options *wish, const char *version, bool on);

#endif
