// HttpExchange: one request's answer between the handler's side, which puts it in, and the connection, which takes it out
// as bytes for the socket.
//
//   waiting --send--> complete                       waiting, streaming --abort, too slow--> broken
//   waiting --begin_stream--> streaming --finish--> complete             any --close--> closed
//
// It does not know sockets: when there is something to take it calls wake, once until the next take; when it breaks, at once.
// Law: what is queued is bounded by max_queued_bytes plus one write; who writes past it has a client that does not read.
// Thread rule: the Responder's functions on any thread, the connection's on its strand.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http.h"
#include "server/http_wire.h"

namespace ebb {

struct HttpExchangeTraits {
  std::shared_ptr<const HttpOptions> options;
  // Called under the exchange's lock, and never after close(): may only post.
  std::function<void()> wake;
  bool http_1_1 = true;
  bool keep_alive = true;
  bool head_only = false;  // the answer to HEAD
};

class HttpExchange final : public Responder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HttpExchange(HttpExchangeTraits traits) : traits_(std::move(traits)) {}
  // What the handler gets. Answers 500, or aborts, when the last owner lets go too early.
  [[nodiscard]] static std::shared_ptr<Responder> responder_of(const std::shared_ptr<HttpExchange>& exchange);

  void send(HttpAnswer answer) override;
  void begin_stream(HttpStreamHead head) override;
  std::size_t write(std::string_view text) override;
  void finish() override;
  void abort() override;
  [[nodiscard]] bool is_closed() const override;
  [[nodiscard]] bool on_close(std::function<void()> callback) override;

  // The connection's side.
  void send_interim(std::string_view text);  // before any answer: 100 Continue
  void send_error(int status, std::string_view message);
  void end_keep_alive();
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool is_complete() const;

  enum class Fate : std::uint8_t { kAlive, kAborted, kTooSlow };
  [[nodiscard]] Fate fate() const;
  struct Taken {
    std::string bytes;
    bool is_last = false;  // nothing will follow
  };
  // All that is queued. It counts as queued until the connection says that it was written.
  [[nodiscard]] Taken take();
  void written(std::size_t n_bytes);
  // Queues the stream's ping if it was silent for long enough; when to ask again (Time::max(): no need to).
  [[nodiscard]] Time ping(Time now);
  // The client has left, or the answer is out. Gives the callback to call, if any.
  [[nodiscard]] std::function<void()> close();

 private:
  enum class State : std::uint8_t { kWaiting, kStreaming, kComplete, kBroken, kClosed };

  void let_go();
  void wake();
  void break_off();
  void append_body(std::string_view text);
  [[nodiscard]] std::string head_of(int status, const HttpHeaders& headers, Framing framing, std::size_t body_bytes);

  mutable std::mutex mutex_;
  HttpExchangeTraits traits_;
  State state_ = State::kWaiting;
  bool too_slow_ = false;
  bool awake_ = false;  // wake was called since the last take
  Framing framing_ = Framing::kLength;
  std::string queue_;
  std::size_t n_in_flight_bytes_ = 0;
  std::string ping_;
  std::chrono::milliseconds ping_after_{0};
  Time last_write_{};
  std::function<void()> on_close_;
};

}  // namespace ebb
