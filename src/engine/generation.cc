#include "engine/generation.h"

namespace ebb {

Result<Writer> Writer::create(const Vocabulary& vocabulary, const GenerationOptions& options) {
  EBB_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(vocabulary, options.sampling));
  EBB_ASSIGN_OR_RETURN(TextStream stream, TextStream::create(vocabulary, {.stop_strings = options.stop_strings,
                                                                          .special = options.special,
                                                                          .marks = options.sampling.marks}));
  EBB_ASSIGN_OR_RETURN(Thinking thinking, Thinking::create(vocabulary, options.thinking));
  return Writer{.vocabulary = &vocabulary,
                .sampler = std::move(sampler),
                .stream = std::move(stream),
                .thinking = std::move(thinking)};
}

namespace {

Status check_tokens(const Prompt& prompt, const Vocabulary& vocabulary) {
  if (prompt.n_tokens() == 0)
    return error(Code::kInvalidArgument, "an empty prompt; give at least one token to continue");
  for (const Token token : prompt.tokens()) {
    if (!vocabulary.contains(token)) {
      return error(Code::kInvalidArgument, "token {} is not in the vocabulary of {}", token.value(),
                   vocabulary.n_tokens());
    }
  }
  return {};
}

Status check_context(const Session& session, std::int64_t n_held, std::int32_t n_tokens) {
  if (n_held + n_tokens <= session.n_ctx_train() || session.can_rebase()) return {};
  return error(Code::kOutOfBudget,
               "a prompt of {} tokens behind the session's {}, and the model was trained for {} in all; start a new "
               "session or say it shorter",
               n_tokens, n_held, session.n_ctx_train());
}

}  // namespace

Result<std::unique_ptr<Generation>> Generation::start(Session& session, const Vocabulary& vocabulary,
                                                      const Prompt& prompt, const GenerationOptions& options) {
  EBB_RETURN_IF_ERROR(check_tokens(prompt, vocabulary));
  EBB_RETURN_IF_ERROR(check_context(session, session.end().value() + session.n_unfinished(), prompt.n_tokens()));
  EBB_ASSIGN_OR_RETURN(Writer writer, Writer::create(vocabulary, options));
  return make(session, std::move(writer), prompt, options, [&] { return Turn(session, prompt); });
}

Result<std::unique_ptr<Generation>> Generation::resume(Session& session, const Vocabulary& vocabulary,
                                                       const Prompt& history, const GenerationOptions& options,
                                                       const ResumeOptions& resuming) {
  EBB_ASSIGN_OR_RETURN(Writer writer, Writer::create(vocabulary, options));
  return resume(session, std::move(writer), history, options, resuming);
}

Result<std::unique_ptr<Generation>> Generation::resume(Session& session, Writer writer, const Prompt& history,
                                                       const GenerationOptions& options,
                                                       const ResumeOptions& resuming) {
  EBB_RETURN_IF_ERROR(check_tokens(history, *writer.vocabulary));
  EBB_RETURN_IF_ERROR(check_context(session, 0, history.n_tokens()));
  ResumeOptions how = resuming;
  how.looks_again &= options.recall.looks();
  EBB_ASSIGN_OR_RETURN(auto generation, make(session, std::move(writer), history, options,
                                             [&] { return Turn::resume(session, history, how); }));
  // What is still saved of a lane that was parked, or had to do with less, fills the room that the prompt leaves.
  generation->turn_.refill(kReplyBlocks, options.recall.cues);
  return generation;
}

// What can fail comes before the turn, which changes the session.
template <typename MakeTurn>
Result<std::unique_ptr<Generation>> Generation::make(const Session& session, Writer writer, const Prompt& prompt,
                                                     const GenerationOptions& options, MakeTurn make_turn) {
  if (options.recall.selectors.asks_meanings() && !session.has_meanings() &&
      session.options().remains != Remains::kNothing) {
    return no_meanings_error();
  }
  EBB_RETURN_IF_ERROR(writer.sampler.accept_prompt(prompt.tokens()));
  std::unique_ptr<Generation> generation(
      new Generation(make_turn(), std::move(writer), options, session.n_ctx_train()));
  RecallAsk ask = options.recall;
  if (ask.max_blocks == 0) ask.cues.clear();
  if (ask.selectors.is_fused()) ask.selectors = SelectorList::fused(session.has_meanings());
  generation->turn_.recall(std::move(ask));
  return generation;
}

Generation::Generation(Turn turn, Writer writer, const GenerationOptions& options, std::int32_t n_context)
    : turn_(std::move(turn)),
      writer_(std::move(writer)),
      max_tokens_(options.max_tokens >= 0 ? options.max_tokens : n_context),
      n_chances_(options.n_chances),
      tells_drawn_chances_(options.tells_drawn_chances) {
  stats_.n_prompt = turn_.n_pending();
}

std::string Generation::take_text() {
  std::string text = text_.substr(n_taken_bytes_);
  n_taken_bytes_ = text_.size();
  return text;
}

void Generation::finish(FinishReason reason) {
  if (finished()) return;
  reason_ = reason;
  guard([&] {
    const TextDelta delta = writer_.stream.finish(reason);
    text_ += delta.text;
    reason_ = delta.finished.value_or(reason);
    turn_.settle();
  });
}

Turn::Ready Generation::prepare(std::int32_t max_rows) {
  Turn::Ready ready = Turn::Ready::kNow;
  if (!finished()) guard([&] { ready = turn_.prepare(max_rows); });
  return finished() ? Turn::Ready::kNow : ready;
}

std::int32_t Generation::n_frames_from_pool(std::int32_t max_rows) const {
  return finished() ? 0 : turn_.n_frames_from_pool(max_rows);
}

std::optional<SequenceInput> Generation::begin_step(std::int32_t max_rows) {
  std::optional<SequenceInput> begun;
  guard([&] {
    Result<SequenceInput> input = turn_.begin_step(max_rows);
    if (!input.ok()) return fail(input.status());
    begun = *std::move(input);
  });
  return begun;
}

void Generation::end_step(const std::optional<SequenceMass>& mass) {
  guard([&] { turn_.end_step(mass); });
}

void Generation::abandon_step() {
  guard([&] { turn_.abandon_step(); });
}

void Generation::sample(std::span<const float> logits) {
  // The prompt's tail is computed again, with what its queries asked for: another step gives the logits.
  if (turn_.n_pending() > 0) return;
  Status status;
  try {
    status = take_logits(logits);
  } catch (...) {
    status = caught("a token was drawn");
  }
  if (!status.ok()) fail(status);
}

Status Generation::take_logits(std::span<const float> logits) {
  if (max_tokens_ == 0) {
    finish(FinishReason::kLength);
    return {};
  }
  std::optional<Token> token = writer_.thinking.forced();
  const bool is_forced = token.has_value();
  if (!is_forced) {
    Result<std::optional<Token>> sampled = writer_.sampler.sample(logits);
    // A grammar that has no room before anything is said never will: who asks again is refused again.
    if (sampled.status().code() == Code::kOutOfBudget && stats_.n_generated == 0) {
      return error(Code::kUnsupported, "{}", sampled.status().message());
    }
    EBB_ASSIGN_OR_RETURN(token, std::move(sampled));
  }
  if (!token) {
    finish(FinishReason::kEndOfGeneration);
    return {};
  }
  EBB_RETURN_IF_ERROR(writer_.sampler.accept(*token));
  EBB_ASSIGN_OR_RETURN(const TextDelta delta, writer_.stream.push(*token));
  EBB_RETURN_IF_ERROR(writer_.thinking.push(*token));
  tokens_.push_back(*token);
  ++stats_.n_generated;
  stats_.n_thinking = writer_.thinking.n_tokens();
  if (n_chances_ && !delta.finished) chances_.push_back(chances_of(*token, logits, is_forced));
  text_ += delta.text;
  // Pushed even when it ends the reply: the next turn's history holds it.
  guard([&] {
    turn_.push(*token);
    if (!delta.finished) return;
    reason_ = delta.finished;
    turn_.settle();
  });
  if (stats_.n_generated >= max_tokens_) finish(FinishReason::kLength);
  return {};
}

TokenChances Generation::chances_of(Token token, std::span<const float> logits, bool is_forced) const {
  // Log-softmax over a large vocabulary costs a part of each step, which whoever wants to know the token does not need.
  if (*n_chances_ < 0) return certain_chances(token, 0);
  if (!tells_drawn_chances_) return token_chances(logits, token, *n_chances_);
  return is_forced ? certain_chances(token, *n_chances_) : writer_.sampler.drawn_chances(token, *n_chances_);
}

void Generation::fail(const Status& status) {
  if (is_broken_) return;
  status_ = status;
  finish(FinishReason::kLength);
}

void Generation::count_step(double ms, bool was_prefilling) {
  (was_prefilling ? stats_.prefill_ms : stats_.decode_ms) += ms;
}

}  // namespace ebb
