#include "policy/policy.h"

namespace ebb {
namespace {

class Recency final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "recency"; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence) const override {
    std::vector<double> scores;
    scores.reserve(evidence.blocks.size());
    for (const BlockEvidence& block : evidence.blocks) scores.push_back(block.span.end.value());
    return scores;
  }

  [[nodiscard]] bool wants_sinks() const override { return false; }
};

}  // namespace

std::unique_ptr<Policy> make_recency_policy() { return std::make_unique<Recency>(); }

}  // namespace ebb
