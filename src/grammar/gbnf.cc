#include "grammar/gbnf.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "grammar/gbnf_rules.h"
#include "grammar/gbnf_switches.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

using Kind = GbnfElement::Kind;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
// Longest <token> text: more is no token, and tokenizing it may be slow.
constexpr std::size_t kMaxTokenTextBytes = 256;

bool is_digit(char c) { return '0' <= c && c <= '9'; }
// In order, apart from each other and from what is next to them: a class may list thousands.
void merge_ranges(std::vector<GbnfChars>& ranges) {
  std::erase_if(ranges, [](const GbnfChars& range) { return range.most < range.least; });
  std::ranges::sort(ranges, {}, &GbnfChars::least);
  std::size_t n = 0;
  for (const GbnfChars& range : ranges) {
    if (n > 0 && (range.least <= ranges[n - 1].most || range.least - 1 == ranges[n - 1].most)) {
      ranges[n - 1].most = std::max(ranges[n - 1].most, range.most);
    } else {
      ranges[n++] = range;
    }
  }
  ranges.resize(n);
}

bool is_word(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '-' || is_digit(c); }

class Reader {
 public:
  Reader(const Vocabulary& vocabulary, std::string_view grammar) : vocabulary_(vocabulary), text_(grammar) {}
  Result<Gbnf> read(std::string_view root);

 private:
  // The sequence being read: a repetition writes out the elements of the last symbol again.
  struct Sequence {
    GbnfAlternative items;
    std::vector<GbnfElement> elements;
    std::size_t symbol_begin = 0;    // where the elements of the last symbol begin
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
  Status read_literal(std::vector<GbnfElement>& elements);
  Status read_class(std::vector<GbnfElement>& elements);
  Result<char32_t> read_char();
  char32_t read_utf8();
  Status read_token(std::vector<GbnfElement>& elements);
  Result<Token> read_token_name();
  Status read_group(Sequence& sequence);
  Status read_count(std::size_t& count);
  Status read_repetition(Sequence& sequence);
  Status repeat(Sequence& sequence, std::size_t least, std::size_t most);
  Status count(std::size_t n_elements);
  GbnfElement chars(GbnfElement::Kind kind, std::span<const GbnfChars> ranges);
  void add_alternative(std::size_t rule, std::vector<GbnfElement> elements);

  const Vocabulary& vocabulary_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::map<std::string, std::size_t, std::less<>> names_;
  // One for each of gbnf_.rules; those that repetitions make have nothing to check.
  std::vector<GbnfRule> rules_;
  Gbnf gbnf_;
  std::size_t n_written_elements_ = 0;
};

void Reader::skip_space(bool newlines) {
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

std::size_t Reader::new_rule() {
  gbnf_.rules.emplace_back();
  rules_.push_back({.name = {}, .begin = at_, .defined = false, .alternatives = {}});
  return rules_.size() - 1;
}

std::size_t Reader::rule_named(std::string_view name) {
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  const std::size_t rule = new_rule();
  rules_[rule].name = name;
  names_.emplace(name, rule);
  return rule;
}

std::string_view Reader::read_name() {
  const std::size_t begin = at_;
  while (is_word(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

// Before that many elements are written.
Status Reader::count(std::size_t n_elements) {
  n_written_elements_ += n_elements;
  if (n_written_elements_ > GbnfLimits::kMaxElements || rules_.size() > GbnfLimits::kMaxRules) {
    return wrong("the grammar is too large when its repetitions are written out");
  }
  return {};
}

GbnfElement Reader::chars(GbnfElement::Kind kind, std::span<const GbnfChars> ranges) {
  const auto begin = static_cast<std::uint32_t>(gbnf_.ranges.size());
  gbnf_.ranges.insert(gbnf_.ranges.end(), ranges.begin(), ranges.end());
  return {.kind = kind, .value = begin, .n_ranges = static_cast<std::uint32_t>(ranges.size())};
}

void Reader::add_alternative(std::size_t rule, std::vector<GbnfElement> elements) {
  gbnf_.rules[rule].alternatives.push_back(static_cast<std::uint32_t>(gbnf_.elements.size()));
  gbnf_.elements.insert(gbnf_.elements.end(), elements.begin(), elements.end());
  gbnf_.elements.push_back({.kind = GbnfElement::Kind::kEnd});
}

Status Reader::read_rule() {
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

Status Reader::read_alternatives(std::size_t rule, bool nested) {
  std::vector<GbnfAlternative> alternatives;
  gbnf_.rules[rule].alternatives.clear();  // the last definition of a name holds
  while (true) {
    Sequence sequence;
    EBB_RETURN_IF_ERROR(read_sequence(sequence, nested));
    EBB_RETURN_IF_ERROR(count(1));  // the mark behind an alternative
    add_alternative(rule, sequence.elements);
    alternatives.push_back(std::move(sequence.items));
    if (peek() != '|') break;
    ++at_;
    skip_space(true);
  }
  rules_[rule].alternatives = std::move(alternatives);
  rules_[rule].defined = true;
  return {};
}

Status Reader::read_sequence(Sequence& sequence, bool nested) {
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

Status Reader::read_symbol(Sequence& sequence) {
  const std::size_t begin = sequence.elements.size();
  sequence.symbol_begin = begin;
  sequence.n_symbol_rules = 1;
  GbnfItem item;
  const char c = peek();
  if (c == '(') return read_group(sequence);
  if (c == '"') {
    EBB_RETURN_IF_ERROR(read_literal(sequence.elements));
  } else if (c == '[') {
    EBB_RETURN_IF_ERROR(read_class(sequence.elements));
  } else if (c == '<' || c == '!') {
    EBB_RETURN_IF_ERROR(read_token(sequence.elements));
  } else if (c == '.') {
    ++at_;
    sequence.elements.push_back(chars(Kind::kNotChars, {}));
  } else {
    item.rule = rule_named(read_name());
    sequence.elements.push_back({.kind = Kind::kRule, .value = static_cast<std::uint32_t>(*item.rule)});
  }
  if (sequence.elements.size() == begin) return {};  // "" and [] are nothing
  sequence.items.push_back(item);
  return count(sequence.elements.size() - begin);
}

Result<char32_t> Reader::read_char() {
  if (at_ >= text_.size()) return wrong("the grammar ends inside a literal");
  if (peek() != '\\') return read_utf8();
  const char kind = peek(1);
  at_ += 2;
  std::size_t n_digits = 0;
  switch (kind) {
    case 'x': n_digits = 2; break;
    case 'u': n_digits = 4; break;
    case 'U': n_digits = 8; break;
    case 't': return U'\t';
    case 'r': return U'\r';
    case 'n': return U'\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-': return static_cast<char32_t>(kind);
    default: return wrong("unknown escape after a backslash");
  }
  std::uint32_t code = 0;
  const std::string_view digits = text_.substr(std::min(at_, text_.size()), n_digits);
  const auto [end, ignored] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (end != digits.data() + n_digits) return wrong(fmt::format("\\{} needs {} hexadecimal digits", kind, n_digits));
  at_ += n_digits;
  return static_cast<char32_t>(code);
}

// The text is well-formed.
char32_t Reader::read_utf8() {
  const auto first = static_cast<unsigned char>(peek());
  ++at_;
  if (first < 0x80) return first;
  char32_t code = first & (first < 0xE0 ? 0x1FU : first < 0xF0 ? 0x0FU : 0x07U);
  for (; (static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U; ++at_) {
    code = code << 6U | (static_cast<unsigned char>(peek()) & 0x3FU);
  }
  return code;
}

Status Reader::read_literal(std::vector<GbnfElement>& elements) {
  ++at_;
  while (peek() != '"') {
    EBB_ASSIGN_OR_RETURN(const char32_t code, read_char());
    elements.push_back(chars(Kind::kChars, {{{.least = code, .most = code}}}));
  }
  ++at_;
  return {};
}

Status Reader::read_class(std::vector<GbnfElement>& elements) {
  ++at_;
  const bool is_excluded = peek() == '^';
  if (is_excluded) ++at_;
  std::vector<GbnfChars> ranges;
  while (peek() != ']') {
    EBB_ASSIGN_OR_RETURN(const char32_t least, read_char());
    ranges.push_back({.least = least, .most = least});
    if (peek() == '-' && peek(1) != ']') {
      ++at_;
      EBB_ASSIGN_OR_RETURN(ranges.back().most, read_char());
    }
  }
  ++at_;
  const std::size_t n_written = ranges.size();
  merge_ranges(ranges);
  if (n_written > 0) elements.push_back(chars(is_excluded ? Kind::kNotChars : Kind::kChars, ranges));
  return count(n_written);
}

Status Reader::read_token(std::vector<GbnfElement>& elements) {
  const bool is_excluded = peek() == '!';
  if (is_excluded) ++at_;
  if (peek() != '<') return wrong("expected '<' after '!'");
  EBB_ASSIGN_OR_RETURN(const Token token, read_token_name());
  elements.push_back(
      {.kind = is_excluded ? Kind::kNotToken : Kind::kToken, .value = static_cast<std::uint32_t>(token.value())});
  if (!is_excluded) gbnf_.named.push_back(token);
  return {};
}

Result<Token> Reader::read_token_name() {
  const std::size_t begin = at_;
  if (peek(1) == '[') {
    at_ += 2;
    std::size_t id = 0;
    EBB_RETURN_IF_ERROR(read_count(id));
    if (!text_.substr(at_).starts_with("]>")) return wrong("expected ']>' after the token's number");
    at_ += 2;
    if (id >= static_cast<std::size_t>(vocabulary_.n_tokens())) return wrong(fmt::format("there is no token {}", id));
    return Token(static_cast<std::int32_t>(id));
  }
  const std::size_t end = text_.find('>', begin);
  if (end == std::string_view::npos || end - begin > kMaxTokenTextBytes) return wrong("expected '>' after '<'");
  at_ = end + 1;
  const std::string_view name = text_.substr(begin, at_ - begin);
  EBB_ASSIGN_OR_RETURN(const auto tokens, vocabulary_.tokenize(name, {.add_bos = false, .parse_special = true}));
  if (tokens.size() != 1) return wrong(fmt::format("'{}' is not one token of the vocabulary", name));
  return tokens.front();
}

Status Reader::read_group(Sequence& sequence) {
  if (++depth_ > GbnfLimits::kMaxNesting) return wrong("parentheses are nested too deep");
  ++at_;
  skip_space(true);
  const std::size_t n_rules_before = rules_.size();
  const std::size_t group = new_rule();
  EBB_RETURN_IF_ERROR(read_alternatives(group, true));
  if (peek() != ')') return wrong("expected ')'");
  ++at_;
  --depth_;
  sequence.symbol_begin = sequence.elements.size();
  sequence.n_symbol_rules = rules_.size() - n_rules_before;
  sequence.elements.push_back({.kind = Kind::kRule, .value = static_cast<std::uint32_t>(group)});
  sequence.items.push_back({.rule = group, .optional = false});
  return count(1);
}

Status Reader::read_count(std::size_t& count) {
  const std::size_t begin = at_;
  for (count = 0; is_digit(peek()); ++at_) {
    if (at_ - begin >= 9) return wrong("the number is too large");
    count = count * 10 + static_cast<std::size_t>(peek() - '0');
  }
  return at_ == begin ? wrong("expected a number") : Status();
}

Status Reader::read_repetition(Sequence& sequence) {
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

// Written out: the symbol `least` times, then a chain of one rule per optional time, or one that recurs.
Status Reader::repeat(Sequence& sequence, std::size_t least, std::size_t most) {
  auto& elements = sequence.elements;
  const std::vector<GbnfElement> symbol(elements.begin() + static_cast<std::ptrdiff_t>(sequence.symbol_begin),
                                        elements.end());
  if (symbol.empty()) return wrong("nothing to repeat");
  if (most < least) return wrong("the most times are fewer than the least");
  if (least > GbnfLimits::kMaxRepetitions) return wrong("too many repetitions");
  if (most > GbnfLimits::kMaxRepetitions) most = kUnlimited;

  const bool limited = most != kUnlimited;
  const std::size_t n_times = std::max<std::size_t>(1, limited && most > 0 ? most : least);
  if (sequence.n_symbol_rules * n_times > GbnfLimits::kMaxRepetitions) return wrong("too many nested repetitions");
  sequence.n_symbol_rules *= n_times;

  const std::size_t n_chain = limited ? most - least : 1;
  EBB_RETURN_IF_ERROR(count(least * symbol.size() + n_chain * (symbol.size() + 3) + 1));
  elements.resize(sequence.symbol_begin);
  for (std::size_t i = 0; i < least; ++i) elements.insert(elements.end(), symbol.begin(), symbol.end());
  if (least == 0) sequence.items.back().optional = true;
  std::optional<GbnfElement> behind;  // the rest of the chain
  for (std::size_t i = 0; i < n_chain; ++i) {
    const GbnfElement link{.kind = Kind::kRule, .value = static_cast<std::uint32_t>(new_rule())};
    rules_.back().defined = true;
    gbnf_.rules.back().may_be_empty = true;
    std::vector<GbnfElement> one_more = symbol;
    if (!limited) behind = link;
    if (behind) one_more.push_back(*behind);
    add_alternative(link.value, one_more);
    behind = link;
  }
  if (behind) elements.push_back(*behind);
  return count(0);
}

Result<Gbnf> Reader::read(std::string_view root) {
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
  const auto begin = names_.find(root);
  if (begin == names_.end()) {
    return error(Code::kInvalidArgument, "the grammar has no rule '{:.60}', where it should begin", root);
  }
  gbnf_.root = static_cast<std::uint32_t>(begin->second);
  const std::vector<bool> may_be_empty = find_empty(rules_);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (may_be_empty[i]) gbnf_.rules[i].may_be_empty = true;
  }
  add_switches(gbnf_);
  return std::move(gbnf_);
}

}  // namespace

Result<Gbnf> read_gbnf(const Vocabulary& vocabulary, std::string_view grammar, std::string_view root) {
  return Reader(vocabulary, grammar).read(root);
}

}  // namespace ebb
