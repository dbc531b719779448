// A call of ONNX Runtime's API, whose failure is told. The types of the arguments are those of ort_api.h.
#ifndef ORT_VERIFY_ASK_H
#define ORT_VERIFY_ASK_H

#include "ort_api.h"
#include "talk.h"

#define ASK(ort, place, types, ...) went_well((ort)->api, ORT_CALL((ort)->api, place, void *(*)types)(__VA_ARGS__))

#endif
