#include "warmup.hpp"

#include <chrono>
#include <cstring>

#include "errors.hpp"
#include "tensor_json.hpp"

namespace {

void check_names(const Model &model, const Settings &settings) {
    for (const auto &[name, shape] : settings.warmup_shapes) {
        bool known = false;
        for (const auto &input : model.inputs()) known |= input.name == name;
        if (!known) throw UsageError("WARMUP_SHAPES names " + name + ": the model has no such input");
    }
}

Ort::Value zeros(const TensorInfo &input, const Settings &settings) {
    Shape shape = input.shape;
    if (const auto given = settings.warmup_shapes.find(input.name); given != settings.warmup_shapes.end()) {
        shape = given->second;
    } else {
        for (auto &size : shape)
            if (size < 0) size = 1;
    }
    try {
        check_shape(input, shape);
    } catch (const BadRequest &error) {
        throw UsageError(std::string("WARMUP_SHAPES: ") + error.what());
    }
    try {
        Ort::AllocatorWithDefaultOptions allocator;
        auto tensor = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), input.type);
        std::memset(tensor.GetTensorMutableRawData(), 0, tensor.GetTensorSizeInBytes());
        return tensor;
    } catch (const Ort::Exception &error) {
        throw UsageError("WARMUP_SHAPES: there is no memory for input " + input.name);
    }
}

}  // namespace

double warm_up(Model &model, const Settings &settings, const std::function<bool()> &go_on) {
    check_names(model, settings);
    std::vector<Ort::Value> inputs;
    for (const auto &input : model.inputs()) inputs.push_back(zeros(input, settings));

    const auto start = std::chrono::steady_clock::now();
    for (int run = 0; run < settings.warmup_runs && go_on(); ++run) {
        try {
            model.run(inputs);
        } catch (const Ort::Exception &error) {
            if (!go_on()) break;  // it was ended
            throw UsageError(std::string("the warm-up failed (see WARMUP_SHAPES): ") + error.what());
        }
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
