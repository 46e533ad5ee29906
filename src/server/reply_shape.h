// ReplyShape: how one family of routes writes an answer: OpenAI's chat and text completions and Responses, llama.cpp's,
// Anthropic's Messages.
//
// It makes JSON and events of what came out so far (Choice); when, and to whom, is the Answer's affair. Thread rule:
// one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/reply_parser.h"
#include "engine/scheduler.h"
#include "json/json_fields.h"
#include "server/api_error.h"
#include "server/sse.h"

namespace ebb {

// One generation of an answer: of n for each prompt, prompt by prompt.
struct Choice {
  std::int32_t index = 0;
  // Tokens of its prompt: as the request says it, and from its beginning on as its session holds it, which has replies in
  // the tokens that the model wrote.
  std::int32_t n_prompt = 0;
  // The first of the choices for its prompt: what the prompt cost counts once.
  bool is_first_of_prompt = true;
  // All that came so far.
  ParsedReply reply = {};
  // As it was given.
  std::optional<std::uint32_t> seed = std::nullopt;
  // None before it began.
  std::optional<RequestProgress> progress = std::nullopt;
  // The chances of the tokens that are not written yet.
  std::vector<TokenChances> chances = {};
  // How it ended; ok.
  std::optional<RequestEnd> end = std::nullopt;
};

// What repeats in every part of one answer.
struct ReplyHead {
  std::string id;
  std::int64_t created = 0;
  std::string model;
  // What was asked for and could not be done as asked, in words.
  std::vector<std::string> warnings = {};
  // A stream tells how far the prompt is, and in each part the timings so far.
  bool tells_progress = false;
  bool tells_timings = false;
  // The answer tells each block that recall considered, and not only how many.
  bool explains_recall = false;
};

class ReplyShape {
 public:
  ReplyShape() = default;
  ReplyShape(const ReplyShape&) = delete;
  ReplyShape& operator=(const ReplyShape&) = delete;
  virtual ~ReplyShape() = default;

  // The parts of a stream, as bytes of an event stream, in this order.
  [[nodiscard]] virtual std::string begin() = 0;
  // While a prompt is computed: how far choice.progress is.
  [[nodiscard]] virtual std::string progress(const Choice& choice);
  // What came, which choice.reply holds already. Takes the chances of its tokens.
  [[nodiscard]] virtual std::string deltas(Choice& choice, std::span<const ReplyDelta> deltas) = 0;
  [[nodiscard]] virtual std::string end(Choice& choice) = 0;
  [[nodiscard]] virtual std::string end_all(std::span<const Choice> choices) = 0;
  // Instead of what is missing.
  [[nodiscard]] virtual std::string failure(const ApiError& error);
  // How an error is said before anything else was.
  [[nodiscard]] virtual ErrorShape error_shape() const { return error_json; }
  // What keeps a silent stream alive.
  [[nodiscard]] virtual std::string_view ping() const { return kSsePing; }

  // The answer that is no stream.
  [[nodiscard]] virtual Json whole(std::span<Choice> choices) = 0;
};

}  // namespace ebb
