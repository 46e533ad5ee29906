#include "grammar/value_syntax.h"

#include <algorithm>

#include "fmt/format.h"
#include "grammar/json_rules.h"
#include "grammar/text_rules.h"
#include "json/json_string.h"

namespace ebb {
namespace {

bool is_word_char(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

CharSet all_chars() { return CharSet().inverse(); }

}  // namespace

std::optional<std::string> written_string(const ValueSyntax& syntax, std::string_view text) {
  if (!syntax.is_raw) return to_json_string(text);
  const std::string all = std::string(text).append(syntax.close);
  if (text.find(syntax.barred) != text.npos || all.find(syntax.close) != text.size()) return std::nullopt;
  return std::string(syntax.open).append(all);
}

std::string written_key(const ValueSyntax& syntax, std::string_view key) {
  return (syntax.has_bare_keys ? std::string(key) : to_json_string(key)) + ":";
}

std::string string_around(const ValueSyntax& syntax, std::string_view inside) {
  return fmt::format("{} {} {}", grammar_literal(syntax.open), inside, grammar_literal(syntax.close));
}

std::string add_space(GrammarRules& rules, const ValueSyntax& syntax) {
  return rules.add(syntax.rule("sp"), syntax.has_bare_keys ? "\"\"" : "\" \"?");
}

std::string add_any_string(GrammarRules& rules, const ValueSyntax& syntax) {
  const std::string name = syntax.rule("string");
  if (rules.has(name)) return name;
  return rules.add(name, string_around(syntax, syntax.is_raw ? add_text_without(rules, {syntax.close})
                                                             : add_char_rule(rules) + "*"));
}

std::string add_any_key(GrammarRules& rules, const ValueSyntax& syntax) {
  if (!syntax.has_bare_keys) return add_any_string(rules, syntax);
  return rules.add(syntax.rule("key"), StringChars::of_keys(syntax).add_any(rules) + "+");
}

std::string add_any_object(GrammarRules& rules, const ValueSyntax& syntax) {
  const std::string name = syntax.rule("object");
  if (rules.has(name)) return name;
  const std::string sp = add_space(rules, syntax);
  const std::string member = rules.add(
      syntax.rule("member"), fmt::format("{} \":\" {} {}", add_any_key(rules, syntax), sp, syntax.rule("value")));
  rules.add(name, fmt::format("\"{{\" ({0} (\",\" {1} {0})*)? \"}}\"", member, sp));
  add_any_value(rules, syntax);
  return name;
}

std::string add_any_array(GrammarRules& rules, const ValueSyntax& syntax) {
  const std::string name = syntax.rule("array");
  if (rules.has(name)) return name;
  const std::string value = syntax.rule("value");
  rules.add(name, fmt::format("\"[\" ({0} (\",\" {1} {0})*)? \"]\"", value, add_space(rules, syntax)));
  add_any_value(rules, syntax);
  return name;
}

std::string add_any_value(GrammarRules& rules, const ValueSyntax& syntax) {
  const std::string name = syntax.rule("value");
  if (rules.has(name)) return name;
  rules.add(name, fmt::format("{} | {} | {} | number | boolean | \"null\"", syntax.rule("object"), syntax.rule("array"),
                              syntax.rule("string")));
  add_any_object(rules, syntax);
  add_any_array(rules, syntax);
  add_any_string(rules, syntax);
  add_number_rule(rules);
  add_boolean_rule(rules);
  return name;
}

namespace {

// Raw texts are counted by a rule for each number of characters that is left, and of those that must come: these many at most.
constexpr std::size_t kMostCounted = 256;

// A text that does not hold `first` with `second` behind it, counted; rules of the same counts are shared.
class CountedText {
 public:
  CountedText(GrammarRules& rules, const ValueSyntax& syntax) : rules_(rules), syntax_(syntax) {
    const CharSet first = one(syntax.barred[0]);
    if (syntax.barred.size() > 1) first_ = grammar_literal(syntax.barred.substr(0, 1));
    other_ = first.inverse().class_expression();
    if (syntax.barred.size() < 2) return;
    const CharSet second = one(syntax.barred[1]);
    may_repeat_ = syntax.barred[0] != syntax.barred[1];
    behind_ = first.inverse().common(second.inverse()).class_expression();
  }

  // Of rules behind one another, the last comes first, so that each names one that there is.
  std::string add(std::size_t least, std::size_t most) {
    const std::size_t n_rules = most == GrammarRules::kUnlimited ? least : most;
    for (std::size_t left = 0; left <= n_rules; ++left) {
      const std::size_t passed = n_rules - left;
      add_one(least > passed ? least - passed : 0, most == GrammarRules::kUnlimited ? most : most - passed);
    }
    return name(least, most, false);
  }

 private:
  static CharSet one(char c) { return CharSet({{static_cast<unsigned char>(c), static_cast<unsigned char>(c)}}); }

  std::string name(std::size_t least, std::size_t most, bool is_behind_first) const {
    const std::string to = most == GrammarRules::kUnlimited ? "" : fmt::format("{}", most);
    return syntax_.rule(fmt::format("text-{}-{}{}", least, to, is_behind_first ? "-b" : ""));
  }

  void add_one(std::size_t least, std::size_t most) {
    const std::size_t next_least = least == 0 ? 0 : least - 1;
    const std::size_t next_most = most == GrammarRules::kUnlimited || most == 0 ? most : most - 1;
    for (const bool is_behind_first : {false, true}) {
      std::vector<std::string> ways;
      if (least == 0) ways.emplace_back("\"\"");
      if (most > 0) {
        ways.push_back((is_behind_first ? behind_ : other_) + " " + name(next_least, next_most, false));
        if (!first_.empty() && (!is_behind_first || may_repeat_)) {
          ways.push_back(first_ + " " + name(next_least, next_most, true));
        }
      }
      rules_.add(name(least, most, is_behind_first), fmt::format("{}", fmt::join(ways, " | ")));
      if (first_.empty()) return;
    }
  }

  GrammarRules& rules_;
  const ValueSyntax& syntax_;
  std::string first_;  // empty: the mark has one character, which never comes
  std::string other_;
  std::string behind_;
  bool may_repeat_ = false;
};

}  // namespace

std::optional<std::string> add_string_between(GrammarRules& rules, const ValueSyntax& syntax, std::size_t least,
                                              std::size_t most) {
  if (!syntax.is_raw) return string_around(syntax, rules.repeat(add_char_rule(rules), least, most));
  const bool is_countable = least <= kMostCounted && (most <= kMostCounted || most == GrammarRules::kUnlimited);
  if (!is_countable) return std::nullopt;
  return string_around(syntax, CountedText(rules, syntax).add(least, most));
}

StringChars StringChars::of_keys(const ValueSyntax& syntax) {
  const CharSet bare({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {'.', '.'}, {'-', '-'}, {0x80, 0x10FFFF}});
  return {syntax.has_bare_keys, syntax.has_bare_keys ? bare : all_chars()};
}

std::optional<StringChars> StringChars::of_pattern(const ValueSyntax& syntax, std::string_view pattern) {
  if (!syntax.is_raw) return StringChars(false, all_chars());
  const auto* const left_out =
      std::ranges::find_if(syntax.barred, [&](char c) { return !is_word_char(c) && pattern.find(c) == pattern.npos; });
  if (left_out == syntax.barred.end()) return std::nullopt;
  const auto code = static_cast<unsigned char>(*left_out);
  return StringChars(true, CharSet({{code, code}}).inverse());
}

std::optional<std::string> StringChars::expression(const CharSet& set) const {
  const CharSet allowed = set.common(allowed_);
  if (!is_raw_) return allowed.json_expression();
  if (allowed.ranges().empty()) return std::nullopt;
  return allowed.class_expression();
}

std::string StringChars::add_any(GrammarRules& rules) const {
  return is_raw_ ? allowed_.class_expression() : add_char_rule(rules);
}

}  // namespace ebb
