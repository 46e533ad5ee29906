// The selector by what sentences mean, as an embedding model has it.
//
// What is hot lowers nothing: EVOKE's gate, by which a block comes back only where it beats the best that is hot, keeps a source away
// for the sake of earlier questions about it.
#include <algorithm>
#include <map>
#include <set>

#include "policy/selector.h"

namespace ebb {
namespace {

// The first two are a guess that finds 20 of 20 (docs/decisions/0022), and were not tuned.
constexpr Parameter kOwnParameters[] = {
    {.name = "least", .value = 0.3, .least = 0.0, .most = 1.0, .summary = "the cosine that a block must have"},
    {.name = "worth",
     .value = 0.75,
     .least = 0.0,
     .most = 1.0,
     .summary = "the part of a cue's best cold block's cosine that another must have"},
    {.name = "wait",
     .value = 2000.0,
     .least = 0.0,
     .most = 60000.0,
     .summary = "milliseconds that a look waits at most for vectors of blocks that are still computed"}};

// The least share of the best cue's best block that another cue's must have, each by its weight. Lower: sentences that ask for nothing
// bring back what is a little like them. Higher: of several things asked for, those told in other words stay away.
constexpr double kBestCueWorth = 0.25;

class Embedding final : public Selector {
 public:
  explicit Embedding(const ParameterValues& values)
      : least_(values["least"]), worth_(values["worth"]), most_wait_ms_(values["wait"]) {}

  [[nodiscard]] std::string_view name() const override { return kEmbedding; }
  [[nodiscard]] SelectorAsk asks() const override { return {.meanings = true, .most_wait_ms = most_wait_ms_}; }

  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    double best = 0.0;
    for (const CueLikeness& cue : evidence.meanings) best = std::max(best, cue.weight * best_cold(cue, evidence));
    std::vector<double> weights;
    std::vector<Selection> found;
    std::map<BlockIndex, double> scores;
    for (const CueLikeness& cue : evidence.meanings) {
      for (const BlockLikeness& one : cue.blocks) {
        double& most = scores[one.block];
        most = std::max(most, cue.weight * one.cosine);
      }
      weights.push_back(cue.weight);
      const bool is_heard = cue.weight * best_cold(cue, evidence) >= kBestCueWorth * best;
      found.push_back(is_heard ? find_like(cue, evidence) : Selection());
    }
    return judge(found, take_turns(weights, found, evidence.missing, evidence.max_blocks), scores, evidence);
  }

 private:
  static double missing(const RecallEvidence& evidence, BlockIndex block) {
    return block.value() < std::ssize(evidence.missing) ? evidence.missing[block.index()] : 0.0;
  }

  static double best_cold(const CueLikeness& cue, const RecallEvidence& evidence) {
    double best = 0.0;
    for (const BlockLikeness& one : cue.blocks) {
      if (missing(evidence, one.block) > 0.0) best = std::max(best, one.cosine);
    }
    return best;
  }

  // Best first, ties to the later block, which is likelier meant.
  [[nodiscard]] Selection find_like(const CueLikeness& cue, const RecallEvidence& evidence) const {
    std::vector<BlockLikeness> like;
    const double least = std::max(least_, worth_ * best_cold(cue, evidence));
    for (const BlockLikeness& one : cue.blocks) {
      if (one.cosine >= least) like.push_back(one);
    }
    std::ranges::sort(like, [](const BlockLikeness& a, const BlockLikeness& b) {
      return a.cosine != b.cosine ? a.cosine > b.cosine : a.block > b.block;
    });
    Selection found;
    for (const BlockLikeness& one : like) {
      (missing(evidence, one.block) > 0.0 ? found.recall : found.keep)
          .push_back({.block = one.block, .worth = one.cosine});
    }
    return found;
  }

  // Those that come or stay, then the best of the cold ones that do not come: what was found had no room, the others are not like it.
  static std::vector<Considered> judge(std::span<const Selection> found, std::span<const Chosen> chosen,
                                       const std::map<BlockIndex, double>& scores, const RecallEvidence& evidence) {
    std::vector<Considered> all;
    std::set<BlockIndex> seen;
    for (const auto& [block, is_hot] : chosen) {
      seen.insert(block);
      all.push_back({.block = block, .score = scores.at(block), .verdict = is_hot ? Verdict::kKeep : Verdict::kRecall});
    }
    std::set<BlockIndex> like;
    for (const Selection& of_cue : found) {
      for (const BlockWorth& one : of_cue.recall) like.insert(one.block);
    }
    std::vector<Considered> rest;
    for (const auto& [block, score] : scores) {
      if (seen.contains(block) || missing(evidence, block) == 0.0) continue;
      rest.push_back(
          {.block = block, .score = score, .verdict = like.contains(block) ? Verdict::kBeyond : Verdict::kWeak});
    }
    std::ranges::stable_sort(rest, std::greater(), &Considered::score);
    rest.resize(std::min(rest.size(), kMostTold));
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  double least_;
  double worth_;
  double most_wait_ms_;
};

}  // namespace

const std::span<const Parameter> kEmbeddingParameters = kOwnParameters;

std::unique_ptr<const Selector> make_embedding(const ParameterValues& values) {
  return std::make_unique<Embedding>(values);
}

}  // namespace ebb
