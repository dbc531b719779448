#include "server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <iostream>

#include "connection.hpp"
#include "errors.hpp"

namespace net = boost::asio;
using net::ip::tcp;
using namespace std::chrono_literals;

namespace {

constexpr auto kDrain = 20s;     // for running requests, once the end was asked for
constexpr auto kTerminate = 2s;  // for the rest, once they were told to end
constexpr auto kTick = 10ms;
constexpr int kMostConnections = 1024;

tcp::acceptor listener(net::io_context &io, const Settings &settings) {
    boost::system::error_code error;
    const auto address = net::ip::make_address(settings.host, error);
    if (error) throw UsageError("HOST is \"" + settings.host + "\": an IP address is wanted");
    try {
        return {io, {address, settings.port}};
    } catch (const boost::system::system_error &fault) {
        throw EnvironmentError("cannot listen on " + settings.host + " port " + std::to_string(settings.port) + ": " +
                               fault.code().message());
    }
}

net::awaitable<void> pause(std::chrono::milliseconds time) {
    net::steady_timer timer(co_await net::this_coro::executor, time);
    co_await timer.async_wait(net::use_awaitable);
}

}  // namespace

Server::Server(const Settings &settings, Service &service)
    : settings_(settings),
      service_(service),
      workers_(static_cast<std::size_t>(settings.workers)),
      acceptor_(listener(io_, settings)) {}

void Server::run() {
    net::co_spawn(io_, accept(), net::detached);
    net::co_spawn(io_, end_on_signal(), net::detached);
    std::cout << "listening on " << acceptor_.local_endpoint() << std::endl;
    io_.run();
}

net::awaitable<void> Server::accept() {
    for (;;) {
        auto [error, socket] = co_await acceptor_.async_accept(net::as_tuple(net::use_awaitable));
        if (error)
            co_await pause(100ms);  // out of file descriptors, most likely
        else if (connections_ < kMostConnections)
            net::co_spawn(io_, talk(std::move(socket)), net::detached);
    }
}

net::awaitable<void> Server::talk(tcp::socket socket) {
    struct Counted {
        int &count;
        explicit Counted(int &of) : count(++of) {}
        ~Counted() { --count; }
    } counted(connections_);
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    Connection connection(std::move(socket), service_, workers_, settings_.max_body);
    co_await connection.run();
}

net::awaitable<void> Server::end_on_signal() {
    net::signal_set signals(io_, SIGINT, SIGTERM);
    co_await signals.async_wait(net::use_awaitable);
    std::cout << "stopping" << std::endl;
    service_.stop();
    // New connections are still answered, so that whoever asks is told.
    const auto end = std::chrono::steady_clock::now() + kDrain;
    while (service_.in_flight() > 0 && std::chrono::steady_clock::now() < end) co_await pause(kTick);
    service_.terminate();
    while (service_.in_flight() > 0 && std::chrono::steady_clock::now() < end + kTerminate) co_await pause(kTick);
    io_.stop();
}
