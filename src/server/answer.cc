#include "server/answer.h"

#include "server/api_error.h"
#include "server/sse.h"

namespace ebb {
namespace {

// Of what a client has not taken yet. More: a slow reader costs more memory. Less: a fast one gets its text in lumps.
constexpr std::size_t kMostQueuedBytes = std::size_t{64} << 10;

}  // namespace

void Answer::send(Scheduler& scheduler, Request request) {
  request.on_text = [self = shared_from_this()](std::string_view text) { self->take(text); };
  request.on_end = [self = shared_from_this()](const RequestEnd& end) { self->end(end); };
  RequestId id = 0;
  {
    // Text may come before submit() is back, and must find the stream begun.
    const std::scoped_lock lock(mutex_);
    const Result<RequestId> submitted = scheduler.submit(std::move(request));
    if (!submitted.ok()) {
      HttpAnswer answer = to_answer(
          {.status = 429, .type = "rate_limit_error", .message = submitted.status().message(), .retry_after_s = 1});
      answer.headers.insert(answer.headers.end(), options_.headers.begin(), options_.headers.end());
      return responder_->send(std::move(answer));
    }
    id = *submitted;
    if (options_.stream) begin_stream();
  }
  // Work for a client that left is stopped; the scheduler outlives every responder's server.
  if (!responder_->on_close([&scheduler, id] { scheduler.cancel(id); })) scheduler.cancel(id);
}

void Answer::begin_stream() {
  HttpStreamHead head{.headers = sse_headers(), .ping = std::string(kSsePing), .ping_after = options_.ping_after};
  head.headers.insert(head.headers.end(), options_.headers.begin(), options_.headers.end());
  responder_->begin_stream(std::move(head));
  if (options_.head.is_chat) write(role_chunk(options_.head));
}

void Answer::write(const Json& event) {
  std::string bytes;
  append_sse(bytes, json_text(event));
  n_queued_bytes_ = responder_->write(bytes);
}

void Answer::take(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  text_ += text;
  if (!options_.stream) return;
  if (n_queued_bytes_ > kMostQueuedBytes) {
    n_queued_bytes_ = responder_->write("");
    if (n_queued_bytes_ > kMostQueuedBytes) return;
  }
  write(text_chunk(options_.head, text_));
  text_.clear();
}

void Answer::end(const RequestEnd& end) {
  const std::scoped_lock lock(mutex_);
  if (options_.stream) return end_stream(end);
  HttpAnswer answer = end.status.ok() ? json_answer(whole_reply(options_.head, text_, end, options_.n_prompt))
                                      : to_answer(to_api_error(end.status));
  answer.headers.insert(answer.headers.end(), options_.headers.begin(), options_.headers.end());
  responder_->send(std::move(answer));
}

// A stream that broke off says so and has no [DONE].
void Answer::end_stream(const RequestEnd& end) {
  if (!text_.empty()) write(text_chunk(options_.head, text_));
  if (!end.status.ok()) {
    write(error_json(to_api_error(end.status)));
    return responder_->finish();
  }
  const bool with_usage = options_.include_usage;
  write(finish_chunk(options_.head, end, with_usage ? std::nullopt : std::optional(options_.n_prompt)));
  if (with_usage) write(usage_chunk(options_.head, end, options_.n_prompt));
  responder_->write(kSseDone);
  responder_->finish();
}

}  // namespace ebb
