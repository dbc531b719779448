// How busy the GPU is, as its driver tells through NVML.
// https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
#ifndef ORT_VERIFY_NVML_H
#define ORT_VERIFY_NVML_H

// NULL, or why it cannot be told.
const char *nvml_open(const char *pci_bus);
// Share of time in which a kernel of any process ran, 0 … 1, over the driver's last sample period (at most one
// second). -1: not told.
double nvml_busy(void);

#endif
