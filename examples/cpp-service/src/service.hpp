// What the service does, without a word about sockets.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gate.hpp"
#include "metrics.hpp"
#include "model.hpp"
#include "settings.hpp"

struct Answer {
    unsigned status = 200;
    std::string body;
    std::string type = "application/json";
};

// {"error": "..."}
Answer refusal(unsigned status, std::string_view error);

class Service {
  public:
    explicit Service(const Settings &settings);

    // Opens the model and warms it up; then the service is ready. Throws what Model and warm_up throw.
    void load();

    // No inference is taken any more; a warm-up ends.
    void stop();
    // Ends the inferences that run, with an error.
    void terminate();
    // Whether something runs that nothing can end: the making of a session, one long operator, of the warm-up too.
    bool is_busy() const { return is_starting_ || gate_.taken() > 0; }
    bool is_stopping() const { return state_ == State::stopping; }
    int in_flight() const { return gate_.taken(); }

    // A place for one inference, kept until it is answered; or why there is none.
    std::optional<Gate::Place> enter(Answer &why_not);
    // Needs a place. Takes as long as the model does.
    Answer infer(std::string_view body);
    void count(unsigned status, double seconds) { metrics_.request(status, seconds); }

    // GET of any path.
    Answer get(std::string_view path) const;

  private:
    enum class State { loading, warming, ready, stopping };

    Answer ready() const;

    const Settings &settings_;
    std::atomic<State> state_{State::loading};
    std::atomic<bool> is_loading_{true};   // until model_ is there, or cannot be
    std::atomic<bool> is_starting_{true};  // until load() has ended
    std::unique_ptr<Model> model_;  // written once, before the state says so
    Metrics metrics_;
    Gate gate_;
};
