// One session of ONNX Runtime, and what goes in and comes out.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <string>
#include <vector>

#include "settings.hpp"

struct TensorInfo {
    std::string name;
    ONNXTensorElementDataType type;
    Shape shape;                       // -1: an open size
    std::vector<std::string> symbols;  // names of open sizes, "" where there is none
};

class Model {
  public:
    // Creates the session on the provider that was asked for, and on no other. Takes seconds on a GPU.
    // Throws EnvironmentError where CUDA cannot be used, UsageError where the model is at fault.
    explicit Model(const Settings &settings);

    const std::vector<TensorInfo> &inputs() const { return inputs_; }
    const std::vector<TensorInfo> &outputs() const { return outputs_; }

    // Inputs and outputs are in the model's own order. Any number of threads may run it. Throws Ort::Exception.
    std::vector<Ort::Value> run(const std::vector<Ort::Value> &inputs);

    // Ends what runs now, with an error, and what would run later.
    void terminate() { run_options_.SetTerminate(); }

  private:
    Ort::Env environment_;
    Ort::Session session_;
    Ort::RunOptions run_options_;
    std::vector<TensorInfo> inputs_, outputs_;
    std::vector<const char *> input_names_, output_names_;
};
