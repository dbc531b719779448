// Files of the whole system by their names.
#ifndef ORT_VERIFY_FILES_H
#define ORT_VERIFY_FILES_H

#include "text.h"

// Paths of regular files whose name `wanted` takes, in a fixed order. Other file systems (/proc, mounts) and
// folders that cannot be read are left out; links are not followed.
struct names files_named(bool (*wanted)(const char *name));

#endif
