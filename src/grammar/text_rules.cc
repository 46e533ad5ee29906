#include "grammar/text_rules.h"

#include <algorithm>
#include <map>

#include "grammar/pattern_rules.h"
#include "text/code_points.h"

namespace ebb {
namespace {

// The first character, and its code point.
std::string_view first_letter(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) ++n;
  return text.substr(0, n);
}

char32_t code_of(std::string_view letter) {
  PartialCodePoint partial;
  std::u32string codes;
  return decode_code_points(letter, partial, codes) && codes.size() == 1 ? codes.front() : U'\uFFFD';
}

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
  std::vector<std::string_view> letters;
  std::vector<CharRange> special;
  for (const std::string_view mark : marks) {
    for (std::size_t n = 0; n < mark.size();) {
      names.try_emplace(mark.substr(0, n), "");
      const std::string_view letter = first_letter(mark.substr(n));
      n += letter.size();
      if (std::ranges::find(letters, letter) != letters.end()) continue;
      letters.push_back(letter);
      special.emplace_back(code_of(letter), code_of(letter));
    }
  }
  for (auto& [state, name] : names) name = rules.fresh_name();
  const std::string other = CharSet(std::move(special)).inverse().class_expression();
  for (const auto& [state, name] : names) {
    std::vector<std::string> ways = {"\"\"", other + " " + names.at("")};
    for (const std::string_view letter : letters) {
      const std::string text = std::string(state).append(letter);
      if (states.holds_mark(text)) continue;
      ways.push_back(grammar_literal(letter) + " " + names.at(states.longest_beginning(text)));
    }
    rules.add(name, fmt::format("{}", fmt::join(ways, " | ")));
  }
  return names.at("");
}

std::string add_gap_rule(GrammarRules& rules) { return rules.add_fresh("[ \\n]{0,4}"); }

}  // namespace ebb
