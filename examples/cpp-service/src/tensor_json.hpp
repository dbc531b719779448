// Tensors as JSON, {"shape": [1, 256], "dtype": "float32", "data": [...]}, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"

// Whether tensors of this type go in and come out: numbers and truth values, not text.
bool is_served(ONNXTensorElementDataType type);

// Throws BadRequest unless the input takes such a shape.
void check_shape(const TensorInfo &input, const Shape &shape);

// The inputs in a request's body, in the model's order. Throws BadRequest.
std::vector<Ort::Value> read_inputs(std::string_view body, const std::vector<TensorInfo> &inputs);

// {"y": {"shape": [...], "dtype": "...", "data": [...]}}
std::string write_outputs(const std::vector<TensorInfo> &outputs, const std::vector<Ort::Value> &values);
