#include "server/request_log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace ebb {
namespace {

// Longer: who reads the log sees other requests less.
constexpr std::size_t kMostPathBytes = 200;

class LoggedResponder final : public Responder {
 public:
  LoggedResponder(std::shared_ptr<Responder> inner, std::string id, const HttpRequest& request,
                  std::function<void(std::string_view)> log)
      : inner_(std::move(inner)),
        id_(std::move(id)),
        asked_{.method = request.method, .path = request.path},
        log_(std::move(log)) {}
  ~LoggedResponder() override { tell(inner_->is_closed() ? " (client left)" : " (given up)"); }
  LoggedResponder(const LoggedResponder&) = delete;
  LoggedResponder& operator=(const LoggedResponder&) = delete;

  void send(HttpAnswer answer) override {
    status_ = answer.status;
    const bool has_left = inner_->is_closed();
    inner_->send(std::move(answer));
    tell(has_left ? " (client left)" : "");
  }
  void begin_stream(HttpStreamHead head) override {
    status_ = head.status;
    inner_->begin_stream(std::move(head));
  }
  std::size_t write(std::string_view text) override { return inner_->write(text); }
  void finish() override {
    const bool has_left = inner_->is_closed();
    inner_->finish();
    tell(has_left ? " (client left)" : "");
  }
  void abort() override {
    inner_->abort();
    tell(" (broken off)");
  }
  [[nodiscard]] bool is_closed() const override { return inner_->is_closed(); }
  [[nodiscard]] bool on_close(std::function<void()> callback) override { return inner_->on_close(std::move(callback)); }

 private:
  void tell(std::string_view note) {
    if (is_told_.exchange(true)) return;
    // Where memory is short for a line, there is none; a destructor asks too.
    try {
      log_(request_line(id_, asked_, {.status = status_, .ms = since_.elapsed_ms(), .note = note}));
    } catch (const std::exception&) {}
  }

  const std::shared_ptr<Responder> inner_;
  const std::string id_;
  const HttpRequest asked_;
  const std::function<void(std::string_view)> log_;
  const Stopwatch since_;
  std::atomic<int> status_ = 0;
  std::atomic<bool> is_told_ = false;
};

// As it may stand in a line of a log.
std::string shown_in_log(std::string_view text) {
  std::string line(text.substr(0, kMostPathBytes));
  std::ranges::replace_if(
      line, [](char c) { return c <= ' ' || c > '~'; }, '?');
  return line;
}

}  // namespace

std::string request_line(std::string_view id, const HttpRequest& request, const RequestOutcome& outcome) {
  return fmt::format("{} {} {} {} {:.1f} ms{}", id, shown_in_log(request.method), shown_in_log(request.path),
                     outcome.status, outcome.ms, outcome.note);
}

std::shared_ptr<Responder> log_answer(std::shared_ptr<Responder> inner, std::string id, const HttpRequest& request,
                                      std::function<void(std::string_view line)> log) {
  return std::make_shared<LoggedResponder>(std::move(inner), std::move(id), request, std::move(log));
}

}  // namespace ebb
