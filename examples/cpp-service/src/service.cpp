#include "service.hpp"

#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "errors.hpp"
#include "tensor_json.hpp"
#include "warmup.hpp"

namespace json = boost::json;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Answer refusal(unsigned status, std::string_view error) {
    return {status, json::serialize(json::object{{"error", error}})};
}

Service::Service(const Settings &settings) : settings_(settings), gate_(settings.workers + settings.queue) {}

void Service::load() {
    struct Ended {
        std::atomic<bool> &starts;
        ~Ended() { starts = false; }
    } ended{is_starting_};
    try {
        model_ = std::make_unique<Model>(settings_);
    } catch (...) {
        is_loading_ = false;
        throw;
    }
    is_loading_ = false;
    if (auto before = State::loading; !state_.compare_exchange_strong(before, State::warming)) return;

    const double seconds = warm_up(*model_, settings_, [this] { return state_ == State::warming; });
    metrics_.warm_up(seconds);
    if (auto before = State::warming; !state_.compare_exchange_strong(before, State::ready)) return;
    std::cout << "ready on " << full_name(settings_.provider) << ": " << settings_.warmup_runs << " warm-up runs in "
              << seconds << " s" << std::endl;
}

void Service::stop() {
    if (state_.exchange(State::stopping) == State::warming) model_->terminate();
}

void Service::terminate() {
    if (!is_loading_ && model_) model_->terminate();  // in this order: model_ is another thread's until then
}

std::optional<Gate::Place> Service::enter(Answer &why_not) {
    switch (state_) {
        case State::loading:
        case State::warming: why_not = refusal(503, "not ready yet"); return std::nullopt;
        case State::stopping: why_not = refusal(503, "the service is stopping"); return std::nullopt;
        case State::ready: break;
    }
    auto place = gate_.enter();
    if (!place) why_not = refusal(503, "too many requests wait already");
    return place;
}

Answer Service::infer(std::string_view body) {
    try {
        const auto inputs = read_inputs(body, model_->inputs());
        const auto start = std::chrono::steady_clock::now();
        const auto outputs = model_->run(inputs);
        const double seconds = seconds_since(start);
        metrics_.inference(seconds);
        return {200, "{\"outputs\":" + write_outputs(model_->outputs(), outputs) + ",\"provider\":\"" +
                         full_name(settings_.provider) + "\",\"seconds\":" + std::to_string(seconds) + "}"};
    } catch (const BadRequest &error) {
        return refusal(400, error.what());
    } catch (const std::exception &error) {
        std::cerr << "error: an inference failed: " << error.what() << std::endl;
        return refusal(500, "the inference failed");
    }
}

Answer Service::get(std::string_view path) const {
    if (path == "/healthz") return {200, R"({"status":"alive"})"};
    if (path == "/readyz") return ready();
    if (path == "/metrics")
        return {200,
                metrics_.text(state_ == State::ready, gate_.taken(), full_name(settings_.provider), Ort::GetVersionString()),
                "text/plain; version=0.0.4; charset=utf-8"};
    if (path == "/v1/infer") return refusal(405, "POST is wanted");
    return refusal(404, "there is no such path");
}

Answer Service::ready() const {
    switch (state_) {
        case State::loading: return {503, R"({"status":"loading"})"};
        case State::warming: return {503, R"({"status":"warming up"})"};
        case State::stopping: return {503, R"({"status":"stopping"})"};
        case State::ready: break;
    }
    return {200, json::serialize(json::object{{"status", "ready"},
                                              {"provider", full_name(settings_.provider)},
                                              {"onnxruntime", Ort::GetVersionString()},
                                              {"device", settings_.device}})};
}
