#include "bench_wish.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *steps_read(const char *word, int most, struct steps *out) {
    struct names parts = split(word, ',');
    out->count = 0;
    if (parts.count > MOST_STEPS)
        return text("more than %d numbers", MOST_STEPS);
    for (size_t i = 0; i < parts.count; i++) {
        char *end;
        long number = strtol(parts.item[i], &end, 10);
        if (*parts.item[i] == 0 || *end != 0 || number < 1 || number > most)
            return text("write whole numbers from 1 to %d with commas between, as 1,8,32", most);
        for (size_t k = 0; k < out->count; k++)
            if (out->value[k] == number)
                return text("%ld is given twice", number);
        out->value[out->count++] = (int)number;
    }
    return NULL;
}

char *steps_words(const struct steps *steps) {
    char *words = text("%s", "");
    for (size_t i = 0; i < steps->count; i++)
        words = text("%s%s%d", words, i > 0 ? "," : "", steps->value[i]);
    return words;
}

static size_t count_of(const struct shape *shape, size_t shapes, const char *name) {
    size_t count = 0;
    for (size_t i = 0; i < shapes; i++)
        count += strcmp(shape[i].name, name) == 0;
    return count;
}

size_t bench_cases(const struct shape *shape, size_t shapes) {
    size_t cases = 1;
    for (size_t i = 0; i < shapes; i++) {
        size_t count = count_of(shape, shapes, shape[i].name);
        if (count > 1 && cases > 1 && count != cases)
            return 0;
        cases = count > 1 ? count : cases;
    }
    return cases;
}

struct shape *bench_case(const struct shape *shape, size_t shapes, size_t number, size_t *count) {
    struct shape *chosen = calloc(shapes + 1, sizeof *chosen);
    if (chosen == NULL)
        abort();
    *count = 0;
    for (size_t i = 0; i < shapes; i++)
        if (count_of(shape, shapes, shape[i].name) == 1 || count_of(shape, i, shape[i].name) == number)
            chosen[(*count)++] = shape[i];
    return chosen;
}
