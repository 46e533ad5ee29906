#include "text/gbnf.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "text/gbnf_rules.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
// Longest <token> text: more is no token, and tokenizing it may be slow.
constexpr std::size_t kMaxTokenTextBytes = 256;

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_word(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '-' || is_digit(c); }

class Checker {
 public:
  Checker(const Vocabulary& vocabulary, std::string_view grammar) : vocabulary_(vocabulary), text_(grammar) {}
  Status check(std::string_view root);
  [[nodiscard]] std::vector<Token> named_tokens() const { return named_; }

 private:
  // The sequence being read, in libllama's terms: a repetition writes out the elements of the last symbol again.
  struct Sequence {
    GbnfAlternative items;
    std::size_t n_elements = 0;
    std::size_t symbol_begin = 0;    // n_elements before the last symbol
    std::size_t n_symbol_rules = 1;  // rules that repeating the last symbol multiplies
  };

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Status wrong(std::string_view what) const {
    return error(Code::kInvalidArgument, "grammar, line {}: {}", line_of(at_), what);
  }
  Status wrong_rule(const GbnfRule& rule, std::string_view what) const {
    return error(Code::kInvalidArgument, "grammar, line {}: {} '{:.60}' {}", line_of(rule.begin),
                 rule.name.empty() ? "a group" : "rule", rule.name, what);
  }
  std::size_t line_of(std::size_t offset) const {
    return 1 + static_cast<std::size_t>(
                   std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }

  void skip_space(bool newlines);
  std::size_t rule_named(std::string_view name);
  std::size_t new_rule();
  std::string_view read_name();
  Status read_rule();
  Status read_alternatives(std::size_t rule, bool nested);
  Status read_sequence(Sequence& sequence, bool nested);
  Status read_symbol(Sequence& sequence);
  Status read_literal(std::size_t& n_elements);
  Status read_class(std::size_t& n_elements);
  Status read_char();
  Status read_token();
  Status read_group(Sequence& sequence);
  Status read_count(std::size_t& count);
  Status read_repetition(Sequence& sequence);
  Status repeat(Sequence& sequence, std::size_t least, std::size_t most);
  Status count(std::size_t n_elements, std::size_t n_rules);

  const Vocabulary& vocabulary_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::map<std::string, std::size_t, std::less<>> names_;
  std::vector<GbnfRule> rules_;
  std::size_t n_written_rules_ = 0;  // named, groups and those that repetitions make
  std::size_t n_written_elements_ = 0;
  std::vector<Token> named_;
};

void Checker::skip_space(bool newlines) {
  while (true) {
    const char c = peek();
    if (c == '#') {
      while (at_ < text_.size() && peek() != '\n' && peek() != '\r') ++at_;
    } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
      ++at_;
    } else {
      return;
    }
  }
}

std::size_t Checker::new_rule() {
  ++n_written_rules_;
  rules_.push_back({.name = {}, .begin = at_, .defined = false, .alternatives = {}});
  return rules_.size() - 1;
}

std::size_t Checker::rule_named(std::string_view name) {
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  const std::size_t rule = new_rule();
  rules_[rule].name = name;
  names_.emplace(name, rule);
  return rule;
}

std::string_view Checker::read_name() {
  const std::size_t begin = at_;
  while (is_word(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

Status Checker::count(std::size_t n_elements, std::size_t n_rules) {
  n_written_elements_ += n_elements;
  n_written_rules_ += n_rules;
  if (n_written_elements_ > GbnfLimits::kMaxElements || n_written_rules_ > GbnfLimits::kMaxRules) {
    return wrong("the grammar is too large when its repetitions are written out");
  }
  return {};
}

Status Checker::read_rule() {
  const std::string_view name = read_name();
  if (name.empty()) return wrong("expected the name of a rule");
  const std::size_t rule = rule_named(name);
  skip_space(false);
  if (!text_.substr(at_).starts_with("::=")) return wrong(fmt::format("expected '::=' after '{:.60}'", name));
  at_ += 3;
  skip_space(true);
  EBB_RETURN_IF_ERROR(read_alternatives(rule, false));
  if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return wrong(fmt::format("unexpected '{}'", peek()));
  skip_space(true);
  return {};
}

Status Checker::read_alternatives(std::size_t rule, bool nested) {
  std::vector<GbnfAlternative> alternatives;
  while (true) {
    Sequence sequence;
    EBB_RETURN_IF_ERROR(read_sequence(sequence, nested));
    EBB_RETURN_IF_ERROR(count(1, 0));  // the mark behind an alternative
    alternatives.push_back(std::move(sequence.items));
    if (peek() != '|') break;
    ++at_;
    skip_space(true);
  }
  rules_[rule].alternatives = std::move(alternatives);
  rules_[rule].defined = true;
  return {};
}

Status Checker::read_sequence(Sequence& sequence, bool nested) {
  while (at_ < text_.size()) {
    const char c = peek();
    if (c == '*' || c == '+' || c == '?' || c == '{') {
      EBB_RETURN_IF_ERROR(read_repetition(sequence));
    } else if (c == '"' || c == '[' || c == '<' || c == '!' || c == '(' || c == '.' || is_word(c)) {
      EBB_RETURN_IF_ERROR(read_symbol(sequence));
    } else {
      break;
    }
    skip_space(nested);
  }
  return {};
}

Status Checker::read_symbol(Sequence& sequence) {
  sequence.symbol_begin = sequence.n_elements;
  sequence.n_symbol_rules = 1;
  std::size_t n_elements = 1;
  GbnfItem item;
  const char c = peek();
  if (c == '(') return read_group(sequence);
  if (c == '"') {
    EBB_RETURN_IF_ERROR(read_literal(n_elements));
  } else if (c == '[') {
    EBB_RETURN_IF_ERROR(read_class(n_elements));
  } else if (c == '<' || c == '!') {
    EBB_RETURN_IF_ERROR(read_token());
  } else if (c == '.') {
    ++at_;
  } else {
    item.rule = rule_named(read_name());
  }
  if (n_elements == 0) return {};  // "" and [] are nothing
  sequence.n_elements += n_elements;
  sequence.items.push_back(item);
  return count(n_elements, 0);
}

Status Checker::read_char() {
  if (at_ >= text_.size()) return wrong("the grammar ends inside a literal");
  if (peek() != '\\') {
    ++at_;
    while ((static_cast<unsigned char>(peek()) & 0xC0) == 0x80) ++at_;
    return {};
  }
  const char kind = peek(1);
  at_ += 2;
  std::size_t n_digits = 0;
  switch (kind) {
    case 'x': n_digits = 2; break;
    case 'u': n_digits = 4; break;
    case 'U': n_digits = 8; break;
    case 't':
    case 'r':
    case 'n':
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-': return {};
    default: return wrong("unknown escape after a backslash");
  }
  for (std::size_t i = 0; i < n_digits; ++i, ++at_) {
    const char c = peek();
    if (!is_digit(c) && !('a' <= c && c <= 'f') && !('A' <= c && c <= 'F')) {
      return wrong(fmt::format("\\{} needs {} hexadecimal digits", kind, n_digits));
    }
  }
  return {};
}

Status Checker::read_literal(std::size_t& n_elements) {
  ++at_;
  for (n_elements = 0; peek() != '"'; ++n_elements) EBB_RETURN_IF_ERROR(read_char());
  ++at_;
  return {};
}

Status Checker::read_class(std::size_t& n_elements) {
  ++at_;
  if (peek() == '^') ++at_;
  for (n_elements = 0; peek() != ']'; ++n_elements) {
    EBB_RETURN_IF_ERROR(read_char());
    if (peek() == '-' && peek(1) != ']') {
      ++at_;
      EBB_RETURN_IF_ERROR(read_char());
      ++n_elements;
    }
  }
  ++at_;
  return {};
}

Status Checker::read_token() {
  const bool is_excluded = peek() == '!';
  if (is_excluded) ++at_;
  if (peek() != '<') return wrong("expected '<' after '!'");
  const std::size_t begin = at_;
  if (peek(1) == '[') {
    at_ += 2;
    std::size_t id = 0;
    EBB_RETURN_IF_ERROR(read_count(id));
    if (!text_.substr(at_).starts_with("]>")) return wrong("expected ']>' after the token's number");
    at_ += 2;
    if (id >= static_cast<std::size_t>(vocabulary_.n_tokens())) return wrong(fmt::format("there is no token {}", id));
    if (!is_excluded) named_.emplace_back(static_cast<std::int32_t>(id));
    return {};
  }
  const std::size_t end = text_.find('>', begin);
  if (end == std::string_view::npos || end - begin > kMaxTokenTextBytes) return wrong("expected '>' after '<'");
  at_ = end + 1;
  const std::string_view name = text_.substr(begin, at_ - begin);
  EBB_ASSIGN_OR_RETURN(const auto tokens, vocabulary_.tokenize(name, {.add_bos = false, .parse_special = true}));
  if (tokens.size() != 1) return wrong(fmt::format("'{}' is not one token of the vocabulary", name));
  if (!is_excluded) named_.push_back(tokens.front());
  return {};
}

Status Checker::read_group(Sequence& sequence) {
  if (++depth_ > GbnfLimits::kMaxNesting) return wrong("parentheses are nested too deep");
  ++at_;
  skip_space(true);
  const std::size_t n_rules_before = n_written_rules_;
  const std::size_t group = new_rule();
  EBB_RETURN_IF_ERROR(read_alternatives(group, true));
  if (peek() != ')') return wrong("expected ')'");
  ++at_;
  --depth_;
  sequence.symbol_begin = sequence.n_elements;
  sequence.n_symbol_rules = n_written_rules_ - n_rules_before;
  sequence.n_elements += 1;
  sequence.items.push_back({.rule = group, .optional = false});
  return count(1, 0);
}

Status Checker::read_count(std::size_t& count) {
  const std::size_t begin = at_;
  for (count = 0; is_digit(peek()); ++at_) {
    if (at_ - begin >= 9) return wrong("the number is too large");
    count = count * 10 + static_cast<std::size_t>(peek() - '0');
  }
  return at_ == begin ? wrong("expected a number") : Status();
}

Status Checker::read_repetition(Sequence& sequence) {
  const char c = peek();
  ++at_;
  if (c == '*') return repeat(sequence, 0, kUnlimited);
  if (c == '+') return repeat(sequence, 1, kUnlimited);
  if (c == '?') return repeat(sequence, 0, 1);
  std::size_t least = 0;
  skip_space(false);
  EBB_RETURN_IF_ERROR(read_count(least));
  skip_space(false);
  std::size_t most = least;
  if (peek() == ',') {
    ++at_;
    skip_space(false);
    most = kUnlimited;
    if (is_digit(peek())) EBB_RETURN_IF_ERROR(read_count(most));
    skip_space(false);
  }
  if (peek() != '}') return wrong("expected '}'");
  ++at_;
  return repeat(sequence, least, most);
}

// As libllama writes it out: the symbol `least` times, then a chain of one rule per optional time, or one that recurs.
Status Checker::repeat(Sequence& sequence, std::size_t least, std::size_t most) {
  const std::size_t n_symbol = sequence.n_elements - sequence.symbol_begin;
  if (n_symbol == 0) return wrong("nothing to repeat");
  if (most < least) return wrong("the most times are fewer than the least");
  if (least > GbnfLimits::kMaxRepetitions) return wrong("too many repetitions");
  if (most > GbnfLimits::kMaxRepetitions) most = kUnlimited;

  const bool limited = most != kUnlimited;
  const std::size_t n_times = std::max<std::size_t>(1, limited && most > 0 ? most : least);
  if (sequence.n_symbol_rules * n_times > GbnfLimits::kMaxRepetitions) return wrong("too many nested repetitions");
  sequence.n_symbol_rules *= n_times;

  const std::size_t n_chain = limited ? most - least : 1;
  sequence.n_elements = sequence.symbol_begin + least * n_symbol + (n_chain > 0 ? 1 : 0);
  if (least == 0) sequence.items.back().optional = true;
  return count(least * n_symbol + n_chain * (n_symbol + 3) + 1, n_chain);
}

Status Checker::check(std::string_view root) {
  if (text_.size() > GbnfLimits::kMaxBytes) {
    return error(Code::kInvalidArgument, "the grammar has {} bytes; at most {} are taken", text_.size(),
                 GbnfLimits::kMaxBytes);
  }
  if (text_.find('\0') != std::string_view::npos || !is_valid_utf8(text_)) {
    return error(Code::kInvalidArgument, "the grammar is not text in UTF-8");
  }
  skip_space(true);
  while (at_ < text_.size()) EBB_RETURN_IF_ERROR(read_rule());
  if (const auto fault = find_fault(rules_, GbnfLimits::kMaxBeginnings)) {
    return wrong_rule(rules_[fault->rule], fault->what);
  }
  if (names_.find(root) == names_.end()) {
    return error(Code::kInvalidArgument, "the grammar has no rule '{:.60}', where it should begin", root);
  }
  return {};
}

}  // namespace

Result<std::vector<Token>> check_gbnf(const Vocabulary& vocabulary, std::string_view grammar, std::string_view root) {
  Checker checker(vocabulary, grammar);
  EBB_RETURN_IF_ERROR(checker.check(root));
  return checker.named_tokens();
}

}  // namespace ebb
