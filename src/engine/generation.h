// Generation: one turn of a session from its prompt's tokens to its last word.
//
// It holds the turn, the sampler and the text that has come out; Engine::step moves it on. It does not compute.
// Thread rule: as its session's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "engine/sampler.h"
#include "engine/text_stream.h"
#include "engine/thinking.h"
#include "engine/token_chances.h"
#include "session/turn.h"

namespace ebb {

struct GenerationOptions {
  SamplingOptions sampling;
  // Tokens to generate at most; 0: the prompt is computed and no more; negative: as many as the model was trained for,
  // or until its context is full where the session does not rebase.
  std::int32_t max_tokens = -1;
  std::vector<std::string> stop_strings;
  SpecialTokens special = SpecialTokens::kHide;
  ThinkingOptions thinking = {};
  // How many of the likeliest tokens are told at each step, besides the one that is kept; negative: only which one is kept,
  // and no chances; nothing: none is.
  std::optional<std::int32_t> n_chances = std::nullopt;
  // Those that the draw was left with, instead of what the model found.
  bool tells_drawn_chances = false;
  // Which cold blocks come back for what the prompt asks, and when (Turn::recall). Without cues nothing is looked for by words.
  RecallAsk recall;
};

// What makes text of a generation's logits. Options alone make it, on any thread: compiling a grammar may take long,
// and whoever runs generations has others to serve.
struct Writer {
  const Vocabulary* vocabulary;
  Sampler sampler;
  TextStream stream;
  Thinking thinking;

  // The vocabulary must outlive it. kInvalidArgument for sick options.
  static Result<Writer> create(const Vocabulary& vocabulary, const GenerationOptions& options);
};

struct GenerationStats {
  std::int32_t n_prompt = 0;
  std::int32_t n_generated = 0;
  std::int32_t n_thinking = 0;  // of them
  double prefill_ms = 0.0;
  double decode_ms = 0.0;
};

class Generation {
 public:
  // The session must outlive it. kInvalidArgument for an empty prompt or sick options; kOutOfBudget for a prompt that
  // the model's trained context cannot hold, before any work, where the session does not rebase.
  static Result<std::unique_ptr<Generation>> start(Session& session, const Vocabulary& vocabulary, const Prompt& prompt,
                                                   const GenerationOptions& options);

  // Begins a generation for a client that says its whole history each time (Turn::resume).
  static Result<std::unique_ptr<Generation>> resume(Session& session, const Vocabulary& vocabulary,
                                                    const Prompt& history, const GenerationOptions& options,
                                                    const ResumeOptions& resuming = {});
  // With a writer that was made of these options.
  static Result<std::unique_ptr<Generation>> resume(Session& session, Writer writer, const Prompt& history,
                                                    const GenerationOptions& options, const ResumeOptions& resuming);

  [[nodiscard]] bool finished() const { return reason_.has_value(); }
  [[nodiscard]] std::optional<FinishReason> reason() const { return reason_; }
  // TextStream::stop_string.
  [[nodiscard]] const std::string& stop_string() const { return writer_.stream.stop_string(); }
  // Why it could not go on, when it ended for want of room or memory, or by logits that are no numbers; finished then.
  [[nodiscard]] const Status& status() const { return status_; }
  // It ended in the midst of a change to its session, which is neither as before nor as after and must not be gone on
  // with.
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  // Text that came since the last call.
  [[nodiscard]] std::string take_text();
  // The chances of the tokens since the last call, where they were asked for. None of one that ended the text.
  [[nodiscard]] std::vector<TokenChances> take_chances() { return std::exchange(chances_, {}); }
  // All text so far.
  [[nodiscard]] const std::string& text() const { return text_; }
  // The generated tokens, the one that ended the text included.
  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }
  // What was looked for while writing is part of the time that writing took.
  [[nodiscard]] GenerationStats stats() const {
    GenerationStats stats = stats_;
    stats.decode_ms += turn_.stats().writing.ms;
    return stats;
  }
  // The tokens of stats().n_prompt that are not computed yet.
  [[nodiscard]] std::int32_t n_prompt_left() const { return is_prefilling() ? turn_.n_pending() : 0; }
  // Turn::n_computed, n_to_compute.
  [[nodiscard]] std::int32_t n_computed() const { return turn_.n_computed(); }
  [[nodiscard]] std::int32_t n_unseen() const { return turn_.n_unseen(); }
  [[nodiscard]] std::int32_t n_to_compute() const { return turn_.n_to_compute(); }
  [[nodiscard]] const TurnStats& turn_stats() const { return turn_.stats(); }

  // Ends it now. What was computed stays in the session, what was not waits there for the next turn.
  void finish(FinishReason reason);

  // --- for those who compute its steps (Engine, Scheduler) ---
  [[nodiscard]] bool is_prefilling() const { return tokens_.empty(); }
  // Whether the next rows of its prompt choose what they look at by whole blocks (cache/sight.h).
  [[nodiscard]] bool computes_whole_blocks() const { return is_prefilling() && turn_.computes_whole_blocks(); }
  // Turn::prepare, kNow of one that has ended; and what that or the next step needs of the pool.
  Turn::Ready prepare(std::int32_t max_rows);
  [[nodiscard]] std::int32_t n_frames_from_pool(std::int32_t max_rows) const;
  // Turn::begin_step; nothing where there is no room: it has ended then.
  [[nodiscard]] std::optional<SequenceInput> begin_step(std::int32_t max_rows);
  void end_step(const std::optional<SequenceMass>& mass);
  void abandon_step();
  // The logits of the last computed token.
  void sample(std::span<const float> logits);
  void count_step(double ms, bool was_prefilling);

 private:
  template <typename MakeTurn>
  static Result<std::unique_ptr<Generation>> make(const Session& session, Writer writer, const Prompt& prompt,
                                                  const GenerationOptions& options, MakeTurn make_turn);
  Generation(Turn turn, Writer writer, const GenerationOptions& options, std::int32_t n_context);
  // Does what changes the session; what that throws breaks this generation off, and no other.
  template <typename Change>
  void guard(Change change);
  Status take_logits(std::span<const float> logits);
  [[nodiscard]] TokenChances chances_of(Token token, std::span<const float> logits, bool is_forced) const;
  // The end of this generation, and of no other.
  void fail(const Status& status);

  Turn turn_;
  Writer writer_;
  std::int32_t max_tokens_;
  std::optional<std::int32_t> n_chances_;
  bool tells_drawn_chances_;
  std::vector<TokenChances> chances_;
  std::vector<Token> tokens_;
  std::string text_;
  std::size_t n_taken_bytes_ = 0;
  std::optional<FinishReason> reason_;
  Status status_;
  bool is_broken_ = false;
  GenerationStats stats_;
};

template <typename Change>
void Generation::guard(Change change) {
  try {
    change();
  } catch (...) {
    is_broken_ = true;
    status_ = caught("a step was made");
    if (!reason_) reason_ = FinishReason::kLength;
  }
}

}  // namespace ebb
