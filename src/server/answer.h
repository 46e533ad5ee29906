// Answer: one completion on its way from the scheduler to a client, whole or as a stream of events.
//
// Text that the client does not take in time is held back and merged, so that a slow reader costs memory for its text
// once. A client that leaves cancels its request. It does not know routes. Thread rule: its callbacks come from the
// scheduler's thread; send() is called once, from a worker.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "engine/scheduler.h"
#include "server/http_message.h"
#include "server/replies.h"

namespace ebb {

struct AnswerOptions {
  ReplyHead head;
  std::int32_t n_prompt = 0;
  bool stream = false;
  bool include_usage = false;
  std::chrono::milliseconds ping_after{0};
  HttpHeaders headers;  // of every answer
};

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(AnswerOptions options, std::shared_ptr<Responder> responder)
      : options_(std::move(options)), responder_(std::move(responder)) {}

  // Gives the request to the scheduler and answers, now or later: 429 with Retry-After where the queue is full.
  void send(Scheduler& scheduler, Request request);

 private:
  void begin_stream();
  void take(std::string_view text);
  void end(const RequestEnd& end);
  void end_stream(const RequestEnd& end);
  void write(const Json& event);

  AnswerOptions options_;
  std::shared_ptr<Responder> responder_;
  std::mutex mutex_;
  std::string text_;  // of a whole answer all, of a stream what is held back
  std::size_t n_queued_bytes_ = 0;
};

}  // namespace ebb
