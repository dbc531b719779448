// The service's settings: environment variables, with their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

enum class Provider { cuda, cpu };

// ONNX Runtime's own name: "CUDAExecutionProvider".
const char *full_name(Provider provider);

using Shape = std::vector<std::int64_t>;

struct Settings {
    std::string model;                        // MODEL: path of an .onnx file
    Provider provider = Provider::cuda;       // PROVIDER: the CPU must be asked for
    int device = 0;                           // DEVICE_ID: number of the GPU
    std::string host = "0.0.0.0";             // HOST: address to listen on
    std::uint16_t port = 8080;                // PORT
    int threads = 0;                          // THREADS within an operator; 0: ONNX Runtime decides
    int workers = 2;                          // WORKERS: inferences at the same time
    int queue = 64;                           // QUEUE: requests that may wait for a worker
    std::size_t max_body = 32 * 1024 * 1024;  // MAX_BODY_MB, here in bytes
    int warmup_runs = 20;                     // WARMUP_RUNS
    std::map<std::string, Shape> warmup_shapes;  // WARMUP_SHAPES: "x=1x256,ids=1x16"
};

// Throws UsageError.
Settings settings_from_environment();
