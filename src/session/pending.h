// Pending: the tokens that a turn has yet to bring: what waited in the session, the prompt by reference, what was generated.
//
// Thread rule: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "session/prompt.h"

namespace ebb {

class Pending {
 public:
  // `waiting` comes first, then the prompt without its first n_held tokens.
  Pending(std::vector<Token> waiting, Prompt prompt, std::int32_t n_held)
      : waiting_(std::move(waiting)), prompt_(std::move(prompt)), n_held_(static_cast<std::size_t>(n_held)) {}

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(n_all() - n_taken_); }
  // The next n of them, or as many as there are; valid until the next call.
  [[nodiscard]] std::span<const Token> first(std::int32_t n) {
    const std::size_t end = std::min(n_all(), n_taken_ + static_cast<std::size_t>(std::max(0, n)));
    step_.clear();
    std::size_t begin = 0;
    for (const std::span<const Token> part : parts()) {
      const std::size_t from = std::clamp(n_taken_, begin, begin + part.size());
      const std::size_t to = std::clamp(end, begin, begin + part.size());
      step_.insert(step_.end(), part.begin() + static_cast<std::ptrdiff_t>(from - begin),
                   part.begin() + static_cast<std::ptrdiff_t>(to - begin));
      begin += part.size();
    }
    return step_;
  }
  void take(std::int32_t n) { n_taken_ += static_cast<std::size_t>(n); }
  // The last n that were taken are pending again.
  void untake(std::int32_t n) { n_taken_ -= static_cast<std::size_t>(n); }
  void push(Token token) { generated_.push_back(token); }
  [[nodiscard]] std::vector<Token> rest() {
    const std::span<const Token> all = first(size());
    return {all.begin(), all.end()};
  }

 private:
  [[nodiscard]] std::vector<std::span<const Token>> parts() const {
    return {waiting_, prompt_.tokens().subspan(n_held_), generated_};
  }
  [[nodiscard]] std::size_t n_all() const {
    return waiting_.size() + prompt_.tokens().size() - n_held_ + generated_.size();
  }

  std::vector<Token> waiting_;
  Prompt prompt_;
  std::size_t n_held_;
  std::vector<Token> generated_;
  std::size_t n_taken_ = 0;
  std::vector<Token> step_;
};

}  // namespace ebb
