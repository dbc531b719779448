// The model that ort-verify carries: model/verify.onnx.
#ifndef ORT_VERIFY_MODEL_H
#define ORT_VERIFY_MODEL_H

#include <stddef.h>

extern const unsigned char model_bytes[];
extern const size_t model_size;

#endif
