// Tier run of an image that holds ONNX Runtime as Python's wheel alone: Python runs the model, and what it computed is
// compared here. Each attempt runs in a child.
#ifndef ORT_VERIFY_RUN_WHEEL_H
#define ORT_VERIFY_RUN_WHEEL_H

#include "check.h"
#include "reading.h"

// What the attempts say together, up to the first that went wrong; `outcome` gets that one's end.
struct reading run_wheel(struct scene *scene, const struct run_wish *wish, const char *profile,
                         struct outcome *outcome);

#endif
