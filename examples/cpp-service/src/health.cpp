#include "health.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>
#include <iterator>
#include <string>

#include "errors.hpp"

namespace net = boost::asio;
namespace json = boost::json;

namespace {

constexpr auto kLimit = std::chrono::seconds(2);

struct Reply {
    int status = 0;
    std::string body;
};

net::ip::tcp::endpoint endpoint(const Settings &settings) {
    auto address = net::ip::make_address(settings.host);
    if (address.is_unspecified())  // it listens everywhere
        address = address.is_v6() ? net::ip::address(net::ip::address_v6::loopback())
                                  : net::ip::address(net::ip::address_v4::loopback());
    return {address, settings.port};
}

// HTTP 1.0: the answer ends with the connection.
Reply get_ready(const Settings &settings) {
    net::ip::tcp::iostream stream;
    stream.expires_after(kLimit);
    stream.connect(endpoint(settings));
    stream << "GET /readyz HTTP/1.0\r\n\r\n" << std::flush;
    Reply reply;
    std::string line;
    stream >> line >> reply.status;
    while (std::getline(stream, line) && line != "\r") {
    }
    reply.body.assign(std::istreambuf_iterator<char>(stream), {});
    if (reply.status == 0) throw std::runtime_error(stream.error().message());
    return reply;
}

}  // namespace

int check_health(const Settings &settings) {
    try {
        const auto reply = get_ready(settings);
        if (reply.status != 200) {
            std::cerr << "not ready: " << reply.body << std::endl;
            return kUnhealthy;
        }
        const std::string provider(json::parse(reply.body).at("provider").as_string());
        if (provider != full_name(settings.provider)) {
            std::cerr << "it runs on " << provider << ", " << full_name(settings.provider) << " is wanted" << std::endl;
            return kUnhealthy;
        }
        std::cout << "ready on " << provider << std::endl;
        return kDone;
    } catch (const std::exception &error) {
        std::cerr << "nobody answers: " << error.what() << std::endl;
        return kUnhealthy;
    }
}
