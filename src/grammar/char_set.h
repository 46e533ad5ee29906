// CharSet: a set of Unicode scalar values, and how a grammar says "one of them".
//
// Thread rule: a value.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ebb {

// The characters from first to last, both among them.
using CharRange = std::pair<char32_t, char32_t>;

// Sorted ranges that do not touch.
class CharSet {
 public:
  CharSet() = default;
  // A set of ranges in any order, which may overlap.
  explicit CharSet(std::vector<CharRange> ranges);
  [[nodiscard]] const std::vector<CharRange>& ranges() const { return ranges_; }
  // All scalar values that are not in it.
  [[nodiscard]] CharSet inverse() const;
  // Those in both.
  [[nodiscard]] CharSet common(const CharSet& other) const;
  // Its one character, if it has one.
  [[nodiscard]] std::optional<char32_t> only() const;
  // A GBNF class of them as they are; the set must not be empty.
  [[nodiscard]] std::string class_expression() const;
  // The expression for one of them inside a JSON string; nothing for the empty set.
  [[nodiscard]] std::optional<std::string> json_expression() const;

 private:
  std::vector<CharRange> ranges_;
};

}  // namespace ebb
