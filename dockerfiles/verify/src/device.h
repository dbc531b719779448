// The GPU, asked through the driver's own library.
#ifndef ORT_VERIFY_DEVICE_H
#define ORT_VERIFY_DEVICE_H

#include <stdbool.h>

// Brings up device `id` and puts what it is into the report. `cudart` is the name of the CUDA run time of ONNX Runtime,
// NULL: unknown. False where there is no such device for us: the last step says why.
bool device_open(int id, const char *cudart);
// Free bytes of the device's memory; -1: it does not say.
double device_free(void);
// Its place on the PCI bus, as NVML takes it; "" where that is not told.
const char *device_bus(void);

#endif
