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

// Blocks that found as much as this share of the best are as good as it: which of them answers nobody knows by their words.
constexpr double kAsGood = 0.9;

// Of what is rare in a cue, the share that a sentence has which answers it. Less: a sentence that shares one of several words with it leads astray.
// More: one that answers in other words leads nowhere.
constexpr double kAnswers = 0.5;

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

struct Answer {
  Words words;  // none: no sentence has enough
  std::size_t begin = 0;
  std::size_t end = 0;  // in the passage
};

// The sentence that has most of what is rare in `wanted`.
Answer find_answer(std::string_view passage, const Words& wanted, const WordIndex& index) {
  double most = kAnswers * rarity_of(wanted, wanted, index);
  Answer answer;
  if (most == 0.0) return answer;
  for_each_sentence(passage, [&](std::string_view sentence, std::size_t begin) {
    Words words = words_of(sentence);
    const double rarity = rarity_of(wanted, words, index);
    if (rarity < most || (rarity == most && !answer.words.empty())) return;
    most = rarity;
    answer = {.words = std::move(words), .begin = begin, .end = begin + sentence.size()};
  });
  return answer;
}

// Blocks that hold a part of the answer: the one that was found and, where the sentence goes on there, those beside it.
void add_blocks_of(const Answer& answer, const Passage& passage, BlockIndex block, std::set<BlockIndex>& blocks) {
  blocks.insert(block);
  if (answer.words.empty()) return;
  if (answer.begin < passage.begin) blocks.insert(BlockIndex(block.value() - 1));
  if (answer.end > passage.end) blocks.insert(BlockIndex(block.value() + 1));
}

// The weight of what the best leads to: where several places are as good, each leads with its share. Blocks side by side are one place, whose
// words a border parts.
double share_of_best(std::span<const Scored> ranked) {
  std::set<BlockIndex> as_good;
  for (const Scored& scored : ranked) {
    if (scored.score < kAsGood * ranked.front().score) break;
    as_good.insert(scored.block);
  }
  const auto goes_on = [&](BlockIndex block) { return as_good.contains(BlockIndex(block.value() - 1)); };
  return 1.0 / static_cast<double>(std::ssize(as_good) - std::ranges::count_if(as_good, goes_on));
}

}  // namespace

std::vector<CueRanking> follow_links(std::span<const Cue> cues, std::span<const CueRanking> found,
                                     const BlockTexts& texts) {
  std::vector<CueRanking> linked;
  Words said;
  for (const Cue& cue : cues) said.merge(words_of(wanted_text(cue)));
  for (std::size_t i = 0; i < std::min(leading_cues(cues).size(), kMostFollowed); ++i) {
    Words wanted = words_of(wanted_text(cues[i]));
    std::vector<Scored> ranked = found[i].ranked;
    std::set<BlockIndex> passed;
    double weight = kLinkWeight * cues[i].weight;
    for (int hop = 0; hop < kMostHops && !ranked.empty(); ++hop) {
      weight *= share_of_best(ranked);
      Words links;
      for (std::size_t r = 0; r < std::min(ranked.size(), kMostTried) && links.empty(); ++r) {
        const Passage passage = texts.passage(ranked[r].block);
        const Answer answer = find_answer(passage.text, wanted, texts.words);
        add_blocks_of(answer, passage, ranked[r].block, passed);
        for (const std::string& word : answer.words) {
          if (texts.words.is_rare(word) && said.insert(word).second) links.insert(word);
        }
      }
      if (links.empty()) break;
      ranked = texts.words.rank(fmt::format("{}", fmt::join(links, " ")));
      std::erase_if(ranked, [&](const Scored& scored) { return passed.contains(scored.block); });
      wanted = std::move(links);
      if (!ranked.empty()) linked.push_back({.weight = weight, .is_linked = true, .ranked = ranked});
    }
  }
  return linked;
}

}  // namespace ebb
