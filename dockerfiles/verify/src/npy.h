// Tensors as .npy files, which NumPy reads and writes:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef ORT_VERIFY_NPY_H
#define ORT_VERIFY_NPY_H

#include "tensor.h"

// NULL, or what went wrong.
const char *npy_write(const char *path, const struct tensor *tensor);
// Reads the numbers of a tensor whose kind and shape are known; `tensor` gets its count and data.
// NULL, or what is wrong with the file.
const char *npy_read(const char *path, struct tensor *tensor);

#endif
