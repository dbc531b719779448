// The image's health check: no curl is needed in the image.
#pragma once

#include "settings.hpp"

// Asks the service that runs with the same settings. kDone where it is ready on the provider that they ask for,
// kUnhealthy otherwise; says which.
int check_health(const Settings &settings);
