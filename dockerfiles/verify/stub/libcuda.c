// A driver with no device, for `ort-verify --stub`: lets ONNX Runtime's CUDA provider come up in an image build,
// where there is no driver, until it asks for a device. It is mounted for that one step, never part of an image.
//
// It must have every function that the CUDA run time looks up while it starts: ORT 1.18 to 1.22 crash without one
// of them (found by trying, each version). It says that it is newer than any toolkit, otherwise the run time
// stops at "driver too old" (35) before it asks for a device.
typedef int CUresult;
typedef unsigned long long cuuint64_t;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_NOT_FOUND = 500 };
enum { DRIVER_VERSION = 99090 }; // 1000 × major + 10 × minor

#define EXPORT __attribute__((visibility("default")))
#define NO_DEVICE(name) \
    EXPORT CUresult name(void) { return CUDA_ERROR_NO_DEVICE; }

// The order is alphabetical; calls with arguments are fine in the x86-64 calling convention, none is read.
NO_DEVICE(cuCtxGetCurrent)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDeviceGetAttribute)
NO_DEVICE(cuFuncSetAttribute)
NO_DEVICE(cuFuncSetCacheConfig)
NO_DEVICE(cuInit)
NO_DEVICE(cuLaunchCooperativeKernel)
NO_DEVICE(cuLaunchKernel)
NO_DEVICE(cuLinkAddData_v2)
NO_DEVICE(cuLinkAddFile_v2)
NO_DEVICE(cuLinkComplete)
NO_DEVICE(cuLinkCreate_v2)
NO_DEVICE(cuLinkDestroy)
NO_DEVICE(cuModuleGetFunction)
NO_DEVICE(cuModuleLoadData)
NO_DEVICE(cuModuleUnload)
NO_DEVICE(cuTensorMapEncodeTiled) // the provider of 1.30 for CUDA 13 links to it

EXPORT CUresult cuDeviceGetCount(int *count) {
    if (count)
        *count = 0;
    return CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    if (version)
        *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_NO_DEVICE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_SUCCESS ? "no error" : "no CUDA-capable device is detected";
    return CUDA_SUCCESS;
}

static CUresult no_device(void) { return CUDA_ERROR_NO_DEVICE; }

static int same(const char *one, const char *other) {
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, int *status);

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
    (void)version;
    (void)flags;
    static const struct {
        const char *name;
        void (*function)(void);
    } answered[] = {
        {"cuDriverGetVersion", (void (*)(void))cuDriverGetVersion},
        {"cuDeviceGetCount", (void (*)(void))cuDeviceGetCount},
        {"cuGetErrorName", (void (*)(void))cuGetErrorName},
        {"cuGetErrorString", (void (*)(void))cuGetErrorString},
        {"cuGetProcAddress", (void (*)(void))cuGetProcAddress},
    };
    if (!name || !function)
        return CUDA_ERROR_NOT_FOUND;
    *(void (**)(void))function = (void (*)(void))no_device;
    for (unsigned i = 0; i < sizeof answered / sizeof *answered; i++)
        if (same(name, answered[i].name))
            *(void (**)(void))function = answered[i].function;
    // From CUDA 12 on the caller passes a fifth argument and expects this table entry to take it.
    if (same(name, "cuGetProcAddress") && version >= 12000)
        *(void (**)(void))function = (void (*)(void))cuGetProcAddress_v2;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, int *status) {
    if (status)
        *status = 0; // CU_GET_PROC_ADDRESS_SUCCESS
    return cuGetProcAddress(name, function, version, flags);
}
