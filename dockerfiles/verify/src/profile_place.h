// The folder into which ONNX Runtime writes its profile.
#ifndef ORT_VERIFY_PROFILE_PLACE_H
#define ORT_VERIFY_PROFILE_PLACE_H

#include <stddef.h>

// A fresh one; the image may be read-only, but something is not. NULL: nothing can be written to.
char *profile_folder(void);
// The profile, and its folder is gone. NULL: there is none.
char *profile_take(const char *folder, size_t *length);
// Removes a folder and the files in it.
void folder_clear(const char *folder);

#endif
