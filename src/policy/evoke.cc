// The composite scorer of EVOKE (Anyesh/EVOKE, scorer.py): a weighted mean of recency, coherence with what the session
// is about, attention and recovery, squeezed above a floor by source, times the caller's priority.
//
//   raw   = sum of weight * part / sum of weights, over the parts that there is evidence for
//   score = min(1, floor + (1 - floor) * raw) * priority, floor .6 for the user, .5 for the assistant, 0 else
#include <algorithm>
#include <cmath>

#include "policy/policy.h"

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

class Evoke final : public Policy {
 public:
  explicit Evoke(const EvokeWeights& weights) : weights_(weights) {
    EBB_CHECK(weights.recency >= 0 && weights.focus >= 0 && weights.attention >= 0 && weights.recovery >= 0 &&
                  weights.recency + weights.focus > 0 && weights.recency_decay >= 0,
              "weights {} {} {} {}, decay {}", weights.recency, weights.focus, weights.attention, weights.recovery,
              weights.recency_decay);
  }

  [[nodiscard]] std::string_view name() const override { return "evoke"; }
  [[nodiscard]] bool wants_attention() const override { return weights_.attention > 0; }
  [[nodiscard]] bool wants_focus() const override { return weights_.focus > 0; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence) const override {
    std::vector<double> scores;
    scores.reserve(evidence.blocks.size());
    for (const BlockEvidence& block : evidence.blocks) {
      const double floor = floor_of(block.source);
      scores.push_back(std::min(1.0, (floor + (1.0 - floor) * raw(block, evidence.end))) * block.priority);
    }
    return scores;
  }

 private:
  [[nodiscard]] double raw(const BlockEvidence& block, Position end) const {
    // A session without words has no focus: half for every block, as in the original.
    constexpr double kUnknown = 0.5;
    double sum = weights_.recency * std::exp(-weights_.recency_decay * (end - block.span.end)) +
                 weights_.focus * (block.focus ? (*block.focus + 1.0) / 2.0 : kUnknown) +
                 weights_.recovery * block.recovery;
    double weight = weights_.recency + weights_.focus + weights_.recovery;
    if (block.attention) {
      sum += weights_.attention * *block.attention;
      weight += weights_.attention;
    }
    return sum / weight;
  }

  EvokeWeights weights_;
};

}  // namespace

std::unique_ptr<Policy> make_evoke_policy(const EvokeWeights& weights) { return std::make_unique<Evoke>(weights); }

}  // namespace ebb
