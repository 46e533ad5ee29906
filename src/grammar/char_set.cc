#include "grammar/char_set.h"

#include <algorithm>

#include "fmt/format.h"
#include "grammar/grammar_rules.h"
#include "grammar/json_rules.h"

namespace ebb {
namespace {

constexpr char32_t kLastChar = 0x10FFFF;

}  // namespace

CharSet::CharSet(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (const CharRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().second + 1) {
      ranges_.back().second = std::max(ranges_.back().second, range.second);
    } else {
      ranges_.push_back(range);
    }
  }
}

CharSet CharSet::inverse() const {
  std::vector<CharRange> others;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (next < first) others.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastChar) others.emplace_back(next, kLastChar);
  return CharSet(std::move(others));
}

CharSet CharSet::common(const CharSet& other) const {
  std::vector<CharRange> neither = inverse().ranges_;
  const CharSet others = other.inverse();
  neither.insert(neither.end(), others.ranges_.begin(), others.ranges_.end());
  return CharSet(std::move(neither)).inverse();
}

std::optional<char32_t> CharSet::only() const {
  if (ranges_.size() != 1 || ranges_[0].first != ranges_[0].second) return std::nullopt;
  return ranges_[0].first;
}

std::string CharSet::class_expression() const {
  std::string inside;
  for (const auto& [first, last] : ranges_) inside += grammar_range(first, last);
  return "[" + inside + "]";
}

std::optional<std::string> CharSet::json_expression() const {
  std::string plain;
  std::vector<std::string> ways;
  for (const auto& [first, last] : ranges_) {
    // What JSON must escape goes by itself, the stretches between by the range.
    char32_t next = first;
    for (char32_t c = first; c <= std::min<char32_t>(last, '\\'); ++c) {
      if (c >= 0x20 && c != '"' && c != '\\') continue;
      if (next < c) plain += grammar_range(next, c - 1);
      ways.push_back(grammar_literal(json_char_text(c)));
      next = c + 1;
    }
    if (next <= last) plain += grammar_range(next, last);
  }
  if (!plain.empty()) ways.insert(ways.begin(), "[" + plain + "]");
  if (ways.empty()) return std::nullopt;
  return ways.size() == 1 ? ways[0] : fmt::format("({})", fmt::join(ways, " | "));
}

}  // namespace ebb
