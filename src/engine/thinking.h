// Thinking: follows what a model thinks before it answers, counts its tokens, and ends it when they are enough.
//
// It looks at the text of the kept tokens, control tokens included, for the marks; they may lie across tokens. Thinking
// begins with the prompt, or with the opening mark as the answer's first text. When the limit is reached, the tokens of the
// closing mark are what comes next, whatever the model would say, at the first border between characters.
//
// It does not know samplers, sessions or what is done with the text. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/utf8_stream.h"
#include "text/vocabulary.h"

namespace ebb {

struct ThinkingOptions {
  std::string open_mark = {};
  // Empty: the model does not think.
  std::string close_mark = {};
  // Marks that end it as well: those that open calls.
  std::vector<std::string> other_ends = {};
  // The prompt ended inside thinking.
  bool is_open = false;
  // Tokens of thinking at most; negative: as many as the model likes.
  std::int32_t max_tokens = -1;
};

class Thinking {
 public:
  // The vocabulary must outlive it. kInvalidArgument for a limit on thinking that has no closing mark.
  static Result<Thinking> create(const Vocabulary& vocabulary, ThinkingOptions options);

  // What must come next.
  [[nodiscard]] std::optional<Token> forced() const;
  // A token that was kept; it must be one of the vocabulary.
  Status push(Token token);

  [[nodiscard]] bool is_open() const { return place_ == Place::kInside; }
  // The tokens of thinking so far, its marks included.
  [[nodiscard]] std::int32_t n_tokens() const { return n_tokens_; }

 private:
  enum class Place { kBefore, kInside, kBehind };
  Thinking(const Vocabulary& vocabulary, ThinkingOptions options, std::vector<Token> end);
  void look_for_beginning();
  void look_for_end();

  const Vocabulary* vocabulary_;
  ThinkingOptions options_;
  std::vector<Token> end_;   // the closing mark
  std::size_t n_ended_ = 0;  // of them that were forced
  Place place_ = Place::kBefore;
  std::string text_;  // that may be the beginning of a mark
  Utf8Stream utf8_;
  std::int32_t n_tokens_ = 0;
};

}  // namespace ebb
