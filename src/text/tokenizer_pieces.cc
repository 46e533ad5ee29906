#include "text/tokenizer_pieces.h"

#include <cstddef>

namespace ebb {
namespace {

// Texts up to this size are never cut at tokens: libllama reads any of them in milliseconds.
constexpr std::size_t kMaxUncutBytes = 8192;
// Tokens that a piece holds at least, if the text has more.
constexpr std::size_t kTokensOfPiece = 256;

// Longest stretch without (or of nothing but) white space that std::regex gets, in bytes. Measured: on 8 MB of stack it
// survives 20000 bytes and not 40000. Shorter cuts would change the tokens of more texts.
constexpr std::size_t kMaxStretchBytes = 4096;

bool is_white_space(char c) { return c == ' ' || ('\t' <= c && c <= '\r'); }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where what the match takes ends: white space behind it is a token's that strips it.
std::size_t end_of(std::string_view text, const TokenTexts::Match& match) {
  std::size_t end = match.end;
  while (match.strips_right && end < text.size() && is_white_space(text[end])) ++end;
  return end;
}

// Whether one of them begins before the match and reaches into it, begins in it and ends behind it, or begins in white space
// that it takes: libllama looks for the longest first, wherever they stand.
bool is_overlapped(std::string_view text, const TokenTexts& tokens, const TokenTexts::Match& match, std::size_t end) {
  const std::size_t reach = tokens.longest() - 1;
  for (std::size_t at = match.begin > reach ? match.begin - reach : 0; at < end; ++at) {
    if (at == match.begin) continue;
    const std::size_t border = at < match.begin ? match.begin : at < match.end ? match.end : at;
    if (tokens.longest_at(text, at) > border) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> cut_behind_tokens(std::string_view text, const TokenTexts& read_first) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  std::size_t n = 0;
  if (text.size() > kMaxUncutBytes) {
    for (auto match = read_first.find(text, 0); match; match = read_first.find(text, match->end)) {
      if (++n < kTokensOfPiece) continue;
      const std::size_t end = end_of(text, *match);
      if (is_overlapped(text, read_first, *match, end)) continue;
      pieces.push_back(text.substr(begin, end - begin));
      begin = end;
      n = 0;
    }
  }
  if (begin < text.size() || pieces.empty()) pieces.push_back(text.substr(begin));
  return pieces;
}

std::vector<std::string_view> cut_stretches(std::string_view text) {
  std::vector<std::string_view> pieces;
  std::size_t piece = 0;
  std::size_t stretch = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && is_white_space(text[i]) != is_white_space(text[i - 1])) stretch = i;
    if (i - stretch < kMaxStretchBytes || is_continuation(text[i])) continue;
    pieces.push_back(text.substr(piece, i - piece));
    piece = stretch = i;
  }
  pieces.push_back(text.substr(piece));
  return pieces;
}

}  // namespace ebb
