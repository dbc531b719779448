// This system's NVIDIA driver, shown inside a root as the NVIDIA container toolkit shows it inside a container.
#ifndef ORT_VERIFY_ROOT_DRIVER_H
#define ORT_VERIFY_ROOT_DRIVER_H

#include "text.h"

// This system's driver libraries; none where there is no driver. To be asked before mounts are parted.
struct names driver_libraries(void);
// A folder or file of the host as it is, at another place, with `flags` of mount(2). NULL, or what went wrong.
const char *show_place(const char *from, const char *to, unsigned long flags);
// Shows /proc and /sys in `root`, and plain device files, where it has such folders: ONNX Runtime asks them what the
// processor is. NULL, or what went wrong.
const char *system_show(const char *root);
// Shows the libraries in the folder `libraries`, and the GPUs' device files, /proc and /sys in `root`, with no more
// rights than a container has.
// NULL, or what went wrong.
const char *driver_show(const char *root, const char *libraries, const struct names *files);

#endif
