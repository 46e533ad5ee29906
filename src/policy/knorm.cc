// Knorm (Devoto et al. 2024, arXiv 2406.11430): long keys leave first, by head: short ones are those that much attention goes to. A
// cheap baseline; models that normalise their keys give it nothing to go by.
#include "policy/all.h"

namespace ebb {
namespace {

class Knorm final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "knorm"; }
  [[nodiscard]] Ask asks() const override { return {.scope = Scope::kHead, .keys = true}; }

  [[nodiscard]] std::vector<double> score(const Evidence&, const ScopeEvidence& scope) const override {
    std::vector<double> scores;
    for (const double norm : scope.key_norm) scores.push_back(-norm);
    return scores;
  }
};

}  // namespace

std::unique_ptr<Policy> make_knorm_policy(const ParameterValues&) { return std::make_unique<Knorm>(); }

}  // namespace ebb
