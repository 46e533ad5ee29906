#include "policy/crowd.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Cues that are looked at. More: a message of many questions costs more than it waits. Less: of several some have the crowd.
constexpr std::size_t kMostCrowdedCues = 4;

// Blocks with so much of the best one's score, of which so many are a crowd, and so many are looked at. Lower: where a few tell the same, which
// comes first changes for nothing. Higher: the half of a sentence that a border cuts is not looked at.
constexpr double kMaySpeak = 0.3;
constexpr std::size_t kCrowd = 8;
constexpr std::size_t kMostLookedAt = 96;
// How far what tells more stands above all others. Less: it comes behind what says the asked words twice.
constexpr double kTellsMore = 1.5;

// What a heading says of the lines below it counts so much beside what they say themselves ("# config.py", "retries = 17"). More: what stands beside a
// sentence that speaks of what is asked is taken for its answer. Less: lines of tables and settings are none.
constexpr double kSaidBeside = 0.5;
// English words that ask, or hold a sentence together. In a text that hardly asks they are rarer than what it speaks of.
constexpr std::string_view kSayNothing[] = {
    "a",    "an",    "and",   "are", "as",   "at",    "be",    "by",   "can",  "did", "do",   "does",
    "for",  "from",  "had",   "has", "have", "how",   "i",     "in",   "is",   "it",  "its",  "me",
    "my",   "of",    "on",    "or",  "that", "the",   "there", "this", "to",   "was", "were", "what",
    "when", "where", "which", "who", "whom", "whose", "why",   "will", "with", "you", "your"};

// What a sentence counts that says no number and no name, where others do. More: "Nobody knew what the code was for" is taken for an answer, since it
// says the asked words and others that are rare. Less: "The owner of the mill is the miller" is none.
constexpr double kPlainWords = 0.4;

// Of what is rare in a cue, the share that a sentence has which answers it, with what stands around it. Less: one that shares one of several words with
// it leads astray. More: one that answers in other words does not come.
constexpr double kLeastTold = 0.5;
// The same where it says a number or a name: "The home city of Ada is Rome" answers where Ada lives, among others that say "live".
constexpr double kLeastOfValue = 0.35;

// A word that is looked for, and how rare it is.
struct Wanted {
  std::string word;
  double rarity = 0.0;
};

// What a sentence has of what is wanted, and else.
struct Said {
  std::string_view sentence;
  std::vector<std::string> words;
  std::vector<bool> has;  // [wanted]
};

Said read_sentence(std::string_view sentence, std::span<const Wanted> wanted) {
  Said said{.sentence = sentence, .words = split_words(sentence), .has = std::vector<bool>(wanted.size())};
  std::erase_if(said.words, [&](const std::string& word) {
    const auto found = std::ranges::find(wanted, word, &Wanted::word);
    if (found == wanted.end()) return false;
    said.has[static_cast<std::size_t>(found - wanted.begin())] = true;
    return true;
  });
  return said;
}

double rarity_of(const std::vector<bool>& has, std::span<const Wanted> wanted) {
  double sum = 0.0;
  for (std::size_t i = 0; i < wanted.size(); ++i) sum += has[i] ? wanted[i].rarity : 0.0;
  return sum;
}

// Whether a word as it is written may be what answers: a number or an identifier, or inside a sentence one that begins with a capital.
bool is_value(std::string_view written, bool is_first) {
  if (std::ranges::any_of(written, [](char c) { return c >= '0' && c <= '9'; })) return true;
  return !is_first && written.front() >= 'A' && written.front() <= 'Z';
}

// Whether it says a rare word beside what is wanted, and whether one of these is a number or a name. What is written without small letters has neither.
struct Tells {
  bool any = false;
  bool value = false;
};
Tells tells(const Said& said, const WordIndex& index) {
  Tells tells;
  const auto is_told = [&](const std::string& word) { return std::ranges::find(said.words, word) != said.words.end(); };
  const std::string_view sentence = said.sentence;
  bool is_first = true;
  for (std::size_t at = 0; at < sentence.size();) {
    std::size_t end = at;
    while (end < sentence.size() && is_word_byte(sentence[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const std::string_view written = sentence.substr(at, end - at);
    const std::vector<std::string> words = split_words(written);
    if (std::ranges::any_of(words, [&](const std::string& word) { return is_told(word) && index.is_rare(word); })) {
      tells.any = true;
      tells.value |= is_value(written, is_first);
    }
    is_first = false;
    at = end;
  }
  return tells;
}

// Of sentences that stand in the block, or in a part, and say a rare word beside something that is wanted, how much of what is rare in it the best
// one has, with a share of what stands around it; 0: none has enough. Of one that says no number and no name, less.
double told_of(const Passage& passage, std::span<const Wanted> wanted, const WordIndex& index) {
  std::vector<Said> own;
  std::vector<bool> around(wanted.size());
  for_each_sentence(passage.text, [&](std::string_view sentence, std::size_t begin) {
    Said said = read_sentence(sentence, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) around[i] = around[i] || said.has[i];
    if (begin < passage.end && begin + sentence.size() > passage.begin) own.push_back(std::move(said));
  });
  const double all = rarity_of(std::vector<bool>(wanted.size(), true), wanted);
  const double beside = rarity_of(around, wanted);
  double most = 0.0;
  for (const Said& said : own) {
    const double has = rarity_of(said.has, wanted);
    const double told = has + kSaidBeside * (beside - has);
    if (has == 0.0 || told < kLeastOfValue * all || told <= most) continue;
    const Tells tells = ebb::tells(said, index);
    if (!tells.any || (!tells.value && told < kLeastTold * all)) continue;
    most = std::max(most, tells.value ? told : kPlainWords * told);
  }
  return most;
}

std::vector<Wanted> find_wanted(std::string_view cue, const WordIndex& index) {
  std::vector<Wanted> wanted;
  const std::vector<std::string> words = split_words(cue);
  for (const std::string& word : std::set(words.begin(), words.end())) {
    if (std::ranges::find(kSayNothing, word) != std::end(kSayNothing)) continue;
    if (const double rarity = index.rarity(word); rarity > 0.0) wanted.push_back({.word = word, .rarity = rarity});
  }
  return wanted;
}

}  // namespace

void prefer_telling(std::span<const Cue> cues, std::vector<CueRanking>& found, const BlockTexts& texts) {
  for (std::size_t i = 0; i < std::min(leading_cues(cues).size(), kMostCrowdedCues); ++i) {
    std::vector<Scored>& ranked = found[i].ranked;
    std::size_t n = 0;
    while (n < ranked.size() && ranked[n].score >= kMaySpeak * ranked.front().score) ++n;
    const std::vector<Wanted> wanted = find_wanted(wanted_text(cues[i]), texts.words);
    if (n < kCrowd || wanted.empty()) continue;
    const auto looked_at = std::span(ranked).first(std::min(n, kMostLookedAt));
    std::vector<double> told;
    for (const Scored& scored : looked_at) told.push_back(told_of(texts.passage(scored.block), wanted, texts.words));
    const double most_told = *std::ranges::max_element(told);
    const double most = kTellsMore * ranked.front().score;
    for (std::size_t r = 0; r < looked_at.size(); ++r) {
      Scored& scored = looked_at[r];
      const double score = most_told > 0.0 ? most * told[r] / most_told : 0.0;
      if (score <= scored.score) continue;
      for (WordScore& word : scored.words) word.score *= score / scored.score;
      scored.score = score;
    }
    std::ranges::stable_sort(ranked, std::ranges::greater(), &Scored::score);
  }
}

}  // namespace ebb
