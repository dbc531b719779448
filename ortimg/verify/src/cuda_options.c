#include "cuda_options.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { BOOLEAN, INTEGER, BYTES, CHOICE, POINTER };

static const struct row {
    const char *name;
    enum kind kind;
    const char *values; // of a choice, by their numbers, blanks between
    int since;          // 18: ONNX Runtime 1.18 is the first that knows it
} rows[] = {
#include "cuda_options.inc"
};

enum { ROWS = sizeof rows / sizeof *rows, MIB = 1 << 20 };

static const struct row *row_named(const char *name) {
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static const char *all_names(void) {
    struct names names = {0};
    for (size_t i = 0; i < ROWS; i++)
        names_add(&names, rows[i].name);
    return names_join(&names, ROWS);
}

char *bytes_words(unsigned long long bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit < 6; unit++)
        size /= 1024;
    bool whole = size == (double)(unsigned long long)size;
    return text(whole ? "%.0f %s" : "%.1f %s", size, units[unit]);
}

// Digits, and a K, M, G or T for powers of 1024: "4294967296", "4G", "512MiB".
static bool read_bytes(const char *value, unsigned long long *bytes) {
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    *bytes = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || errno != 0)
        return false;
    if (*end == 0)
        return true;
    const char *unit = strchr(units, *end & ~0x20); // small letters too
    bool ends = strcmp(end + 1, "") == 0 || strcmp(end + 1, "iB") == 0 || strcmp(end + 1, "B") == 0;
    if (unit == NULL || *unit == 0 || !ends)
        return false;
    int bits = 10 * (int)(unit - units + 1);
    if (*bytes > ULLONG_MAX >> bits)
        return false;
    *bytes <<= bits;
    return true;
}

static const char *add_bytes(struct cuda_options *options, const char *name, const char *value) {
    unsigned long long bytes;
    if (!read_bytes(value, &bytes) || bytes == 0)
        return text("%s=%s: write a number of bytes from 1 on, as 4294967296 or 4G", name, value);
    if (bytes < MIB)
        names_add(&options->warnings,
                  text("%s=%s: that is %s; the number counts bytes, \"%lluM\" would be %s", name, value,
                       bytes_words(bytes), bytes, bytes_words(bytes * MIB)));
    names_add(&options->value, text("%llu", bytes));
    return NULL;
}

static const char *add_choice(struct cuda_options *options, const struct row *row, const char *value) {
    struct names values = split(row->values, ' ');
    for (size_t i = 0; i < values.count; i++)
        if (strcmp(value, values.item[i]) == 0 || strcmp(value, text("%zu", i)) == 0) {
            names_add(&options->value, values.item[i]);
            return NULL;
        }
    return text("%s=%s: it is one of %s", row->name, value, names_join(&values, 9));
}

static const char *add_boolean(struct cuda_options *options, const struct row *row, const char *value) {
    static const char *const words[] = {"0", "false", "False", "1", "true", "True"};
    for (size_t i = 0; i < 6; i++)
        if (strcmp(value, words[i]) == 0) {
            names_add(&options->value, i < 3 ? "0" : "1");
            if (i < 3 && strcmp(row->name, "do_copy_in_default_stream") == 0)
                names_add(&options->warnings,
                          "DO NOT SHIP do_copy_in_default_stream=0: copies in streams of their own may race with the "
                          "computation and give wrong results; 1, the default, is the safe one (since 1.14 only the "
                          "Loop operator reads it), see "
                          "https://onnxruntime.ai/docs/execution-providers/"
                          "CUDA-ExecutionProvider.html#do_copy_in_default_stream");
            return NULL;
        }
    return text("%s=%s: it is 0 or 1", row->name, value);
}

static const char *add_integer(struct cuda_options *options, const struct row *row, const char *value) {
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != 0 || errno != 0 || number > INT32_MAX)
        return text("%s=%s: it is a whole number from 0 on", row->name, value);
    names_add(&options->value, text("%ld", number));
    return NULL;
}

const char *cuda_option_add(struct cuda_options *options, const char *word) {
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word)
        return text("%s: write KEY=VALUE", word);
    char *name = text("%.*s", (int)(equals - word), word);
    const char *value = equals + 1, *fault = NULL;
    const struct row *row = row_named(name);
    if (row == NULL)
        return text("%s: the CUDA provider has no such option; it has %s", name, all_names());
    if (names_has(&options->key, name))
        return text("%s is given twice", name);
    switch (row->kind) {
    case BOOLEAN: fault = add_boolean(options, row, value); break;
    case INTEGER: fault = add_integer(options, row, value); break;
    case BYTES: fault = add_bytes(options, name, value); break;
    case CHOICE: fault = add_choice(options, row, value); break;
    case POINTER: fault = text("%s is an address inside a running program: only that program can set it", name);
    }
    if (fault == NULL)
        names_add(&options->key, name);
    return fault;
}

const char *cuda_option_value(const struct cuda_options *options, const char *key) {
    for (size_t i = 0; i < options->key.count; i++)
        if (strcmp(options->key.item[i], key) == 0)
            return options->value.item[i];
    return NULL;
}

bool cuda_option_known(const char *key, const char *version) {
    const struct row *row = row_named(key);
    int major = atoi(version), minor = strchr(version, '.') ? atoi(strchr(version, '.') + 1) : 0;
    return row != NULL && (major > 1 || minor >= row->since);
}

const char *cuda_options_fit(const struct cuda_options *options, const char *version) {
    for (size_t i = 0; i < options->key.count; i++) {
        const char *key = options->key.item[i];
        if (!cuda_option_known(key, version))
            return text("%s: ONNX Runtime knows it since 1.%d, this is %s", key, row_named(key)->since, version);
    }
    return NULL;
}
