// The listener, the worker threads, and the end of both.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include "service.hpp"
#include "settings.hpp"

class Server {
  public:
    // Listens from here on. Throws UsageError for a wrong address, EnvironmentError where it is taken.
    Server(const Settings &settings, Service &service);

    // Serves until SIGTERM or SIGINT; then lets running requests end.
    void run();

    // Ends run() at once. From any thread.
    void abort() { io_.stop(); }

  private:
    boost::asio::awaitable<void> accept();
    boost::asio::awaitable<void> talk(boost::asio::ip::tcp::socket socket);
    boost::asio::awaitable<void> end_on_signal();

    const Settings &settings_;
    Service &service_;
    boost::asio::io_context io_{1};
    boost::asio::thread_pool workers_;
    boost::asio::ip::tcp::acceptor acceptor_;
    int connections_ = 0;
};
