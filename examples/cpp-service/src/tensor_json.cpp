#include "tensor_json.hpp"

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include "errors.hpp"

namespace json = boost::json;

namespace {

template <class T>
struct Type {
    using type = T;
};

// Calls `use(Type<T>{}, "its name in JSON")` with the C++ type of a tensor's elements.
template <class Use>
bool with_type(ONNXTensorElementDataType type, Use use) {
    switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: use(Type<float>{}, "float32"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: use(Type<double>{}, "float64"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: use(Type<Ort::Float16_t>{}, "float16"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: use(Type<std::int8_t>{}, "int8"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: use(Type<std::int16_t>{}, "int16"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: use(Type<std::int32_t>{}, "int32"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: use(Type<std::int64_t>{}, "int64"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: use(Type<std::uint8_t>{}, "uint8"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16: use(Type<std::uint16_t>{}, "uint16"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: use(Type<std::uint32_t>{}, "uint32"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64: use(Type<std::uint64_t>{}, "uint64"); return true;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: use(Type<bool>{}, "bool"); return true;
        default: return false;
    }
}

std::string dtype(ONNXTensorElementDataType type) {
    std::string name;
    with_type(type, [&](auto, const char *word) { name = word; });
    return name;
}

// ---- reading ----

// From here on a number becomes infinity. That of float16 is half a step above its largest, 65504.
template <class T>
constexpr double kTooLarge = std::numeric_limits<double>::infinity();
template <>
constexpr double kTooLarge<Ort::Float16_t> = 65520;

// One element; false where it is of another kind or does not fit.
template <class T>
bool read(const json::value &from, T &to) {
    if constexpr (std::is_same_v<T, bool>) {
        if (!from.is_bool()) return false;
        to = from.get_bool();
        return true;
    } else if constexpr (std::is_integral_v<T>) {
        if (!from.is_number() || from.is_double()) return false;
        json::error_code error;
        to = from.to_number<T>(error);
        return !error;
    } else {
        if (!from.is_number()) return false;
        using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const auto value = static_cast<Wide>(from.to_number<double>());  // infinity, where that is too large
        if (std::abs(value) >= kTooLarge<T>) return false;
        to = T(value);
        return true;
    }
}

const json::value &member(const json::object &object, const char *key, const std::string &of) {
    const auto *found = object.if_contains(key);
    if (!found) throw BadRequest(of + " has no \"" + key + "\"");
    return *found;
}

Shape read_shape(const json::value &from, const std::string &of) {
    const auto *sizes = from.if_array();
    if (!sizes) throw BadRequest(of + ": \"shape\" is no array");
    Shape shape;
    for (const auto &size : *sizes)
        if (!read(size, shape.emplace_back())) throw BadRequest(of + ": \"shape\" has more than whole numbers in it");
    return shape;
}

// Compared with what is there by division: the product of any sizes could overflow.
bool is_product(std::size_t count, const Shape &shape) {
    for (const auto size : shape) {
        const auto divisor = static_cast<std::size_t>(size);
        if (count % divisor != 0) return false;
        count /= divisor;
    }
    return count == 1;
}

Ort::Value read_tensor(const json::value &from, const TensorInfo &input) {
    const std::string of = "input " + input.name;
    const auto *object = from.if_object();
    if (!object) throw BadRequest(of + " is no object");

    const auto *type = member(*object, "dtype", of).if_string();
    if (!type || std::string_view(*type) != dtype(input.type))
        throw BadRequest(of + ": \"dtype\" must be \"" + dtype(input.type) + "\"");
    const auto shape = read_shape(member(*object, "shape", of), of);
    check_shape(input, shape);
    const auto *data = member(*object, "data", of).if_array();
    if (!data) throw BadRequest(of + ": \"data\" is no array");
    if (!is_product(data->size(), shape))
        throw BadRequest(of + ": \"data\" has " + std::to_string(data->size()) + " elements, not as many as its shape says");

    Ort::AllocatorWithDefaultOptions allocator;
    auto tensor = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), input.type);
    with_type(input.type, [&](auto of_type, const char *name) {
        auto *to = tensor.GetTensorMutableData<typename decltype(of_type)::type>();
        for (const auto &element : *data)
            if (!read(element, *to++)) throw BadRequest(of + ": \"data\" has an element that is no " + name);
    });
    return tensor;
}

// Two open sizes of one name are one size.
void check_symbols(const std::vector<TensorInfo> &inputs, const std::vector<Ort::Value> &values) {
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto shape = values[i].GetTensorTypeAndShapeInfo().GetShape();
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            const auto &symbol = inputs[i].symbols[axis];
            if (symbol.empty()) continue;
            const auto [known, is_new] = sizes.emplace(symbol, shape[axis]);
            if (!is_new && known->second != shape[axis])
                throw BadRequest("input " + inputs[i].name + ": size \"" + symbol + "\" is " +
                                 std::to_string(shape[axis]) + " here and " + std::to_string(known->second) +
                                 " in another input");
        }
    }
}

// ---- writing ----

// As short as it can be while it still gives the same number when read.
template <class T>
void write(std::string &text, const T &value) {
    if constexpr (std::is_same_v<T, bool>) {
        text += value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, Ort::Float16_t>) {
        write(text, value.ToFloat());
    } else {
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) {  // JSON has no such numbers
                text += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
                return;
            }
        }
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        text.append(digits, end);
    }
}

template <class T>
void write_array(std::string &text, const T *values, std::size_t count) {
    text += '[';
    for (std::size_t i = 0; i < count; ++i) {
        if (i) text += ',';
        write(text, values[i]);
    }
    text += ']';
}

}  // namespace

bool is_served(ONNXTensorElementDataType type) {
    return with_type(type, [](auto, const char *) {});
}

void check_shape(const TensorInfo &input, const Shape &shape) {
    const std::string of = "input " + input.name;
    if (shape.size() != input.shape.size())
        throw BadRequest(of + " has " + std::to_string(input.shape.size()) + " dimensions, \"shape\" says " +
                         std::to_string(shape.size()));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] < 1) throw BadRequest(of + ": a size in \"shape\" is less than 1");
        if (input.shape[axis] >= 0 && shape[axis] != input.shape[axis])
            throw BadRequest(of + ": size " + std::to_string(axis) + " of \"shape\" must be " +
                             std::to_string(input.shape[axis]));
    }
}

std::vector<Ort::Value> read_inputs(std::string_view body, const std::vector<TensorInfo> &inputs) {
    json::monotonic_resource memory;
    json::parse_options options;
    options.numbers = json::number_precision::precise;
    json::error_code error;
    const auto whole = json::parse(body, error, &memory, options);
    if (error) throw BadRequest("the body is no JSON: " + error.message());
    if (!whole.is_object()) throw BadRequest("the body is no JSON object");
    const auto *given = member(whole.get_object(), "inputs", "the body").if_object();
    if (!given) throw BadRequest("\"inputs\" is no object");

    std::vector<Ort::Value> values;
    for (const auto &input : inputs) values.push_back(read_tensor(member(*given, input.name.c_str(), "\"inputs\""), input));
    if (given->size() != inputs.size())
        throw BadRequest("\"inputs\" has " + std::to_string(given->size()) + " inputs, the model " +
                         std::to_string(inputs.size()));
    check_symbols(inputs, values);
    return values;
}

std::string write_outputs(const std::vector<TensorInfo> &outputs, const std::vector<Ort::Value> &values) {
    std::string text = "{";
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto info = values[i].GetTensorTypeAndShapeInfo();
        const auto shape = info.GetShape();
        if (i) text += ',';
        text += json::serialize(json::string(outputs[i].name)) + ":{\"shape\":";
        write_array(text, shape.data(), shape.size());
        with_type(outputs[i].type, [&](auto of_type, const char *name) {
            text += std::string(",\"dtype\":\"") + name + "\",\"data\":";
            write_array(text, values[i].GetTensorData<typename decltype(of_type)::type>(), info.GetElementCount());
        });
        text += '}';
    }
    return text + '}';
}
