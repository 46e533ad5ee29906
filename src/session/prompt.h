// Prompt: what one request says, whole: its tokens and who said which of them under which name.
//
// It is immutable and shared by reference: the route that makes it, the queue, the lane's search, the turn and its
// steps all look at one copy, and a copy of a Prompt is a reference more. It knows no session. Thread rule: never
// changes; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/span.h"
#include "policy/evidence.h"

namespace ebb {

// A run of a prompt's tokens from one source. Parts touch: each begins where the one before it ends, the first at 0.
struct PromptPart {
  std::int32_t n_tokens = 0;
  Source source = Source::kUser;
  // Blocks are found by it, as "name#0", "name#1", ...; empty: "turn<n>".
  std::string name = {};
  // Finite and not negative; 1 is normal, more stays longer.
  double priority = 1.0;
  bool pinned = false;
};

class Prompt {
  struct Said {
    std::vector<Token> tokens;
    std::vector<PromptPart> parts;
    std::vector<Span> cleared = {};
  };

 public:
  // Says nothing.
  Prompt() : said_(std::make_shared<const Said>()) {}
  // One part, the user's.
  explicit Prompt(std::vector<Token> tokens) {
    const auto n_tokens = static_cast<std::int32_t>(tokens.size());
    said_ = std::make_shared<const Said>(Said{.tokens = std::move(tokens), .parts = {{.n_tokens = n_tokens}}});
  }

  // What `parts` say of `tokens`, all of which they cover. `cleared`: what whoever says it no longer wants in sight, ascending.
  Prompt(std::vector<Token> tokens, std::vector<PromptPart> parts, std::vector<Span> cleared = {}) {
    std::int64_t n_tokens = 0;
    for (const PromptPart& part : parts) n_tokens += part.n_tokens;
    EBB_CHECK(n_tokens == std::ssize(tokens), "{} tokens in parts, of {}", n_tokens, tokens.size());
    said_ = std::make_shared<const Said>(
        Said{.tokens = std::move(tokens), .parts = std::move(parts), .cleared = std::move(cleared)});
  }

  // Puts a prompt together part by part.
  class Builder {
   public:
    // `part.n_tokens` is taken from `tokens`.
    Builder& add(std::span<const Token> tokens, PromptPart part = {}) {
      part.n_tokens = static_cast<std::int32_t>(tokens.size());
      said_.tokens.insert(said_.tokens.end(), tokens.begin(), tokens.end());
      said_.parts.push_back(std::move(part));
      return *this;
    }
    // The prompt of what was added since the last one.
    [[nodiscard]] Prompt build() { return Prompt(std::make_shared<const Said>(std::exchange(said_, {}))); }

   private:
    Said said_;
  };

  [[nodiscard]] std::span<const Token> tokens() const { return said_->tokens; }
  [[nodiscard]] std::int32_t n_tokens() const { return static_cast<std::int32_t>(said_->tokens.size()); }
  [[nodiscard]] std::span<const PromptPart> parts() const { return said_->parts; }
  // Whole blocks inside it leave at once, and come back for a question alone (Session::let_go_cleared).
  [[nodiscard]] std::span<const Span> cleared() const { return said_->cleared; }

 private:
  explicit Prompt(std::shared_ptr<const Said> said) : said_(std::move(said)) {}

  std::shared_ptr<const Said> said_;
};

}  // namespace ebb
