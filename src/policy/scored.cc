// Least recently accessed first, where attention is what accesses a block. tinfer's mode of this name stamps cells when they
// are written only, which makes it oldest first.
#include "policy/policy.h"

namespace ebb {
namespace {

class ByAccess final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "scored"; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence) const override {
    std::vector<double> scores;
    scores.reserve(evidence.blocks.size());
    for (const BlockEvidence& block : evidence.blocks) scores.push_back(static_cast<double>(block.last_access));
    return scores;
  }

  [[nodiscard]] bool wants_attention() const override { return true; }
};

}  // namespace

std::unique_ptr<Policy> make_scored_policy() { return std::make_unique<ByAccess>(); }

}  // namespace ebb
