// What Python's string methods do, on marked text: every character that stays keeps its mark.
//
// Both the methods and the filters stand on these. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/marked_text.h"
#include "chat/jinja/run.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// Where `wanted` stands first from `from` on, and last; npos: nowhere. In time that grows with both lengths, not with their product, as
// std::string's own does on "aaa...b".
[[nodiscard]] std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from = 0);
[[nodiscard]] std::size_t find_last(std::string_view text, std::string_view wanted);
// How often it occurs, without overlap; between all characters where it is "".
[[nodiscard]] std::size_t count_of(std::string_view text, std::string_view wanted);
// The text without characters of `set` at its ends; paid for.
Value strip(Run& run, const MarkedText& text, Side side, const std::string* set = nullptr);
[[nodiscard]] MarkedText upper(const MarkedText& text);
[[nodiscard]] MarkedText lower(const MarkedText& text);
[[nodiscard]] MarkedText capitalize(const MarkedText& text);
// Each word's first letter large, the others small. Words are runs of letters.
[[nodiscard]] MarkedText title(const MarkedText& text);
// Markup with & < > " ' written as HTML.
[[nodiscard]] MarkedText escape_html(const MarkedText& text);
// At most `most` occurrences, from the left. A `from` of "" is between all characters.
[[nodiscard]] MarkedText replace(const MarkedText& text, const std::string& from, const MarkedText& to,
                                 std::int64_t most = kAll);

struct SplitRule {
  const std::string* separator = nullptr;  // null: runs of white space; never empty
  std::int64_t most = kAll;                // splits
  bool from_right = false;
};
[[nodiscard]] std::vector<MarkedText> split(const MarkedText& text, const SplitRule& rule);
[[nodiscard]] std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends = false);

// The texts as a list value.
Value text_list(Run& run, std::vector<MarkedText> texts, ListKind kind = ListKind::kList);

}  // namespace ebb::jinja
