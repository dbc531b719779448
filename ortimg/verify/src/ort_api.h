// The few functions of ONNX Runtime's C API that are called, by their place in its table of functions.
//
// The table (struct OrtApi) only ever grows at its end, so a place holds for every later version; each place is
// also known to the project, which guards some of them with static_assert in onnxruntime_c_api.cc. Counted in
// include/onnxruntime/core/session/onnxruntime_c_api.h of 1.21.0, called with 1.16.2, 1.17.1, 1.18.0, 1.23.2 and 1.30.0.
// https://github.com/microsoft/onnxruntime/blob/v1.21.0/include/onnxruntime/core/session/onnxruntime_c_api.h
#ifndef ORT_VERIFY_ORT_API_H
#define ORT_VERIFY_ORT_API_H

#include <stddef.h>

enum {
    API_VERSION = 14, // ORT 1.14; every later ORT hands out its table for it

    GET_ERROR_MESSAGE = 2,               // const char *(const OrtStatus *)
    CREATE_ENV = 3,                      // OrtStatus *(level, id, OrtEnv **)
    CREATE_SESSION = 7,                  // OrtStatus *(env, path, options, OrtSession **)
    CREATE_SESSION_FROM_ARRAY = 8,       // OrtStatus *(env, bytes, length, options, OrtSession **)
    RUN = 9,                             // OrtStatus *(session, run options, names, values, count, names, count, out)
    CREATE_SESSION_OPTIONS = 10,         // OrtStatus *(OrtSessionOptions **)
    ENABLE_PROFILING = 14,               // OrtStatus *(options, prefix of the file)
    SET_INTRA_OP_NUM_THREADS = 24,       // OrtStatus *(options, int)
    SESSION_GET_INPUT_COUNT = 30,        // OrtStatus *(session, size_t *)
    SESSION_GET_OUTPUT_COUNT = 31,       // OrtStatus *(session, size_t *)
    SESSION_GET_INPUT_TYPE_INFO = 33,    // OrtStatus *(session, index, OrtTypeInfo **)
    SESSION_GET_INPUT_NAME = 36,         // OrtStatus *(session, index, allocator, char **)
    SESSION_GET_OUTPUT_NAME = 37,        // OrtStatus *(session, index, allocator, char **)
    CREATE_TENSOR_WITH_DATA = 49,        // OrtStatus *(memory, data, bytes, sizes, rank, element type, OrtValue **)
    IS_TENSOR = 50,                      // OrtStatus *(value, int *)
    GET_TENSOR_MUTABLE_DATA = 51,        // OrtStatus *(value, void **)
    CAST_TYPE_INFO_TO_TENSOR_INFO = 55,  // OrtStatus *(type info, const OrtTensorTypeAndShapeInfo **)
    GET_TENSOR_ELEMENT_TYPE = 60,        // OrtStatus *(tensor info, int *)
    GET_DIMENSIONS_COUNT = 61,           // OrtStatus *(tensor info, size_t *)
    GET_DIMENSIONS = 62,                 // OrtStatus *(tensor info, int64_t *, count)
    GET_TENSOR_TYPE_AND_SHAPE = 65,      // OrtStatus *(value, OrtTensorTypeAndShapeInfo **)
    CREATE_MEMORY_INFO = 68,             // OrtStatus *(name, allocator type, device, memory type, OrtMemoryInfo **)
    CREATE_CPU_MEMORY_INFO = 69,         // OrtStatus *(allocator type, memory type, OrtMemoryInfo **)
    GET_DEFAULT_ALLOCATOR = 78,          // OrtStatus *(OrtAllocator **)
    RELEASE_MEMORY_INFO = 94,            // void (memory)
    RELEASE_SESSION = 95,                // void (session)
    RELEASE_VALUE = 96,                  // void (value)
    SESSION_END_PROFILING = 110,         // OrtStatus *(session, allocator, char **)
    GET_AVAILABLE_PROVIDERS = 125,       // OrtStatus *(char ***, int *)
    ADD_SESSION_CONFIG_ENTRY = 130,      // OrtStatus *(options, key, value)
    RUN_WITH_BINDING = 133,              // OrtStatus *(session, run options, binding)
    CREATE_IO_BINDING = 134,             // OrtStatus *(session, OrtIoBinding **)
    RELEASE_IO_BINDING = 135,            // void (binding)
    BIND_INPUT = 136,                    // OrtStatus *(binding, name, value)
    BIND_OUTPUT_TO_DEVICE = 138,         // OrtStatus *(binding, name, memory)
    APPEND_CUDA_V2 = 204,                // OrtStatus *(options, const OrtCUDAProviderOptionsV2 *)
    CREATE_CUDA_PROVIDER_OPTIONS = 205,  // OrtStatus *(OrtCUDAProviderOptionsV2 **)
    UPDATE_CUDA_PROVIDER_OPTIONS = 206,  // OrtStatus *(options, keys, values, count)

    LOG_ERROR = 3,       // OrtLoggingLevel ORT_LOGGING_LEVEL_ERROR
    ARENA_ALLOCATOR = 1, // OrtAllocatorType OrtArenaAllocator
    MEMORY_DEFAULT = 0,  // OrtMemType OrtMemTypeDefault
};

// struct OrtApiBase: two functions.
struct ort_base {
    const void *(*get_api)(unsigned version);
    const char *(*get_version)(void);
};

typedef void (*ort_function)(void);
#define ORT_CALL(api, place, type) ((type)((const ort_function *)(api))[place])

#endif
