// What to measure with --bench.
#ifndef ORT_VERIFY_BENCH_WISH_H
#define ORT_VERIFY_BENCH_WISH_H

#include "shape.h"

enum { MOST_STEPS = 32 };

// "1,8,32".
struct steps {
    int value[MOST_STEPS];
    size_t count;
};

struct bench_wish {
    bool wanted;
    struct steps batch, concurrency; // no batch: the shapes as they are; no concurrency: 1
    int threads;                     // of the CPU provider; 0: one for each core
};

// NULL, or what is wrong with the list. `most` is the largest number in it.
const char *steps_read(const char *word, int most, struct steps *out);
char *steps_words(const struct steps *steps);

// --shape may give an input several shapes: each is a case. An input with one shape has it in every case.
// The number of cases, at least 1; 0 where two inputs have different numbers of shapes, more than one.
size_t bench_cases(const struct shape *shape, size_t shapes);
// The shapes of one case; the list is fresh.
struct shape *bench_case(const struct shape *shape, size_t shapes, size_t number, size_t *count);

#endif
