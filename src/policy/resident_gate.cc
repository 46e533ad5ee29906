#include "policy/resident_gate.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

// The first block is a sink, and the last is of the turn under way.
bool shuts_out(BlockIndex block, std::span<const double> missing) {
  const std::int32_t b = block.value();
  return b > 0 && b + 1 < std::ssize(missing) && missing[block.index()] == 0.0;
}

bool is_chosen(const Considered& one) { return one.verdict == Verdict::kRecall || one.verdict == Verdict::kKeep; }

class Gated final : public Selector {
 public:
  explicit Gated(std::unique_ptr<const Selector> selector) : selector_(std::move(selector)) {}

  [[nodiscard]] std::string_view name() const override { return selector_->name(); }
  [[nodiscard]] SelectorAsk asks() const override { return selector_->asks(); }
  [[nodiscard]] std::vector<Considered> select(const RecallEvidence& evidence) const override {
    const double best = best_hot(evidence);
    std::vector<Considered> all = selector_->select(evidence);
    for (Considered& one : all) {
      if (one.verdict == Verdict::kRecall && one.score <= best) one.verdict = Verdict::kWeak;
    }
    std::ranges::stable_partition(all, is_chosen);
    return all;
  }

 private:
  static double best_hot(const RecallEvidence& evidence) {
    double best = 0.0;
    for (const CueRanking& cue : evidence.words) {
      best = std::max(best, cue.weight * best_hot_score(cue.ranked, evidence.missing));
    }
    for (const BlockShare& one : evidence.shares) {
      if (shuts_out(one.block, evidence.missing)) best = std::max(best, one.share);
    }
    return best;
  }

  std::unique_ptr<const Selector> selector_;
};

}  // namespace

double best_hot_score(std::span<const Scored> scored, std::span<const double> missing) {
  double best = 0.0;
  for (const Scored& one : scored) {
    if (shuts_out(one.block, missing)) best = std::max(best, one.score);
  }
  return best;
}

std::unique_ptr<const Selector> behind_gate(const ParameterValues& values, std::unique_ptr<const Selector> selector) {
  if (values.whole("gate") == 0) return selector;
  return std::make_unique<Gated>(std::move(selector));
}

}  // namespace ebb
