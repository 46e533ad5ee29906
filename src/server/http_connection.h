// HttpConnection: one client's socket, its requests one after another. A part of http.cc, the one file that includes
// it, since it is made of Boost.
//
//   idle --byte--> header --> body --> serving --answer is out--> idle
//                     \---------\--refused--> draining --answer is out, client closes--> closed
//
// Reading: always one wait for "readable" pending; what is read goes to the parser (header, body), is kept for the next
// request (serving), or is thrown away (draining: closing with unread bytes would destroy the answer on its way).
// Writing: the exchange's bytes, one write at a time. One timer serves all time limits: it may fire early and look
// again, so that a limit that moves on costs nothing.
//
// Thread rule: everything on the connection's strand, but for the three functions that post to it.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "server/http_exchange.h"
#include "server/http_floor.h"

namespace ebb {

class HttpConnection final : public HttpGuest, public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  HttpConnection(Socket socket, HttpFloor& floor, std::string remote_address)
      : socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        floor_(floor),
        remote_address_(std::move(remote_address)) {}

  void start() {
    post([](HttpConnection& self) { self.become_idle(); });
  }
  void turn_away() {
    post([](HttpConnection& self) { self.refuse(503, "the server has as many connections as it may; try again"); });
  }
  void end_soon() override {
    post([](HttpConnection& self) {
      if (self.phase_ == Phase::kIdle) self.close();
      if (self.exchange_) self.exchange_->end_keep_alive();
    });
  }
  void end_now() override {
    post([](HttpConnection& self) { self.close(); });
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using ErrorCode = boost::system::error_code;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  enum class Phase : std::uint8_t { kIdle, kHeader, kBody, kServing, kDraining, kClosed };

  static constexpr Time kNever = Time::max();
  // Smaller reads cost a large body more system calls; larger ones, memory per connection that is reading.
  static constexpr std::size_t kReadBytes = std::size_t{32} << 10;
  static constexpr std::size_t kMostPipelinedBytes = std::size_t{64} << 10;
  // A client that sends its body more slowly than this, after body_timeout, only holds a connection.
  static constexpr std::size_t kLeastBodyBytesPerMs = 16;

  template <class Work>
  void post(Work work) {
    boost::asio::post(socket_.get_executor(), [self = shared_from_this(), work] { self->enter(work); });
  }
  // Every way in from the loop. What is thrown inside, above all when memory is short, ends this connection alone.
  template <class Work>
  void enter(Work work) {
    if (phase_ == Phase::kClosed) return;
    try {
      work(*this);
    } catch (const std::exception&) {
      ++floor_.tally.n_failures;
      close();
    }
  }

  // --- reading ---

  void become_idle() {
    phase_ = Phase::kIdle;
    read_deadline_ = Clock::now() + options().idle_timeout;
    arm_timer();
    if (floor_.stopping() || (input_ended_ && buffer_.size() == 0)) return close();
    if (buffer_.size() > 0) return take_input();
    buffer_.shrink_to_fit();  // an idle connection holds no buffer
    wait_readable();
  }

  void wait_readable() {
    if (waiting_ || input_ended_ || phase_ == Phase::kClosed) return;
    waiting_ = true;
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode code) {
      self->waiting_ = false;
      if (!code) self->enter([](HttpConnection& connection) { connection.read(); });
    });
  }

  void read() {
    ErrorCode code;
    const std::size_t n_bytes = socket_.read_some(buffer_.prepare(kReadBytes), code);
    if (code == boost::asio::error::would_block || code == boost::asio::error::interrupted) return wait_readable();
    if (code) return on_input_end(code == boost::asio::error::eof);
    buffer_.commit(n_bytes);
    take_input();
  }

  void take_input() {
    if (phase_ == Phase::kIdle) begin_request();
    if (phase_ == Phase::kHeader || phase_ == Phase::kBody) parse();
    if (phase_ == Phase::kDraining) buffer_.clear();
    if (phase_ == Phase::kServing && buffer_.size() >= kMostPipelinedBytes) return;
    if (input_ended_ && (phase_ == Phase::kHeader || phase_ == Phase::kBody)) return close();  // the rest never comes
    wait_readable();
  }

  void on_input_end(bool orderly) {
    input_ended_ = true;
    // Its answer is complete and on the way: a client may close its half after its last request.
    if (orderly && exchange_ && exchange_->is_complete()) return;
    if (phase_ == Phase::kServing) ++floor_.tally.n_left;
    close();
  }

  void begin_request() {
    phase_ = Phase::kHeader;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options().max_header_bytes));
    parser_->body_limit(options().max_body_bytes);
    request_start_ = Clock::now();
    read_deadline_ = request_start_ + options().header_timeout;
    arm_timer();
  }

  void parse() {
    ErrorCode code;
    while (buffer_.size() > 0 && !code && !parser_->is_done()) {
      buffer_.consume(parser_->put(buffer_.data(), code));
      // In front of the body's first byte, at which the parser takes all the memory that the header announces.
      if (phase_ == Phase::kHeader && parser_->is_header_done() && !on_header()) return;
    }
    const bool incomplete = code == boost::beast::http::error::need_more;
    if (code && !incomplete) return refuse_for(code);
    if (phase_ != Phase::kBody || !has_room()) return;
    if (parser_->is_done()) return serve();
    // Beast counts the body, and not what frames its chunks.
    if (buffer_.size() > options().max_header_bytes) return refuse(400, "malformed HTTP request: endless chunk header");
    read_deadline_ = request_start_ + options().body_timeout +
                     std::chrono::milliseconds(parser_->get().body().size() / kLeastBodyBytesPerMs);
    arm_timer();
  }

  // Whether the body is wanted.
  bool on_header() {
    phase_ = Phase::kBody;
    parser_->eager(true);
    request_start_ = Clock::now();
    const auto& head = parser_->get();
    open_exchange({.http_1_1 = head.version() >= 11,
                   .keep_alive = parser_->keep_alive() && !floor_.stopping(),
                   .head_only = head.method() == boost::beast::http::verb::head});
    if (head.version() >= 11 && head.count(boost::beast::http::field::host) != 1) {
      refuse(400, "malformed HTTP request: HTTP/1.1 asks for one Host header");
      return false;
    }
    if (!take_head()) return false;
    if (!parser_->is_done() && options().check_body) {
      if (std::optional<HttpAnswer> answer = options().check_body(request_)) {
        refuse_with(*std::move(answer));
        return false;
      }
    }
    // One without a body is nobody's share, whoever asked before on this connection.
    share_ = {};
    if (!parser_->is_done() && options().share_body) share_ = options().share_body(request_);
    if (!has_room()) return false;
    if (head.version() >= 11 && !parser_->is_done() &&
        equal_ignoring_case(std::string(head[boost::beast::http::field::expect]), "100-continue")) {
      exchange_->send_interim("HTTP/1.1 100 Continue\r\n\r\n");
    }
    return true;
  }

  // Whether the body, or what was announced of it where that is more, fits beside all others and those of its owner.
  bool has_room() {
    const std::size_t n_announced = parser_->content_length().value_or(0);
    const std::size_t n_of_owner = hold_body_bytes(std::max(n_announced, parser_->get().body().size()));
    if (n_of_owner > share_.most_bytes) {
      refuse(429, "the bodies of this key's requests have as many bytes as they may together; try again later");
      return false;
    }
    if (floor_.tally.body_bytes <= options().max_bodies_bytes) return true;
    refuse(503, "the server holds as many request bodies as it may; try again");
    return false;
  }

  // All of the request but its body. False, and refused, when it makes no sense.
  bool take_head() {
    const auto& head = parser_->get();
    std::optional<HttpTarget> target = parse_target(std::string_view(head.target()));
    if (!target) {
      refuse(400, "malformed HTTP request: the target is neither a path nor a URL, or has a bad % escape");
      return false;
    }
    request_ = {.method = std::string(head.method_string()),
                .path = std::move(target->path),
                .query = std::move(target->query),
                .remote_address = remote_address_};
    for (const auto& field : head) {
      request_.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    return true;
  }

  void open_exchange(HttpExchangeTraits traits) {
    traits.options = floor_.options;
    traits.wake = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->post([](HttpConnection& connection) { connection.flush(); });
    };
    exchange_ = std::make_shared<HttpExchange>(std::move(traits));
  }

  void serve() {
    phase_ = Phase::kServing;
    read_deadline_ = kNever;
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    ++floor_.tally.n_requests;
    try {
      floor_.handler(std::exchange(request_, {}), HttpExchange::responder_of(exchange_));
    } catch (const std::exception&) {  // the Responder that it let go of has answered
      ++floor_.tally.n_failures;
    }
  }

  // --- refusing ---

  void refuse_for(ErrorCode code) {
    using boost::beast::http::error;
    if (code == error::header_limit || code == error::buffer_overflow) {
      return refuse(431, fmt::format("the request's headers are longer than {} bytes", options().max_header_bytes));
    }
    if (code == error::body_limit) {
      return refuse(413, fmt::format("the request's body is longer than {} bytes", options().max_body_bytes));
    }
    refuse(400, fmt::format("malformed HTTP request: {}", code.message()));
  }

  void refuse(int status, std::string_view message) {
    give_request_up();
    exchange_->send_error(status, message);
  }

  void refuse_with(HttpAnswer answer) {
    give_request_up();
    exchange_->send(std::move(answer));
  }

  void give_request_up() {
    phase_ = Phase::kDraining;
    read_deadline_ = kNever;
    parser_.reset();
    request_ = {};
    (void)hold_body_bytes(0);
    buffer_.clear();
    if (!exchange_) open_exchange({});
    exchange_->end_keep_alive();
    ++floor_.tally.n_refused;
    wait_readable();
  }

  // --- writing ---

  void flush() {
    if (!exchange_) return;
    const HttpExchange::Fate fate = exchange_->fate();  // also in the middle of a write, which may never end
    if (fate == HttpExchange::Fate::kTooSlow) return drop_slow();
    if (fate == HttpExchange::Fate::kAborted) return close();
    if (writing_) return;
    if (n_out_written_ == out_.size()) {
      HttpExchange::Taken taken = exchange_->take();
      out_ = std::move(taken.bytes);
      n_out_written_ = 0;
      if (out_.empty()) {
        write_deadline_ = kNever;
        if (taken.is_last) return on_answered();
        ping_due_ = exchange_->ping(Clock::now());
        return arm_timer();
      }
    }
    writing_ = true;
    write_deadline_ = Clock::now() + options().write_timeout;
    arm_timer();
    socket_.async_write_some(boost::asio::buffer(out_.data() + n_out_written_, out_.size() - n_out_written_),
                             [self = shared_from_this()](ErrorCode code, std::size_t n_bytes) {
                               self->writing_ = false;
                               self->enter([&](HttpConnection& connection) { connection.on_written(code, n_bytes); });
                             });
  }

  void on_written(ErrorCode code, std::size_t n_bytes) {
    if (code) return on_input_end(false);
    n_out_written_ += n_bytes;
    exchange_->written(n_bytes);
    flush();
  }

  void drop_slow() {
    ++floor_.tally.n_too_slow;
    close();
  }

  void on_answered() {
    const bool again = exchange_->keep_alive() && phase_ == Phase::kServing && !floor_.stopping();
    exchange_.reset();
    ping_due_ = kNever;
    (void)hold_body_bytes(0);
    if (again) return become_idle();
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    if (input_ended_ || floor_.stopping()) return close();
    phase_ = Phase::kDraining;
    read_deadline_ = Clock::now() + options().linger_timeout;
    arm_timer();
    take_input();
  }

  // --- time ---

  void arm_timer() {
    const Time next = std::min({read_deadline_, write_deadline_, ping_due_});
    if (next >= timer_at_ || phase_ == Phase::kClosed) return;
    timer_at_ = next;
    timer_.expires_at(next);
    timer_.async_wait([self = shared_from_this()](ErrorCode code) {
      if (!code) self->enter([](HttpConnection& connection) { connection.on_timer(); });
    });
  }

  void on_timer() {
    timer_at_ = kNever;
    const Time now = Clock::now();
    if (now >= write_deadline_) return drop_slow();
    if (now >= read_deadline_) return on_read_deadline();
    if (now >= ping_due_ && exchange_) ping_due_ = exchange_->ping(now);
    arm_timer();
  }

  void on_read_deadline() {
    if (phase_ == Phase::kHeader) {
      refuse(408, fmt::format("the request's headers took more than {} ms", options().header_timeout.count()));
    } else if (phase_ == Phase::kBody) {
      refuse(408, fmt::format("the request's body took more than {} ms, plus one for every {} bytes",
                              options().body_timeout.count(), kLeastBodyBytesPerMs));
    } else {
      close();
    }
  }

  // --- the end ---

  void close() {
    if (phase_ == Phase::kClosed) return;
    const auto self = shared_from_this();  // the floor may be the last other owner
    phase_ = Phase::kClosed;
    const std::function<void()> callback = exchange_ ? exchange_->close() : nullptr;
    ErrorCode ignored;
    socket_.close(ignored);
    timer_.cancel();
    (void)hold_body_bytes(0);
    try {
      if (callback) callback();
    } catch (const std::exception&) {
      ++floor_.tally.n_failures;
    }
    floor_.leave(*this);
  }

  // Sets this connection's part of the bytes of all bodies together; how many its owner's have then.
  std::size_t hold_body_bytes(std::size_t n_bytes) {
    // The share first: where memory is short for it, nothing is held.
    const std::size_t n_of_owner = floor_.body_shares.change(share_.owner, n_held_body_bytes_, n_bytes);
    floor_.tally.body_bytes += n_bytes - std::exchange(n_held_body_bytes_, n_bytes);
    return n_of_owner;
  }

  [[nodiscard]] const HttpOptions& options() const { return *floor_.options; }

  Socket socket_;
  boost::asio::steady_timer timer_;
  HttpFloor& floor_;
  std::string remote_address_;
  Phase phase_ = Phase::kIdle;

  bool waiting_ = false;
  bool input_ended_ = false;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpRequest request_;  // that comes, or is none; its body still lies in the parser
  Time request_start_{};
  std::size_t n_held_body_bytes_ = 0;
  // Changes only while nothing is held.
  HttpBodyShare share_;

  std::shared_ptr<HttpExchange> exchange_;
  bool writing_ = false;
  std::string out_;
  std::size_t n_out_written_ = 0;

  Time read_deadline_ = kNever;
  Time write_deadline_ = kNever;
  Time ping_due_ = kNever;
  Time timer_at_ = kNever;
};

}  // namespace ebb
