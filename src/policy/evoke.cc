// The composite scorer of EVOKE (Anyesh/EVOKE, scorer.py): a weighted mean of recency, coherence with what the session
// is about, attention and recovery, squeezed above a floor by source, times the caller's priority.
//
//   raw   = sum of weight * part / sum of weights, over the parts that there is evidence for
//   score = min(1, floor + (1 - floor) * raw) * priority, floor .6 for the user, .5 for the assistant, 0 else
#include <algorithm>
#include <cmath>

#include "policy/all.h"

namespace ebb {
namespace {

// The floors of scores by a block's source: what a user said is worth more than what can be said again. They rescale
// and do not clamp, so that the order inside a source survives.
constexpr double kUserFloor = 0.6;
constexpr double kAssistantFloor = 0.5;

double floor_of(Source source) {
  switch (source) {
    case Source::kUser: return kUserFloor;
    case Source::kAssistant: return kAssistantFloor;
    case Source::kSystem:
    case Source::kTool: return 0.0;
  }
  return 0.0;
}

// Weights of the composite score; those of parts without evidence drop out, the rest are scaled to sum 1.
struct EvokeWeights {
  double recency = 0.0;
  double focus = 0.0;
  double attention = 0.0;
  double recovery = 0.0;
  // The decay of recency, per token between the block and the end. Larger: only the newest blocks differ.
  double decay = 0.0;
  bool is_exponential = false;
};

class Evoke final : public Policy {
 public:
  explicit Evoke(const EvokeWeights& weights) : weights_(weights) {}

  [[nodiscard]] std::string_view name() const override { return "evoke"; }
  [[nodiscard]] Ask asks() const override { return {.shares = weights_.attention > 0, .focus = weights_.focus > 0}; }
  [[nodiscard]] bool weighs_priorities() const override { return true; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    for (const ScopeRow& row : scope.rows) {
      const BlockEvidence& block = evidence.block(row);
      const double floor = floor_of(block.source);
      scores.push_back(std::min(1.0, (floor + (1.0 - floor) * raw(block, evidence.end))) * block.priority);
    }
    return scores;
  }

 private:
  // The original's exponential is 1e-16 after 3700 tokens, where all older blocks tie and its order is that of insertion.
  [[nodiscard]] double recency(std::int32_t age) const {
    return weights_.is_exponential ? std::exp(-weights_.decay * age) : 1.0 / (1.0 + weights_.decay * age);
  }

  [[nodiscard]] double raw(const BlockEvidence& block, Position end) const {
    // A session without words has no focus: half for every block, as in the original.
    constexpr double kUnknown = 0.5;
    double sum = weights_.recency * recency(end - block.span.end) +
                 weights_.focus * (block.focus ? (*block.focus + 1.0) / 2.0 : kUnknown) +
                 weights_.recovery * block.recovery;
    double weight = weights_.recency + weights_.focus + weights_.recovery;
    if (block.attention) {
      sum += weights_.attention * *block.attention;
      weight += weights_.attention;
    }
    return weight > 0.0 ? sum / weight : 0.0;
  }

  EvokeWeights weights_;
};

}  // namespace

std::unique_ptr<Policy> make_evoke_policy(const ParameterValues& values) {
  return std::make_unique<Evoke>(EvokeWeights{.recency = values["recency"],
                                              .focus = values["focus"],
                                              .attention = values["attention"],
                                              .recovery = values["recovery"],
                                              .decay = values["decay"],
                                              .is_exponential = values.whole("exponential") == 1});
}

}  // namespace ebb
