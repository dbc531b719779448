#include "tensor.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "text.h"

// https://github.com/microsoft/onnxruntime/blob/v1.21.0/include/onnxruntime/core/session/onnxruntime_c_api.h
enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9, FLOAT16 = 10, DOUBLE = 11 };

static const struct kind {
    const char *name, *descr;
    size_t size;
} kinds[] = {
    [FLOAT] = {"float", "<f4", 4},     [UINT8] = {"uint8", "|u1", 1},    [INT8] = {"int8", "|i1", 1},
    [INT32] = {"int32", "<i4", 4},     [INT64] = {"int64", "<i8", 8},    [BOOL] = {"bool", "|b1", 1},
    [FLOAT16] = {"float16", "<f2", 2}, [DOUBLE] = {"double", "<f8", 8},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *kind_of(int kind) {
    bool known = kind > 0 && kind < KINDS && kinds[kind].name != NULL;
    return known ? &kinds[kind] : NULL;
}

const char *kind_name(int kind) {
    return kind_of(kind) ? kind_of(kind)->name : text("type %d", kind);
}

int kind_named(const char *name) {
    for (int kind = 1; kind < KINDS; kind++)
        if (kinds[kind].name != NULL && strcmp(kinds[kind].name, name) == 0)
            return kind;
    return 0;
}

const char *kind_descr(int kind) {
    return kind_of(kind)->descr;
}

size_t kind_size(int kind) {
    return kind_of(kind) ? kind_of(kind)->size : 0;
}

// Only for numbers that float16 holds exactly: the low bits of the fraction are cut.
static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) == 0)
        return 0;
    uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

static double from_half(uint16_t half) {
    int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    double size = exponent == 0x1f ? (fraction ? (double)NAN : (double)INFINITY)
                  : exponent == 0  ? fraction / 16777216.0
                                   : (1024 + fraction) / 16777216.0 * (double)(1u << (exponent - 1));
    return half & 0x8000 ? -size : size;
}

// Steps of 1/512, which every kind of float holds exactly; mixed like in Knuth's multiplicative hashing.
static float spread(size_t index) {
    uint32_t mixed = (uint32_t)(index + 1) * 2654435761u;
    return (float)((int)(mixed >> 22) - 512) / 512.0f;
}

void tensor_fill(int kind, void *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float value = spread(i);
        uint8_t bit = i & 1;
        switch (kind) {
        case FLOAT: ((float *)data)[i] = value; break;
        case DOUBLE: ((double *)data)[i] = value; break;
        case FLOAT16: ((uint16_t *)data)[i] = half_of(value); break;
        case INT32: ((int32_t *)data)[i] = bit; break;
        case INT64: ((int64_t *)data)[i] = bit; break;
        default: ((uint8_t *)data)[i] = bit;
        }
    }
}

double tensor_value(int kind, const void *data, size_t index) {
    switch (kind) {
    case FLOAT: return ((const float *)data)[index];
    case DOUBLE: return ((const double *)data)[index];
    case FLOAT16: return from_half(((const uint16_t *)data)[index]);
    case INT32: return ((const int32_t *)data)[index];
    case INT64: return (double)((const int64_t *)data)[index];
    case INT8: return ((const int8_t *)data)[index];
    default: return ((const uint8_t *)data)[index];
    }
}

static double size_of(double value) {
    return value < 0 ? -value : value;
}

struct difference tensor_difference(int kind, const void *got, const void *wanted, size_t count) {
    double mean = 0;
    for (size_t i = 0; i < count; i++) {
        double value = tensor_value(kind, wanted, i);
        if (isfinite(value))
            mean += size_of(value) / (double)count;
    }
    struct difference worst = {.largest = 0};
    for (size_t i = 0; i < count; i++) {
        double one = tensor_value(kind, got, i), other = tensor_value(kind, wanted, i), error = 0;
        if (isfinite(one) && isfinite(other)) {
            double scale = size_of(other) > mean ? size_of(other) : mean;
            if (one != other)
                error = scale > 0 ? size_of(one - other) / scale : (double)INFINITY;
        } else if (!(isnan(one) && isnan(other)) && one != other)
            error = INFINITY;
        if (i == 0 || error > worst.largest)
            worst = (struct difference){error, i, one, other};
    }
    return worst;
}
