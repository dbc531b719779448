// What the image says it holds. An image that ortimg did not build says nothing: everything is then NULL or empty.
#ifndef ORT_VERIFY_MANIFEST_H
#define ORT_VERIFY_MANIFEST_H

#include "text.h"

struct manifest {
    bool present;
    const char *identifier;
    const char *ort_version, *ort_prefix, *ort_soname;
    struct names ort_needed, ort_dlopened;
    const char *cuda_version, *cuda_folder;
    int cuda_major; // 0: unknown
    struct names cuda_libraries;
    const char *cudnn_version;
    int cudnn_major; // 0: unknown
    bool without_cudnn; // left out on purpose
    const char *glibc;
    const char *python, *python_site; // interpreter, and the folder with ONNX Runtime's wheel; NULL: the archive
};

// Reads the manifest. A file that is not there is no fault (`present` stays false); NULL, or what is wrong with it.
const char *manifest_read(const char *path, struct manifest *out);

#endif
