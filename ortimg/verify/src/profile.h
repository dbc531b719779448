// What ONNX Runtime's own profile says: which execution provider ran each node.
#ifndef ORT_VERIFY_PROFILE_H
#define ORT_VERIFY_PROFILE_H

#include <stddef.h>

struct profile_node {
    const char *name, *op, *provider; // "conv1", "Conv", "CUDAExecutionProvider"
};

struct profile {
    struct profile_node *node; // each node once, however often it ran
    size_t count;
    size_t copies; // nodes that ONNX Runtime added to move data between host and GPU: not the model's
};

// NULL, or what is wrong with the text.
const char *profile_read(const char *json, size_t length, struct profile *out);
// Nodes that a provider ran.
size_t profile_count(const struct profile *profile, const char *provider);

#endif
