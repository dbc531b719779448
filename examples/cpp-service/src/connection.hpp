// One client's connection: requests are read, handed to the service, answered.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>

#include "service.hpp"

class Connection {
  public:
    // Inferences run on `workers`; everything else on the socket's own thread, so that health checks are
    // answered at once however much work waits.
    Connection(boost::asio::ip::tcp::socket socket, Service &service, boost::asio::thread_pool &workers,
               std::size_t max_body);

    // Until the client goes, sends nonsense, or is too slow.
    boost::asio::awaitable<void> run();

  private:
    using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

    enum class After { next_request, close, linger };

    boost::asio::awaitable<After> exchange();
    boost::asio::awaitable<boost::beast::error_code> receive(Parser &parser);
    boost::asio::awaitable<After> infer(Parser &parser, boost::beast::error_code error);
    boost::asio::awaitable<After> reply(const Parser &parser, Answer answer);
    boost::asio::awaitable<void> linger();

    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer buffer_;
    Service &service_;
    boost::asio::thread_pool &workers_;
    const std::size_t max_body_;
};
