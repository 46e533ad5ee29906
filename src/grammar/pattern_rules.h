// A regular expression as grammar for the inside of a JSON string.
//
// The part of ECMAScript's syntax that describes a regular language: characters and escapes, classes, groups without
// capture games, alternatives, counts, ^ at the beginning and $ at the end. Without an anchor anything may stand on
// that side. Look-around, back references, word borders and \p are not taken, nor are long patterns and large classes.
// Characters are written in their one shortest JSON form.
//
// Thread rule: functions on a GrammarRules of one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_rules.h"

namespace ebb {

// The characters from first to last, both among them.
using CharRange = std::pair<char32_t, char32_t>;

// Sets of Unicode scalar values, as sorted ranges that do not touch.
class CharSet {
 public:
  CharSet() = default;
  // A set of ranges in any order, which may overlap.
  explicit CharSet(std::vector<CharRange> ranges);
  [[nodiscard]] const std::vector<CharRange>& ranges() const { return ranges_; }
  // All scalar values that are not in it.
  [[nodiscard]] CharSet inverse() const;
  // Its one character, if it has one.
  [[nodiscard]] std::optional<char32_t> only() const;
  // A GBNF class of them, raw; the set must not be empty.
  [[nodiscard]] std::string class_expression() const;
  // The expression for one of them inside a JSON string; nothing for the empty set.
  [[nodiscard]] std::optional<std::string> expression() const;

 private:
  std::vector<CharRange> ranges_;
};

// An expression for the inside of the strings that match; kUnsupported, saying why, for what is not taken.
[[nodiscard]] Result<std::string> pattern_expression(GrammarRules& rules, std::string_view pattern);

}  // namespace ebb
