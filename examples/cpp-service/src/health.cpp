#include "health.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "errors.hpp"

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace json = boost::json;

namespace {

constexpr auto kLimit = std::chrono::seconds(2);

net::ip::tcp::endpoint endpoint(const Settings &settings) {
    auto address = net::ip::make_address(settings.host);
    if (address.is_unspecified())  // it listens everywhere
        address = address.is_v6() ? net::ip::address(net::ip::address_v6::loopback())
                                  : net::ip::address(net::ip::address_v4::loopback());
    return {address, settings.port};
}

net::awaitable<void> ask(net::ip::tcp::endpoint server, http::response<http::string_body> &answer) {
    beast::tcp_stream stream(co_await net::this_coro::executor);
    stream.expires_after(kLimit);
    co_await stream.async_connect(server, net::use_awaitable);
    http::request<http::empty_body> request(http::verb::get, "/readyz", 11);
    request.set(http::field::host, "localhost");
    request.keep_alive(false);
    co_await http::async_write(stream, request, net::use_awaitable);
    beast::flat_buffer buffer;
    co_await http::async_read(stream, buffer, answer, net::use_awaitable);
}

}  // namespace

int check_health(const Settings &settings) {
    try {
        net::io_context io;
        http::response<http::string_body> answer;
        std::exception_ptr failure;
        net::co_spawn(io, ask(endpoint(settings), answer), [&](std::exception_ptr error) { failure = error; });
        io.run();
        if (failure) std::rethrow_exception(failure);
        if (answer.result() != http::status::ok) {
            std::cerr << "not ready: " << answer.body() << std::endl;
            return kUnhealthy;
        }
        const std::string provider(json::parse(answer.body()).at("provider").as_string());
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
