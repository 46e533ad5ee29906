#include "grammar/text_rules.h"

#include <algorithm>
#include <map>

#include "grammar/pattern_rules.h"

namespace ebb {
namespace {

// Where in the marks a text is: the longest of its ends that begins a mark (Aho and Corasick, 1975).
class MarkStates {
 public:
  explicit MarkStates(const std::vector<std::string_view>& marks) : marks_(marks) {}

  [[nodiscard]] bool holds_mark(std::string_view text) const {
    return std::ranges::any_of(marks_, [&](std::string_view mark) { return text.ends_with(mark); });
  }
  [[nodiscard]] std::string_view longest_beginning(std::string_view text) const {
    while (std::ranges::none_of(marks_, [&](std::string_view mark) { return mark.starts_with(text); })) {
      text.remove_prefix(1);
    }
    return text;
  }

 private:
  const std::vector<std::string_view>& marks_;
};

}  // namespace

// One rule for each proper beginning of a mark that the text may end with. The text may end in every state; a character
// that would complete a mark is no way on.
std::string add_text_without(GrammarRules& rules, const std::vector<std::string_view>& marks) {
  const MarkStates states(marks);
  std::map<std::string_view, std::string> names;
  std::string letters;
  for (const std::string_view mark : marks) {
    for (std::size_t n = 0; n < mark.size(); ++n) {
      if (!names.contains(mark.substr(0, n))) names.emplace(mark.substr(0, n), rules.fresh_name());
      if (letters.find(mark[n]) == std::string::npos) letters += mark[n];
    }
  }
  std::vector<CharRange> special;
  for (const char c : letters) special.emplace_back(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
  const std::string other = CharSet(std::move(special)).inverse().class_expression();
  for (const auto& [state, name] : names) {
    std::vector<std::string> ways = {"\"\"", other + " " + names.at("")};
    for (const char c : letters) {
      const std::string text = std::string(state) + c;
      if (states.holds_mark(text)) continue;
      ways.push_back(grammar_literal({&c, 1}) + " " + names.at(states.longest_beginning(text)));
    }
    rules.add(name, fmt::format("{}", fmt::join(ways, " | ")));
  }
  return names.at("");
}

std::string add_gap_rule(GrammarRules& rules) { return rules.add_fresh("[ \\n]{0,4}"); }

}  // namespace ebb
