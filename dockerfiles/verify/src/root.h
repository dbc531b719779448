// An unpacked root file system, judged as if it were running.
#ifndef ORT_VERIFY_ROOT_H
#define ORT_VERIFY_ROOT_H

#include "text.h"

// The variable that tells the process inside which folder its root is.
extern const char root_variable[];

// Starts this program again with `root` as its root and `words` as its arguments; `stub` (NULL: none) goes along, as --stub.
// Nothing is left in `root`: what is put there lies in memory and is seen by this process only.
// Returns only when that cannot be done: what went wrong. `unfit` is set where the fault is the root's own.
const char *root_enter(const char *root, const char *stub, struct names words, bool *unfit);

#endif
