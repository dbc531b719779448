#include "settings.hpp"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "errors.hpp"

namespace {

std::string_view variable(const char *name, std::string_view otherwise) {
    const char *value = std::getenv(name);
    return value && *value ? value : otherwise;
}

template <class Number>
Number whole_number(std::string_view text, const std::string &what, Number least, Number most) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
        throw UsageError(what + " is \"" + std::string(text) + "\": a whole number from " +
                         std::to_string(least) + " to " + std::to_string(most) + " is wanted");
    return value;
}

int number(const char *name, int otherwise, int least, int most = std::numeric_limits<int>::max()) {
    const auto text = variable(name, "");
    return text.empty() ? otherwise : whole_number(text, name, least, most);
}

Provider provider() {
    const auto word = variable("PROVIDER", "cuda");
    if (word == "cuda") return Provider::cuda;
    if (word == "cpu") return Provider::cpu;
    throw UsageError("PROVIDER is \"" + std::string(word) + "\": cuda or cpu is wanted");
}

// "1x256"; nothing at all is the shape of a single number.
Shape shape(std::string_view text) {
    Shape sizes;
    while (!text.empty()) {
        const auto end = text.find('x');
        sizes.push_back(whole_number<std::int64_t>(text.substr(0, end), "a size in WARMUP_SHAPES", 1, 1 << 30));
        text = end == text.npos ? "" : text.substr(end + 1);
    }
    return sizes;
}

std::map<std::string, Shape> shapes(std::string_view text) {
    std::map<std::string, Shape> found;
    while (!text.empty()) {
        const auto end = text.find(',');
        const auto word = text.substr(0, end);
        const auto equals = word.rfind('=');
        if (equals == word.npos || equals == 0)
            throw UsageError("WARMUP_SHAPES has \"" + std::string(word) + "\": NAME=1x256 is wanted");
        found[std::string(word.substr(0, equals))] = shape(word.substr(equals + 1));
        text = end == text.npos ? "" : text.substr(end + 1);
    }
    return found;
}

}  // namespace

const char *full_name(Provider provider) {
    return provider == Provider::cuda ? "CUDAExecutionProvider" : "CPUExecutionProvider";
}

Settings settings_from_environment() {
    const Settings defaults;
    return {
        .model = std::string(variable("MODEL", "")),
        .provider = provider(),
        .device = number("DEVICE_ID", defaults.device, 0),
        .host = std::string(variable("HOST", defaults.host)),
        .port = static_cast<std::uint16_t>(number("PORT", defaults.port, 1, 65535)),
        .threads = number("THREADS", defaults.threads, 0, 1024),
        .workers = number("WORKERS", defaults.workers, 1, 1024),
        .queue = number("QUEUE", defaults.queue, 0, 65536),
        .max_body = static_cast<std::size_t>(number("MAX_BODY_MB", 32, 1, 1024)) * 1024 * 1024,
        .warmup_runs = number("WARMUP_RUNS", defaults.warmup_runs, 0),
        .warmup_shapes = shapes(variable("WARMUP_SHAPES", "")),
    };
}
