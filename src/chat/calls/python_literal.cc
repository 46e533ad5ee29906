#include <algorithm>
#include <utility>

#include "chat/calls/listed_calls.h"
#include "chat/calls/xml_value.h"
#include "json/json_string.h"

namespace ebb {
namespace {

// Deeper literals are none; the reader recurses once per level.
constexpr int kMaxDepth = 64;

// Reads numbers, 'strings', "strings", True, False, None, [lists], (tuples) and {dicts}; JSON's own words as well.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  std::string read() {
    if (!read_value(0)) return {};
    skip_space();
    return at_ == text_.size() ? std::move(out_) : std::string();
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (is_call_space(peek())) ++at_;
  }

  bool read_value(int depth) {
    skip_space();
    const char c = peek();
    if (depth > kMaxDepth) return false;
    if (c == '\'' || c == '"') return read_string();
    if (c == '[') return read_items(']', depth);
    if (c == '(') return read_items(')', depth);
    if (c == '{') return read_dict(depth);
    if (c == '-' || ('0' <= c && c <= '9')) return read_number();
    return read_word();
  }

  bool read_word() {
    constexpr std::pair<std::string_view, std::string_view> kWords[] = {
        {"True", "true"}, {"False", "false"}, {"None", "null"}, {"true", "true"}, {"false", "false"}, {"null", "null"}};
    for (const auto& [python, json] : kWords) {
      if (!text_.substr(at_).starts_with(python)) continue;
      at_ += python.size();
      out_ += json;
      return true;
    }
    return false;
  }

  bool read_number() {
    const std::size_t begin = at_;
    while (std::string_view("+-.eE0123456789").find(peek()) != std::string_view::npos && at_ < text_.size()) ++at_;
    const std::string_view number = text_.substr(begin, at_ - begin);
    out_ += number;
    return nlohmann::json::accept(number);
  }

  bool read_string() {
    const char quote = text_[at_++];
    std::string text;
    // One for the whole string: the halves of a surrogate pair are two escapes.
    JsonStringReader reader;
    while (at_ < text_.size() && (peek() != quote || !ends_quoted_text(text_, at_))) {
      if (peek() != '\\') {
        // What JSON ends a string with may stand inside one of Python's.
        if (reader.take(peek(), text)) text += peek();
        ++at_;
      } else if (text_.substr(at_).starts_with("\\'")) {
        (void)reader.take('\'', text);
        at_ += 2;
      } else {
        read_escape(reader, text);
      }
    }
    if (at_ >= text_.size()) return false;
    (void)reader.take('"', text);
    ++at_;
    out_ += to_json_string(text);
    return true;
  }

  // The escapes that Python and JSON share.
  void read_escape(JsonStringReader& reader, std::string& text) {
    const std::size_t n_bytes = text_.substr(at_).starts_with("\\u") ? 6 : 2;
    const std::size_t end = std::min(text_.size(), at_ + n_bytes);
    while (at_ < end) (void)reader.take(text_[at_++], text);
  }

  bool read_items(char close, int depth) {
    ++at_;
    out_ += '[';
    for (bool first = true;; first = false) {
      skip_space();
      if (peek() == close) break;
      if (!first) out_ += ',';
      if (!read_value(depth + 1)) return false;
      skip_space();
      if (peek() != ',' && peek() != close) return false;
      if (peek() == ',') ++at_;
    }
    ++at_;
    out_ += ']';
    return true;
  }

  bool read_dict(int depth) {
    ++at_;
    out_ += '{';
    for (bool first = true;; first = false) {
      skip_space();
      if (peek() == '}') break;
      if (!first) out_ += ',';
      if ((peek() != '\'' && peek() != '"') || !read_string()) return false;
      skip_space();
      if (peek() != ':') return false;
      ++at_;
      out_ += ':';
      if (!read_value(depth + 1)) return false;
      skip_space();
      if (peek() != ',' && peek() != '}') return false;
      if (peek() == ',') ++at_;
    }
    ++at_;
    out_ += '}';
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string python_to_json(std::string_view text) { return PythonReader(text).read(); }

}  // namespace ebb
