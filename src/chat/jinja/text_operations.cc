#include "chat/jinja/text_operations.h"

#include <algorithm>
#include <cstring>

namespace ebb::jinja {
namespace {

bool is_letter(char32_t c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || (c >= 0xC0 && !is_space(c) && c != 0xD7 && c != 0xF7);
}

// Each character as `change` (of it and its place) says.
template <class Change>
MarkedText changed(const MarkedText& text, Change change) {
  MarkedText out;
  std::string letter;
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = character_bytes(text.bytes(), at);
    const char32_t before = character_at(text.bytes(), at);
    const char32_t after = change(before, at);
    if (after != before) {
      out.append(text, plain, at);
      letter.clear();
      append_character(letter, after);
      out.append(letter, text.source_at(at));
      plain = at + n;
    }
    at += n;
  }
  out.append(text, plain, text.size());
  return out;
}

std::vector<MarkedText> split_white_space(const MarkedText& text, const SplitRule& rule) {
  std::vector<Range> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool space = is_space(character_at(text.bytes(), at));
    if (!space && (words.empty() || words.back().end != at)) words.push_back({at, at});
    const std::size_t next = at + character_bytes(text.bytes(), at);
    if (!space) words.back().end = next;
    at = next;
  }
  const auto most =
      static_cast<std::size_t>(std::min<std::int64_t>(rule.most, static_cast<std::int64_t>(words.size())));
  if (words.size() > most + 1) {  // the rest stays one piece
    const auto rest = static_cast<std::ptrdiff_t>(words.size() - most - 1);
    if (rule.from_right) {
      words.erase(words.begin(), words.begin() + rest);
      words.front().begin = 0;
    } else {
      words.erase(words.end() - rest, words.end());
      words.back().end = text.size();
    }
  }
  std::vector<MarkedText> pieces;
  for (const Range& word : words) pieces.push_back(text.sub(word.begin, word.end));
  return pieces;
}

}  // namespace

std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* found = ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Knuth, Morris and Pratt's, from the end on.
std::size_t find_last(std::string_view text, std::string_view wanted) {
  if (wanted.size() > text.size()) return std::string_view::npos;
  if (wanted.empty()) return text.size();
  const auto at = [](std::string_view bytes, std::size_t i) { return bytes[bytes.size() - 1 - i]; };
  std::vector<std::size_t> n_again(
      wanted.size());  // of the last i + 1 bytes, how many of their first are its last as well
  std::size_t n = 0;
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    while (n > 0 && at(wanted, i) != at(wanted, n)) n = n_again[n - 1];
    n_again[i] = n += at(wanted, i) == at(wanted, n) ? 1 : 0;
  }
  n = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    while (n > 0 && at(text, i) != at(wanted, n)) n = n_again[n - 1];
    n += at(text, i) == at(wanted, n) ? 1 : 0;
    if (n == wanted.size()) return text.size() - 1 - i;
  }
  return std::string_view::npos;
}

std::size_t count_of(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return count_characters(text) + 1;
  std::size_t n = 0;
  for (std::size_t at = 0; at = find_first(text, wanted, at), at != std::string_view::npos; at += wanted.size()) ++n;
  return n;
}

Value strip(Run& run, const MarkedText& text, Side side, const std::string* set) {
  if (set != nullptr && !run.pay(set->size())) return {};
  const Range range = stripped(text.bytes(), side, set);
  if (!run.pay_reading(text.size() - (range.end - range.begin))) return {};
  return run.text(text.sub(range.begin, range.end));
}

MarkedText upper(const MarkedText& text) {
  return changed(text, [](char32_t c, std::size_t) { return to_upper(c); });
}

MarkedText lower(const MarkedText& text) {
  return changed(text, [](char32_t c, std::size_t) { return to_lower(c); });
}

MarkedText capitalize(const MarkedText& text) {
  return changed(text, [](char32_t c, std::size_t at) { return at == 0 ? to_upper(c) : to_lower(c); });
}

MarkedText title(const MarkedText& text) {
  bool in_word = false;
  return changed(text, [&in_word](char32_t c, std::size_t) {
    const char32_t result = in_word ? to_lower(c) : to_upper(c);
    in_word = is_letter(c);
    return result;
  });
}

MarkedText escape_html(const MarkedText& text) {
  MarkedText out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text.bytes()[at];
    const Source source = text.source_at(at);
    switch (c) {
      case '&': out.append("&amp;", source); break;
      case '<': out.append("&lt;", source); break;
      case '>': out.append("&gt;", source); break;
      case '"': out.append("&#34;", source); break;
      case '\'': out.append("&#39;", source); break;
      default: out.append(text, at, at + 1);
    }
  }
  out.set_markup(true);
  return out;
}

MarkedText replace(const MarkedText& text, const std::string& from, const MarkedText& to, std::int64_t most) {
  if (most < 0) most = kAll;
  MarkedText out;
  std::size_t at = 0;
  if (from.empty()) {
    for (; most > 0; --most) {
      out.append(to);
      if (at >= text.size()) return out;
      const std::size_t n = character_bytes(text.bytes(), at);
      out.append(text, at, at + n);
      at += n;
    }
  } else {
    for (; most > 0; --most) {
      const std::size_t next = find_first(text.bytes(), from, at);
      if (next == std::string::npos) break;
      out.append(text, at, next);
      out.append(to);
      at = next + from.size();
    }
  }
  out.append(text, at, text.size());
  return out;
}

std::vector<MarkedText> split(const MarkedText& text, const SplitRule& given) {
  SplitRule rule = given;
  if (rule.most < 0) rule.most = kAll;
  if (rule.separator == nullptr) return split_white_space(text, rule);
  const std::size_t width = rule.separator->size();
  std::vector<MarkedText> pieces;
  std::size_t begin = 0;
  std::size_t end = text.size();
  for (std::int64_t n = 0; n < rule.most; ++n) {
    if (rule.from_right) {
      const std::size_t at = find_last(std::string_view(text.bytes()).substr(0, end), *rule.separator);
      if (at == std::string::npos) break;
      pieces.push_back(text.sub(at + width, end));
      end = at;
    } else {
      const std::size_t at = find_first(text.bytes(), *rule.separator, begin);
      if (at == std::string::npos) break;
      pieces.push_back(text.sub(begin, at));
      begin = at + width;
    }
  }
  pieces.push_back(text.sub(begin, end));
  if (rule.from_right) std::ranges::reverse(pieces);
  return pieces;
}

std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends) {
  const auto ends_line = [](char32_t c) {
    return (0x0A <= c && c <= 0x0D) || (0x1C <= c && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<MarkedText> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = character_at(text.bytes(), at);
    std::size_t next = at + character_bytes(text.bytes(), at);
    if (ends_line(c)) {
      if (c == '\r' && next < text.size() && text.bytes()[next] == '\n') ++next;
      lines.push_back(text.sub(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.push_back(text.sub(begin, text.size()));
  return lines;
}

Value text_list(Run& run, std::vector<MarkedText> texts, ListKind kind) {
  std::vector<Value> items;
  items.reserve(texts.size());
  for (MarkedText& text : texts) items.push_back(run.text(std::move(text)));
  return run.list(std::move(items), kind);
}

}  // namespace ebb::jinja
