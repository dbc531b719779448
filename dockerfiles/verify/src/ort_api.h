// The few functions of ONNX Runtime's C API that are called, by their place in its table of functions.
//
// The table (struct OrtApi) only ever grows at its end, so a place holds for every later version; each place is
// also known to the project, which guards some of them with static_assert in onnxruntime_c_api.cc. Counted in
// include/onnxruntime/core/session/onnxruntime_c_api.h of 1.21.0, called with 1.16.2, 1.17.1, 1.18.0 and 1.23.2.
// https://github.com/microsoft/onnxruntime/blob/v1.21.0/include/onnxruntime/core/session/onnxruntime_c_api.h
#ifndef ORT_VERIFY_ORT_API_H
#define ORT_VERIFY_ORT_API_H

#include <stddef.h>

enum {
    API_VERSION = 14, // ORT 1.14; every later ORT hands out its table for it

    GET_ERROR_MESSAGE = 2,             // const char *(const OrtStatus *)
    CREATE_ENV = 3,                    // OrtStatus *(level, id, OrtEnv **)
    CREATE_SESSION_FROM_ARRAY = 8,     // OrtStatus *(env, bytes, length, options, OrtSession **)
    CREATE_SESSION_OPTIONS = 10,       // OrtStatus *(OrtSessionOptions **)
    SET_INTRA_OP_NUM_THREADS = 24,     // OrtStatus *(options, int)
    GET_AVAILABLE_PROVIDERS = 125,     // OrtStatus *(char ***, int *)
    APPEND_CUDA_V2 = 204,              // OrtStatus *(options, const OrtCUDAProviderOptionsV2 *)
    CREATE_CUDA_PROVIDER_OPTIONS = 205, // OrtStatus *(OrtCUDAProviderOptionsV2 **)
    UPDATE_CUDA_PROVIDER_OPTIONS = 206, // OrtStatus *(options, keys, values, count)

    LOG_ERROR = 3, // OrtLoggingLevel ORT_LOGGING_LEVEL_ERROR
};

// struct OrtApiBase: two functions.
struct ort_base {
    const void *(*get_api)(unsigned version);
    const char *(*get_version)(void);
};

typedef void (*ort_function)(void);
#define ORT_CALL(api, place, type) ((type)((const ort_function *)(api))[place])

#endif
