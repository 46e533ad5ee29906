// MarkedText: a string that remembers which of its characters came from the request, and from which message.
//
// Templates glue their own words to what people and tools wrote. Only the template's words may name control tokens, so each
// stretch from elsewhere carries a mark through concatenation, slices and filters. It knows no Jinja. Marks are in order,
// do not touch or overlap when their source is the same, and never decide what a comparison says.
//
//   bytes   "<|im_start|>user\nHello<|im_end|>"
//   marks                     [18, 23) source 0
//
// Positions are bytes; the functions below that say "characters" count Unicode code points, as Python does. Bytes are UTF-8.
// Thread rule: a value; const methods from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::jinja {

// The index of a message of the request, or one of the two below.
using Source = std::int32_t;
constexpr Source kFromTemplate = -2;
// From the request, but from no message: tools, template arguments.
constexpr Source kFromRequest = -1;

struct Mark {
  std::size_t begin;
  std::size_t end;
  Source source;
};

class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string bytes, Source source = kFromTemplate);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<Mark>& marks() const { return marks_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // Marks included.
  [[nodiscard]] std::size_t n_bytes_held() const { return bytes_.size() + marks_.size() * sizeof(Mark); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  // Called safe by the template: what it is added to gets its HTML escaped, as Jinja2 does even where it escapes nothing
  // else.
  [[nodiscard]] bool is_markup() const { return is_markup_; }
  void set_markup(bool is_markup) { is_markup_ = is_markup; }
  [[nodiscard]] Source source_at(std::size_t at) const;

  void append(std::string_view bytes, Source source = kFromTemplate);
  void append(const MarkedText& text) { append(text, 0, text.size()); }
  void append(const MarkedText& text, std::size_t begin, std::size_t end);
  // Markup if this is.
  [[nodiscard]] MarkedText sub(std::size_t begin, std::size_t end) const;

 private:
  void mark(std::size_t begin, std::size_t end, Source source);

  std::string bytes_;
  std::vector<Mark> marks_;
  bool is_markup_ = false;
};

// Bytes of the character that begins at `at`.
[[nodiscard]] std::size_t character_bytes(std::string_view text, std::size_t at);
[[nodiscard]] char32_t character_at(std::string_view text, std::size_t at);
void append_character(std::string& text, char32_t character);
[[nodiscard]] std::size_t count_characters(std::string_view text);
// Where character `index` begins; the end of the text when it has no more than `index`.
[[nodiscard]] std::size_t offset_of_character(std::string_view text, std::size_t index);

// Python's str.isspace for one character.
[[nodiscard]] bool is_space(char32_t character);
// Simple case mappings of Latin, Greek and Cyrillic; other characters stay as they are.
[[nodiscard]] char32_t to_upper(char32_t character);
[[nodiscard]] char32_t to_lower(char32_t character);

struct Range {
  std::size_t begin;
  std::size_t end;
};
enum class Side : std::uint8_t { kLeft, kRight, kBoth };
// What stays of the text when characters of `set` (white space when it is null) leave its ends.
[[nodiscard]] Range stripped(std::string_view text, Side side, const std::string* set = nullptr);

}  // namespace ebb::jinja
