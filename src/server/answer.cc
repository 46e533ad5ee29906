#include "server/answer.h"

#include <iterator>

#include "server/sse.h"

namespace ebb {
namespace {

// The most bytes that a client has not taken yet. More: a slow reader costs more memory. Less: a fast one gets its text
// in lumps.
constexpr std::size_t kMostQueuedBytes = std::size_t{64} << 10;

}  // namespace

void Answer::send(Scheduler& scheduler, std::vector<AnswerPart> parts) {
  guard([&] { begin(scheduler, std::move(parts)); });
}

// Text may come before submit() is back, and waits until the stream is begun.
void Answer::guard(const std::function<void()>& work) {
  const std::scoped_lock lock(mutex_);
  if (is_over_) return;
  try {
    work();
  } catch (const std::exception&) {
    break_off();
  }
}

void Answer::begin(Scheduler& scheduler, std::vector<AnswerPart> parts) {
  scheduler_ = &scheduler;
  ids_.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tracks_.push_back({.choice = {.index = static_cast<std::int32_t>(i),
                                  .n_prompt = parts[i].request.history.n_tokens(),
                                  .is_first_of_prompt = parts[i].is_first_of_prompt,
                                  .seed = parts[i].request.options.sampling.seed},
                       .parser = std::make_unique<ReplyParser>(std::move(parts[i].rules))});
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Request& request = parts[i].request;
    const auto self = shared_from_this();
    request.on_progress = [self, i](const RequestProgress& progress) {
      self->guard([&] { self->take_progress(i, progress); });
    };
    request.on_chances = [self, i](std::vector<TokenChances> chances) {
      self->guard([&] { self->take_chances(i, std::move(chances)); });
    };
    request.on_text = [self, i](std::string_view text) { self->guard([&] { self->take_text(i, text); }); };
    request.on_end = [self, i](const RequestEnd& end) { self->guard([&] { self->end(i, end); }); };
    const Result<RequestId> submitted = scheduler.submit(std::move(request));
    if (!submitted.ok()) {
      ApiError error = to_api_error(submitted.status());
      if (submitted.status().code() == Code::kOutOfBudget) {  // too many wait
        error.status = 429;
        error.type = "rate_limit_error";
      }
      return fail(error);
    }
    ids_.push_back(*submitted);
  }
  if (options_.stream) begin_stream();
  // Work for a client that left is stopped.
  const auto stop = [weak = weak_from_this()] {
    if (const std::shared_ptr<Answer> self = weak.lock()) self->cancel();
  };
  if (!responder_->on_close(stop)) cancel();
}

// What has ended takes no notice.
void Answer::cancel() {
  for (const RequestId id : ids_) scheduler_->cancel(id);
}

void Answer::begin_stream() {
  HttpStreamHead head{.headers = sse_headers(), .ping = std::string(shape_->ping()), .ping_after = options_.ping_after};
  head.headers.insert(head.headers.end(), options_.headers.begin(), options_.headers.end());
  responder_->begin_stream(std::move(head));
  has_begun_stream_ = true;
  if (const std::string bytes = shape_->begin(); !bytes.empty()) write(bytes);
}

// A slow reader gets the next one.
void Answer::take_progress(std::size_t index, const RequestProgress& progress) {
  Choice& choice = tracks_[index].choice;
  std::optional<RequestProgress>& known = choice.progress;
  const bool is_news = !known || known->n_cached != progress.n_cached || known->n_computed != progress.n_computed;
  known = progress;
  choice.n_prompt = progress.n_prompt;
  if (!options_.stream || !is_news || !has_room()) return;
  if (const std::string bytes = shape_->progress(choice); !bytes.empty()) write(bytes);
}

// Whether the client has taken enough of what was written to be given more.
bool Answer::has_room() {
  if (n_queued_bytes_ > kMostQueuedBytes) n_queued_bytes_ = responder_->write("");
  return n_queued_bytes_ <= kMostQueuedBytes;
}

void Answer::take_chances(std::size_t index, std::vector<TokenChances> chances) {
  std::vector<TokenChances>& all = tracks_[index].choice.chances;
  all.insert(all.end(), std::make_move_iterator(chances.begin()), std::make_move_iterator(chances.end()));
}

void Answer::take_text(std::size_t index, std::string_view text) {
  Track& track = tracks_[index];
  hold(track, track.parser->push(text));
  if (options_.stream && !track.held.empty() && has_room()) write_held(track);
}

// In a stream, neighbours of one kind become one.
void Answer::hold(Track& track, std::vector<ReplyDelta> deltas) {
  for (ReplyDelta& delta : deltas) {
    add_delta(track.choice.reply, delta);
    if (!options_.stream) continue;
    const bool begins_or_ends = delta.kind == ReplyDelta::Kind::kCallBegin || delta.kind == ReplyDelta::Kind::kCallEnd;
    if (!track.held.empty() && track.held.back().kind == delta.kind && !begins_or_ends) {
      track.held.back().text += delta.text;
    } else {
      track.held.push_back(std::move(delta));
    }
  }
}

void Answer::write_held(Track& track) {
  if (track.held.empty()) return;
  if (const std::string bytes = shape_->deltas(track.choice, track.held); !bytes.empty()) write(bytes);
  track.held.clear();
}

void Answer::end(std::size_t index, const RequestEnd& end) {
  if (!end.status.ok()) return fail(to_api_error(end.status));
  Track& track = tracks_[index];
  hold(track, track.parser->finish());
  track.choice.end = end;
  if (options_.stream) {
    write_held(track);
    write(shape_->end(track.choice));
  }
  if (++n_ended_ == tracks_.size()) answer_all();
}

void Answer::answer_all() {
  is_over_ = true;
  std::vector<Choice> choices;
  for (Track& track : tracks_) choices.push_back(std::move(track.choice));
  if (options_.stream) {
    write(shape_->end_all(choices));
    return responder_->finish();
  }
  HttpAnswer answer = json_answer(shape_->whole(choices));
  answer.headers.insert(answer.headers.end(), options_.headers.begin(), options_.headers.end());
  responder_->send(std::move(answer));
}

// A stream that broke off says so and has no [DONE]. The other choices are nobody's from now on.
void Answer::fail(const ApiError& error) {
  is_over_ = true;
  cancel();
  if (has_begun_stream_) {
    write(shape_->failure(error));
    return responder_->finish();
  }
  HttpAnswer answer = to_answer(error, shape_->error_shape());
  answer.headers.insert(answer.headers.end(), options_.headers.begin(), options_.headers.end());
  responder_->send(std::move(answer));
}

// Where telling the client is what failed, the connection ends.
void Answer::break_off() {
  try {
    if (!is_over_) return fail(internal_error());
  } catch (const std::exception&) {
    is_over_ = true;
  }
  responder_->abort();
}

}  // namespace ebb
