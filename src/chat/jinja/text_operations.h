// What Python's string methods do, on marked text: every character that stays keeps its mark.
//
// Both the methods and the filters stand on these. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "chat/jinja/marked_text.h"
#include "chat/jinja/run.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

[[nodiscard]] MarkedText strip(const MarkedText& text, Side side, const std::string* set = nullptr);
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
