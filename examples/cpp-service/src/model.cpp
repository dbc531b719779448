#include "model.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "errors.hpp"
#include "tensor_json.hpp"

namespace {

// One line of what ONNX Runtime says, which begins with half a page of C++ where it is about CUDA.
std::string cause(const Ort::Exception &error) {
    std::string text = error.what();
    for (const char *start : {"CUDA failure ", "Failed to load "})
        if (const auto found = text.find(start); found != text.npos) text.erase(0, found);
    return text.substr(0, std::min(text.find('\n'), text.find(" ;")));
}

EnvironmentError no_cuda(const Ort::Exception &error) {
    return EnvironmentError("CUDA cannot be used: " + cause(error) +
                            "; give the container a GPU (--gpus all), or ask for the CPU (PROVIDER=cpu)");
}

bool is_about_the_model(const Ort::Exception &error) {
    switch (error.GetOrtErrorCode()) {
        case ORT_INVALID_ARGUMENT:
        case ORT_NO_SUCHFILE:
        case ORT_NO_MODEL:
        case ORT_INVALID_PROTOBUF:
        case ORT_INVALID_GRAPH:
        case ORT_NOT_IMPLEMENTED: return true;
        default: return false;
    }
}

struct ReleaseCudaOptions {
    void operator()(OrtCUDAProviderOptionsV2 *options) const { Ort::GetApi().ReleaseCUDAProviderOptions(options); }
};

// Loads the CUDA provider and all of its libraries; the device itself is first used by the session.
void append_cuda(Ort::SessionOptions &options, int device) {
    OrtCUDAProviderOptionsV2 *made = nullptr;
    Ort::ThrowOnError(Ort::GetApi().CreateCUDAProviderOptions(&made));
    const std::unique_ptr<OrtCUDAProviderOptionsV2, ReleaseCudaOptions> cuda(made);
    const char *key = "device_id";
    const std::string value = std::to_string(device);
    const char *text = value.c_str();
    Ort::ThrowOnError(Ort::GetApi().UpdateCUDAProviderOptions(cuda.get(), &key, &text, 1));
    options.AppendExecutionProvider_CUDA_V2(*cuda);
}

Ort::SessionOptions session_options(const Settings &settings) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(settings.threads);
    if (settings.provider == Provider::cuda) {
        try {
            append_cuda(options, settings.device);
        } catch (const Ort::Exception &error) {
            throw no_cuda(error);
        }
    }
    return options;
}

Ort::Session open_session(const Ort::Env &environment, const Settings &settings) {
    if (settings.model.empty()) throw UsageError("MODEL is not set: the path of an .onnx file is wanted");
    if (!std::filesystem::is_regular_file(settings.model))
        throw UsageError("MODEL is " + settings.model + ": there is no such file");
    const auto options = session_options(settings);
    try {
        return {environment, settings.model.c_str(), options};
    } catch (const Ort::Exception &error) {
        if (settings.provider == Provider::cuda && !is_about_the_model(error)) throw no_cuda(error);
        throw UsageError("MODEL " + settings.model + " cannot be used: " + cause(error));
    }
}

TensorInfo describe(const char *kind, std::string name, const Ort::TypeInfo &info) {
    if (info.GetONNXType() != ONNX_TYPE_TENSOR)
        throw UsageError(std::string(kind) + " " + name + " of the model is no tensor: this service has tensors only");
    const auto tensor = info.GetTensorTypeAndShapeInfo();
    if (!is_served(tensor.GetElementType()))
        throw UsageError(std::string(kind) + " " + name + " of the model has a type that this service does not have");
    TensorInfo found{std::move(name), tensor.GetElementType(), tensor.GetShape(), {}};
    for (const char *symbol : tensor.GetSymbolicDimensions()) found.symbols.emplace_back(symbol);
    return found;
}

}  // namespace

// Errors are told by exceptions; ONNX Runtime's log would say the same once more, in many lines.
Model::Model(const Settings &settings)
    : environment_(ORT_LOGGING_LEVEL_FATAL, "ort-service"), session_(open_session(environment_, settings)) {
    Ort::AllocatorWithDefaultOptions allocator;
    for (std::size_t i = 0; i < session_.GetInputCount(); ++i)
        inputs_.push_back(
            describe("input", session_.GetInputNameAllocated(i, allocator).get(), session_.GetInputTypeInfo(i)));
    for (std::size_t i = 0; i < session_.GetOutputCount(); ++i)
        outputs_.push_back(
            describe("output", session_.GetOutputNameAllocated(i, allocator).get(), session_.GetOutputTypeInfo(i)));
    for (const auto &input : inputs_) input_names_.push_back(input.name.c_str());
    for (const auto &output : outputs_) output_names_.push_back(output.name.c_str());
}

std::vector<Ort::Value> Model::run(const std::vector<Ort::Value> &inputs) {
    return session_.Run(run_options_, input_names_.data(), inputs.data(), inputs.size(), output_names_.data(),
                        output_names_.size());
}
