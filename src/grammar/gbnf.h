// Reads a GBNF grammar, in libllama's syntax, into rules written out for the matcher (grammar/gbnf_match.h).
//
// It refuses, with a line number, what is not well-formed and what would grow without end: left recursion, also behind
// rules that may be empty, and repetitions that become too large when written out. So what passes takes bounded memory.
//
// Thread rule: a function without state; what it returns is only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/vocabulary.h"

namespace ebb {

struct GbnfLimits {
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 19;
  // What the grammar becomes when repetitions are written out.
  static constexpr std::size_t kMaxRules = 10000;
  static constexpr std::size_t kMaxElements = 500000;
  static constexpr std::size_t kMaxNesting = 200;
  // Ways in which one rule can begin. Each is walked at every character where the rule may.
  static constexpr std::size_t kMaxBeginnings = 20000;
  // For {m,n} and for products of nested ones; a larger n is read as no limit, as libllama does.
  static constexpr std::size_t kMaxRepetitions = 2000;
};

// Code points from `least` to `most`.
struct GbnfChars {
  char32_t least = 0;
  char32_t most = 0;
};

struct GbnfElement {
  enum class Kind : std::uint8_t { kEnd, kRule, kChars, kNotChars, kToken, kNotToken, kSwitch };
  Kind kind = Kind::kEnd;
  std::uint32_t value = 0;     // a rule, a token, or where the ranges of a character, or the ways of a switch, begin
  std::uint32_t n_ranges = 0;  // of a character, in order and apart; of a switch, how many ways
};

// Of a switch: behind this character the text goes on there. In the order of characters; several may have the same.
struct GbnfWay {
  char32_t character = 0;
  std::uint32_t element = 0;
};

struct GbnfWrittenRule {
  std::vector<std::uint32_t> alternatives;  // where each begins in `elements`; kEnd is behind it
  bool may_be_empty = false;
};

struct Gbnf {
  std::vector<GbnfElement> elements;
  std::vector<GbnfChars> ranges;
  std::vector<GbnfWay> ways;
  std::vector<GbnfWrittenRule> rules;
  std::uint32_t root = 0;
  // The tokens that the grammar names as <text> or <[id]>, not those that it excludes.
  std::vector<Token> named;
};

// Tokens that the grammar names must be of the vocabulary. kInvalidArgument with line and reason.
[[nodiscard]] Result<Gbnf> read_gbnf(const Vocabulary& vocabulary, std::string_view grammar, std::string_view root);

}  // namespace ebb
