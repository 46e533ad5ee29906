// EVOKE's selector (Anyesh/EVOKE, smart recover): the blocks that are likest what was just said, at most four, of those that are liker
// than every hot block, and no other rule.
//
// EVOKE compares embeddings (bge): so does this with meanings=1, the greatest cosine of a sentence of the block and of what was said.
// Else, for those who have no embedding model, it is BM25's score of the sentences that weigh most, added up.
#include <algorithm>
#include <map>

#include "policy/resident_gate.h"

namespace ebb {
namespace {

constexpr Parameter kOn = {
    .name = kGate.name, .value = 1, .least = 0, .most = 1, .is_whole = true, .summary = kGate.summary};
constexpr Parameter kOfEvoke[] = {
    {.name = "most", .value = 4, .least = 1, .most = 1024, .is_whole = true, .summary = "blocks that come at most"},
    {.name = "meanings",
     .value = 0,
     .least = 0,
     .most = 1,
     .is_whole = true,
     .summary = "1: by embeddings, as EVOKE; 0: by rare words"},
    {.name = "floor", .value = 0, .least = 0, .most = 1e6, .summary = "the score that a block must have"},
    kOn};

// As the selector embedding waits where nobody says otherwise.
constexpr double kMostWaitMs = 1000.0;

std::vector<Scored> similarities(const RecallEvidence& evidence) {
  std::map<BlockIndex, double> scores;
  for (const CueLikeness& cue : evidence.meanings) {
    if (cue.weight < evidence.meanings.front().weight) continue;
    for (const BlockLikeness& like : cue.blocks) scores[like.block] = std::max(scores[like.block], like.cosine);
  }
  for (const CueRanking& cue : evidence.words) {
    if (cue.weight < evidence.words.front().weight) continue;
    for (const Scored& scored : cue.ranked) scores[scored.block] += scored.score;
  }
  std::vector<Scored> all;
  for (const auto& [block, score] : scores) all.push_back({.block = block, .score = score, .words = {}});
  return all;
}

class EvokeSelector final : public Selector {
 public:
  explicit EvokeSelector(const ParameterValues& values)
      : most_(values.whole("most")),
        floor_(values["floor"]),
        has_gate_(values.whole("gate") == 1),
        by_meaning_(values.whole("meanings") == 1) {}

  [[nodiscard]] std::string_view name() const override { return "evoke"; }
  [[nodiscard]] SelectorAsk asks() const override {
    return {.words = !by_meaning_, .meanings = by_meaning_, .most_wait_ms = by_meaning_ ? kMostWaitMs : 0.0};
  }
  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    std::vector<Scored> ranked = similarities(evidence);
    std::ranges::stable_sort(ranked, std::greater(), &Scored::score);
    const double gate = has_gate_ ? best_hot_score(ranked, evidence.missing) : 0.0;
    const std::int32_t n_most = std::min(most_, evidence.max_blocks);
    std::vector<Considered> all;
    std::vector<Considered> rest;
    for (const Scored& one : ranked) {
      if (one.block.value() >= std::ssize(evidence.missing) || evidence.missing[one.block.index()] == 0.0) continue;
      const bool is_worth = one.score > gate && one.score >= floor_;
      const bool comes = is_worth && std::ssize(all) < n_most;
      const Verdict verdict = comes ? Verdict::kRecall : is_worth ? Verdict::kBeyond : Verdict::kWeak;
      (comes ? all : rest).push_back({.block = one.block, .score = one.score, .verdict = verdict});
    }
    rest.resize(std::min(rest.size(), kMostTold));
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

 private:
  std::int32_t most_;
  double floor_;
  bool has_gate_;
  bool by_meaning_;
};

}  // namespace

const std::span<const Parameter> kEvokeParameters = kOfEvoke;

std::unique_ptr<const Selector> make_evoke(const ParameterValues& values) {
  return std::make_unique<EvokeSelector>(values);
}

}  // namespace ebb
