// The kinds of numbers that a tensor holds, by ONNX Runtime's number for each (ONNXTensorElementDataType).
#ifndef ORT_VERIFY_TENSOR_H
#define ORT_VERIFY_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "shape.h"

// One that is held here: an input, or an output kept past its session.
struct tensor {
    int kind; // 0: no tensor of numbers
    struct shape shape;
    size_t count;
    void *data;
};

// "float16", "int64"; "type 8" for a kind that is not known here.
const char *kind_name(int kind);
// The kind of a name; 0: none that is made or compared here.
int kind_named(const char *name);
// As NumPy writes it, "<f4"; only of kinds that have a size.
const char *kind_descr(int kind);
// Bytes of one number; 0: numbers of this kind are neither made nor compared.
size_t kind_size(int kind);
// The same numbers each time: floats spread over -1 … 1, whole numbers and truth values 0, 1, 0, 1 …, which serve
// as an index, a mask or a length of nearly every model.
void tensor_fill(int kind, void *data, size_t count);
double tensor_value(int kind, const void *data, size_t index);

// How far two tensors are apart. The error of a number is relative to it, or to the mean size of all wanted ones where
// that is larger: a number that should be zero has no size of its own.
struct difference {
    double largest; // infinite where one of both is no number, or endless
    size_t at;
    double got, wanted;
};
struct difference tensor_difference(int kind, const void *got, const void *wanted, size_t count);

#endif
