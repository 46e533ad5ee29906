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
    std::vector<std::vector<BlockIndex>> cold;
    std::vector<std::vector<BlockIndex>> hot;
    std::map<BlockIndex, double> scores;
    for (const CueLikeness& cue : evidence.meanings) {
      for (const BlockLikeness& one : cue.blocks) {
        double& most = scores[one.block];
        most = std::max(most, cue.weight * one.cosine);
      }
      weights.push_back(cue.weight);
      const bool is_heard = cue.weight * best_cold(cue, evidence) >= kBestCueWorth * best;
      std::vector<BlockIndex> like = is_heard ? find_like(cue, evidence) : std::vector<BlockIndex>();
      const auto first_hot =
          std::ranges::stable_partition(like, [&](BlockIndex block) { return missing(evidence, block) > 0.0; });
      hot.emplace_back(first_hot.begin(), first_hot.end());
      like.erase(first_hot.begin(), first_hot.end());
      cold.push_back(std::move(like));
    }
    return judge(take_turns(weights, cold), take_turns(weights, hot), scores, evidence);
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
  [[nodiscard]] std::vector<BlockIndex> find_like(const CueLikeness& cue, const RecallEvidence& evidence) const {
    std::vector<BlockLikeness> like;
    const double least = std::max(least_, worth_ * best_cold(cue, evidence));
    for (const BlockLikeness& one : cue.blocks) {
      if (one.cosine >= least) like.push_back(one);
    }
    std::ranges::sort(like, [](const BlockLikeness& a, const BlockLikeness& b) {
      return a.cosine != b.cosine ? a.cosine > b.cosine : a.block > b.block;
    });
    std::vector<BlockIndex> blocks;
    for (const BlockLikeness& one : like) blocks.push_back(one.block);
    return blocks;
  }

  // Those that come, those that stay, then the best of the cold ones that do not come. Of hot ones no more stay than may come.
  static std::vector<Considered> judge(std::span<const BlockIndex> cold, std::span<const BlockIndex> hot,
                                       const std::map<BlockIndex, double>& scores, const RecallEvidence& evidence) {
    std::vector<Considered> chosen;
    std::vector<Considered> rest;
    std::set<BlockIndex> seen;
    double n_left = evidence.max_blocks;
    for (const BlockIndex block : cold) {
      if (!seen.insert(block).second) continue;
      const bool comes = n_left > 0.0;
      if (comes) n_left -= missing(evidence, block);
      (comes ? chosen : rest)
          .push_back(
              {.block = block, .score = scores.at(block), .verdict = comes ? Verdict::kRecall : Verdict::kBeyond});
    }
    const auto n_most = chosen.size() + static_cast<std::size_t>(std::max(0, evidence.max_blocks));
    for (const BlockIndex block : hot) {
      if (chosen.size() >= n_most) break;
      if (!seen.insert(block).second) continue;
      chosen.push_back({.block = block, .score = scores.at(block), .verdict = Verdict::kKeep});
    }
    for (const auto& [block, score] : scores) {
      if (seen.contains(block) || missing(evidence, block) == 0.0) continue;
      rest.push_back({.block = block, .score = score, .verdict = Verdict::kWeak});
    }
    std::ranges::stable_sort(rest, std::greater(), &Considered::score);
    rest.resize(std::min(rest.size(), kMostTold));
    chosen.insert(chosen.end(), rest.begin(), rest.end());
    return chosen;
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
