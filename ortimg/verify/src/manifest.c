#include "manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cJSON.h"

enum { LARGEST = 1 << 20 }; // bytes; a manifest has about two thousand

static const char *string_of(const cJSON *parent, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parent, key));
}

static int number_of(const cJSON *parent, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(parent, key);
    return cJSON_IsNumber(value) ? value->valueint : 0;
}

static struct names names_of(const cJSON *parent, const char *key) {
    struct names list = {0};
    const cJSON *value;
    cJSON_ArrayForEach(value, cJSON_GetObjectItemCaseSensitive(parent, key)) {
        if (cJSON_IsString(value))
            names_add(&list, value->valuestring);
    }
    return list;
}

const char *manifest_read(const char *path, struct manifest *out) {
    *out = (struct manifest){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return errno == ENOENT || errno == ENOTDIR ? NULL : text("cannot be read: %s", strerror(errno));
    char *bytes = malloc(LARGEST);
    size_t length = bytes ? fread(bytes, 1, LARGEST, file) : 0;
    fclose(file);
    const cJSON *root = cJSON_ParseWithLength(bytes, length);
    if (!cJSON_IsObject(root) || length == LARGEST)
        return "is not JSON, or cut";
    if (number_of(root, "schema") != 1)
        return "has another schema than 1: it belongs to another version of ort-verify";
    const cJSON *ort = cJSON_GetObjectItemCaseSensitive(root, "ort");
    const cJSON *cuda = cJSON_GetObjectItemCaseSensitive(root, "cuda");
    const cJSON *cudnn = cJSON_GetObjectItemCaseSensitive(root, "cudnn");
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(root, "base");
    const cJSON *python = cJSON_GetObjectItemCaseSensitive(ort, "python");
    *out = (struct manifest){
        .present = true,
        .identifier = string_of(root, "identifier"),
        .ort_version = string_of(ort, "version"),
        .ort_prefix = string_of(ort, "prefix"),
        .ort_soname = string_of(ort, "soname"),
        .ort_needed = names_of(ort, "needed"),
        .ort_dlopened = names_of(ort, "dlopened"),
        .cuda_version = string_of(cuda, "version"),
        .cuda_folder = string_of(cuda, "folder"),
        .cuda_major = number_of(cuda, "major"),
        .cuda_libraries = names_of(cuda, "libraries"),
        .cudnn_version = string_of(cudnn, "version"),
        .cudnn_major = number_of(cudnn, "major"),
        .without_cudnn = cJSON_IsNull(cudnn),
        .glibc = string_of(base, "glibc"),
        .python = string_of(python, "interpreter"),
        .python_site = string_of(python, "site"),
    };
    if (!out->identifier || !out->ort_version || !out->ort_prefix || !out->ort_soname || !out->cuda_folder ||
        out->cuda_libraries.count == 0)
        return "lacks identifier, ort.version, ort.prefix, ort.soname, cuda.folder or cuda.libraries";
    if (!out->python != !out->python_site)
        return "has only one of ort.python.interpreter and ort.python.site";
    return NULL;
}
