#include "chat/prompt_tokens.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace ebb {
namespace {

struct Range {
  std::size_t begin;
  std::size_t end;
  bool from_user;
};

// The pieces' places in the text, neighbours of one kind joined.
std::vector<Range> ranges_of(const ChatPrompt& prompt) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  for (const PromptPiece& piece : prompt.pieces) {
    if (piece.text.empty()) continue;
    if (ranges.empty() || ranges.back().from_user != piece.from_user) ranges.push_back({at, at, piece.from_user});
    at += piece.text.size();
    ranges.back().end = at;
  }
  return ranges;
}

// Whether the text, read at once, would make a control token out of anything but the template's words.
bool is_forged(const TokenTexts& control, std::string_view text, const std::vector<Range>& ranges) {
  std::size_t next = 0;
  for (auto match = control.find(text, 0); match; match = control.find(text, match->end)) {
    while (ranges[next].end <= match->begin) ++next;
    if (ranges[next].from_user || ranges[next].end < match->end) return true;
  }
  return false;
}

std::vector<TokenTexts::Match> written_by_template(const TokenTexts& control, std::string_view text,
                                                   const std::vector<Range>& ranges) {
  std::vector<TokenTexts::Match> matches;
  for (const Range& range : ranges) {
    if (range.from_user) continue;
    const std::string_view reach = text.substr(0, range.end);
    for (auto match = control.find(reach, range.begin); match; match = control.find(reach, match->end)) {
      matches.push_back(*match);
    }
  }
  return matches;
}

bool is_white_space(char c) { return c == ' ' || ('\t' <= c && c <= '\r'); }

}  // namespace

Result<std::vector<Token>> tokenize_prompt(const Vocabulary& vocabulary, const ChatPrompt& whole, bool add_bos) {
  ChatPrompt prompt = whole;
  if (add_bos && vocabulary.adds_bos() && !prompt.pieces.empty() && !prompt.pieces.front().from_user) {
    EBB_ASSIGN_OR_RETURN(const std::string bos, vocabulary.piece(*vocabulary.bos(), SpecialTokens::kShow));
    if (!bos.empty() && prompt.pieces.front().text.starts_with(bos)) prompt = prompt.behind(bos.size());
  }
  const std::string text = prompt.text();
  const std::vector<Range> ranges = ranges_of(prompt);
  if (!is_forged(vocabulary.control_tokens(), text, ranges)) {
    return vocabulary.tokenize(text, {.add_bos = add_bos, .parse_special = true});
  }

  std::vector<Token> tokens;
  if (add_bos && vocabulary.adds_bos()) tokens.push_back(*vocabulary.bos());
  std::size_t at = 0;
  const auto append_plain = [&](std::size_t end) -> Status {
    EBB_ASSIGN_OR_RETURN(const std::vector<Token> plain,
                         vocabulary.tokenize(std::string_view(text).substr(at, end - at), {.add_bos = false}));
    tokens.insert(tokens.end(), plain.begin(), plain.end());
    return {};
  };
  for (const TokenTexts::Match& match : written_by_template(vocabulary.control_tokens(), text, ranges)) {
    std::size_t end = std::max(match.begin, at);
    while (match.strips_left && end > at && is_white_space(text[end - 1])) --end;
    EBB_RETURN_IF_ERROR(append_plain(end));
    tokens.push_back(match.token);
    at = match.end;
    while (match.strips_right && at < text.size() && is_white_space(text[at])) ++at;
  }
  EBB_RETURN_IF_ERROR(append_plain(text.size()));
  return tokens;
}

}  // namespace ebb
