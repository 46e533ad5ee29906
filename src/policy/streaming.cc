// StreamingLLM (Xiao et al. 2023, arXiv 2309.17453): the first tokens and the most recent ones stay. Positions keep their
// place here, which leaves holes; the original numbers the survivors anew instead.
#include "policy/policy.h"

namespace ebb {
namespace {

class Streaming final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "streaming"; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence) const override {
    std::vector<double> scores;
    scores.reserve(evidence.blocks.size());
    for (const BlockEvidence& block : evidence.blocks) scores.push_back(block.span.end.value());
    return scores;
  }
};

}  // namespace

std::unique_ptr<Policy> make_streaming_policy() { return std::make_unique<Streaming>(); }

}  // namespace ebb
