// An unpacked root file system, judged as if it were running.
#ifndef ORT_VERIFY_ROOT_H
#define ORT_VERIFY_ROOT_H

#include "text.h"

// The variable that tells the process inside which folder its root is.
extern const char root_variable[];

struct entrance {
    const char *root;
    const char *stub;   // goes along as --stub, NULL: none
    const char *model;  // goes along as --model, with its folder; NULL: none
    const char *save;   // goes along as --save-outputs, a folder; NULL: none
    const char *reference; // goes along as --reference, a folder; NULL: none
    bool system;  // /dev, /proc and /sys go along, where the root has a place for them
    bool driver;        // this system's NVIDIA driver and its GPUs go along, where there are any
};

// Starts this program again with `root` as its root and `words` as its arguments.
// Nothing is left in the root: what is put there lies in memory and is seen by this process only.
// Returns only when that cannot be done: what went wrong. `unfit` is set where the fault is the root's own.
const char *root_enter(const struct entrance *entrance, struct names words, bool *unfit);

#endif
