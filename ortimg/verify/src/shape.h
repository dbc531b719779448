// Shapes of tensors, as people write them: 1x3x224x224.
#ifndef ORT_VERIFY_SHAPE_H
#define ORT_VERIFY_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_DIMENSIONS = 16 };

struct shape {
    char *name; // of the input; NULL: none
    int64_t size[MOST_DIMENSIONS];
    size_t rank;
};

// Reads "name=1x3x224x224". NULL, or what is wrong with it.
const char *shape_read(const char *word, struct shape *out);
// "1x3x8x16", "scalar"; sizes that a model leaves open are "?".
char *shape_words(const struct shape *shape);
// Does a shape fit what a model wants, where -1 leaves a size open?
bool shape_fits(const struct shape *shape, const struct shape *wanted);
// Numbers in it; 0 for one with an empty dimension, and for one that cannot be counted (`too_many`).
size_t shape_count(const struct shape *shape, bool *too_many);

#endif
