#include "nvml.h"

#include <dlfcn.h>
#include <stddef.h>

#include "text.h"

struct utilization {
    unsigned gpu, memory; // percent
};

static void *device;
static int (*ask)(void *, struct utilization *);

const char *nvml_open(const char *pci_bus) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL)
        return "no libnvidia-ml.so.1";
    int (*start)(void), (*find)(const char *, void **);
    *(void **)&start = dlsym(library, "nvmlInit_v2");
    *(void **)&find = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&ask = dlsym(library, "nvmlDeviceGetUtilizationRates");
    struct utilization now;
    int status = start && find && ask ? start() : -1;
    if (status == 0)
        status = find(pci_bus, &device);
    if (status == 0)
        status = ask(device, &now);
    if (status == 0)
        return NULL;
    device = NULL;
    return status == 3 ? "NVML does not tell the utilisation of this GPU (MIG, or not supported)"
                       : text("NVML error %d", status);
}

double nvml_busy(void) {
    struct utilization now;
    return device != NULL && ask(device, &now) == 0 ? now.gpu / 100.0 : -1;
}
