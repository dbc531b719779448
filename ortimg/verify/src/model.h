// The model that ort-verify carries: model/verify.onnx.
#ifndef ORT_VERIFY_MODEL_H
#define ORT_VERIFY_MODEL_H

#include <stddef.h>

extern const unsigned char *model_bytes;
extern size_t model_size;

// From here on a model that needs no cuDNN: model/verify-without-conv.onnx.
void model_without_conv(void);

#endif
