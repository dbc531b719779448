#include "shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *shape_read(const char *word, struct shape *out) {
    const char *equals = strrchr(word, '='); // a name may hold one
    *out = (struct shape){0};
    if (equals == NULL || equals == word)
        return "write NAME=1x3x224x224";
    out->name = text("%.*s", (int)(equals - word), word);
    struct names sizes = split(equals + 1, 'x');
    if (sizes.count > MOST_DIMENSIONS)
        return text("more than %d dimensions", MOST_DIMENSIONS);
    for (size_t i = 0; i < sizes.count; i++) {
        char *end;
        errno = 0;
        long long size = strtoll(sizes.item[i], &end, 10);
        if (*sizes.item[i] < '0' || *sizes.item[i] > '9' || *end != 0 || errno != 0 || size < 1)
            return text("\"%s\" is no size: write whole numbers from 1 on with x between, as 1x3x224x224",
                        sizes.item[i]);
        out->size[out->rank++] = size;
    }
    return NULL;
}

char *shape_words(const struct shape *shape) {
    if (shape->rank == 0)
        return text("scalar");
    char *words = text("%s", "");
    for (size_t i = 0; i < shape->rank; i++) {
        const char *size = shape->size[i] < 0 ? "?" : text("%lld", (long long)shape->size[i]);
        words = text("%s%s%s", words, i > 0 ? "x" : "", size);
    }
    return words;
}

bool shape_fits(const struct shape *shape, const struct shape *wanted) {
    if (shape->rank != wanted->rank)
        return false;
    for (size_t i = 0; i < shape->rank; i++)
        if (wanted->size[i] >= 0 && wanted->size[i] != shape->size[i])
            return false;
    return true;
}

size_t shape_count(const struct shape *shape, bool *too_many) {
    size_t count = 1;
    *too_many = false;
    for (size_t i = 0; i < shape->rank; i++) {
        size_t size = (size_t)shape->size[i];
        if (size != 0 && count > SIZE_MAX / 16 / size) {
            *too_many = true;
            return 0;
        }
        count *= size;
    }
    return count;
}
