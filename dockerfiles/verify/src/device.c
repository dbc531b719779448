#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cJSON.h"
#include "talk.h"
#include "text.h"

// Numbers of https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76 };

static void *driver;
static int (*memory_info)(size_t *, size_t *);
static char bus[64];

// A step of the driver's API, told like ONNX Runtime tells its own: "CUDA failure N: …".
static bool done(int status) {
    const char *name = NULL;
    int (*error_name)(int, const char **);
    *(void **)&error_name = dlsym(driver, "cuGetErrorName");
    if (status != 0 && error_name != NULL && error_name(status, &name) == 0 && name != NULL)
        say("error CUDA failure %d: %s", status, name);
    else if (status != 0)
        say("error CUDA failure %d", status);
    return status == 0;
}

static char *version_words(int version) {
    return text("%d.%d", version / 1000, version % 1000 / 10);
}

// "580.159.04". The kernel module's file is not there in every kind of sandbox, NVML not in every container.
static void put_driver_version(void) {
    char line[512] = "", *word = NULL;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    int (*start)(void) = NULL, (*ask)(char *, unsigned) = NULL;
    if (nvml != NULL) {
        *(void **)&start = dlsym(nvml, "nvmlInit_v2");
        *(void **)&ask = dlsym(nvml, "nvmlSystemGetDriverVersion");
    }
    if (start != NULL && ask != NULL && start() == 0 && ask(line, sizeof line) == 0) {
        put_text("device.driver", line);
        return;
    }
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file == NULL)
        return;
    if (fgets(line, sizeof line, file) != NULL)
        for (char *part = strtok(line, " \t\n"); part != NULL && word == NULL; part = strtok(NULL, " \t\n"))
            if (strspn(part, "0123456789.") == strlen(part) && strchr(part, '.') != NULL)
                word = part;
    fclose(file);
    if (word != NULL)
        put_text("device.driver", word);
}

// The run time must not be of a newer major version than the driver: minor versions do not matter.
// https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
static bool fits_runtime(int version, const char *cudart) {
    void *library = cudart ? dlopen(cudart, RTLD_NOW) : NULL;
    int (*ask)(int *) = NULL, runtime = 0;
    if (library != NULL)
        *(void **)&ask = dlsym(library, "cudaRuntimeGetVersion");
    if (ask == NULL || ask(&runtime) != 0)
        return true; // ONNX Runtime will tell
    put_text("device.runtime_cuda", version_words(runtime));
    say("at compare driver and CUDA");
    if (version / 1000 < runtime / 1000) {
        say("error CUDA failure 35: the driver is for CUDA %s, the libraries are CUDA %s", version_words(version),
            version_words(runtime));
        return false;
    }
    return true;
}

static void put_facts(int id, int device) {
    int (*name_of)(char *, int, int), (*attribute_of)(int *, int, int), (*memory_of)(size_t *, int);
    *(void **)&name_of = dlsym(driver, "cuDeviceGetName");
    *(void **)&attribute_of = dlsym(driver, "cuDeviceGetAttribute");
    *(void **)&memory_of = dlsym(driver, "cuDeviceTotalMem_v2");
    int (*bus_of)(char *, int, int);
    *(void **)&bus_of = dlsym(driver, "cuDeviceGetPCIBusId");
    if (bus_of == NULL || bus_of(bus, sizeof bus, device) != 0)
        *bus = 0;
    char name[256] = "";
    int major = 0, minor = 0;
    size_t memory = 0;
    put_number("device.id", id);
    if (name_of != NULL && name_of(name, sizeof name, device) == 0)
        put_text("device.name", name);
    if (attribute_of != NULL && attribute_of(&major, COMPUTE_MAJOR, device) == 0 &&
        attribute_of(&minor, COMPUTE_MINOR, device) == 0)
        put_text("device.compute", text("%d.%d", major, minor));
    if (memory_of != NULL && memory_of(&memory, device) == 0)
        put_number("device.memory_bytes", (double)memory);
}

bool device_open(int id, const char *cudart) {
    if ((driver = open_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) == NULL)
        return false;
    int (*version_of)(int *), (*start)(unsigned), (*count_of)(int *), (*get)(int *, int), (*retain)(void **, int),
        (*enter)(void *);
    *(void **)&version_of = dlsym(driver, "cuDriverGetVersion");
    *(void **)&start = dlsym(driver, "cuInit");
    *(void **)&count_of = dlsym(driver, "cuDeviceGetCount");
    *(void **)&get = dlsym(driver, "cuDeviceGet");
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&enter = dlsym(driver, "cuCtxSetCurrent");
    *(void **)&memory_info = dlsym(driver, "cuMemGetInfo_v2");
    say("at start the driver");
    if (!version_of || !start || !count_of || !get || !retain || !enter) {
        say("error libcuda.so.1 is not the driver's library: it lacks functions");
        return false;
    }
    int version = 0, count = 0, device = 0;
    void *context = NULL;
    if (version_of(&version) == 0)
        put_text("device.driver_cuda", version_words(version));
    put_driver_version();
    if (!done(start(0)) || !fits_runtime(version, cudart))
        return false;
    say("at find the device");
    if (!done(count_of(&count)))
        return false;
    if (id >= count) {
        say("error CUDA failure %d: device_id is %d, and CUDA sees %d device%s, counted from 0", count ? 101 : 100, id,
            count, count == 1 ? "" : "s");
        return false;
    }
    if (!done(get(&device, id)))
        return false;
    put_facts(id, device);
    say("at open the device"); // the context that ONNX Runtime will use too
    return done(retain(&context, device)) && done(enter(context));
}

const char *device_bus(void) {
    return bus;
}

double device_free(void) {
    size_t available = 0, all = 0;
    return memory_info != NULL && memory_info(&available, &all) == 0 ? (double)available : -1;
}
