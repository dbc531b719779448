// ort-service: serves one ONNX model over HTTP. README.md has the paths and the settings.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>
#include <thread>

#include "errors.hpp"
#include "health.hpp"
#include "server.hpp"
#include "service.hpp"
#include "settings.hpp"

namespace {

int serve(const Settings &settings) {
    Service service(settings);
    Server server(settings, service);

    // The model is opened while the server answers already: alive, not ready.
    std::exception_ptr failure;
    std::thread loader([&] {
        try {
            service.load();
        } catch (...) {
            failure = std::current_exception();
            server.abort();  // load() has ended: it is not busy any more
        }
    });
    server.run();

    // Nothing has to be saved, and the making of a session cannot be ended.
    if (service.is_busy()) std::_Exit(kDone);
    loader.join();
    if (failure && !service.is_stopping()) std::rethrow_exception(failure);
    return kDone;
}

}  // namespace

int main(int count, char **words) {
    try {
        const Settings settings = settings_from_environment();
        if (count == 1) return serve(settings);
        if (count == 2 && std::string_view(words[1]) == "--check-health") return check_health(settings);
        throw UsageError("the one option is --check-health; everything else is said by environment variables");
    } catch (const UsageError &error) {
        std::cerr << "error: " << error.what() << std::endl;
        return kUsage;
    } catch (const std::exception &error) {
        std::cerr << "error: " << error.what() << std::endl;
        return kEnvironment;
    }
}
