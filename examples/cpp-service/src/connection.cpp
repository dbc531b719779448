#include "connection.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;

namespace {

constexpr auto kIdle = 75s;     // between two requests; longer than a load balancer's own limit
constexpr auto kReceive = 30s;  // for one body
constexpr auto kSend = 30s;     // for one answer
constexpr auto kLinger = 5s;    // for what a client still sends after it was refused
constexpr std::uint32_t kHeaderBytes = 16 * 1024;

// An error as a value: a client that goes away is nothing exceptional.
constexpr auto kTuple = net::as_tuple(net::use_awaitable);

std::string_view path_of(const auto &head) {
    const std::string_view target = head.target();
    return target.substr(0, target.find('?'));
}

bool is_nonsense(const beast::error_code &error) {
    return error.category() == http::make_error_code(http::error::end_of_stream).category() &&
           error != http::error::end_of_stream && error != http::error::partial_message;
}

}  // namespace

Connection::Connection(net::ip::tcp::socket socket, Service &service, net::thread_pool &workers, std::size_t max_body)
    : stream_(std::move(socket)), service_(service), workers_(workers), max_body_(max_body) {}

net::awaitable<void> Connection::run() {
    auto after = After::next_request;
    while (after == After::next_request) after = co_await exchange();
    if (after == After::linger) co_await linger();
}

net::awaitable<Connection::After> Connection::exchange() {
    Parser parser;
    parser.header_limit(kHeaderBytes);
    parser.body_limit(max_body_);
    stream_.expires_after(kIdle);
    auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kTuple);

    const auto &head = parser.get();
    // A body that is announced as too large is an error already here, after a header that is good.
    const bool has_head = !error || error == http::error::body_limit;
    if (has_head && head.method() == http::verb::post && path_of(head) == "/v1/infer")
        co_return co_await infer(parser, error);
    // A body of another path is not read: only places bound the memory of bodies.
    if (error == http::error::body_limit) co_return co_await reply(parser, refusal(413, "the body is too large"));
    if (is_nonsense(error)) co_return co_await reply(parser, refusal(400, "no HTTP: " + error.message()));
    if (error) co_return After::close;
    const bool is_read = head.method() == http::verb::get || head.method() == http::verb::head;
    co_return co_await reply(parser, is_read ? service_.get(path_of(head)) : refusal(405, "GET is wanted"));
}

net::awaitable<beast::error_code> Connection::receive(Parser &parser) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        http::response<http::empty_body> go_on(http::status::continue_, parser.get().version());
        auto [error, bytes] = co_await http::async_write(stream_, go_on, kTuple);
        if (error) co_return error;
    }
    stream_.expires_after(kReceive);
    auto [error, bytes] = co_await http::async_read(stream_, buffer_, parser, kTuple);
    co_return error;
}

// A place comes before the body is read: memory is bounded by the places, and a refusal costs nothing.
net::awaitable<Connection::After> Connection::infer(Parser &parser, beast::error_code error) {
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    const auto place = service_.enter(answer);
    if (place) {
        if (!error) error = co_await receive(parser);
        if (error == http::error::body_limit) {
            answer = refusal(413, "the body is larger than " + std::to_string(max_body_) + " bytes");
        } else if (is_nonsense(error)) {
            answer = refusal(400, "no HTTP: " + error.message());
        } else if (error) {
            co_return After::close;
        } else {
            const std::string &body = parser.get().body();
            answer = co_await net::co_spawn(
                workers_, [&]() -> net::awaitable<Answer> { co_return service_.infer(body); }, net::use_awaitable);
        }
    }
    const unsigned status = answer.status;
    const auto after = co_await reply(parser, std::move(answer));
    service_.count(status, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    co_return after;
}

net::awaitable<Connection::After> Connection::reply(const Parser &parser, Answer answer) {
    const auto &head = parser.get();
    http::response<http::string_body> response(static_cast<http::status>(answer.status),
                                               parser.is_header_done() ? head.version() : 11);
    response.set(http::field::content_type, answer.type);
    if (answer.status == 405) response.set(http::field::allow, path_of(head) == "/v1/infer" ? "POST" : "GET, HEAD");
    if (answer.status == 503) response.set(http::field::retry_after, "1");
    const bool goes_on = parser.is_done() && head.keep_alive() && !service_.is_stopping();
    response.keep_alive(goes_on);
    response.content_length(answer.body.size());
    if (head.method() != http::verb::head) response.body() = std::move(answer.body);

    stream_.expires_after(kSend);
    auto [error, bytes] = co_await http::async_write(stream_, response, kTuple);
    if (error) co_return After::close;
    co_return goes_on ? After::next_request : parser.is_done() ? After::close : After::linger;
}

// To close while a client still sends would reset the connection, and the client would never see the answer.
net::awaitable<void> Connection::linger() {
    beast::error_code ignored;
    stream_.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLinger);  // for all of the reads together
    std::array<char, 16384> sink;
    for (beast::error_code error; !error;)
        std::tie(error, std::ignore) = co_await stream_.async_read_some(net::buffer(sink), kTuple);
}
