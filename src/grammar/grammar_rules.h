// GrammarRules: a GBNF grammar under construction.
//
// It knows how GBNF is written, not what the rules mean. Its size is bounded: what is added past GbnfLimits is dropped
// and counted against the grammar, which finish() then refuses.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ebb {

class GrammarRules {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 18;
  static constexpr std::size_t kMaxRules = 8000;
  static constexpr std::size_t kMaxRepetitions = 512000;
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  // Fresh names begin with `prefix`: rules that join a grammar written elsewhere need one that it does not use.
  explicit GrammarRules(std::string prefix = "r") : prefix_(std::move(prefix)) {}

  // Adds `name ::= body` unless the name is defined. Returns the name.
  std::string add(std::string_view name, std::string_view body);
  [[nodiscard]] bool has(std::string_view name) const { return names_.contains(name); }
  // A name for a rule that is added later.
  [[nodiscard]] std::string fresh_name();
  // Adds a rule under a fresh name.
  std::string add_fresh(std::string_view body) { return add(fresh_name(), body); }

  // `rule` (one name) from `least` to `most` times: at most kMaxRepetitions, or kUnlimited. Large counts are cut into runs,
  // because libllama takes no repetition above 2000.
  [[nodiscard]] std::string repeat(const std::string& rule, std::size_t least, std::size_t most);

  [[nodiscard]] bool too_large() const { return n_dropped_ > 0; }
  // The text; kUnsupported if the grammar is too large.
  [[nodiscard]] Result<std::string> finish() const;

 private:
  std::string add_up_to(const std::string& rule, std::size_t most);

  std::string prefix_;
  std::string text_;
  std::set<std::string, std::less<>> names_;
  std::size_t n_fresh_ = 0;
  std::size_t n_dropped_ = 0;
};

// The text as a GBNF literal, quotes included; empty text is an empty string of symbols.
[[nodiscard]] std::string grammar_literal(std::string_view text);

// The characters [first, last] as they stand inside a GBNF class.
[[nodiscard]] std::string grammar_range(char32_t first, char32_t last);

}  // namespace ebb
