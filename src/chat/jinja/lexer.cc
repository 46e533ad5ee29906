#include "chat/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "chat/jinja/marked_text.h"

namespace ebb::jinja {
namespace {

bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_name_start(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Longest first where one begins like another.
constexpr std::array<std::string_view, 27> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", "!"};

// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string with_plain_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_newlines(source)), text_(source_) {}

  Result<std::vector<Token>> lex() {
    while (at_ < text_.size()) {
      EBB_RETURN_IF_ERROR(lex_text());
    }
    add(Token::Kind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  enum class Tag : std::uint8_t { kOutput, kBlock, kComment };

  [[nodiscard]] bool at(std::string_view word, std::size_t ahead = 0) const {
    return text_.substr(std::min(at_ + ahead, text_.size())).starts_with(word);
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Status wrong(std::string_view what) const {
    return error(Code::kInvalidArgument, "chat template, line {}: {}", line_, what);
  }
  void move_to(std::size_t at) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    at_ = at;
  }
  void skip(std::size_t n) { move_to(std::min(at_ + n, text_.size())); }
  void skip_space() {
    while (at_ < text_.size() && is_space(character_at(text_, at_))) skip(character_bytes(text_, at_));
  }
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  Status lex_text();
  Status lex_comment();
  // Whether this is {% raw %}, and its text then.
  Result<bool> lex_raw();
  Status lex_tag(Tag tag);
  Status lex_string();
  void lex_number();
  bool lex_based_number();
  std::optional<char32_t> lex_escape();
  bool end_tag(Tag tag, std::string_view end);
  [[nodiscard]] std::string before_tag(std::string text, char sign, Tag tag) const;

  const std::string source_;
  const std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  // Whether what stands at at_ begins a line, for lstrip_blocks.
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

// What is left of the text before a tag: "{%-" takes all white space away, and a tag that is no output takes the spaces
// of its own line, unless "{%+" forbids it.
std::string Lexer::before_tag(std::string text, char sign, Tag tag) const {
  if (sign == '-') return text.substr(0, stripped(text, Side::kRight).end);
  if (sign == '+' || tag == Tag::kOutput) return text;
  const std::size_t newline = text.rfind('\n');
  const std::size_t line = newline == std::string::npos ? 0 : newline + 1;
  if (line == 0 && !at_line_start_) return text;
  if (stripped(std::string_view(text).substr(line), Side::kLeft).begin == text.size() - line) text.resize(line);
  return text;
}

Status Lexer::lex_text() {
  std::size_t begin = at_;
  while (begin = text_.find('{', begin), begin != std::string_view::npos) {
    const char c = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
    if (c == '{' || c == '%' || c == '#') break;
    ++begin;
  }
  if (begin == std::string_view::npos) {
    add(Token::Kind::kText, std::string(text_.substr(at_)));
    move_to(text_.size());
    return {};
  }
  const char c = text_[begin + 1];
  const char after = begin + 2 < text_.size() ? text_[begin + 2] : '\0';
  const char sign = after == '-' || after == '+' ? after : '\0';
  Tag tag = Tag::kOutput;
  if (c == '%') tag = Tag::kBlock;
  if (c == '#') tag = Tag::kComment;
  std::string text = before_tag(std::string(text_.substr(at_, begin - at_)), sign, tag);
  if (!text.empty()) add(Token::Kind::kText, std::move(text));
  move_to(begin + (sign == '\0' ? 2 : 3));
  at_line_start_ = false;
  if (tag == Tag::kComment) return lex_comment();
  if (tag == Tag::kBlock) {
    EBB_ASSIGN_OR_RETURN(const bool raw, lex_raw());
    if (raw) return {};
  }
  return lex_tag(tag);
}

// Behind the end of a tag: "-%}" takes all white space away, "%}" one newline, "+%}" nothing.
bool Lexer::end_tag(Tag tag, std::string_view end) {
  const std::size_t begin = at_;
  if (at("-") && at(end, 1)) {
    skip(1 + end.size());
    skip_space();
  } else if (tag != Tag::kOutput && at("+") && at(end, 1)) {
    skip(1 + end.size());
  } else if (at(end)) {
    skip(end.size());
    if (tag != Tag::kOutput && peek() == '\n') skip(1);
  } else {
    return false;
  }
  at_line_start_ = at_ > begin && text_[at_ - 1] == '\n';
  return true;
}

Status Lexer::lex_comment() {
  const int begin_line = line_;
  std::size_t end = text_.find("#}", at_);
  if (end == std::string_view::npos) {
    return error(Code::kInvalidArgument, "chat template, line {}: a comment is not closed; end it with #}}",
                 begin_line);
  }
  if (end > at_ && (text_[end - 1] == '-' || text_[end - 1] == '+')) --end;
  move_to(end);
  (void)end_tag(Tag::kComment, "#}");
  return {};
}

Result<bool> Lexer::lex_raw() {
  const std::size_t start = at_;
  const int start_line = line_;
  skip_space();
  const bool named = at("raw") && !is_name_part(peek(3));
  if (named) skip(3);
  if (named) skip_space();
  const bool strips = at("-%}");
  if (!named || (!strips && !at("%}"))) {
    at_ = start;
    line_ = start_line;
    return false;
  }
  skip(strips ? 3 : 2);
  if (strips) skip_space();
  at_line_start_ = text_[at_ - 1] == '\n';
  const std::size_t begin = at_;
  for (std::size_t tag = text_.find("{%", at_); tag != std::string_view::npos; tag = text_.find("{%", tag + 1)) {
    std::string text(text_.substr(begin, tag - begin));
    move_to(tag + 2);
    const char sign = peek() == '-' || peek() == '+' ? peek() : '\0';
    if (sign != '\0') skip(1);
    skip_space();
    if (!at("endraw")) continue;
    skip(6);
    skip_space();
    text = before_tag(std::move(text), sign, Tag::kBlock);
    if (!end_tag(Tag::kBlock, "%}")) continue;
    if (!text.empty()) add(Token::Kind::kText, std::move(text));
    return true;
  }
  return error(Code::kInvalidArgument, "chat template, line {}: raw is not closed; end it with {{% endraw %}}",
               start_line);
}

Status Lexer::lex_tag(Tag tag) {
  const bool output = tag == Tag::kOutput;
  const std::string_view end = output ? "}}" : "%}";
  const int begin_line = line_;
  add(output ? Token::Kind::kOutputBegin : Token::Kind::kBlockBegin, {});
  std::vector<char> open;
  while (true) {
    if (open.empty()) {
      const int end_line = line_;
      if (end_tag(tag, end)) {
        tokens_.push_back({output ? Token::Kind::kOutputEnd : Token::Kind::kBlockEnd, {}, end_line});
        return {};
      }
    }
    if (at_ >= text_.size()) {
      return error(Code::kInvalidArgument, "chat template, line {}: a tag is not closed; end it with {}", begin_line,
                   end);
    }
    const char c = peek();
    if (is_space(character_at(text_, at_))) {
      skip_space();
    } else if (c == '"' || c == '\'') {
      EBB_RETURN_IF_ERROR(lex_string());
    } else if (is_digit(c)) {
      lex_number();
    } else if (is_name_start(c)) {
      std::size_t n = 1;
      while (is_name_part(peek(n))) ++n;
      add(Token::Kind::kName, std::string(text_.substr(at_, n)));
      skip(n);
    } else {
      const auto* known = std::ranges::find_if(kOperators, [this](std::string_view word) { return at(word); });
      if (known == kOperators.end() || *known == "!") return wrong(fmt::format("'{}' has no meaning in a tag", c));
      if (c == '(' || c == '[' || c == '{') open.push_back(c);
      if (c == ')' || c == ']' || c == '}') {
        const char opener = c == ')' ? '(' : static_cast<char>(c - 2);
        if (open.empty() || open.back() != opener) return wrong(fmt::format("'{}' closes nothing", c));
        open.pop_back();
      }
      add(Token::Kind::kOperator, std::string(*known));
      skip(known->size());
    }
  }
}

// "0x1F", "0o17", "0b11"; false when it is none of these.
bool Lexer::lex_based_number() {
  const char letter = peek(1);
  const int base = letter == 'x' || letter == 'X' ? 16 : letter == 'o' || letter == 'O' ? 8 : 2;
  if (peek() != '0' || std::string_view("xXoObB").find(letter) == std::string_view::npos) return false;
  std::size_t n = 2;
  while (is_name_part(peek(n))) ++n;
  std::string digits(text_.substr(at_ + 2, n - 2));
  std::erase(digits, '_');
  std::uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return false;
  add(Token::Kind::kInteger, std::to_string(value));
  skip(n);
  return true;
}

void Lexer::lex_number() {
  if (lex_based_number()) return;
  std::size_t n = 0;
  std::string digits;
  const auto take_digits = [&] {
    while (is_digit(peek(n)) || (peek(n) == '_' && is_digit(peek(n + 1)))) {
      if (peek(n) != '_') digits += peek(n);
      ++n;
    }
  };
  take_digits();
  bool is_float = false;
  const bool after_dot =
      !tokens_.empty() && tokens_.back().kind == Token::Kind::kOperator && tokens_.back().text == ".";
  if (!after_dot && peek(n) == '.' && is_digit(peek(n + 1))) {
    is_float = true;
    digits += '.';
    ++n;
    take_digits();
  }
  if (!after_dot && (peek(n) == 'e' || peek(n) == 'E')) {
    const std::size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
    if (is_digit(peek(n + 1 + sign))) {
      is_float = true;
      digits += 'e';
      if (sign == 1 && peek(n + 1) == '-') digits += '-';
      n += 1 + sign;
      take_digits();
    }
  }
  add(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, std::move(digits));
  skip(n);
}

Status Lexer::lex_string() {
  const char quote = peek();
  const int begin_line = line_;
  skip(1);
  std::string value;
  while (at_ < text_.size() && peek() != quote) {
    if (peek() != '\\') {
      value += peek();
      skip(1);
      continue;
    }
    skip(1);
    if (at_ >= text_.size()) break;
    if (peek() == '\n') {
      skip(1);
    } else if (const auto character = lex_escape()) {
      append_character(value, *character);
    } else {
      value += '\\';  // as Python: an escape that is none stays as it is written
    }
  }
  if (at_ >= text_.size()) {
    return error(Code::kInvalidArgument, "chat template, line {}: a string is not closed; end it with {}", begin_line,
                 quote);
  }
  skip(1);
  tokens_.push_back({Token::Kind::kString, std::move(value), begin_line});
  return {};
}

// The character behind a backslash; nothing, and not moved, when it means none.
std::optional<char32_t> Lexer::lex_escape() {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const char c = peek();
  if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) {
    skip(1);
    return static_cast<char32_t>(kMeanings[i]);
  }
  const auto digits = [this](std::size_t from, std::size_t least, std::size_t most, unsigned base) {
    char32_t value = 0;
    std::size_t n = 0;
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (; n < most; ++n) {
      const char digit = peek(from + n);
      const std::size_t i = kDigits.find('A' <= digit && digit <= 'F' ? static_cast<char>(digit + 32) : digit);
      if (digit == '\0' || i >= base) break;
      value = value * base + static_cast<char32_t>(i);
    }
    const bool is_character = n >= least && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    if (!is_character) return std::optional<char32_t>();
    skip(from + n);
    return std::optional(value);
  };
  switch (c) {
    case 'x': return digits(1, 2, 2, 16);
    case 'u': return digits(1, 4, 4, 16);
    case 'U': return digits(1, 8, 8, 16);
    default: return digits(0, 1, 3, 8);
  }
}

}  // namespace

Result<std::vector<Token>> lex(std::string_view source) { return Lexer(source).lex(); }

}  // namespace ebb::jinja
