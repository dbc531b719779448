// Runs before the first request: libraries load, memory is taken, cuDNN chooses its algorithms.
#pragma once

#include <functional>

#include "model.hpp"

// Runs the model WARMUP_RUNS times on zeros, for as long as `go_on` says yes. Gives the seconds that it took.
// Throws UsageError where WARMUP_SHAPES does not suit the model.
double warm_up(Model &model, const Settings &settings, const std::function<bool()> &go_on);
