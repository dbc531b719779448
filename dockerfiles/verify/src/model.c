#include "model.h"

// model/verify.onnx as text: made by scripts/make_verify_model.py.
const unsigned char model_bytes[] = {
#include "model.inc"
};
const size_t model_size = sizeof model_bytes;
