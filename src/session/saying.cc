#include "session/saying.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

std::vector<std::string> ended_words(std::string_view sentence) {
  return sorted_words(sentence.substr(0, find_ended_words(sentence).end));
}

// Whether a sentence may go on to answer a cue though it says other words. What is asked of a subject is said in many ways, and of several
// subjects: who "owns" it is its "owner". The subject, which is rarer, tells.
bool may_be(const Cue& cue, std::string_view sentence, const RarityOf& rarity_of) {
  const std::vector<std::string> own = sorted_words(wanted_text(cue));
  double rarest_own = 0.0;
  for (const std::string& word : own) rarest_own = std::max(rarest_own, rarity_of(word));
  double rarest_other = 0.0;
  for (const std::string& word : ended_words(sentence)) {
    if (!std::ranges::binary_search(own, word)) rarest_other = std::max(rarest_other, rarity_of(word));
  }
  return rarest_other < rarest_own;
}

}  // namespace

// A sentence names its subject as it was asked for, and what is asked of it perhaps in other words, which another cue may have: so a word that
// some cue has tells most against those without it where it is rarest.
Meant find_meant(std::span<const Cue> cues, const std::set<std::size_t>& answered, const Cue* expected,
                 std::string_view sentence, const RarityOf& rarity_of) {
  using Words = std::vector<std::string>;
  const auto holds = [](const Words& own, const std::string& word) { return std::ranges::binary_search(own, word); };
  const Words said = ended_words(sentence);
  std::vector<Words> of_cues;
  for (const Cue& cue : cues) of_cues.push_back(sorted_words(wanted_text(cue)));
  Meant meant;
  std::map<std::string, double> telling;  // of those that were said, what some cue has
  for (const std::string& word : said) {
    const double rarity = rarity_of(word);
    meant.says_telling |= rarity > 0.0;
    const bool is_asked = std::ranges::any_of(of_cues, [&](const Words& own) { return holds(own, word); });
    if (rarity > 0.0 && is_asked) telling.emplace(word, rarity);
  }
  const Words* best = nullptr;
  // How rare what is said and not of it is; then whether it is expected, how many of the telling words times how much of its own, how many of all
  // words, and how many there are beside them.
  std::tuple<double, bool, double, std::ptrdiff_t, std::ptrdiff_t> best_fit;
  for (std::size_t i = 0; i < of_cues.size(); ++i) {
    const Words& own = of_cues[i];
    double beside = 0.0;
    double n = 0.0;
    for (const auto& [word, rarity] : telling) {
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

void Saying::end_words(const std::function<bool(const std::string&)>& is_rare) {
  for (const std::string& word : words_.take_ended()) {
    has_word_ended_ = true;
    has_said_rare_ |= is_rare(word);
  }
}

std::optional<Saying::News> Saying::find_news(std::span<const Cue> cues, const RarityOf& rarity_of) {
  has_word_ended_ = false;
  const Meant meant = find_meant(leading_cues(cues), answered_, next_cue(cues, answered_place_), sentence(), rarity_of);
  if (!meant.says_telling) return expect(cues);
  if (is_ahead_ && meant.cue != cue_ && may_be(cues[*cue_], sentence(), rarity_of)) return std::nullopt;
  is_ahead_ = false;
  const bool is_new = meant.cue ? !meant.is_open && meant.cue != cue_ : has_said_rare_;
  if (!is_new) return std::nullopt;
  cue_ = meant.cue;
  has_said_rare_ = false;
  return News{.cue = cue_};
}

// A sentence has begun. Of one that follows an answer the next cue is expected; of the first one the first, where several were said.
std::optional<Saying::News> Saying::expect(std::span<const Cue> cues) {
  if (cue_ && !is_ahead_) {
    answered_place_ = cues[*cue_].place;
    answered_.insert(*std::exchange(cue_, std::nullopt));
  }
  const Cue* const next = next_cue(cues, answered_place_);
  if (cue_ || next == nullptr) return std::nullopt;
  if (answered_.empty() && next_cue(cues, next->place) == nullptr) return std::nullopt;
  cue_ = static_cast<std::size_t>(next - cues.data());
  is_ahead_ = true;
  has_said_rare_ = false;
  return News{.cue = cue_};
}

}  // namespace ebb
