#include "grammar/pattern_rules.h"

#include <algorithm>

#include "fmt/format.h"
#include "grammar/char_set.h"
#include "text/utf8_stream.h"

namespace ebb {
namespace {

constexpr int kMaxNesting = 50;
constexpr std::size_t kMaxCount = 2000;
// Each token that is tried is compared with all ranges of a class. All letters of Unicode are some 700.
constexpr std::size_t kMaxRanges = 2000;
constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 15;

CharSet one_char(char32_t c) { return CharSet({{c, c}}); }
CharSet digit_set() { return CharSet({{'0', '9'}}); }
CharSet word_set() { return CharSet({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }
CharSet space_set() {
  return CharSet({{'\t', '\r'},
                  {' ', ' '},
                  {0xA0, 0xA0},
                  {0x1680, 0x1680},
                  {0x2000, 0x200A},
                  {0x2028, 0x2029},
                  {0x202F, 0x202F},
                  {0x205F, 0x205F},
                  {0x3000, 0x3000},
                  {0xFEFF, 0xFEFF}});
}
CharSet line_end_set() { return CharSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

class PatternReader {
 public:
  PatternReader(GrammarRules& rules, std::string_view pattern, const StringChars& chars)
      : rules_(rules), text_(pattern), chars_(chars) {}

  Result<std::string> read() {
    EBB_ASSIGN_OR_RETURN(std::string all, read_alternatives(0));
    if (at_ < text_.size()) return refuse("a ')' without its '('");
    return all;
  }

 private:
  bool at(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  bool take(std::string_view token) {
    if (!at(token)) return false;
    at_ += token.size();
    return true;
  }
  Status refuse(std::string_view what) const { return error(Code::kUnsupported, "at character {}: {}", at_, what); }

  // At depth 0 each alternative may have anchors of its own.
  Result<std::string> read_alternatives(int depth) {
    if (depth > kMaxNesting) return refuse("groups are nested too deep");
    std::vector<std::string> ways;
    bool may_be_empty = false;
    do {
      const bool begins = depth == 0 && take("^");
      EBB_ASSIGN_OR_RETURN(std::string way, read_sequence(depth));
      const bool ends = depth == 0 && take("$");
      if (at_ < text_.size() && !at("|") && !at(")")) return refuse("an anchor inside the pattern");
      if (depth == 0 && !begins) way = chars_.add_any(rules_) + "* " + way;
      if (depth == 0 && !ends) way += " " + chars_.add_any(rules_) + "*";
      ways.push_back(std::move(way));
      may_be_empty = may_be_empty || may_be_empty_;
    } while (take("|"));
    may_be_empty_ = may_be_empty;
    return ways.size() == 1 ? ways[0] : fmt::format("({})", fmt::join(ways, " | "));
  }

  Result<std::string> read_sequence(int depth) {
    std::string all;
    bool may_be_empty = true;
    while (at_ < text_.size() && !at("|") && !at(")") && !at("$")) {
      EBB_ASSIGN_OR_RETURN(std::string atom, read_atom(depth));
      EBB_ASSIGN_OR_RETURN(atom, read_count(std::move(atom)));
      may_be_empty = may_be_empty && may_be_empty_;
      all += all.empty() ? atom : " " + atom;
      if (all.size() > GrammarRules::kMaxBytes) return refuse("the pattern is too large");
    }
    may_be_empty_ = may_be_empty;
    return all.empty() ? "\"\"" : all;
  }

  Result<std::string> read_atom(int depth) {
    if (take("(")) {
      if (at("?") && !at("?:") && !(at("?<") && !at("?<=") && !at("?<!"))) return refuse("look-around");
      if (take("?<")) {  // a name for the group
        at_ = std::min(text_.find('>', at_), text_.size());
        if (!take(">")) return refuse("a group's name without an end");
      }
      (void)take("?:");
      EBB_ASSIGN_OR_RETURN(const std::string inside, read_alternatives(depth + 1));
      if (!take(")")) return refuse("a '(' without its ')'");
      return rules_.add_fresh(inside);
    }
    if (at("*") || at("+") || at("?") || at("^")) return refuse("nothing to repeat, or an anchor inside the pattern");
    CharSet set;
    if (take("[")) {
      EBB_ASSIGN_OR_RETURN(set, read_class());
    } else if (take(".")) {
      set = line_end_set().inverse();
    } else {
      EBB_ASSIGN_OR_RETURN(set, read_one(false));
    }
    may_be_empty_ = false;
    const auto expression = chars_.expression(set);
    if (!expression) return refuse("a class without characters");
    return *expression;
  }

  Result<std::string> read_count(std::string atom) {
    std::size_t least = 1;
    std::size_t most = 1;
    if (take("*")) {
      least = 0;
      most = GrammarRules::kUnlimited;
    } else if (take("+")) {
      most = GrammarRules::kUnlimited;
    } else if (take("?")) {
      least = 0;
    } else if (at("{")) {
      const std::size_t begin = at_;
      if (!read_braces(least, most)) {
        at_ = begin;
        return refuse("a count that is none");
      }
      if (least > kMaxCount || (most != GrammarRules::kUnlimited && most > kMaxCount))
        return refuse("a count above 2000");
    } else {
      return atom;
    }
    (void)take("?");  // lazy: the same strings match
    // libllama refuses rules that repeat nothing for ever.
    if (may_be_empty_ && most > 1) return refuse("a repetition of what may be empty");
    may_be_empty_ = may_be_empty_ || least == 0;
    if (at("*") || at("+") || at("{")) return refuse("a repetition of a repetition");
    return rules_.repeat(rules_.add_fresh(atom), least, most);
  }

  bool read_number(std::size_t& number) {
    const std::size_t begin = at_;
    for (number = 0; at_ < text_.size() && '0' <= text_[at_] && text_[at_] <= '9' && at_ - begin < 6; ++at_) {
      number = number * 10 + static_cast<std::size_t>(text_[at_] - '0');
    }
    return at_ > begin;
  }
  bool read_braces(std::size_t& least, std::size_t& most) {
    if (!take("{") || !read_number(least)) return false;
    most = least;
    if (take(",")) {
      if (!read_number(most)) most = GrammarRules::kUnlimited;
    }
    return take("}") && least <= most;
  }

  // One character or one escape that stands for a set.
  Result<CharSet> read_one(bool in_class) {
    if (take("\\")) {
      if (at_ >= text_.size()) return refuse("a backslash at the end");
      const char c = text_[at_++];
      switch (c) {
        case 'd': return digit_set();
        case 'D': return digit_set().inverse();
        case 'w': return word_set();
        case 'W': return word_set().inverse();
        case 's': return space_set();
        case 'S': return space_set().inverse();
        case 't': return one_char('\t');
        case 'n': return one_char('\n');
        case 'r': return one_char('\r');
        case 'f': return one_char('\f');
        case 'v': return one_char('\v');
        case '0': return one_char(0);
        case 'x': return read_hex(2);
        case 'u': return read_hex(4);
        case 'b':
          if (in_class) return one_char('\b');
          break;
        default: break;
      }
      const bool is_word = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
      if (is_word) return refuse(fmt::format("the escape \\{}", c));
      --at_;
    }
    return one_char(read_char());
  }

  Result<CharSet> read_hex(std::size_t n_digits) {
    const std::string_view hex = text_.substr(at_, n_digits);
    if (hex.size() < n_digits || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) {
      return refuse("a \\x or \\u without its digits");
    }
    at_ += n_digits;
    const auto code = static_cast<char32_t>(std::strtoul(std::string(hex).c_str(), nullptr, 16));
    if (0xD800 <= code && code < 0xE000) return refuse("half a surrogate pair");
    return one_char(code);
  }

  // The text was checked to be UTF-8.
  char32_t read_char() {
    const auto lead = static_cast<unsigned char>(text_[at_++]);
    if (lead < 0x80) return lead;
    const int n_more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    char32_t code = lead & (0x3FU >> n_more);
    for (int i = 0; i < n_more; ++i) code = (code << 6) | (static_cast<unsigned char>(text_[at_++]) & 0x3FU);
    return code;
  }

  Result<CharSet> read_class() {
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (!take("]")) {
      if (at_ >= text_.size()) return refuse("a '[' without its ']'");
      EBB_ASSIGN_OR_RETURN(const CharSet one, read_one(true));
      ranges.insert(ranges.end(), one.ranges().begin(), one.ranges().end());
      const auto first = one.only();
      if (first && at("-") && !at("-]")) {
        ++at_;
        if (at_ >= text_.size()) return refuse("a '[' without its ']'");
        EBB_ASSIGN_OR_RETURN(const CharSet end, read_one(true));
        const auto last = end.only();
        if (!last || *last < *first) return refuse("a range that is none");
        ranges.emplace_back(*first, *last);
      }
    }
    const CharSet set(std::move(ranges));
    if (set.ranges().size() > kMaxRanges) {
      return refuse(fmt::format("a class of {} ranges, more than {}", set.ranges().size(), kMaxRanges));
    }
    return negated ? set.inverse() : set;
  }

  GrammarRules& rules_;
  std::string_view text_;
  const StringChars& chars_;
  std::size_t at_ = 0;
  bool may_be_empty_ = false;  // what was read last
};

}  // namespace

Result<std::string> pattern_expression(GrammarRules& rules, std::string_view pattern, const ValueSyntax& syntax) {
  if (pattern.size() > kMaxPatternBytes) {
    return error(Code::kUnsupported, "it has {} bytes, more than {}", pattern.size(), kMaxPatternBytes);
  }
  if (!is_valid_utf8(pattern)) return error(Code::kUnsupported, "it is not UTF-8");
  const auto chars = StringChars::of_pattern(syntax, pattern);
  if (!chars) return error(Code::kUnsupported, "it speaks of all marks in {}, which ends a value here", syntax.barred);
  return PatternReader(rules, pattern, *chars).read();
}

}  // namespace ebb
