#include "metrics.hpp"

#include <algorithm>
#include <charconv>

namespace {

std::string number(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

void head(std::string &text, const std::string &name, const char *type, const char *help) {
    text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void gauge(std::string &text, const std::string &name, const char *help, double value) {
    head(text, name, "gauge", help);
    text += name + " " + number(value) + "\n";
}

}  // namespace

void Histogram::observe(double seconds) {
    const auto limit = std::lower_bound(kLimits.begin(), kLimits.end(), seconds);
    ++counts_[static_cast<std::size_t>(limit - kLimits.begin())];
    sum_ += seconds;
}

void Histogram::write(std::string &text, const char *name, const char *help) const {
    head(text, name, "histogram", help);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        total += counts_[i];
        const auto limit = i < kLimits.size() ? number(kLimits[i]) : "+Inf";
        text += std::string(name) + "_bucket{le=\"" + limit + "\"} " + std::to_string(total) + "\n";
    }
    text += std::string(name) + "_sum " + number(sum_) + "\n";
    text += std::string(name) + "_count " + std::to_string(total) + "\n";
}

void Metrics::request(unsigned code, double seconds) {
    const std::lock_guard lock(mutex_);
    ++requests_[code];
    request_seconds_.observe(seconds);
}

void Metrics::inference(double seconds) {
    const std::lock_guard lock(mutex_);
    inference_seconds_.observe(seconds);
}

void Metrics::warm_up(double seconds) {
    const std::lock_guard lock(mutex_);
    warmup_seconds_ = seconds;
}

std::string Metrics::text(bool ready, int in_flight, const std::string &provider,
                          const std::string &onnxruntime) const {
    const std::lock_guard lock(mutex_);
    std::string text;
    head(text, "ort_requests_total", "counter", "Answered requests for an inference, by HTTP status.");
    for (const auto &[code, count] : requests_)
        text += "ort_requests_total{code=\"" + std::to_string(code) + "\"} " + std::to_string(count) + "\n";
    request_seconds_.write(text, "ort_request_seconds", "From a request's header to the end of its answer.");
    inference_seconds_.write(text, "ort_inference_seconds", "The model's run alone.");
    gauge(text, "ort_ready", "Whether inferences are answered.", ready);
    gauge(text, "ort_warmup_seconds", "What the warm-up took.", warmup_seconds_);
    gauge(text, "ort_in_flight", "Requests for an inference that are not answered yet.", in_flight);
    head(text, "ort_provider_info", "gauge", "The execution provider, and the version of ONNX Runtime.");
    text += "ort_provider_info{provider=\"" + provider + "\",onnxruntime=\"" + onnxruntime + "\"} 1\n";
    return text;
}
