#include "model.h"

// model/verify.onnx and model/verify-without-conv.onnx as text: made by scripts/make_verify_model.py.
static const unsigned char with_conv[] = {
#include "model.inc"
};
static const unsigned char without_conv[] = {
#include "model_without_conv.inc"
};

const unsigned char *model_bytes = with_conv;
size_t model_size = sizeof with_conv;

void model_without_conv(void) {
    model_bytes = without_conv;
    model_size = sizeof without_conv;
}
