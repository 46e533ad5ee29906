// Answer: what one request is answered, on its way from the scheduler to a client, whole or as a stream of events.
//
// It runs one generation for each choice, reads thinking and calls out of their text, and has a ReplyShape write them.
// What a client does not take in time is held back and merged, so that a slow reader costs memory for its text once. A
// client that leaves cancels its generations. What a library throws on the way, on whichever thread, breaks this answer
// off, with a word to the client where that can be, and nothing else. It does not know routes. Thread rule: its
// callbacks come from the scheduler's thread; send() is called once, from a worker.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "chat/reply_parser.h"
#include "engine/scheduler.h"
#include "server/http_message.h"
#include "server/reply_shape.h"

namespace ebb {

struct AnswerOptions {
  bool stream = false;
  std::chrono::milliseconds ping_after{0};
  HttpHeaders headers;  // of every answer
};

// A choice to be made.
struct AnswerPart {
  Request request;
  ReplyRules rules;
  bool is_first_of_prompt = true;
};

class Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(AnswerOptions options, std::unique_ptr<ReplyShape> shape, std::shared_ptr<Responder> responder)
      : options_(std::move(options)), shape_(std::move(shape)), responder_(std::move(responder)) {}

  // Gives the requests to the scheduler and answers, now or later: 429 with Retry-After where the queue is full.
  void send(Scheduler& scheduler, std::vector<AnswerPart> parts);

 private:
  struct Track {
    Choice choice;
    std::unique_ptr<ReplyParser> parser;
    std::vector<ReplyDelta> held;
  };

  void guard(const std::function<void()>& work);
  void begin(Scheduler& scheduler, std::vector<AnswerPart> parts);
  void begin_stream();
  void take_progress(std::size_t index, const RequestProgress& progress);
  void take_chances(std::size_t index, std::vector<TokenChances> chances);
  void take_text(std::size_t index, std::string_view text);
  void end(std::size_t index, const RequestEnd& end);
  void fail(const ApiError& error);
  void break_off();
  void cancel();
  void hold(Track& track, std::vector<ReplyDelta> deltas);
  void write_held(Track& track);
  bool has_room();
  void write(std::string_view bytes) { n_queued_bytes_ = responder_->write(bytes); }
  void answer_all();

  AnswerOptions options_;
  std::unique_ptr<ReplyShape> shape_;
  std::shared_ptr<Responder> responder_;
  std::mutex mutex_;
  std::vector<Track> tracks_;
  // Who computes for it, under which ids, and how many have ended; the scheduler outlives every responder's server.
  Scheduler* scheduler_ = nullptr;
  std::vector<RequestId> ids_;
  std::size_t n_ended_ = 0;
  bool has_begun_stream_ = false;
  // Answered, well or not; what comes later is nobody's.
  bool is_over_ = false;
  std::size_t n_queued_bytes_ = 0;
};

}  // namespace ebb
