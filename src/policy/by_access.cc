// Least recently accessed first, where attention is what accesses a block. tinfer's mode of this name stamps cells when they
// are written only, which makes it oldest first.
#include "policy/all.h"

namespace ebb {
namespace {

class ByAccess final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "scored"; }
  [[nodiscard]] Ask asks() const override { return {.shares = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence& evidence, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    for (const ScopeRow& row : scope.rows) scores.push_back(static_cast<double>(evidence.block(row).last_access));
    return scores;
  }
};

}  // namespace

std::unique_ptr<Policy> make_scored_policy(const ParameterValues&) { return std::make_unique<ByAccess>(); }

}  // namespace ebb
