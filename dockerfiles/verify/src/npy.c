#include "npy.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
// Magic, version 1.0 and the length of the rest, in two bytes.
enum { START = 10, ALIGNMENT = 64 };

// What stands ahead of the numbers, before blanks and a line's end.
static char *form_of(const struct tensor *tensor) {
    char *shape = text("%s", "");
    for (size_t i = 0; i < tensor->shape.rank; i++)
        shape = text("%s%s%lld", shape, i > 0 ? ", " : "", (long long)tensor->shape.size[i]);
    if (tensor->shape.rank == 1)
        shape = text("%s,", shape);
    return text("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind_descr(tensor->kind), shape);
}

static char *header_of(const struct tensor *tensor, size_t *length) {
    const char *words = form_of(tensor);
    size_t used = START + strlen(words) + 1;
    *length = (used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *header = text("%*s", (int)*length, "");
    memcpy(header, magic, sizeof magic);
    header[8] = (char)((*length - START) & 0xff);
    header[9] = (char)((*length - START) >> 8);
    memcpy(header + START, words, strlen(words));
    header[*length - 1] = '\n';
    return header;
}

const char *npy_write(const char *path, const struct tensor *tensor) {
    size_t length, size = kind_size(tensor->kind);
    const char *header = header_of(tensor, &length);
    FILE *file = fopen(path, "w");
    bool good = file != NULL && fwrite(header, 1, length, file) == length &&
                fwrite(tensor->data, size, tensor->count, file) == tensor->count;
    if (file != NULL)
        good = fclose(file) == 0 && good;
    return good ? NULL : text("cannot write %s: %s", path, strerror(errno));
}

// NumPy leaves more room in some versions than in others.
static bool has_form(FILE *file, const char *form) {
    char start[START], *header;
    if (fread(start, 1, START, file) != START || memcmp(start, magic, sizeof magic) != 0)
        return false;
    size_t length = (size_t)((unsigned char)start[8] | (unsigned char)start[9] << 8);
    header = calloc(length + 1, 1);
    if (header == NULL || fread(header, 1, length, file) != length)
        return false;
    return starts_with(header, form) && strspn(header + strlen(form), " \n") == length - strlen(form);
}

const char *npy_read(const char *path, struct tensor *tensor) {
    size_t size = kind_size(tensor->kind);
    bool too_many;
    tensor->count = shape_count(&tensor->shape, &too_many);
    tensor->data = too_many ? NULL : malloc(tensor->count * size + 1);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return text("cannot read %s: %s", path, strerror(errno));
    if (tensor->data == NULL) {
        fclose(file);
        return text("%s: too large for this machine's memory", path);
    }
    bool good = has_form(file, form_of(tensor)) &&
                fread(tensor->data, size, tensor->count, file) == tensor->count && fgetc(file) == EOF;
    fclose(file);
    return good ? NULL : text("%s is not a whole .npy file of %s %s", path, kind_name(tensor->kind),
                              shape_words(&tensor->shape));
}
