#include "chat/message_runs.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/split_text.h"
#include "json/json_string.h"

namespace ebb {
namespace {

// A stretch of the text that is one message's own.
struct Stretch {
  std::size_t message;
  std::size_t begin;
  std::size_t end;
};

std::vector<Stretch> stretches_of(const ChatPrompt& prompt) {
  std::vector<Stretch> stretches;
  std::size_t at = 0;
  for (const PromptPiece& piece : prompt.pieces) {
    const std::size_t end = at + piece.text.size();
    if (piece.message && end > at) {
      if (stretches.empty() || stretches.back().message != *piece.message) {
        stretches.push_back({.message = *piece.message, .begin = at, .end = end});
      }
      stretches.back().end = end;
    }
    at = end;
  }
  return stretches;
}

// Where in the text each token begins; one more for the end. What a vocabulary puts before a text lies before it.
std::vector<std::size_t> begins_of(const Vocabulary& vocabulary, std::size_t n_text, std::span<const Token> tokens) {
  std::vector<std::size_t> begins = {0};
  for (const Token token : tokens) {
    const Result<std::string> piece = vocabulary.piece(token, SpecialTokens::kShow);
    begins.push_back(begins.back() + (piece.ok() ? piece->size() : 0));
  }
  const std::size_t n_before = begins.back() - std::min(begins.back(), n_text);
  for (std::size_t& begin : begins) begin -= std::min(begin, n_before);
  return begins;
}

// Where in the text of the stretch, from `from` on; its length as it is written there.
struct Place {
  std::size_t begin;
  std::size_t n_bytes;
};
std::optional<Place> find_text(std::string_view within, std::size_t from, std::string_view text) {
  if (const std::size_t at = within.find(text, from); at != std::string_view::npos) return Place{at, text.size()};
  std::string written = to_json_string(text);
  written = written.substr(1, written.size() - 2);
  const std::size_t at = within.find(written, from);
  return at == std::string_view::npos ? std::nullopt : std::optional(Place{at, written.size()});
}

}  // namespace

std::vector<MessageRun> find_message_runs(const Vocabulary& vocabulary, const ChatPrompt& prompt,
                                          std::span<const Token> tokens) {
  const std::vector<std::size_t> begins = begins_of(vocabulary, prompt.text().size(), tokens);
  std::vector<MessageRun> runs;
  std::size_t first = 0;  // token of the run under way
  std::optional<Stretch> last;
  const auto end_run = [&](std::size_t end) {
    if (end == first) return;
    runs.push_back({.message = last ? std::optional(last->message) : std::nullopt,
                    .n_tokens = static_cast<std::int32_t>(end - first)});
    first = end;
  };
  for (const Stretch& stretch : stretches_of(prompt)) {
    // The token that the stretch begins with, and from there back over the template's words to the end of a turn.
    auto begin = static_cast<std::size_t>(std::ranges::upper_bound(begins, stretch.begin) - begins.begin()) - 1;
    begin = std::clamp(begin, first, tokens.size());
    const std::size_t n_said = last ? last->end : 0;
    std::size_t turn = begin;
    while (turn > first && begins[turn - 1] >= n_said && !vocabulary.is_end_of_generation(tokens[turn - 1])) --turn;
    const bool ends_a_turn = turn > first && vocabulary.is_end_of_generation(tokens[turn - 1]);
    end_run(ends_a_turn ? turn : begin);
    last = stretch;
  }
  end_run(tokens.size());
  return runs;
}

std::vector<Span> find_texts(const Vocabulary& vocabulary, const ChatPrompt& prompt, std::span<const Token> tokens,
                             std::span<const MessageText> texts) {
  const std::string whole = prompt.text();
  const std::vector<std::size_t> begins = begins_of(vocabulary, whole.size(), tokens);
  std::map<std::size_t, Stretch> left;  // of each message, what is not looked through yet
  for (const Stretch& stretch : stretches_of(prompt)) {
    const auto [known, is_new] = left.emplace(stretch.message, stretch);
    if (!is_new) known->second.end = stretch.end;
  }
  std::vector<Span> spans;
  for (const MessageText& wanted : texts) {
    spans.emplace_back();
    const std::string_view text = trimmed(wanted.text);
    const auto found = left.find(wanted.message);
    if (text.empty() || found == left.end()) continue;
    Stretch& stretch = found->second;
    const std::optional<Place> place = find_text(std::string_view(whole).substr(0, stretch.end), stretch.begin, text);
    if (!place) continue;
    stretch.begin = place->begin + place->n_bytes;
    const auto first = std::ranges::lower_bound(begins, place->begin) - begins.begin();
    const auto end = std::ranges::upper_bound(begins, stretch.begin) - begins.begin() - 1;
    if (first < end)
      spans.back() = {Position(static_cast<std::int32_t>(first)), Position(static_cast<std::int32_t>(end))};
  }
  return spans;
}

}  // namespace ebb
