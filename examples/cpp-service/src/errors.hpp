// What can go wrong, by who can mend it.
#pragma once

#include <stdexcept>
#include <string>

enum ExitCode : int { kDone = 0, kUnhealthy = 1, kUsage = 2, kEnvironment = 3 };

// A setting or the model is wrong.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The machine lacks something: a GPU, a free port.
struct EnvironmentError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A client sent what the model does not take.
struct BadRequest : std::runtime_error {
    using std::runtime_error::runtime_error;
};
