#include "policy/referring.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/split_text.h"
#include "policy/asking.h"
#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

constexpr std::string_view kPronouns[] = {"he",  "her", "hers",  "him",    "his",  "it",
                                          "its", "she", "their", "theirs", "them", "they"};
// These refer where they end a question: "How much is that?" Elsewhere they point at what follows: "that the mill burnt down".
constexpr std::string_view kLastPronouns[] = {"one", "ones", "same", "that", "then", "there", "these", "this", "those"};
constexpr std::string_view kOpenings[] = {"and", "but", "or"};
// Such a beginning refers in so short a question: "And the owner?" A longer one says what it asks about.
constexpr std::size_t kMostElliptic = 4;
// Of what was said before, so much says what it spoke of. More: what else it told is looked for, and each look reads it.
constexpr std::size_t kMostMeantBytes = 200;
// What answers a question in so few words says nothing of what was asked: "The new gate." A longer one says what it wants.
constexpr std::size_t kMostAnswering = 12;

template <class Words>
bool is_one_of(std::string_view word, const Words& words) {
  return std::ranges::find(words, word) != std::end(words);
}

// The last sentence that asks something; where none does the last of a short text, of a long one none.
std::string_view last_asked(std::string_view text) {
  std::string_view asked;
  std::string_view last;
  const auto read = [&](std::string_view end) {
    for_each_sentence(end, [&](std::string_view sentence, std::size_t) {
      if (trimmed(sentence).empty()) return;
      last = sentence;
      if (has_question(sentence)) asked = sentence;
    });
  };
  const bool is_long = text.size() > 2 * kCueEdgeBytes;
  read(last_bytes(text, 2 * kCueEdgeBytes));
  if (is_long && asked.empty()) read(first_bytes(text, 2 * kCueEdgeBytes));
  return asked.empty() && !is_long ? last_bytes(last, kMostMeantBytes) : last_bytes(asked, kMostMeantBytes);
}

// The first sentence, where it is short.
std::string_view first_said(std::string_view text) {
  std::string_view said;
  for_each_sentence(first_bytes(text, 2 * kMostMeantBytes), [&](std::string_view sentence, std::size_t) {
    if (said.empty() && sentence.size() <= kMostMeantBytes && !trimmed(sentence).empty()) said = sentence;
  });
  return said;
}

const SaidText* last_before(std::span<const SaidText> said, Source source) {
  const auto found = std::find_if(said.rbegin(), said.rend(),
                                  [source](const SaidText& text) { return text.is_before && text.source == source; });
  return found == said.rend() ? nullptr : &*found;
}

std::string meant_before(std::span<const SaidText> said) {
  const SaidText* const asked = last_before(said, Source::kUser);
  const SaidText* const reply = last_before(said, Source::kAssistant);
  std::string meant(asked == nullptr ? "" : last_asked(asked->text));
  const std::string_view told = reply == nullptr ? "" : first_said(reply->text);
  if (!meant.empty() && !told.empty()) meant += '\n';
  return meant += told;
}

// What the reply asked, where it did. Not what the user had said before it: whose words it repeats asks for them itself.
std::string meant_by_answer(std::span<const SaidText> said) {
  const SaidText* const reply = last_before(said, Source::kAssistant);
  const std::string_view question = reply == nullptr ? "" : last_asked(reply->text);
  return std::string(has_question(question) ? question : "");
}

}  // namespace

bool refers_back(std::string_view sentence) {
  const std::vector<std::string> words = split_words(sentence);
  if (words.empty()) return false;
  if (is_one_of(words.back(), kLastPronouns)) return true;
  if (words.size() <= kMostElliptic && is_one_of(words.front(), kOpenings)) return true;
  return std::ranges::any_of(words, [](const std::string& word) { return is_one_of(word, kPronouns); });
}

void find_what_is_meant(std::span<const SaidText> said, std::span<Cue> cues) {
  const bool any_asks = std::ranges::any_of(cues, &Cue::asks);
  std::optional<std::string> meant;
  for (Cue& cue : cues) {
    // "Tell me more about it" asks where nothing else does; beside a question it may be thanks.
    if (any_asks && !cue.asks) continue;
    if (!refers_back(cue.text)) {
      if (!any_asks && split_words(cue.text).size() <= kMostAnswering) cue.about = meant_by_answer(said);
      continue;
    }
    const Cue* before = nullptr;
    for (const Cue& other : cues) {
      if (!other.asks || other.place >= cue.place || refers_back(other.text)) continue;
      if (before == nullptr || other.place > before->place) before = &other;
    }
    if (before != nullptr) {
      cue.about = std::string(last_bytes(before->text, kMostMeantBytes));
    } else {
      if (!meant) meant = meant_before(said);
      cue.about = *meant;
    }
  }
}

}  // namespace ebb
