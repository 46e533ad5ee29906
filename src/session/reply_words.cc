#include "session/reply_words.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

std::vector<std::string> sorted_words(std::string_view text) {
  std::vector<std::string> words = split_words(text);
  std::ranges::sort(words);
  const auto rest = std::ranges::unique(words);
  words.erase(rest.begin(), rest.end());
  return words;
}

}  // namespace

// A sentence is kept until a word of the next one is said: its last word ends with it.
void ReplyWords::add(std::string_view piece) {
  text_ += piece;
  std::size_t begin = 0;
  std::size_t mark_end = 0;
  // The last byte may be a full stop that goes on as a number or a name.
  for (std::size_t at = 0; at + 1 < text_.size();) {
    const std::size_t n = sentence_mark_bytes(text_, at);
    if (n == 0 && is_word_byte(text_[at])) begin = mark_end;
    at += std::max<std::size_t>(n, 1);
    if (n > 0) mark_end = at;
  }
  if (!text_.empty() && is_word_byte(text_.back())) begin = mark_end;
  begin = std::max(begin, text_.size() - std::min(text_.size(), kMostBytes));
  if (begin > n_taken_) take_until(begin);
  text_.erase(0, begin);
  n_taken_ -= std::min(n_taken_, begin);
}

void ReplyWords::take_until(std::size_t end) {
  for (std::string& word : split_words(std::string_view(text_).substr(n_taken_, end - n_taken_))) {
    ended_.push_back(std::move(word));
  }
}

std::vector<std::string> ReplyWords::take_ended() {
  const EndedWords ended = find_ended_words(text_);
  if (ended.end > n_taken_) {
    take_until(ended.end);
    n_taken_ = ended.next;
  }
  return std::exchange(ended_, {});
}

// A sentence names its subject as it was asked for, and what is asked of it perhaps in other words, which another cue may have: so a word that
// some cue has tells most against those without it where it is rarest.
Meant find_meant(std::span<const Cue> cues, const std::set<std::size_t>& answered, const Cue* expected,
                 std::string_view sentence, const RarityOf& rarity_of) {
  using Words = std::vector<std::string>;
  const auto holds = [](const Words& own, const std::string& word) { return std::ranges::binary_search(own, word); };
  const Words said = sorted_words(sentence.substr(0, find_ended_words(sentence).end));
  std::vector<Words> of_cues;
  for (const Cue& cue : cues) of_cues.push_back(sorted_words(cue.text));
  Meant meant;
  std::map<std::string, double> rare;  // of those that were said, what some cue has
  for (const std::string& word : said) {
    const double rarity = rarity_of(word);
    meant.says_rare |= rarity > 0.0;
    const bool is_asked = std::ranges::any_of(of_cues, [&](const Words& own) { return holds(own, word); });
    if (rarity > 0.0 && is_asked) rare.emplace(word, rarity);
  }
  const Words* best = nullptr;
  // How rare what is said and not of it is; then whether it is expected, how many of the rare words times how much of its own, how many of all
  // words, and how many there are beside them.
  std::tuple<double, bool, double, std::ptrdiff_t, std::ptrdiff_t> best_fit;
  for (std::size_t i = 0; i < of_cues.size(); ++i) {
    const Words& own = of_cues[i];
    double beside = 0.0;
    double n = 0.0;
    for (const auto& [word, rarity] : rare) {
      if (holds(own, word)) {
        ++n;
      } else {
        beside = std::max(beside, rarity);
      }
    }
    if (n == 0.0 || (best != nullptr && own == *best)) continue;
    const auto n_own =
        static_cast<double>(std::ranges::count_if(own, [&](const auto& word) { return rarity_of(word) > 0.0; }));
    if (answered.contains(i) && n < n_own) continue;
    const auto n_said = std::ranges::count_if(said, [&](const std::string& word) { return holds(own, word); });
    const std::tuple fit(-beside, &cues[i] == expected, n * n / n_own, n_said, -std::ssize(own));
    if (meant.cue && fit == best_fit) meant.is_open = true;
    if (meant.cue && fit <= best_fit) continue;
    meant.cue = i;
    meant.is_open = false;
    best_fit = fit;
    best = &own;
  }
  return meant;
}

}  // namespace ebb
