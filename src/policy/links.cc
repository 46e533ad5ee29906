#include "policy/links.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "policy/sentences.h"
#include "policy/words.h"

namespace ebb {
namespace {

// Cues that are followed, and how far. More: what nobody asks about comes back where there is room. Less: of long chains the end stays away.
constexpr std::size_t kMostFollowed = 4;
constexpr int kMostHops = 4;
// Blocks that may hold the answer to one cue. Less: of what lies across a border, or was asked before, nothing is followed.
constexpr std::size_t kMostTried = 3;

// The weight of what a link finds, beside the cue's. More: it takes the place of what stands beside the answer itself. Less: where there is little room
// nothing of it comes.
constexpr double kLinkWeight = 0.85;

// Of what is rare in a cue, the share that a sentence has which answers it. Less: a sentence that shares one of several words with it leads astray.
// More: one that answers in other words leads nowhere.
constexpr double kAnswers = 0.5;

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

using Words = std::set<std::string>;

Words words_of(std::string_view text) {
  const std::vector<std::string> words = split_words(text);
  return {words.begin(), words.end()};
}

double rarity_of(const Words& words, const Words& among, const WordIndex& index) {
  double sum = 0.0;
  for (const std::string& word : words) {
    if (among.contains(word)) sum += index.rarity(word);
  }
  return sum;
}

template <typename Visit>
void for_each_sentence(std::string_view passage, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < passage.size();) {
    const std::size_t n = sentence_mark_bytes(passage, at);
    at += std::max<std::size_t>(n, 1);
    if (n == 0 && at < passage.size()) continue;
    visit(passage.substr(begin, at - begin), begin, at);
    begin = at;
  }
}

// The words of the sentence that has most of what is rare in `wanted`; none: no sentence has enough.
Words find_answer(std::string_view passage, const Words& wanted, const WordIndex& index) {
  double most = kAnswers * rarity_of(wanted, wanted, index);
  Words answer;
  if (most == 0.0) return answer;
  for_each_sentence(passage, [&](std::string_view sentence, std::size_t, std::size_t) {
    Words words = words_of(sentence);
    const double rarity = rarity_of(wanted, words, index);
    if (rarity < most || (rarity == most && !answer.empty())) return;
    most = rarity;
    answer = std::move(words);
  });
  return answer;
}

// A word that is looked for, and how rare it is.
struct Wanted {
  std::string word;
  double rarity = 0.0;
};

// What a sentence has of what is wanted, and else.
struct Said {
  std::vector<std::string> words;
  std::vector<bool> has;  // [wanted]
};

Said read_sentence(std::string_view sentence, std::span<const Wanted> wanted) {
  Said said{.words = split_words(sentence), .has = std::vector<bool>(wanted.size())};
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

// Of sentences that stand in the block, or in a part, and say a rare word beside something that is wanted, how much of what is rare in it the best
// one has, with a share of what stands around it; 0: none has enough.
double told_of(const Passage& passage, std::span<const Wanted> wanted, const WordIndex& index) {
  std::vector<Said> own;
  std::vector<bool> around(wanted.size());
  for_each_sentence(passage.text, [&](std::string_view sentence, std::size_t begin, std::size_t end) {
    Said said = read_sentence(sentence, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) around[i] = around[i] || said.has[i];
    if (begin < passage.end && end > passage.begin) own.push_back(std::move(said));
  });
  const double all = rarity_of(std::vector<bool>(wanted.size(), true), wanted);
  const double beside = rarity_of(around, wanted);
  double most = 0.0;
  for (const Said& said : own) {
    const double has = rarity_of(said.has, wanted);
    const double told = has + kSaidBeside * (beside - has);
    if (has == 0.0 || told < kAnswers * all || told <= most) continue;
    if (std::ranges::any_of(said.words, [&](const std::string& word) { return index.is_rare(word); })) most = told;
  }
  return most;
}

std::vector<Wanted> find_wanted(std::string_view cue, const WordIndex& index) {
  std::vector<Wanted> wanted;
  for (const std::string& word : words_of(cue)) {
    if (std::ranges::find(kSayNothing, word) != std::end(kSayNothing)) continue;
    if (const double rarity = index.rarity(word); rarity > 0.0) wanted.push_back({.word = word, .rarity = rarity});
  }
  return wanted;
}

}  // namespace

std::vector<CueRanking> follow_links(std::span<const Cue> cues, std::span<const CueRanking> found,
                                     const LinkSource& source) {
  std::vector<CueRanking> linked;
  Words said;
  for (const Cue& cue : cues) said.merge(words_of(cue.text));
  for (std::size_t i = 0; i < std::min(leading_cues(cues).size(), kMostFollowed); ++i) {
    Words wanted = words_of(cues[i].text);
    std::vector<Scored> ranked = found[i].ranked;
    std::set<BlockIndex> passed;
    for (int hop = 0; hop < kMostHops; ++hop) {
      Words links;
      for (std::size_t r = 0; r < std::min(ranked.size(), kMostTried) && links.empty(); ++r) {
        passed.insert(ranked[r].block);
        for (const std::string& word : find_answer(source.passage(ranked[r].block).text, wanted, source.words)) {
          if (source.words.is_rare(word) && said.insert(word).second) links.insert(word);
        }
      }
      if (links.empty()) break;
      ranked = source.words.rank(fmt::format("{}", fmt::join(links, " ")));
      std::erase_if(ranked, [&](const Scored& scored) { return passed.contains(scored.block); });
      wanted = std::move(links);
      if (ranked.empty()) break;
      linked.push_back({.weight = kLinkWeight * cues[i].weight, .is_linked = true, .ranked = ranked});
    }
  }
  return linked;
}

void prefer_telling(std::span<const Cue> cues, std::vector<CueRanking>& found, const LinkSource& source) {
  for (std::size_t i = 0; i < std::min(leading_cues(cues).size(), kMostFollowed); ++i) {
    std::vector<Scored>& ranked = found[i].ranked;
    std::size_t n = 0;
    while (n < ranked.size() && ranked[n].score >= kMaySpeak * ranked.front().score) ++n;
    const std::vector<Wanted> wanted = find_wanted(cues[i].text, source.words);
    if (n < kCrowd || wanted.empty()) continue;
    const auto looked_at = std::span(ranked).first(std::min(n, kMostLookedAt));
    std::vector<double> told;
    for (const Scored& scored : looked_at) told.push_back(told_of(source.passage(scored.block), wanted, source.words));
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
