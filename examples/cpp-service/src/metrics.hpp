// What the service counts, as Prometheus reads it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

class Histogram {
  public:
    void observe(double seconds);
    void write(std::string &text, const char *name, const char *help) const;

  private:
    static constexpr std::array kLimits{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                        0.25,   0.5,   1.0,    2.5,   5.0,  10.0,  30.0};
    std::array<std::uint64_t, kLimits.size() + 1> counts_{};  // the last one: above all limits
    double sum_ = 0;
};

// All functions may be called from any thread.
class Metrics {
  public:
    void request(unsigned code, double seconds);
    void inference(double seconds);
    void warm_up(double seconds);

    // Text format 0.0.4. What is not counted here is handed in.
    std::string text(bool ready, int in_flight, const std::string &provider, const std::string &onnxruntime) const;

  private:
    mutable std::mutex mutex_;
    std::map<unsigned, std::uint64_t> requests_;
    Histogram request_seconds_, inference_seconds_;
    double warmup_seconds_ = 0;
};
